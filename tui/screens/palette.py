"""The palette: every action of the screen below by its name, found by typing a part of it in either language."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from steps.text import say
from tui.cells import Line
from tui.screens.base import Key, Page, event_name, ui
from tui.widgets import menu
from tui.widgets.choice_list import WIDE_COLUMNS
from tui.widgets.field import Field
from tui.widgets.menu import Item

_NEEDS_ITS_KEY = ("", "number", "way", "nothing", "palette")
"""Actions that mean nothing without the key that was pressed."""


class PalettePage(Page):
    """Letters search, arrows move, Enter does it on the screen below."""

    def __init__(self, below: Page) -> None:
        super().__init__()
        self.below = below
        self._search = Field(limit=30)
        self._cursor = 0

    def state_words(self) -> str:
        """Return the state of the screen below."""
        return self.below.state_words()

    def title_words(self) -> str:
        """Return "Actions"."""
        return self.shell.say(ui("palette.title"))

    def sub_words(self) -> str:
        """Return what was typed."""
        return self.shell.say(ui("palette.search", text=self._search.text))

    def next_words(self) -> str:
        """Return what Enter does."""
        return self.shell.say(ui("palette.next"))

    def items(self) -> list[Item]:
        """Return the actions whose name, here or in English, holds what was typed."""
        wanted = self._search.text.lower()
        found: dict[str, Item] = {}
        for key in self.below.all_keys():
            name = self.shell.say(key.words)
            if key.action not in _NEEDS_ITS_KEY and key.cap and (wanted in name.lower() or wanted in say("en", key.words).lower()):
                found.setdefault(key.action, Item(key.action, name, mark="info", word=key.cap))
        return list(found.values())

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return the actions."""
        items = self.items()
        self._cursor = max(0, min(self._cursor, len(items) - 1))
        return menu.draw(items, self._cursor, min(columns, WIDE_COLUMNS), rows)

    def key_table(self) -> Sequence[Key]:
        """Return do, move, close; every letter searches."""
        return (
            Key(("enter",), "choose", "Enter", ui("key.agree")),
            Key(("down",), "down", "↑↓", ui("key.move")),
            Key(("up",), "up", "", ui("key.move"), footer=False),
            Key(("escape",), "close", "Esc", ui("key.close")),
        )

    def typing(self, event: events.Key) -> bool:
        """Take letters for the search."""
        if not event.is_printable and event.key != "backspace":
            return False
        name = event_name(event)
        self._search.key("" if name == "space" else name, event.character)
        return True

    def do_up(self) -> None:
        """Move up."""
        self._cursor -= 1

    def do_down(self) -> None:
        """Move down."""
        self._cursor += 1

    def do_choose(self) -> None:
        """Close, and do the action on the screen below."""
        items = self.items()
        self.dismiss()
        if items:
            self.below.perform(items[self._cursor].key)
            self.below.redraw()
