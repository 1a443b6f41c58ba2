"""Which libraries of the driver itself a program found, and what became of them."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class DriverFile(Event):
    """A program names the file of libcuda or NVML that it found; `version` is the driver's in its name, `None` for a plain link."""

    path: str
    version: str | None = None
    refused: bool = False
    """Whether the program could not use it."""


_REFUSED = re.compile(r"[Uu]nable to load|[Ff]ailed to load|no nvidia devices detected|init failure|undefined symbol|cannot open")


@parses(
    r"(?P<path>/(?:usr/)?lib[\w./+-]*/lib(?:nvidia-ml|cuda)\.so(?:\.(?P<version>\d{3}\.\d+(?:\.\d+)?)|\.1(?:\.1)?)?)(?![\w.*?\[])",
    "libnvidia-ml.so", "libcuda.so",
)  # fmt: skip
def driver_file(found: re.Match[str], at: Place) -> DriverFile | None:
    """Recognise a path as ollama, Numba, strace and the loader's errors write it; a pattern to look for, or a vain try, finds nothing."""
    if "= -1 ENOENT" in at.text:
        return None
    return DriverFile(place=at, path=found["path"], version=found["version"], refused=_REFUSED.search(at.text) is not None)
