"""Lines after which what stands before them is over: a package manager got on, or the machine was started anew."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place
from steps.host.prompts import HISTORY, PROMPT

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


_ASKED = re.compile(rf"(?:{PROMPT}|{HISTORY}|(?=/(?:usr/)?s?bin/)) *(?:sudo +(?:-\w+ +)*)?(?:/\S*/)?(?:journalctl|dmesg)\b")


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
    if not _ASKED.match(at.text):
        return None
    return LogAsked(place=at, old=re.search(r"(?:-b|--boot)[ =]?-[1-9]", found["rest"] or "") is not None)


class SetUp(Event):
    """A package was configured."""

    package: str


@parses(r"^Setting up (?P<package>[a-z0-9][\w.+-]*)", "Setting up ")
def set_up(found: re.Match[str], at: Place) -> SetUp:
    """Recognise dpkg."""
    return SetUp(place=at, package=found["package"])


class Proceeded(Event):
    """apt had its lock: it says what it is going to do."""


@parses(
    r"^(?:\d+ upgraded, \d+ newly installed|升级了 \d+ 个软件包，新安装了 \d+ 个软件包|\d+ aktualisiert, \d+ neu installiert|"
    r"\d+ mis à jour, \d+ nouvellement installés)",
    "newly installed", "新安装了", "neu installiert", "nouvellement install",
)  # fmt: skip
def proceeded(found: re.Match[str], at: Place) -> Proceeded:
    """Recognise apt's summary."""
    return Proceeded(place=at)


class Reached(Event):
    """A repository gave its list, and its signature was taken."""

    url: str


@parses(
    r"^(?:Hit|Get|命中|获取|OK|Holen|Atteint|Réception de)\s?[:：]\d+ (?P<url>(?:https?|file|ftp|mirror\+\w+):\S+) [^\n]*\bInRelease\b",
    "InRelease",
)
def reached(found: re.Match[str], at: Place) -> Reached:
    """Recognise apt's line for it; a list that is refused afterwards is told of behind it."""
    return Reached(place=at, url=found["url"])


class CardsListed(Event):
    """nvidia-smi listed a card: the driver served it."""


@parses(r"^GPU \d+: [^\n]{1,80} \(UUID: GPU-|^\| NVIDIA-SMI [\d.]+ +Driver Version: [\d.]+", "(UUID: GPU-", "Driver Version: ")
def cards_listed(found: re.Match[str], at: Place) -> CardsListed:
    """Recognise its list and the head of its table."""
    return CardsListed(place=at)
