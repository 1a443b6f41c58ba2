"""A page that asks before something is lost: a key for what is harmless, a typed word for what cannot be taken back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from textual import events

from tui.cells import BLANK, Line, Span, wrap
from tui.screens.base import Key, Page, event_name, ui
from tui.widgets.field import Field

_NUMBER = re.compile(r"\d+ +")
"""What opens a row of a numbered list: its further lines stand below its words."""


class ConfirmPage(Page):
    """Asks one question; `word` must be typed when it is given, else Enter is enough."""

    TYPE_AHEAD = False

    def __init__(
        self,
        title: str,
        sentences: Sequence[str],
        agreed: Callable[[], None],
        *,
        word: str = "",
        extra: Sequence[Key] = (),
        actions: Mapping[str, Callable[[], None]] | None = None,
        state: str = "",
        details: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self._title = title
        self._sentences = tuple(sentences)
        self._agreed = agreed
        self._word = word
        self._extra = tuple(extra)
        self._actions = dict(actions or {})
        self._state = state
        self._details = details
        self._field = Field(limit=20) if word else None
        self._wrong = False

    def state_words(self) -> str:
        """Return the state of the screen below."""
        return self._state

    def title_words(self) -> str:
        """Return the question."""
        return self._title

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return what is lost and what is kept, then the field for the word."""
        lines: list[Line] = []
        for sentence in self._sentences:
            number = _NUMBER.match(sentence)
            head = number.group() if number else ""
            lines += [
                (Span(" "), Span((" " * len(head) if at else head) + line))
                for at, line in enumerate(wrap(sentence[len(head) :], columns - 3 - len(head)))
            ]
        if self._field is not None:
            before, _, after = self.shell.say(ui("confirm.type", word="\0")).partition("\0")
            lines += [BLANK, (Span(f" {before}"), Span(self._word, "accent-strong"), Span(f"{after} {self._field.text}_"))]
        if self._wrong:
            lines += [BLANK, (Span(" "), Span(self.shell.say(ui("confirm.wrong", word=self._word)), "catch-strong"))]
        return lines

    def next_words(self) -> str:
        """Return how to get out."""
        return self.shell.say(ui("confirm.next"))

    def key_table(self) -> Sequence[Key]:
        """Return agree and leave."""
        return (
            Key(("enter", "y"), "agree", "Enter", ui("key.agree")),
            Key(("escape", "n", "b"), "close", "Esc", ui("key.stay")),
            *((Key(("d",), "details", "d", ui("key.details")),) if self._details is not None else ()),
            *self._extra,
        )

    def typing(self, event: events.Key) -> bool:
        """Take the letters of the word; a wrong word does nothing and says so."""
        if self._field is None:
            return False
        name = event_name(event)
        outcome = self._field.key("" if name == "space" else name, event.character)
        if outcome == "left":
            self.dismiss()
        elif outcome == "done":
            if self._field.text.strip() == self._word:
                self.do_agree()
            else:
                self._wrong, self._field = True, Field(limit=20)
        return True

    def do_details(self) -> None:
        """Show all of what is asked about; the question stays."""
        if self._details is not None:
            self._details()

    def do_agree(self) -> None:
        """Close, then do it."""
        self.dismiss()
        self._agreed()

    def perform(self, action: str) -> None:
        """Do what a key says; the extra keys are the asker's."""
        if action in self._actions:
            self.dismiss()
            self._actions[action]()
        else:
            super().perform(action)
