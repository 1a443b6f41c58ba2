"""Every variable of NCCL as a list: what it is for, what it may be, what it is now; a row gives it its next value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events

from steps.model.base import Words, phrase
from steps.text import lookup
from tui.cells import BLANK, Line, Span, cut, wrap
from tui.screens.base import Key, event_name, ui
from tui.screens.list_page import ListPage
from tui.screens.menu_page import MOVE
from tui.widgets.field import Field
from tui.widgets.hint import LABEL, labelled
from tui.widgets.menu import Item

if TYPE_CHECKING:
    from steps.catalog.stack import NcclVariable

_PREFIX = "NCCL_"


class VariablesPage(ListPage):
    """Letters search; Enter takes the next plain value, or asks for one."""

    NAME = "variables"

    def __init__(self) -> None:
        super().__init__()
        self._search = Field(limit=30)

    # --- what there is --------------------------------------------------------------------------------

    def _rows(self) -> list[NcclVariable]:
        """Return the variables whose name or meaning holds what was typed."""
        from steps.catalog import stack

        wanted = self._search.text.lower()
        return [row for row in stack.nccl_variables().values() if wanted in row.name.lower() or wanted in self._meaning(row.name).lower()]

    def _row(self, name: str) -> NcclVariable:
        from steps.catalog import stack

        return stack.nccl_variables()[name]

    def _meaning(self, name: str) -> str:
        return self.shell.say(phrase(f"nccl_variables.meaning.{name}"))

    def _asked(self) -> dict[str, str]:
        """Return what the answers write, by name."""
        from steps.compat import nccl_conf

        return dict(nccl_conf.variables(self.wizard.machine, self.wizard.answers)) if self.wizard.machine is not None else {}

    def _standing(self) -> dict[str, str]:
        """Return what stands in the system's file, by name."""
        from steps.compat import nccl_conf, nccl_file

        there = nccl_conf.existing(self.wizard.machine) if self.wizard.machine is not None else None
        return nccl_file.taken(nccl_file.lines(there.text)) if there is not None else {}

    def items(self) -> Sequence[Item]:
        """Return one row a variable, with its value where it has one."""
        asked, standing = self._asked(), self._standing()
        found: list[Item] = []
        for row in self._rows():
            value, mark = asked.get(row.name), "good"
            if value is None:
                value, mark = standing.get(row.name), "info"
            name = row.name.removeprefix(_PREFIX)
            found.append(Item(row.name, name, mark=mark, word=value) if value is not None else Item(row.name, name))
        return found

    # --- what is said ---------------------------------------------------------------------------------

    def context_words(self) -> str:
        """Return what was typed, else what the list holds."""
        if not self._search.text:
            return super().context_words()
        searching = self.shell.say(ui("variables.search", text=self._search.text))
        return searching if self.items() else f"{searching}  {super().context_words()}"

    def hint_lines(self, columns: int, rows: int) -> list[Line]:
        """Return meaning, value of now, default, values, first release and source of the variable under the cursor."""
        items = self.items()
        if not items:
            return []
        name = items[self.cursor()].key
        row = self._row(name)
        lines: list[Line] = [(Span(cut(name, columns), "strong"),), BLANK]
        old = [self.shell.say(ui("variables.old"))] if row.category == "deprecated" else []
        lines += [(Span(line),) for line in wrap(" ".join((self._meaning(name), *old)), columns)]
        lines.append(BLANK)
        for key, text in self._facts(row):
            ink = "mute" if key == "source" else "text"
            lines += labelled(self.shell.say(ui(f"variables.{key}")), text, LABEL[self.shell.language], columns, ink)
        return lines[:rows]

    def _facts(self, row: NcclVariable) -> list[tuple[str, str]]:
        """Return the facts of a variable that are known, by their label."""
        found: list[tuple[str, str]] = []
        if now := self._now(row.name):
            found.append(("now", self.shell.say(now)))
        found.append(("default", self._worded("default", row.name, row.default)))
        found.append(("values", self._worded("values", row.name, "; ".join(row.values))))
        if row.since is not None:
            found.append(("since", row.since))
        return [*found, ("source", row.source)]

    def _now(self, name: str) -> Words | None:
        """Return the value that is asked for, or the one that stands in the file."""
        from steps.compat import nccl_conf

        asked, standing = self._asked(), self._standing()
        if name in asked:
            return ui("variables.asked", value=asked[name])
        return ui("variables.stands", value=standing[name], path=nccl_conf.CONF) if name in standing else None

    def _worded(self, part: str, name: str, bare: str) -> str:
        """Return a default or values in words where they are more than bare values."""
        if bare == "unset":
            return self.shell.say(phrase("nccl_variables.unset"))
        key = f"nccl_variables.{part}.{name}"
        return self.shell.say(phrase(key)) if lookup("en", key) is not None else bare

    # --- keys -----------------------------------------------------------------------------------------

    def key_table(self) -> Sequence[Key]:
        """Return take, type, take out, move, close."""
        return (
            Key(("enter",), "choose", "Enter", ui("key.next-value")),
            Key(("tab",), "edit", "Tab", ui("key.type-value")),
            Key(("delete",), "clear", "Del", ui("key.clear")),
            *(key._replace(keys=tuple(one for one in key.keys if len(one) > 1)) for key in MOVE),
            Key(("escape",), "close", "Esc", ui("key.back")),
        )

    def typing(self, event: events.Key) -> bool:
        """Take letters for the open field, else for the search; Esc ends the search first."""
        if self.field is not None:
            return super().typing(event)
        if event.key == "escape" and self._search.text:
            self._search.text = ""
            return True
        if not event.is_printable and event.key != "backspace":
            return False
        name = event_name(event)
        self._search.key("" if name == "space" else name, event.character)
        return True

    def chosen(self, key: str) -> None:
        """Take the next plain value, behind the last one none; without plain values a text is asked for."""
        plain = self._row(key).plain
        if not plain:
            self.do_edit()
            return
        value = (self.wizard.answers.nccl.extra or {}).get(key)
        at = plain.index(value) + 1 if value in plain else 0
        self._take(key, plain[at] if at < len(plain) else None)

    def _take(self, name: str, value: str | None) -> None:
        """Write a variable into the answers, or take it out."""
        extra = {one: text for one, text in (self.wizard.answers.nccl.extra or {}).items() if one != name}
        if value is not None:
            extra[name] = value
        self.wizard.take({"nccl.extra": extra or None})

    def do_edit(self) -> None:
        """Open a field for a value."""
        if self.items():
            self.cursor()
            self.field = Field((self.wizard.answers.nccl.extra or {}).get(self.at, ""))

    def typed(self, text: str) -> None:
        """Take the value that was typed."""
        self._take(self.at, text)

    def do_clear(self) -> None:
        """Take the variable out of what is asked for."""
        if self.items():
            self.cursor()
            self._take(self.at, None)
