"""What an event is, and how a text is recognised as one: a pattern, the literals that find its lines, and what it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import NamedTuple, TypeVar

from steps.doctor.told import Place, Told


class Event(Told):
    """Something that happened, or that a program said."""


E = TypeVar("E", bound=Event)
Make = Callable[["re.Match[str]", Place], "Event | None"]


class Parser(NamedTuple):
    """Recognises one kind of event; `lines` is how many lines its text may be spread over, `typed` that it may be what a person typed."""

    pattern: re.Pattern[str]
    literals: tuple[str, ...]
    lines: int
    make: Make
    typed: bool = False


_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_MOST = {"\\s": 100, "\\S": 400, "\\w": 200, "\\d": 40}
_MOST_OTHERS = 800
"""How often one thing may be repeated: no message says more, and what is endless takes the square of a line's length, or its cube."""


def said(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern whose blanks match any white space, since programs and terminals break lines where they like.

    A blank with a quantifier behind it keeps that one; one in brackets stands at their beginning and means itself. What a pattern
    repeats without an end ends here.
    """
    broken = re.sub(r"(?<![\\\[]) +(?=([+*?{]?))", lambda blank: r"\s" if blank[1] else r"\s+", pattern)
    return re.compile(_bounded(broken), re.MULTILINE | flags)


def _bounded(pattern: str) -> str:
    """Return a pattern in which no character and no set of them is repeated without an end."""
    done: list[str] = []
    repeatable = ""
    for part in _TOKEN.findall(pattern):
        if part in ("*", "+") and repeatable:
            done.append(f"{{{0 if part == '*' else 1},{_MOST.get(repeatable, _MOST_OTHERS)}}}")
            repeatable = ""
            continue
        repeatable = part if part[0] in "\\[." and part not in ("\\b", "\\B") else ""
        done.append(part)
    return "".join(done)


def parses(pattern: str, *literals: str, lines: int = 1, flags: int = 0, typed: bool = False) -> Callable[[Make], Parser]:
    """Make a parser of a function from a match and its place to an event (or `None`: not this one after all).

    Only lines that hold one of `literals` (written exactly so) are looked at; the match must begin in such a line and may reach over
    `lines` lines. What stands behind a prompt, in a trace of a shell or in a comment counts with `typed` only.
    Of kernel messages the time stamps, and the `NVRM:` of the lines that go on, are gone by then.
    """

    def made(make: Make) -> Parser:
        return Parser(said(pattern, flags), literals, lines, make, typed)

    return made


def spoken(words: str) -> str:
    """Return words in lower case with one blank between them: a match may have been broken over lines."""
    return " ".join(words.lower().split())


def parsers_of(*modules: ModuleType) -> tuple[Parser, ...]:
    """Return the parsers that the modules define."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Parser))


_FIRST, _LAST = 150, 50


class _Kept:
    """The events of one kind from one source: all of them counted, the first and the last ones kept."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[Event] = []
        self.last: list[Event] = []

    def add(self, event: Event) -> None:
        self.count += 1
        if len(self.first) < _FIRST:
            self.first.append(event)
            return
        self.last.append(event)
        if len(self.last) > 2 * _LAST:
            del self.last[:_LAST]

    def all(self) -> list[Event]:
        return [*self.first, *self.last[-_LAST:]]


def _order(event: Event) -> int:
    return event.place.order


class Events:
    """The events of all that was read."""

    def __init__(self) -> None:
        self._kept: dict[tuple[type[Event], str], _Kept] = {}

    def add(self, event: Event) -> None:
        """Keep an event; of a flood only the first and the last ones are kept, and how many there were."""
        self._kept.setdefault((type(event), event.place.source), _Kept()).add(event)

    def __iter__(self) -> Iterator[Event]:
        """Yield every event that is kept, kind by kind."""
        for kept in self._kept.values():
            yield from kept.all()

    def drop(self, past: Callable[[Event], bool]) -> Events:
        """Forget the events for which `past` holds, and return those."""
        gone = Events()
        for key, kept in list(self._kept.items()):
            left, over = list[Event](), list[Event]()
            for event in kept.all():
                (over if past(event) else left).append(event)
            if over:
                self._kept[key] = fresh = _Kept()
                for event in left:
                    fresh.add(event)
                for event in over:
                    gone.add(event)
        return gone

    def only(self, sources: Iterable[str]) -> Events:
        """Return the events of these sources by themselves, as they are now."""
        found, wanted = Events(), frozenset(sources)
        for (_, source), kept in self._kept.items():
            for event in kept.all() if source in wanted else ():
                found.add(event)
        return found

    def without(self, sources: Iterable[str]) -> Events:
        """Return the events of all other sources by themselves."""
        unwanted = frozenset(sources)
        return self.only({source for _, source in self._kept} - unwanted)

    def joined(self, *others: Events) -> Events:
        """Return these events and others as one, by themselves."""
        found = Events()
        for event in sorted((one for some in (self, *others) for one in some), key=_order):
            found.add(event)
        return found

    def all(self, kind: type[E]) -> tuple[E, ...]:
        """Return the events of a kind in the order of reading; of a flood in one source the first 150 and the last 50."""
        found = [event for (its, _), kept in self._kept.items() if its is kind for event in kept.all() if isinstance(event, kind)]
        return tuple(sorted(found, key=_order))

    def count(self, kind: type[Event]) -> int:
        """Return how many events of a kind there were."""
        return sum(kept.count for (its, _), kept in self._kept.items() if its is kind)

    def first(self, kind: type[E], where: Callable[[E], bool] = lambda _: True) -> E | None:
        """Return the first event of a kind for which `where` holds, or `None`."""
        return next((event for event in self.all(kind) if where(event)), None)

    def has(self, kind: type[E], where: Callable[[E], bool] = lambda _: True) -> bool:
        """Return whether there is such an event."""
        return self.first(kind, where) is not None


def literals_of(parsers: Iterable[Parser]) -> tuple[str, ...]:
    """Return the literals of all parsers, each once."""
    return tuple(sorted({literal for parser in parsers for literal in parser.literals}))
