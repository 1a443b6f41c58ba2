"""The page for a fault of ours: what it was, that nothing of the machine is at stake, and the way back."""

from __future__ import annotations

from collections.abc import Sequence

from tui.cells import Line, Span, wrap
from tui.screens.base import Key, Page, ui


class WrongPage(Page):
    """Esc goes back to the last good screen: the one below the screen that failed."""

    def __init__(self, error: Exception, failed: Page) -> None:
        super().__init__()
        self._error = error
        self._failed = failed

    def title_words(self) -> str:
        """Return whose fault it is."""
        return self.shell.say(ui("wrong.title"))

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return what happened, where, and what is safe."""
        trace = self._error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}" if trace is not None else ""
        texts = (self.shell.say(ui("wrong.safe")), "", f"{type(self._error).__name__}: {self._error}", where)
        return [(Span(" "), Span(line)) for text in texts for line in wrap(text, columns - 3)]

    def next_words(self) -> str:
        """Return how to go on."""
        return self.shell.say(ui("wrong.next"))

    def key_table(self) -> Sequence[Key]:
        """Return back and leave."""
        return (Key(("escape", "b", "enter"), "back", "Esc", ui("key.back")), Key(("q",), "leave", "q", ui("key.leave")))

    def do_back(self) -> None:
        """Close this page and the screen that failed; without a screen below, leave."""
        screens = self.app.screen_stack
        at = screens.index(self._failed) if self._failed in screens else 0
        if at <= 1:
            self.app.exit(1)
            return
        self.dismiss()
        self._failed.dismiss()

    def do_leave(self) -> None:
        """Leave at once."""
        self.app.exit(1)
