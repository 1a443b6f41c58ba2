"""A list to choose from or to look at: earlier runs, recorded machines, options, findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tui.cells import BLANK, Line, Span, cut, wrap
from tui.screens.base import Key, ui
from tui.screens.menu_page import MOVE, MenuPage
from tui.widgets.menu import Item


class ListPage(MenuPage):
    """Rows with an explanation each; `chosen` is called with the key of a row."""

    def __init__(
        self, name: str, items: Callable[[], Sequence[Item]], chosen: Callable[[str], None] | None, about: Callable[[str], str]
    ) -> None:
        super().__init__()
        self._name = name
        self._items = items
        self._chosen = chosen
        self._about = about

    def state_words(self) -> str:
        """Return the name of the list."""
        return self.shell.say(ui(f"{self._name}.state"))

    def title_words(self) -> str:
        """Return the title of the list."""
        return self.shell.say(ui(f"{self._name}.title"))

    def context_words(self) -> str:
        """Return what the list holds, or that it is empty and what to do then."""
        return self.shell.say(ui(f"{self._name}.sub" if any(item.key for item in self._items()) else f"{self._name}.empty"))

    def about_words(self) -> str:
        """Return what the list is for."""
        return self.shell.say(ui(f"{self._name}.sub"))

    def items(self) -> Sequence[Item]:
        """Return the rows."""
        return self._items()

    def hint_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the explanation of the row under the cursor."""
        items = self.items()
        if not any(item.key for item in items):
            return []
        item = items[self.cursor()]
        lines: list[Line] = [(Span(cut(item.name, columns), "strong"),), BLANK]
        return [*lines, *[(Span(line),) for line in wrap(self._about(item.key), columns)]][:rows]

    def next_words(self) -> str:
        """Return what Enter does."""
        return self.shell.say(ui(f"{self._name}.next"))

    def key_table(self) -> Sequence[Key]:
        """Return open, move, close."""
        close = Key(("escape", "b", "q"), "close", "Esc", ui("key.back"))
        if self._chosen is None:
            return (Key(("enter",), "close", "Enter", ui("key.close")), MOVE[0]._replace(footer=True), *MOVE[1:], close)
        return (Key(("enter", "space"), "choose", "Enter", ui("key.open")), MOVE[0]._replace(footer=True), *MOVE[1:], close)

    def do_choose(self) -> None:
        """Choose the row."""
        self.cursor()
        if self._chosen is not None and self.at:
            self._chosen(self.at)
