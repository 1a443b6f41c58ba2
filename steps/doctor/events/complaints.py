"""Lines by which any program says that it failed, whatever it failed at: what no other parser knows must not pass for health."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Complaint(Event):
    """A program says that it failed; `meaning` is what that means, for the words, where no cause of the vocabulary is behind it."""

    meaning: str | None = None


@parses(
    r"^(?:\[rank\d+\]:\s*)?[\w.]*(?:Error|Exception): \S[^\n]*|^[^\n]{0,80}: command not found$|^(?:E|fatal|FATAL|[Ee]rror|ERROR): [^\n]+|"
    r"[^\n:]{1,80}: (?:fatal )?error: [^\n]+|^[^\n]*Segmentation fault[^\n]*|^[^\n]*No such file or directory$",
    "Exception: ", ": command not found", "E: ", "fatal: ", "FATAL: ", "rror: ", "ERROR: ", "Segmentation fault",
    "No such file or directory",
)  # fmt: skip
def complaint(found: re.Match[str], at: Place) -> Complaint:
    """Recognise the last line of a Python traceback, what shells, compilers and package managers begin or end their complaints with."""
    return Complaint(place=at)


@parses(
    r"^[^\n]*(?:(?P<gpu_memory>CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY)|"
    r"(?P<memory>Out of memory: Killed process|Memory cgroup out of memory|oom-kill:)|"
    r"(?P<page>Type '<[^'\n]{1,40}' is not known on line)|"
    r"(?P<package>Unable to locate package|has no installation candidate)|"
    r"(?P<managed>externally-managed-environment)|"
    r"(?P<toolkit>CUDA_HOME (?:environment variable is|is|was) not (?:set|found|defined))|"
    r"(?P<extension>undefined symbol: _ZNK?\d?\w{0,12}(?:c10|torch|at)\w*)|"
    r"(?P<container>nvidia-container-cli: [^\n]{0,60}load library failed: libnvidia-ml\.so\.1)|"
    r"(?P<program>\b(?:gcc|g\+\+|cc|make|clang|ld)[\d.-]*: (?:command )?not found))[^\n]*",
    "out of memory", "OutOfMemoryError", "OUT_OF_MEMORY", "Out of memory: Killed", "oom-kill:", "' is not known on line",
    "Unable to locate package", "has no installation candidate", "externally-managed-environment", "CUDA_HOME",
    "load library failed: libnvidia-ml", "undefined symbol: _Z",
    ": not found", "command not found",
)  # fmt: skip
def meant(found: re.Match[str], at: Place) -> Complaint:
    """Recognise complaints that say what to do, though nothing of the driver's or the machine's is behind them."""
    return Complaint(place=at, meaning=next(name for name, text in found.groupdict().items() if text).replace("_", "-"))
