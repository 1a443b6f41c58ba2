"""Many literals in much text, fast: where one of them stands is told by a few of its bytes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple

_WORD = 4
_STRIDES = (4, 8)
_CHUNK = 4096
"""Words that are asked about together; one in which no word of a literal stands costs least."""
_PER_WORD, _PER_SCAN, _PER_FIND = 25.0, 0.5, 150.0
"""Nanoseconds for one word, for one byte of a plain search, and for one place that it finds; only their ratio matters."""
_SAMPLE = 1 << 18
"""Bytes of a text by which the words are chosen anew; counting them costs a few milliseconds."""
_COMMON = b" etaoinsr0123ldcu456789mph:.gfb-_[]()"
"""The bytes of ordinary logs, the most frequent first."""

Hit = tuple[int, bytes]
"""Where a literal begins in a block, and which."""
_Places = dict[bytes, list[tuple[int, bytes]]]
"""By a part of literals: how far it stands from the beginning of which literal."""


class Usual(NamedTuple):
    """How often words and bytes stand in a sample of a text."""

    words: Counter[int]
    single: Counter[int]
    size: int

    @classmethod
    def of(cls, sample: bytes) -> Usual:
        """Count them."""
        return cls(Counter(_words(sample, _WORD)), Counter(sample), len(sample))


class Literals:
    """A set of literals to look for.

    A text is taken as numbers of four bytes each, one at every `stride` bytes. A literal of at least `stride + 3` bytes holds one of them
    whole, wherever it stands, so one set of numbers (for each literal and each of its possible places the rarest) tells all the numbers
    at which a literal may stand. Shorter literals are looked for one by one, or by a byte that the text hardly has.
    """

    def __init__(self, literals: Iterable[bytes], usual: Usual | None = None) -> None:
        """Choose the stride that costs least with these literals, and what to know them by."""
        self.literals = tuple(sorted(set(literals)))
        usual = usual or Usual.of(b"")
        plans = {stride: _scans((one for one in self.literals if len(one) < stride + _WORD - 1), usual) for stride in _STRIDES}
        self.stride = min(_STRIDES, key=lambda stride: _PER_WORD / stride + sum(_cost(part, usual) for part in plans[stride]))
        self._scanned = plans[self.stride]
        self._known: dict[int, list[tuple[int, bytes]]] = {}
        for literal in self.literals:
            if len(literal) >= self.stride + _WORD - 1:
                for first in range(self.stride):
                    offset = max(range(first, len(literal) - _WORD + 1, self.stride), key=lambda at: _rarity(literal, at, usual))
                    self._known.setdefault(_word(literal, offset), []).append((offset, literal))
        self._all = frozenset(self._known)

    def fitted(self, block: bytes) -> Literals:
        """Return the same literals, known by what is rare in a text that begins so; in a short text nothing is gained."""
        return Literals(self.literals, Usual.of(block[:_SAMPLE])) if len(block) >= _SAMPLE else self

    def hits(self, block: bytes) -> list[Hit]:
        """Return every place of every literal in the order of the text."""
        return sorted((*self._by_words(block), *self._by_scans(block)))

    def _by_words(self, block: bytes) -> Iterator[Hit]:
        """Yield the places of the longer literals."""
        words = _words(block, self.stride)
        none_in, one_of = self._all.isdisjoint, self._all.__contains__
        for start in range(0, len(words), _CHUNK):
            chunk = words[start : start + _CHUNK]
            if none_in(chunk):
                continue
            for number in compress(range(len(chunk)), map(one_of, chunk)):
                yield from _verified(block, (start + number) * self.stride, self._known[chunk[number]])

    def _by_scans(self, block: bytes) -> Iterator[Hit]:
        """Yield the places of the shorter literals."""
        for part, places in self._scanned.items():
            at = block.find(part)
            while at >= 0:
                yield from _verified(block, at, places)
                at = block.find(part, at + 1)


def _verified(block: bytes, at: int, places: Iterable[tuple[int, bytes]]) -> Iterator[Hit]:
    for offset, literal in places:
        if at >= offset and block.startswith(literal, at - offset):
            yield at - offset, literal


def _scans(literals: Iterable[bytes], usual: Usual) -> _Places:
    """Return what to search for in place of some literals: a byte of theirs that the text hardly has, else themselves."""
    parts: _Places = {}
    for literal in literals:
        byte = min(literal, key=lambda byte: usual.single[byte])
        rare = bool(usual.size) and _cost(bytes((byte,)), usual) < _PER_SCAN / 2
        part = bytes((byte,)) if rare else literal
        parts.setdefault(part, []).extend((at, literal) for at in range(len(literal)) if literal.startswith(part, at))
    return parts


def _cost(part: bytes, usual: Usual) -> float:
    """Return nanoseconds for each byte of a text: the C library finds a single byte for almost nothing, each place costs."""
    return _PER_FIND * usual.single[part[0]] / max(usual.size, 1) if len(part) == 1 else _PER_SCAN


def _words(block: bytes, stride: int) -> memoryview:
    """Return the words of a block, one at every `stride` bytes."""
    return memoryview(block)[: len(block) // _WORD * _WORD].cast("I")[:: stride // _WORD]


def _word(literal: bytes, at: int) -> int:
    return int.from_bytes(literal[at : at + _WORD], sys.byteorder)


def _rarity(literal: bytes, at: int, usual: Usual) -> tuple[int, int]:
    """Return how seldom a word of a literal is: by the sample, then by its bytes."""
    word = literal[at : at + _WORD]
    return -usual.words[_word(literal, at)], sum(_COMMON.find(byte) if byte in _COMMON else len(_COMMON) for byte in word)
