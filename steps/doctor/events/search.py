"""Many literals in much text, fast: where one of them stands is told by a few of its bytes."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple

_WORD = 4
_CHUNK = 1024
"""Words that are asked about together; one in which no word of a literal stands costs least."""
_PER_SCAN, _PER_ANCHOR = 0.6, 120.0
"""Nanoseconds for one byte of a plain search, and for one byte at which a pattern may begin; only their ratio matters."""
_OFTEN = 1 / 8192
"""A word that is met more often than this would spoil most chunks."""
_SAMPLE = 1 << 18
"""Bytes of a text by which all is chosen anew; counting them costs a few milliseconds."""
_COMMON = b" etaoinsr0123ldcu456789mph:.gfb-_[]()"
"""The bytes of ordinary logs, the most frequent first."""

Hit = tuple[int, bytes]
"""Where a literal begins in a block, and which."""
_Known = dict[int, list[tuple[int, bytes]]]
"""By a word: how far it stands from the beginning of which literals."""


class Usual(NamedTuple):
    """How often words and bytes stand in a sample of a text."""

    words: Counter[int]
    single: Counter[int]
    size: int

    @classmethod
    def of(cls, sample: bytes) -> Usual:
        """Count them."""
        return cls(Counter(_words(sample)), Counter(sample), len(sample))

    def share(self, byte: int) -> float:
        """Return which part of the text is a byte, between 0 and 1."""
        return self.single[byte] / max(self.size, 1)


class Literals:
    """A set of literals to look for.

    A text is taken as numbers of four bytes each. A literal of at least seven bytes holds one of them whole, wherever it stands, so one set
    of numbers (for each literal and each of its possible places the rarest) tells all the numbers at which a literal may stand. Literals
    that are shorter, or made of common words only, share a pattern that begins at seldom bytes.
    """

    def __init__(self, literals: Iterable[bytes], usual: Usual | None = None) -> None:
        """Choose what to know them by."""
        self.literals = tuple(sorted(set(literals)))
        usual = usual or Usual.of(b"")
        self._known = _by_word(self.literals, usual)
        self._all = frozenset(self._known)
        self._scan = _Scan(set(self.literals) - {literal for places in self._known.values() for _, literal in places}, usual)

    def fitted(self, block: bytes) -> Literals:
        """Return the same literals, known by what is rare in a text that begins so; in a short text nothing is gained."""
        return Literals(self.literals, Usual.of(block[:_SAMPLE])) if len(block) >= _SAMPLE else self

    def hits(self, block: bytes) -> list[Hit]:
        """Return every place of every literal in the order of the text."""
        return sorted((*self._by_words(block), *self._scan.hits(block)))

    def _by_words(self, block: bytes) -> Iterator[Hit]:
        """Yield the places of the literals that are known by words."""
        words = _words(block)
        none_in, one_of = self._all.isdisjoint, self._all.__contains__
        for start in range(0, len(words), _CHUNK):
            chunk = words[start : start + _CHUNK]
            if none_in(chunk):
                continue
            for number in compress(range(len(chunk)), map(one_of, chunk)):
                yield from _verified(block, (start + number) * _WORD, self._known[chunk[number]])


class _Scan:
    """The search for the other literals: a byte of each that the text has seldom, in one pattern for all, or the literal itself."""

    def __init__(self, literals: set[bytes], usual: Usual) -> None:
        """Choose the bytes; without a sample there are none."""
        self._anchors: dict[int, list[tuple[int, bytes]]] = {}
        left = sorted(literals)
        while usual.size and left:
            # The last byte of a literal has nothing behind it by which the pattern could tell.
            counts = Counter(byte for one in left for byte in set(one[:-1]))
            byte = max(counts, key=lambda byte: counts[byte] / (usual.share(byte) + 1e-4), default=0)
            taken = [one for one in left if byte in one[:-1]]
            if usual.share(byte) * _PER_ANCHOR > len(taken) * _PER_SCAN:
                break
            self._anchors[byte] = [(one.index(byte), one) for one in taken]
            left = [one for one in left if byte not in one[:-1]]
        self._plain = tuple(left)
        self._search = re.compile(b"|".join(_anchored(byte, places) for byte, places in self._anchors.items()) or b"(?!)")

    def hits(self, block: bytes) -> Iterator[Hit]:
        """Yield the places of these literals."""
        if self._anchors:
            for found in self._search.finditer(block):
                yield from _verified(block, found.start(), self._anchors[block[found.start()]])
        for literal in self._plain:
            at = block.find(literal)
            while at >= 0:
                yield at, literal
                at = block.find(literal, at + 1)


def _anchored(byte: int, places: Iterable[tuple[int, bytes]]) -> bytes:
    """Return the pattern of a byte before what stands behind it in one of the literals; only the byte itself is consumed."""
    return b"%s(?=%s)" % (re.escape(bytes((byte,))), b"|".join(sorted({re.escape(one[at + 1 :]) for at, one in places})))


def _verified(block: bytes, at: int, places: Iterable[tuple[int, bytes]]) -> Iterator[Hit]:
    for offset, literal in places:
        if at >= offset and block.startswith(literal, at - offset):
            yield at - offset, literal


def _by_word(literals: Iterable[bytes], usual: Usual) -> _Known:
    """Return the words by which literals are known; without those that are too short, or common throughout."""
    known: _Known = {}
    most = usual.size / _WORD * _OFTEN
    for literal in literals:
        offsets = [_rarest(literal, range(first, len(literal) - _WORD + 1, _WORD), usual) for first in range(_WORD)]
        if None in offsets or (usual.size and max(usual.words[_word(literal, at)] for at in offsets if at is not None) > most):
            continue
        for at in offsets:
            if at is not None:
                known.setdefault(_word(literal, at), []).append((at, literal))
    return known


def _words(block: bytes) -> memoryview:
    """Return a block as words."""
    return memoryview(block)[: len(block) // _WORD * _WORD].cast("I")


def _word(literal: bytes, at: int) -> int:
    return int.from_bytes(literal[at : at + _WORD], sys.byteorder)


def _rarest(literal: bytes, offsets: range, usual: Usual) -> int | None:
    """Return where the rarest word of a literal stands: by the sample, then by its bytes; `None` where it holds none at these places."""

    def rarity(at: int) -> tuple[int, int]:
        return -usual.words[_word(literal, at)], sum(_commonness(byte) for byte in literal[at : at + _WORD])

    return max(offsets, key=rarity, default=None)


def _commonness(byte: int) -> int:
    return _COMMON.find(byte) if byte in _COMMON else len(_COMMON)
