"""A list to choose from or to look at: rows at the left, what the one under the cursor means at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tui.cells import BLANK, Line, Span, cut, wrap
from tui.screens.base import Key, ui
from tui.screens.menu_page import MOVE, MenuPage


class ListPage(MenuPage):
    """The words are `ui.<NAME>.{state,title,sub,empty,next}`."""

    NAME: ClassVar[str] = ""
    CHOOSES: ClassVar[bool] = True
    """Whether Enter does something with a row."""

    def chosen(self, key: str) -> None:
        """Do what the row says."""

    def explained(self, key: str) -> str:
        """Return what the row means."""
        return ""

    def state_words(self) -> str:
        """Return the name of the list."""
        return self.shell.say(ui(f"{self.NAME}.state"))

    def title_words(self) -> str:
        """Return the title of the list."""
        return self.shell.say(ui(f"{self.NAME}.title"))

    def context_words(self) -> str:
        """Return what the list holds, or that it is empty and what to do then."""
        return self.shell.say(ui(f"{self.NAME}.sub" if any(item.key for item in self.items()) else f"{self.NAME}.empty"))

    def about_words(self) -> str:
        """Return what the list is for."""
        return self.shell.say(ui(f"{self.NAME}.sub"))

    def hint_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the explanation of the row under the cursor."""
        items = self.items()
        if not any(item.key for item in items):
            return []
        item = items[self.cursor()]
        lines: list[Line] = [(Span(cut(item.name, columns), "strong"),), BLANK]
        return [*lines, *[(Span(line),) for line in wrap(self.explained(item.key), columns)]][:rows]

    def next_words(self) -> str:
        """Return what Enter does."""
        return self.shell.say(ui(f"{self.NAME}.next"))

    def key_table(self) -> Sequence[Key]:
        """Return open, move, close."""
        close = Key(("escape", "b", "q"), "close", "Esc", ui("key.back"))
        enter = (
            Key(("enter", "space"), "choose", "Enter", ui("key.open"))
            if self.CHOOSES
            else Key(("enter",), "close", "Enter", ui("key.close"))
        )
        return (enter, MOVE[0]._replace(footer=True), *MOVE[1:], close)

    def do_choose(self) -> None:
        """Choose the row."""
        self.cursor()
        if self.at:
            self.chosen(self.at)
