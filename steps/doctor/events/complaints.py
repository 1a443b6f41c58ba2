"""Lines by which any program says that it failed, whatever it failed at: what no other parser knows must not pass for health."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Complaint(Event):
    """A program says that it failed."""


@parses(
    r"^(?:\[rank\d+\]:\s*)?[\w.]*(?:Error|Exception): \S[^\n]*|^[^\n]{0,80}: command not found$|^(?:E|fatal|FATAL|[Ee]rror|ERROR): [^\n]+|"
    r"[^\n:]{1,80}: (?:fatal )?error: [^\n]+|^[^\n]*Segmentation fault[^\n]*|^[^\n]*No such file or directory$",
    "Exception: ", ": command not found", "E: ", "fatal: ", "FATAL: ", "rror: ", "ERROR: ", "Segmentation fault",
    "No such file or directory",
)  # fmt: skip
def complaint(found: re.Match[str], at: Place) -> Complaint:
    """Recognise the last line of a Python traceback, what shells, compilers and package managers begin or end their complaints with."""
    return Complaint(place=at)
