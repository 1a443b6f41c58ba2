"""The screen of a program that paints all of it, seen through the pane at the program's own size."""

from __future__ import annotations

from functools import lru_cache

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.watching import Spool
from tui.widgets.light_vt import PLAIN, Colour, Emulator, Look, Piece, opened_at

COLUMNS, ROWS = 80, 24
"""The terminal that the runner gives to programs."""
REPLAY = 65536
"""Bytes that are emulated at once, at most: pyte takes about a second for a megabyte."""


class Picture:
    """The emulated screen, fed from the spool."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._emulator = Emulator(COLUMNS, ROWS)
        size = spool.size()
        start = max(0, size - REPLAY)
        opened = opened_at(spool.read(start, size - start))
        self._at = start + (opened or 0)
        self.look(size)

    def look(self, size: int) -> bool:
        """Feed what was written since the last look; return whether that was anything."""
        if size - self._at > REPLAY:
            self._at = size - REPLAY
        data = self._spool.read(self._at, size - self._at)
        if data:
            self._emulator.feed(data)
        self._at += len(data)
        return bool(data)

    def strips(self, width: int, height: int, base: Style) -> list[Strip]:
        """Return `height` rows of `width` cells around the cursor."""
        column, row = self._emulator.cursor
        left = max(0, min(column - width * 3 // 4, COLUMNS - width))
        top = max(0, min(row - height * 3 // 4, ROWS - height))
        shown = [painted(self._emulator.row(number), base) for number in range(top, min(ROWS, top + height))]
        cursor = row - top
        if 0 <= cursor < len(shown):
            shown[cursor] = _with_cursor(shown[cursor], column)
        return [strip.crop_extend(left, left + width, base) for strip in shown]


def _with_cursor(strip: Strip, column: int) -> Strip:
    """Return the row with the cell under the cursor reversed."""
    before, cell, after = strip.crop(0, column), strip.crop(column, column + 1), strip.crop(column + 1)
    return Strip.join([before, cell.apply_style(Style(reverse=True)), after])


def painted(line: list[Piece], base: Style, limit: int = 1 << 30) -> Strip:
    """Return pieces as a strip; what lies beyond `limit` cells may be left out."""
    segments: list[Segment] = []
    cells = 0
    for text, look in line:
        shown = text[: limit + 1]
        segments.append(Segment(shown, base if look == PLAIN else base + style(look)))
        cells += cell_len(shown)
        if cells > limit:
            break
    return Strip(segments, cells)


@lru_cache(maxsize=512)
def style(look: Look) -> Style:
    """Return a look as a style of the screen."""
    return Style(
        color=_colour(look.fore),
        bgcolor=_colour(look.back),
        bold=look.bold or None,
        italic=look.italic or None,
        underline=look.underline or None,
        reverse=look.reverse or None,
    )


def _colour(colour: Colour) -> Color | None:
    """Return a colour of the palette or its mixture; `None` for the default."""
    if colour is None:
        return None
    return Color.from_ansi(colour) if isinstance(colour, int) else Color.from_rgb(*colour)
