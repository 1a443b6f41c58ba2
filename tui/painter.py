"""What is sent to the terminal: the cells that differ from what it shows, rows that moved as a scroll, blank ends as an erase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import ne

from rich.cells import get_character_cell_size
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Offset, Size
from textual.strip import Strip

from tui.frame import Cell, Frame, Row, unsure

Update = ChopsUpdate | LayoutUpdate
BLANK: Cell = (" ", "")
_GAP = 4
"""Equal cells between two differences that are sent again: to jump over them costs as much."""
_LEAST_ERASE = 4
"""Blank cells at the end of a row from which one erase is shorter than they are."""
_SCROLL_COST = 24
"""Bytes that a scroll costs, about: setting the region, moving, giving it back."""
_ROW_COST = 8
"""Bytes that it costs to go to a row where anything differs."""


def placed(update: Update) -> Iterator[tuple[int, int, Strip]]:
    """Yield row, column and content of every piece that an update of Textual paints."""
    if isinstance(update, LayoutUpdate):
        for y, strips in enumerate(update.strips, update.region.y):
            x = update.region.x
            for strip in strips:
                yield y, x, strip
                x += strip.cell_length
        return
    for y, first, stop in update.spans:
        for end, (x, piece) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if piece is not None and x <= stop and end > first:
                yield y, x, piece if end <= stop else piece.crop(0, stop - x)


class Painter:
    """Remembers what the terminal shows and what it shall show; `frame` says how to get from the one to the other."""

    def __init__(self, console: Console, *, erases_in_colour: bool) -> None:
        """`erases_in_colour` says whether an erase leaves the background of the moment, as nearly every terminal does."""
        self._console = console
        self._erases_in_colour = erases_in_colour
        self._size = Size(0, 0)
        self._wanted: list[Row] = []
        self._shown: list[Row] | None = None
        self._touched: set[int] = set()
        self._cursor: Offset | None = None
        self._looks: dict[Style | None, tuple[str, str | None]] = {}
        self._grounds = {""}

    def forget(self) -> None:
        """Paint everything in the next frame: the terminal shows something else than what was sent."""
        self._shown = None
        self._cursor = None

    def take(self, update: Update, size: Size) -> None:
        """Note what an update paints on a screen of `size`; a new size begins anew."""
        if size != self._size:
            self._size = size
            self._wanted = [[BLANK] * size.width for _ in range(size.height)]
            self.forget()
        for y, x, strip in placed(update):
            if 0 <= y < size.height:
                self._put(self._wanted[y], x, self._cells(strip)[: max(0, size.width - x)])
                self._touched.add(y)

    def frame(self, cursor: Offset) -> str:
        """Return what is to be sent so that the terminal shows what was taken, its cursor at `cursor`; "" when it does."""
        out = Frame()
        if self._shown is None:
            out.clear()
            self._shown = [[BLANK] * self._size.width for _ in self._wanted]
            self._touched = set(range(len(self._wanted)))
        self._scroll(self._shown, out)
        for y in sorted(self._touched):
            self._row(y, self._shown[y], self._wanted[y], out)
            self._shown[y] = list(self._wanted[y])
        self._touched.clear()
        if out.sent or cursor != self._cursor:
            self._cursor = cursor
            out.go(cursor.y, cursor.x)
        return "".join(out.sent)

    # --- cells ----------------------------------------------------------------------------------

    def _cells(self, strip: Strip) -> Row:
        """Return a strip as cells; ink is dropped where a blank does not show it, so that more cells are equal."""
        row: Row = []
        for text, style, _ in strip:
            ink, ground = self._look(style)
            blank = (" ", ink if ground is None else ground)
            for letter in text:
                if letter == " ":
                    row.append(blank)
                    continue
                width = 1 if letter.isascii() else get_character_cell_size(letter)
                if width:
                    row.append((letter, ink))
                    if width == 2:
                        row.append(("", ink))
                elif row:
                    at = -1 if row[-1][0] else -2
                    row[at] = (row[at][0] + letter, row[at][1])
        return row

    def _look(self, style: Style | None) -> tuple[str, str | None]:
        """Return the SGR numbers of a style, and those that its blanks need; `None` where a blank shows its ink."""
        known = self._looks.get(style)
        if known is None:
            ground: str | None = None
            if style is None:
                ground = ""
            elif not (style.underline or style.underline2 or style.reverse or style.strike or style.overline):
                ground = self._numbers(Style(bgcolor=style.bgcolor))
            known = self._looks[style] = ("" if style is None else self._numbers(style), ground)
            if ground is not None:
                self._grounds.add(ground)
        return known

    def _numbers(self, style: Style) -> str:
        """Return a style as Textual itself would send it: "1;38;2;230;234;238"; "" for none."""
        return Strip([Segment("\0", style)], 1).render(self._console).partition("\0")[0].removeprefix("\x1b[").removesuffix("m")

    @staticmethod
    def _put(row: Row, x: int, cells: Row) -> None:
        """Place cells in a row; half a wide character that is left beside them becomes a blank."""
        end = x + len(cells)
        if not cells:
            return
        if x and row[x][0] == "":
            row[x - 1] = (" ", row[x - 1][1])
        if end < len(row) and row[end][0] == "":
            row[end] = (" ", row[end][1])
        row[x:end] = cells

    # --- differences ----------------------------------------------------------------------------

    def _row(self, y: int, old: Row, new: Row, out: Frame) -> None:
        """Send what differs in a row."""
        runs = list(_runs(old, new))
        if not runs:
            return
        ground = new[-1]
        tail = len(new)
        if ground[0] == " " and (not ground[1] or (self._erases_in_colour and ground[1] in self._grounds)):
            while tail and new[tail - 1] == ground:
                tail -= 1
        erase = runs[-1][1] - max(tail, runs[0][0]) > _LEAST_ERASE
        for first, stop in runs:
            if erase and stop > tail:
                out.put(y, first, new[first : max(first, tail)])
                out.erase(y, max(first, tail), ground[1])
                return
            out.put(y, first, new[first:stop])
            if stop == len(new):
                out.lose_place()

    def _scroll(self, shown: list[Row], out: Frame) -> None:
        """Move rows that are wanted a few rows further up or down, when that saves more than it costs."""
        touched = [y for y in sorted(self._touched) if shown[y] != self._wanted[y]]
        if len(touched) < 3:
            return
        top, bottom = touched[0], touched[-1]
        best = max(_moves(shown, self._wanted, top, bottom), default=None)
        if best is None:
            return
        _, by, first, last = best
        before = shown[first : last + 1]
        blank = [[BLANK] * self._size.width for _ in range(abs(by))]
        after = [*before[by:], *blank] if by > 0 else [*blank, *before[:by]]
        wanted = self._wanted[first : last + 1]
        if _cost(before, wanted) - _cost(after, wanted) > _SCROLL_COST:
            out.scroll(first, last, by)
            shown[first : last + 1] = after
            self._touched.update(range(first, last + 1))


def _cost(old: Sequence[Row], new: Sequence[Row]) -> int:
    """Return about how many bytes it takes to make the new rows of the old ones."""
    differ = (sum(map(ne, *rows)) for rows in zip(old, new, strict=True))
    return sum(cells + _ROW_COST for cells in differ if cells)


def _runs(old: Row, new: Row) -> Iterator[tuple[int, int]]:
    """Yield where two rows differ, first cell and the one behind the last: whole characters, short gaps included."""
    differ = [at for at, unequal in enumerate(map(ne, old, new)) if unequal]
    if not differ:
        return
    width = len(new)
    first = stop = -1
    for at in differ:
        if stop >= 0 and at - stop > _GAP:
            yield first, stop
            first = -1
        elif at < stop:
            continue
        if first < 0:
            first = at
            while first and (old[first][0] == "" or new[first][0] == ""):
                first -= 1
        stop = at + 1
        # Half a wide character cannot stay, and a letter of unsure width may have reached into the next cell.
        while stop < width and (_goes_on(old, stop) or _goes_on(new, stop)):
            stop += 1
    yield first, stop


def _goes_on(row: Row, at: int) -> bool:
    """Return whether what stands before a cell may reach into it."""
    return row[at][0] == "" or unsure(row[at - 1][0] or row[at - 2][0])


def _moves(shown: Sequence[Row], wanted: Sequence[Row], top: int, bottom: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield moves that bring rows into place: how many rows, by how many up (down: negative), first and last row of the region."""
    for by in range(1, bottom - top):
        for up in (True, False):
            y = top
            while y <= bottom - by:
                start, count = y, 0
                while y <= bottom - by and (shown[y + by] == wanted[y] if up else shown[y] == wanted[y + by]):
                    count += (shown[y] if up else shown[y + by]) != (wanted[y] if up else wanted[y + by])
                    y += 1
                if count > 1:
                    yield count, by if up else -by, start, y - 1 + by
                y += y == start
    return
