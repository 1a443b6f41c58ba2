"""A field that is drawn as a row of the pane, with nothing of it shown where it is a secret."""

from __future__ import annotations

from textual import events

from tui.cells import Line, Span, clean, width
from tui.widgets.field import Field

_MOST = 1024


class AnswerField(Field):
    """What was typed so far of an answer."""

    def __init__(self, *, secret: bool = False) -> None:
        super().__init__(limit=_MOST)
        self.secret = secret

    def take(self, event: events.Key) -> None:
        """Take a key that belongs to the line; Enter and Esc are the caller's."""
        if event.key not in ("enter", "escape"):
            self.key(event.key, event.character if event.is_printable else None)

    def line(self, label: str, columns: int) -> Line:
        """Return the row of the field: what is typed, its end when it is longer than the row; of a secret not even its length."""
        if self.secret:
            return (Span(f" {label} "), Span("█", "mute"))
        room = max(8, columns - width(label) - 3)
        shown = clean(self.text)
        while width(shown) > room - 1:
            shown = shown[1:]
        return (Span(f" {label} "), Span(shown, "strong"), Span("_" * (1 if shown else 6), "mute"))
