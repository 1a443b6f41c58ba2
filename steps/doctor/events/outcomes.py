"""Lines after which what stands before them is over: a package manager got on, or the machine was started anew."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place

_YEAR = 31_000_000.0
"""Seconds: a time stamp above it is counted from 1970, one below it from the start of the machine."""


class Booted(Event):
    """The machine was started here; `kernel` is the one that runs from then on, where the line tells."""

    kernel: str | None = None


@parses(r"^Linux version (?P<kernel>\d+\.\d+\S*) |^-- (?:Boot|Reboot)\b[^\n]* --$", "Linux version ", "-- Boot", "-- Reboot")
def booted(found: re.Match[str], at: Place) -> Booted | None:
    """Recognise the kernel's first line by its stamp (/proc/version has none), and the journal's line between two boots."""
    if found["kernel"] and (at.seconds is None or 1.0 < at.seconds < _YEAR):
        return None
    return Booted(place=at, kernel=found["kernel"])


class LogAsked(Event):
    """Somebody asked for the kernel's log; `old` where it was that of an earlier boot."""

    old: bool


@parses(
    r"(?:journalctl(?P<rest>[^\n]*)|\bdmesg\b)",
    "journalctl ", "dmesg",
    typed=True,
)  # fmt: skip
def log_asked(found: re.Match[str], at: Place) -> LogAsked | None:
    """Recognise a command behind a prompt."""
    if not re.match(r"[^\n]{0,80}[$#%>] +(?:sudo +)?(?:journalctl|dmesg)\b", at.text):
        return None
    return LogAsked(place=at, old=re.search(r"(?:-b|--boot)[ =]?-[1-9]", found["rest"] or "") is not None)


class SetUp(Event):
    """A package was configured."""

    package: str


@parses(r"^Setting up (?P<package>[a-z0-9][\w.+-]*)", "Setting up ")
def set_up(found: re.Match[str], at: Place) -> SetUp:
    """Recognise dpkg."""
    return SetUp(place=at, package=found["package"])
