"""The one widget of a screen: rows of spans, of which only changed cells are painted again."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.cells import Line, Span, clean, fit
from tui.theme import Marks, PaletteName, spelled, style


def _cells(line: Line) -> list[tuple[str, str, str]]:
    # The ink of a blank is not seen.
    return [(ch, span.ink if ch != " " else "", span.ground) for span in line for ch in span.text]


def _width(cells: Sequence[tuple[str, str, str]]) -> int:
    return sum(cell_len(ch) for ch, _, _ in cells)


def changed(old: Line, new: Line) -> tuple[int, int] | None:
    """Return the columns (first, behind the last) in which two rows of the same width differ, or `None` when they are equal."""
    if old == new:
        return None
    before, after = _cells(old), _cells(new)
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    most = shorter - head
    tail = next((at for at in range(most) if before[-1 - at] != after[-1 - at]), most)
    first = _width(after[:head])
    last = _width(after[: len(after) - tail])
    return (first, last) if last > first else None


def joined(line: Line) -> Line:
    """Return the same picture in as few spans as possible: blanks take the ink beside them, since every change of style is sent."""
    out: list[Span] = []
    for span in line:
        last = out[-1] if out else None
        if last is None or last.ground != span.ground:
            out.append(span)
        elif last.ink == span.ink or span.text.isspace():
            out[-1] = last._replace(text=last.text + span.text)
        elif last.text.isspace():
            out[-1] = span._replace(text=last.text + span.text)
        else:
            out.append(span)
    return tuple(out)


class Sheet(Widget, can_focus=False):
    """A grid of cells; `show` gives it the whole picture, and it finds out what has to be painted."""

    DEFAULT_CSS = "Sheet { width: 1fr; height: 1fr; }"
    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[Line, ...] = ()
        self._look: tuple[PaletteName, Marks] = ("dark", "unicode")
        self.painted = 0
        """How many cells have been asked to be painted so far, for tests and for the bench."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is shown now."""
        return self._lines

    def show(self, lines: Sequence[Line], columns: int, palette: PaletteName, marks: Marks) -> None:
        """Show `lines`, cut and filled to `columns`; rows and cells that did not change are left alone."""
        fitted = tuple(fit(tuple(span._replace(text=spelled(clean(span.text), marks)) for span in line), columns) for line in lines)
        look: tuple[PaletteName, Marks] = (palette, marks)
        before, self._lines = self._lines, fitted
        if look != self._look or len(before) != len(fitted) or (before and _row_width(before[0]) != columns):
            self._look = look
            self.painted += columns * len(fitted)
            self.refresh()
            return
        regions: list[Region] = []
        for row, (old, new) in enumerate(zip(before, fitted, strict=True)):
            span = changed(old, new)
            if span is not None:
                regions.append(Region(span[0], row, span[1] - span[0], 1))
        if regions:
            self.painted += sum(region.width for region in regions)
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """Return row `y` as Textual paints it; blank behind the last row."""
        palette = self._look[0]
        if y >= len(self._lines):
            return Strip.blank(self.size.width, style(palette, "text"))
        return Strip([Segment(span.text, style(palette, span.ink, span.ground)) for span in joined(self._lines[y])], self.size.width)


def _row_width(line: Line) -> int:
    return sum(cell_len(span.text) for span in line)
