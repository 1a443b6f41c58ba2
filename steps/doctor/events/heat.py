"""What people write of how hot a card was."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class HeatTold(Event):
    """Somebody, or a program's log, tells in words how hot a card was."""

    degrees: float
    rests: bool
    """Whether nothing ran on it."""


_OF_A_CARD = re.compile(r"\b(?:GPUs?|graphics cards?|cards?|Titan|Tesla|Quadro|[GR]TX|[AHVP]100)\b")
_NO_READING = re.compile(
    r"limit|slowdown|shutdown|thrott|target|\bmax|thresh|crit|below|under|until|should|CPU|Package|Core \d|memory|VRAM|junction|\||\s:\s",
    re.IGNORECASE,
)


# A number and "C" would be looked for at a quarter of all places of a log: what people write around them is rarer.
@parses(
    r"\b(?P<degrees>\d{2,3}) ?(?:°|º|deg(?:rees)?)? ?C\b(?!\+\+)",
    *("emperature", "degrees", "overheat", "heats up", "heating up", "running ", "ther hot", "too hot", "ery hot", "ets hot", "etting hot"),
    *(
        "sits at ",
        "idle at ",
        "idles at",
        "idling at",
        "stays at ",
        "hovers at",
        "reached ",
        "reaches ",
        "climbed to",
        "climbs to",
        "went to ",
    ),
    *(
        "temps of ",
        "temps at ",
        "temp of ",
        "temp at ",
        "temps are",
        "temps were",
        "temp was ",
        "temps around",
        "temp around",
        "showing ",
        "showed ",
    ),
)
def heat_told(found: re.Match[str], at: Place) -> HeatTold | None:
    """Recognise a temperature in a sentence about a card, and no limit or plan that it states."""
    if not _OF_A_CARD.search(at.text) or _NO_READING.search(at.text):
        return None
    return HeatTold(place=at, degrees=float(found["degrees"]), rests=re.search(r"\b(?:idl(?:e|ing)|at rest)\b", at.text) is not None)
