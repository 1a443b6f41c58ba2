"""The lines of a growing spool, without holding them: one counter per 64 KB block, and the bytes of what is asked for."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from tui.watching import Spool
from tui.widgets.light_vt import CLIP, screen_open

BLOCK = 65536
LOOK = 8 << 20
"""Bytes that one look counts at most: a few milliseconds, so that a backlog never holds up a key."""
_FAR = 1 << 20


class SpoolLines:
    """Counts what was appended, and reads any line or the last ones."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._before = array("Q", [0])  # newlines before each block
        self.size = 0
        self._counted = 0
        self._ended = 0
        self._last = b"\n"
        self.whole_screen = False
        """Whether a program has the whole screen now."""

    @property
    def lines(self) -> int:
        """How many lines were counted, the one being written included."""
        return self._ended + (0 if self._last == b"\n" else 1)

    @property
    def behind(self) -> bool:
        """Whether some of what is there is not counted yet."""
        return self._counted < self.size

    def look(self, budget: int = LOOK) -> bool:
        """Count what was appended, at most `budget` bytes of it; return whether there was anything new."""
        size = self._spool.size()
        grown = size != self.size
        self.size = size
        if self._counted >= size:
            return grown
        end = min(size, self._counted + budget)
        while self._counted < end:
            stop = min((self._counted // BLOCK + 1) * BLOCK, end)
            data = self._spool.read(self._counted, stop - self._counted)
            if not data:
                break
            self._ended += data.count(b"\n")
            self._last = data[-1:]
            if b"\x1b[?" in data:
                self.whole_screen = screen_open(data, self.whole_screen)
            self._counted += len(data)
            if self._counted % BLOCK == 0:
                self._before.append(self._ended)
        return True

    def _start_of(self, line: int) -> int:
        """Return where `line` starts, counted from 0; the end when there is no such line yet."""
        if line <= 0:
            return 0
        if line > self._ended:
            return self._counted
        block = bisect_left(self._before, line) - 1
        data = self._spool.read(block * BLOCK, BLOCK)
        at = -1
        for _ in range(line - self._before[block]):
            at = data.find(b"\n", at + 1)
            if at < 0:
                return self._counted
        return block * BLOCK + at + 1

    def window(self, first: int, count: int) -> list[bytes]:
        """Return up to `count` raw lines from line `first` on; of a long one its start or, where it overwrites itself, its end."""
        found: list[bytes] = []
        at = self._start_of(first)
        while len(found) < count and at < self._counted:
            data = self._spool.read(at, min(BLOCK, self._counted - at))
            if not data:
                break
            *whole, rest = data.split(b"\n")
            for line in whole[: count - len(found)]:
                found.append(line)
                at += len(line) + 1
            if len(found) == count:
                break
            if not whole:
                found.append(self._long(data, first + len(found)))
                at = self._start_of(first + len(found))
            elif at + len(rest) >= self._counted:
                if rest:
                    found.append(rest)
                break
        return found

    def _long(self, start: bytes, line: int) -> bytes:
        """Return what is shown of a line that fills a block: its end where it overwrites itself, else its start."""
        if b"\r" not in start.rstrip(b"\r"):
            return start[:CLIP]
        end = self._start_of(line + 1)
        return self._spool.read(max(0, end - CLIP), min(CLIP, end)).rsplit(b"\n", 2)[-2 if line < self._ended else -1]

    def tail(self, count: int) -> list[bytes]:
        """Return the last `count` raw lines, the one being written included, whether or not they were counted."""
        want = BLOCK
        while True:
            start = max(0, self.size - want)
            lines = self._spool.read(start, self.size - start).split(b"\n")
            if not lines[-1]:
                lines.pop()
            if len(lines) > count or start == 0 or want >= _FAR:
                return [line[-BLOCK:] for line in lines[-count:]] if count else []
            want *= 4

    def find(self, needle: bytes, first: int, *, back: bool = False, budget: int = LOOK) -> tuple[int | None, int | None]:
        """Look for `needle` (case does not matter) from line `first` on, or backwards before it.

        Returns the line and `None`, or `None` and the line from which to go on; both are `None` when it is nowhere.
        """
        needle = needle.lower()
        line = first
        seen = 0
        while 0 <= line < self.lines:
            count = 512
            low = max(0, line - count + 1) if back else line
            block = self.window(low, line - low + 1 if back else count)
            order = range(len(block) - 1, -1, -1) if back else range(len(block))
            for index in order:
                if needle in block[index].lower():
                    return low + index, None
            seen += sum(map(len, block))
            line = low - 1 if back else low + max(1, len(block))
            if seen >= budget:
                return None, line if 0 <= line < self.lines else None
        return None, None
