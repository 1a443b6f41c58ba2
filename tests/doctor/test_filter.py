"""The search before the parsers finds every line that they would recognise: without it no further event comes out."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from steps.doctor.events.all import parsers
from steps.doctor.events.base import Event, Events, Parser, literals_of
from steps.doctor.events.reading import Reader
from steps.doctor.events.search import Hit
from steps.doctor.told import Place
from tests.doctor import kit, matching

NOWHERE = Place(source="", text="")
LONG = 16_000
"""Characters of one line, nearly all that are looked at."""
ALL = frozenset(literal.encode() for literal in literals_of(parsers()))


class Unfiltered(Reader):
    """A reader whose parsers look at every line."""

    @staticmethod
    def _lines(hits: Iterable[Hit], block: bytes, until: int) -> Iterator[tuple[int, int, set[bytes]]]:
        del hits
        start = 0
        while start < until:
            end = block.find(b"\n", start)
            end = len(block) if end < 0 else end
            yield start, end, set(ALL)
            start = end + 1


def told(reads: Reader, text: str) -> Counter[Event]:
    """Return what the events in a text say; a message of several lines may be quoted from its second one on."""
    reads.read_blocks("log", [text.encode()])
    events = (event for kind in kinds(reads.events) for event in reads.events.all(kind))
    return Counter(msgspec.structs.replace(event, place=NOWHERE) for event in events)


def kinds(events: Events) -> set[type[Event]]:
    return {kind for kind, _ in events._kept}


def texts(capture: Path) -> list[str]:
    """Return everything in a capture that a person could paste."""
    document = json.loads(capture.read_text(encoding="utf-8"))
    printed = [f"{one.get('stdout', '')}\n{one.get('stderr', '')}" for one in document.get("commands", {}).values()]
    return [*printed, *document.get("logs", {}).values()]


def lost(text: str) -> list[Event]:
    """Return the events that are found only without the search; a poorer form of one that is found does not count."""
    found, expected = told(Reader(parsers(), Events()), text), told(Unfiltered(parsers(), Events()), text)
    return [event for event in expected - found if not any(poorer(event, other) for other in found)]


def poorer(event: Event, other: Event) -> bool:
    """Return whether another event says the same and more."""
    if type(event) is not type(other) or event == other:
        return False
    return all(value is None or value == getattr(other, name) for name, value in msgspec.structs.asdict(event).items())


@pytest.mark.parametrize("case", kit.cases(), ids=lambda case: case.name)
def test_a_cases_texts_lose_no_event_by_the_search(case: kit.Case) -> None:
    for text in texts(case.capture):
        assert lost(text) == []


@pytest.mark.parametrize("seed", range(8))
def test_lines_of_all_cases_in_any_order_lose_no_event(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [piece for case in kit.cases() for text in texts(case.capture) for piece in text.split("\n")]
    text = "\n".join(chance.choices(pieces, k=250))
    assert told(Reader(parsers(), Events()), text)
    assert lost(text) == []


def hostile(literal: str) -> Iterator[str]:
    """Yield long lines made of a literal and of what patterns repeat."""
    for filling in ("/x", "a ", " ", "a", "http:", literal, f"{literal} x "):
        much = filling * (LONG // len(filling))
        yield f"{much}{literal}"
        yield f"{literal}{much}"


@pytest.mark.parametrize("parser", parsers(), ids=lambda parser: parser.make.__name__)
def test_no_line_keeps_a_parser_busy(parser: Parser) -> None:
    reads = Reader((parser,), Events())
    began = time.process_time()
    for line in hostile(min(parser.literals, key=len)):
        reads.read("log", line)
    assert time.process_time() - began < 3.0


@pytest.mark.parametrize("parser", parsers(), ids=lambda parser: parser.make.__name__)
def test_whatever_a_pattern_matches_is_an_event_or_none_and_soon(parser: Parser) -> None:
    made = list(itertools.islice(matching.texts(parser.pattern, random.Random(1)), 25))
    found = [match for text in made for match in itertools.islice(parser.pattern.finditer(text), 1)]
    assert found
    for match in found:
        parser.make(match, NOWHERE)
    began = time.process_time()
    Reader((parser,), Events()).read("log", f"{made[0][:40]} " * (LONG // 40) + parser.literals[0])
    assert time.process_time() - began < 2.0
