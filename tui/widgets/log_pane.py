"""The log pane: the lines of a spool that are on the screen, read from the file when they are painted."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from tui.watching import Spool
from tui.widgets.dialog_pane import Picture, painted
from tui.widgets.light_vt import pieces
from tui.widgets.spool_lines import SpoolLines

LOOKS_PER_SECOND = 12
LEFT_OUT = 4
"""On a slow link only every fourth look is taken."""
_FIRST_LOOK = 1 << 19
"""Bytes that are counted before the first picture: its end is shown whatever lies before it."""
_FARTHEST = 4096
"""Columns that a long line can be shifted by."""


class LogPane(Widget, can_focus=False):
    """Follows a spool at its end; any upward move stops following, the end follows again.

    Its size does not grow with the log: a new line costs one repaint of these rows and no layout.
    """

    DEFAULT_CSS = "LogPane { layer: log; width: 100%; height: 1; }"
    ALLOW_SELECT = False

    class Moved(Message):
        """The lines, the place or the search changed: what the rule above says is to be drawn again."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = False
        """Whether the link is slow: new lines are then shown less often."""
        self._ticks = 0
        self._spool: Spool | None = None
        self.lines: SpoolLines | None = None
        self.top: int | None = None
        """The first line shown; `None` while the end is followed."""
        self.found: int | None = None
        """The line that the search stands on."""
        self.missed = False
        """Whether the last search found nothing."""
        self.base = Style()
        """The ink and the ground of what has no colour of its own."""
        self.more = "…"
        """The sign at the end of a line that goes on."""
        self.dialog = False
        """Whether a program asks through its own screen, even if it did not take the alternate one."""
        self._shift = 0
        self._raw: list[bytes] = []
        self._strips: list[Strip] = []
        self._painted: tuple[object, object] | None = None
        self._picture: Picture | None = None
        self._search: tuple[bytes, int, bool] | None = None

    # --- the spool ------------------------------------------------------------------------------

    def show(self, spool: Spool) -> None:
        """Show another spool, from its end."""
        self._spool, self.lines = spool, SpoolLines(spool)
        self.top = self.found = self._picture = self._search = self._painted = None
        self._shift, self.missed = 0, False
        self.refresh()
        self.lines.look(_FIRST_LOOK)
        self.post_message(self.Moved())

    def on_mount(self) -> None:
        """Start to look at the spool."""
        self.set_interval(1 / LOOKS_PER_SECOND, self._tick)

    def _tick(self) -> None:
        """Look, unless this look is left out."""
        self._ticks += 1
        if not self.slow or self._ticks % LEFT_OUT == 0:
            self.look()

    def look(self) -> None:
        """Take note of what was written since the last look; what is not on the screen is only counted."""
        if self.lines is None:
            return
        if self._search is not None:
            self._seek()
        grown = self.lines.look()
        changed = self._look_at_picture()
        if grown or changed:
            if self.top is None:
                self.refresh()
            self.post_message(self.Moved())

    def _look_at_picture(self) -> bool:
        """Open, feed or close the picture of a whole screen; return whether it changed."""
        if self.lines is None or self._spool is None:
            return False
        if not (self.lines.whole_screen or self.dialog):
            changed, self._picture = self._picture is not None, None
            return changed
        if self._picture is None:
            self._picture = Picture(self._spool)
            return True
        return self._picture.look(self.lines.size)

    @property
    def pictured(self) -> bool:
        """Whether a program's own screen is shown instead of lines."""
        return self._picture is not None and self.top is None

    @property
    def total(self) -> int:
        """How many lines there are, as far as they are counted."""
        return self.lines.lines if self.lines else 0

    @property
    def last_shown(self) -> int:
        """The number of the last line on the screen, from 1."""
        return self.total if self.top is None else min(self.total, self.top + self.size.height)

    # --- moving ---------------------------------------------------------------------------------

    def move(self, lines: int) -> None:
        """Move by so many lines; reaching the end follows it again."""
        end = max(0, self.total - self.size.height)
        top = (end if self.top is None else self.top) + lines
        self.go(None if top >= end and lines >= 0 else max(0, min(top, end)))

    def go(self, top: int | None) -> None:
        """Show the lines from `top` on, or follow the end."""
        self.top = top
        self.refresh()
        self.post_message(self.Moved())

    def shift(self, columns: int) -> None:
        """Move sideways in lines that are longer than the screen is wide."""
        self._shift = max(0, min(self._shift + columns, _FARTHEST))
        self.refresh()

    def handle(self, key: str) -> bool:
        """Act on a key that moves in the log; return whether it was one."""
        page = max(1, self.size.height - 1)
        moves = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -page, "pagedown": page}
        if key in moves:
            self.move(moves[key])
        elif key == "home":
            self.go(0)
        elif key == "end":
            self.found = None
            self.go(None)
        elif key in ("left", "right"):
            self.shift(20 if key == "right" else -20)
        else:
            return False
        return True

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move up."""
        event.stop()
        self.move(-3)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move down."""
        event.stop()
        self.move(3)

    # --- search ---------------------------------------------------------------------------------

    def search(self, text: str, *, back: bool = True) -> None:
        """Look for `text`: backwards from the end at first, then from what was found; a part of the log at every look."""
        if self.lines is None or not text:
            return
        self.missed = False
        fresh = self.total - 1 if back else 0
        start = fresh if self.found is None else self.found + (-1 if back else 1)
        self._search = (text.encode(), start, back)
        self._seek()

    def forget(self) -> None:
        """End the search; the place stays."""
        self._search = self.found = None
        self.missed = False
        self.refresh()

    @property
    def searching(self) -> bool:
        """Whether a search is not finished yet."""
        return self._search is not None

    def _seek(self) -> None:
        """Search one part of the log on."""
        if self._search is None or self.lines is None:
            return
        needle, start, back = self._search
        found, go_on = self.lines.find(needle, start, back=back)
        self._search = None if go_on is None else (needle, go_on, back)
        if found is not None:
            self.found = found
            self.go(max(0, min(found - self.size.height // 2, self.total - self.size.height)))
        elif go_on is None:
            self.missed = True
            self.post_message(self.Moved())

    # --- painting -------------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """Read the lines on the screen once, then paint them."""
        self._fetch()
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one painted row."""
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width, self.base)

    def _fetch(self) -> None:
        """Make the strips of the rows; a line that was there before is not made again."""
        width, height = self.size.width, self.size.height
        if self._picture is not None and self.top is None:
            self._strips, self._painted = self._picture.strips(width, height, self.base), None
            return
        if self.lines is None:
            self._strips = []
            return
        ends = self.top is None or self.top + height >= self.total
        looks = (width, self.base, self._shift, self.more)
        place = (self.top, height, self.found, self.lines.size if ends else None)
        if self._painted == (place, looks):
            return
        known = dict(zip(self._raw, self._strips, strict=True)) if self._painted is not None and self._painted[1] == looks else {}
        self._raw = self.lines.tail(height) if self.top is None else self.lines.window(self.top, height)
        self._strips = [known.get(raw) or strip(raw, width, self.base, shift=self._shift, more=self.more) for raw in self._raw]
        self._painted = (place, looks)
        at = -1 if self.found is None or self.top is None else self.found - self.top
        if 0 <= at < len(self._strips):
            self._strips[at] = self._strips[at].apply_style(Style(reverse=True))
            self._painted = None


def strip(raw: bytes, width: int, base: Style, *, shift: int = 0, more: str = "…") -> Strip:
    """Return one raw line as a row of `width` cells, one blank cell before it; `more` ends a line that goes on."""
    room = width - 1
    text = painted(pieces(raw), base, limit=width + shift)
    shown = text.crop_extend(shift, shift + room, base)
    if text.cell_length > shift + room:
        shown = Strip([*shown.crop(0, room - 1), Segment(more, base)], room)
    return Strip([Segment(" ", base), *shown], width)
