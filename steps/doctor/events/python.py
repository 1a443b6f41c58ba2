"""What Python frameworks, pip and compilers say."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class CompilerRefused(Event):
    """nvcc does not take a host compiler of this age; `header` tells which nvcc it was."""

    header: str
    newest: int


@parses(
    r"(?P<header>/\S*host_config\.h):\d+.{0,40}?unsupported GNU version! gcc versions later than (?P<newest>\d+)",
    "unsupported GNU version", "host_config.h",
    lines=2,
)  # fmt: skip
def compiler_refused(found: re.Match[str], at: Place) -> CompilerRefused:
    """Recognise the error of the header that checks compilers."""
    return CompilerRefused(place=at, header=found["header"], newest=int(found["newest"]))
