"""One linear pass over a text: a fast search for the lines that matter, then the exact parsers on those."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from steps.doctor.events.base import Events, Parser, literals_of
from steps.doctor.events.cleaning import plain, unstamped, utf8
from steps.doctor.events.quoting import is_quoted, was_no_output
from steps.doctor.events.search import Hit, Literals
from steps.doctor.told import Place

_CONTEXT = 16
"""How many lines behind a line may belong to it; no parser reaches further."""
_LONGEST = 16_384
"""Of a line, the characters behind are looked at for nothing: no program says so much in one line."""
_MOST_CARRIED = 4 << 20
_ENDLESS = re.compile(r"[0-9]{300}")
"""No program counts so far; to read it as a number would fail."""
_GOES_ON = re.compile(r"[ \t]*NVRM: *")


class Line(NamedTuple):
    """A line in a block; `base` is how far the block begins from the start of the text."""

    block: bytes
    start: int
    end: int
    base: int

    def raw(self) -> str:
        """Return its text with the stamp, without what is far behind."""
        return self.block[self.start : min(self.end, self.start + _LONGEST)].decode(errors="replace")


class Window(NamedTuple):
    """A line and those behind it as one text; `ends` are their ends, in it and from the start of the whole."""

    text: str
    first: int
    ends: tuple[tuple[int, int], ...]
    seconds: float | None

    def reaches(self, end: int) -> int:
        """Return where the line ends in which a match ends, from the start of the whole text."""
        return next((far for near, far in self.ends if near >= end), self.ends[-1][1])


class Reader:
    """Reads texts into `events` with a set of parsers."""

    def __init__(self, parsers: tuple[Parser, ...], events: Events) -> None:
        self.events = events
        self.quoted = Events()
        """What stands in the texts and seems to be no program's own word, though nobody denies it."""
        self._by_literal: dict[bytes, list[tuple[int, Parser]]] = {}
        for number, parser in enumerate(parsers):
            for literal in parser.literals:
                self._by_literal.setdefault(literal.encode(), []).append((number, parser))
        self._literals = _literals(parsers)
        self._order = 0

    def read(self, source: str, text: str) -> None:
        """Read a text that is here as a whole."""
        self.read_blocks(source, (text.encode(errors="replace"),))

    def read_blocks(self, source: str, blocks: Iterable[bytes]) -> None:
        """Read a text that comes in blocks of any size."""
        covered: dict[int, int] = {}
        base = 0
        search: Literals | None = None
        for block, until in _with_context(utf8(blocks)):
            search = search or self._literals.fitted(block)
            for start, end, literals in self._lines(search.hits(block), block, until):
                self._line(source, Line(block=block, start=start, end=end, base=base), literals, covered)
            base += until

    @staticmethod
    def _lines(hits: Iterable[Hit], block: bytes, until: int) -> Iterator[tuple[int, int, set[bytes]]]:
        """Yield start and end of the lines that hold a literal and begin before `until`, and which ones they hold."""
        start, end, held = 0, -1, set[bytes]()
        for at, literal in hits:
            if at > end:
                if held:
                    yield start, end, held
                start = block.rfind(b"\n", 0, at) + 1
                if start >= until:
                    return
                end = block.find(b"\n", at)
                end = len(block) if end < 0 else end
                held = set()
            held.add(literal)
        if held:
            yield start, end, held

    def _line(self, source: str, line: Line, literals: Iterable[bytes], covered: dict[int, int]) -> None:
        """Let the parsers of the literals in a line look at it; one that has read on from an earlier line does not see it again."""
        self._order += 1
        wanted = {number: parser for literal in literals for number, parser in self._by_literal[literal]}
        windows: dict[int, Window] = {}
        for key, parser in sorted(wanted.items()):
            if covered.get(key, 0) > line.base + line.start:
                continue
            window = windows.get(parser.lines)
            if window is None:
                window = windows[parser.lines] = _window(line, parser.lines)
            for found in parser.pattern.finditer(window.text):
                if found.start() > window.first:
                    break
                covered[key] = window.reaches(found.end())
                quoted = is_quoted(window.text, found, typed=parser.typed)
                if _ENDLESS.search(found[0]) or (quoted and was_no_output(window.text, found)):
                    continue
                place = Place(source=source, text=_quoted(window.text, found), order=self._order, seconds=window.seconds)
                event = parser.make(found, place)
                if event is not None:
                    (self.quoted if quoted else self.events).add(event)


@cache
def _literals(parsers: tuple[Parser, ...]) -> Literals:
    """Return the search for the literals of these parsers, made once."""
    return Literals(literal.encode() for literal in literals_of(parsers))


def _quoted(text: str, found: re.Match[str]) -> str:
    """Return the whole lines that a match touches, without the blanks around them."""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", max(found.end() - 1, found.start()))
    return text[start : len(text) if end < 0 else end].strip()[:1000]


def _window(line: Line, lines: int) -> Window:
    """Return a line and those that follow it, each without its stamp; a message of the driver that goes on is one line."""
    text, seconds = unstamped(line.raw())
    first, end, block = len(text), line.end, line.block
    ends = [(len(text), line.base + end)]
    while len(ends) < lines and end < len(block):
        start = end + 1
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        more = unstamped(block[start : min(end, start + _LONGEST)].decode(errors="replace"))[0]
        goes_on = _GOES_ON.match(more)
        text += f" {more[goes_on.end() :]}" if goes_on else f"\n{more}"
        ends.append((len(text), line.base + end))
    return Window(text=text, first=first, ends=tuple(ends), seconds=seconds)


def _with_context(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield plain blocks of whole lines, and up to where each is to be read: what lies behind comes again with the next one."""
    carried = b""
    for block in blocks:
        text = carried + block
        whole = len(text) if len(text) > _MOST_CARRIED and b"\n" not in block else text.rfind(b"\n") + 1
        ready = plain(text[:whole])
        until = _before_last_lines(ready)
        if until:
            yield ready, until
        carried = ready[until:] + text[whole:]
    ready = plain(carried)
    yield ready, len(ready)


def _before_last_lines(block: bytes) -> int:
    """Return where the last lines, which a message may still need, begin; in a block of a few long lines that is its end."""
    at = len(block)
    for _ in range(_CONTEXT + 1):
        at = block.rfind(b"\n", 0, at)
        if at < 0:
            return 0 if len(block) < _MOST_CARRIED else len(block)
    return at + 1
