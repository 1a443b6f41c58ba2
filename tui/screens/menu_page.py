"""A wizard screen whose left side is a menu."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from tui.cells import Line
from tui.screens.base import Key, event_name, ui
from tui.screens.wizard_page import WizardPage
from tui.widgets import menu
from tui.widgets.field import Field
from tui.widgets.menu import Item

MOVE = (
    Key(("down", "j"), "down", "↑↓", ui("key.move"), footer=False),
    Key(("up", "k"), "up", "", ui("key.move"), footer=False),
    Key(("home",), "first", "Home", ui("key.start"), footer=False),
    Key(("end",), "last", "End", ui("key.end"), footer=False),
)


class MenuPage(WizardPage):
    """Rows to choose from; Enter does what the row says."""

    def __init__(self) -> None:
        super().__init__()
        self.at = ""
        """The key of the row under the cursor."""
        self.field: Field | None = None

    def items(self) -> Sequence[Item]:
        """Return the rows of now."""
        return ()

    def cursor(self) -> int:
        """Return the row of the cursor; the first that can hold it when its row is gone."""
        items = self.items()
        found = next((at for at, item in enumerate(items) if item.key and item.key == self.at), None)
        if found is None:
            found = next((at for at, item in enumerate(items) if item.key), 0)
            self.at = items[found].key if items else ""
        return found

    def list_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the menu."""
        return menu.draw(self.items(), self.cursor(), columns, rows, self.field.text if self.field is not None else None)

    def typing(self, event: events.Key) -> bool:
        """Give the key to the open field."""
        if self.field is None:
            return False
        name = event_name(event)
        outcome = self.field.key("" if name == "space" else name, event.character)
        if outcome != "open":
            text, self.field = self.field.text.strip(), None
            self.wizard.remark = ""
            if outcome == "done" and text:
                self.typed(text)
        return True

    def typed(self, text: str) -> None:
        """Do something with the text of the field."""

    def on_paste(self, event: events.Paste) -> None:
        """Paste into the open field."""
        if self.field is not None:
            self.field.paste(event.text)
            self.redraw()

    def clicked(self, row: int, height: int) -> None:
        """Move to the row, or do it when the cursor is there."""
        items, cursor = self.items(), self.cursor()
        at = row + menu.window(len(items), cursor, height)
        if at == cursor:
            self.enter()
        elif at < len(items) and items[at].key:
            self.at = items[at].key

    def _move(self, by: int) -> None:
        items = self.items()
        self.at = items[menu.moved(items, self.cursor(), by)].key if items else ""

    def do_down(self) -> None:
        """Move down."""
        self._move(1)

    def do_up(self) -> None:
        """Move up."""
        self._move(-1)

    def do_first(self) -> None:
        """Move to the first row."""
        self.at = next((item.key for item in self.items() if item.key), "")

    def do_last(self) -> None:
        """Move to the last row."""
        self.at = next((item.key for item in reversed(self.items()) if item.key), "")
