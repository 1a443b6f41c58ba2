"""A page of lines that is read and closed: help, the why-not page, the whole plan, a request to an administrator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tui.cells import Line, Span
from tui.screens.base import Key, Page, ui

Lines = Callable[[int], Sequence[Line]]
"""The lines of a page in so many cells; asked again when language or width change."""

CLOSE = Key(("escape", "b", "q", "enter"), "close", "Esc", ui("key.close"))
SCROLL = Key(("down", "j"), "down", "↑↓", ui("key.scroll"))
HIDDEN = (
    Key(("up", "k"), "up", "", ui("key.scroll"), footer=False),
    Key(("pagedown", "space"), "page_down", "PgDn", ui("key.page"), footer=False),
    Key(("pageup",), "page_up", "PgUp", ui("key.page"), footer=False),
    Key(("home",), "home", "Home", ui("key.start"), footer=False),
    Key(("end",), "end", "End", ui("key.end"), footer=False),
)


class ReadingPage(Page):
    """Lines over the body; header and footer stay."""

    def __init__(self, below: Page) -> None:
        super().__init__()
        self.below = below
        self._top = 0
        self._count = 0

    def state_words(self) -> str:
        """Return the state of the screen below."""
        return self.below.state_words()

    def lines(self, columns: int) -> Sequence[Line]:
        """Return all lines of the page."""
        return ()

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return the lines in view."""
        lines = self.lines(columns - 2)
        self._count = len(lines)
        self._top = max(0, min(self._top, self._count - rows))
        return [(Span(" "), *line) for line in lines[self._top : self._top + rows]]

    def next_words(self) -> str:
        """Return how much is above and below."""
        rows = self.size.height - 6
        if self._count <= rows:
            return self.shell.say(ui("reading.close"))
        return self.shell.say(ui("reading.part", first=self._top + 1, last=min(self._count, self._top + rows), count=self._count))

    def key_table(self) -> Sequence[Key]:
        """Return close and the keys of a long page."""
        return (CLOSE, SCROLL, *HIDDEN)

    def shift(self, by: int) -> None:
        """Move the lines."""
        self._top = max(0, self._top + by)

    def do_up(self) -> None:
        """One line up."""
        self.shift(-1)

    def do_down(self) -> None:
        """One line down."""
        self.shift(1)

    def do_page_up(self) -> None:
        """One page up."""
        self.shift(-(self.size.height - 7))

    def do_page_down(self) -> None:
        """One page down."""
        self.shift(self.size.height - 7)

    def do_home(self) -> None:
        """To the first line."""
        self._top = 0

    def do_end(self) -> None:
        """To the last line."""
        self._top = self._count
