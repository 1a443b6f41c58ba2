"""The one screen that draws any step from its choices and findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steps.model.base import phrase
from steps.model.choice import Choice
from tui import telling
from tui.cells import Line, Span, wrap
from tui.screens import teaching
from tui.screens.base import Key, ui
from tui.screens.step_acts import StepActs
from tui.screens.step_keys import keys_of
from tui.widgets import choice_list, hint
from tui.widgets.choice_list import Row

if TYPE_CHECKING:
    from steps.model.step import Step


class StepScreen(StepActs):
    """One step; opened from the review it returns there, opened in the walk it goes on to the next step."""

    def __init__(self, step: Step, *, from_review: bool = False) -> None:
        super().__init__(step, from_review=from_review)
        self._rows: tuple[Row, ...] = ()
        self._seen: tuple[Choice, ...] | None = None

    # --- what is drawn --------------------------------------------------------------------------------

    def here(self) -> Step:
        """Return the step of this screen."""
        return self.step

    def rows(self) -> tuple[Row, ...]:
        """Return the rows for the answers of now; the cursor stays with its row wherever that has moved to, else with what is taken."""
        choices = self.wizard.choices(self.step)
        if choices is not self._seen:
            old = self._rows[self.cursor] if 0 <= self.cursor < len(self._rows) else Row()
            self._seen, self._rows = choices, choice_list.rows_of(choices)
            stays = choice_list.followed(self._rows, old)
            if stays is None and old.choice is not None:
                stays = choice_list.taken_row(self._rows, old.choice.key)
            self.cursor = self.cursor if stays is None else stays
            if self.cursor < 0 or self.cursor >= len(self._rows) or not self._rows[self.cursor].selectable:
                self.cursor = choice_list.first_row(self._rows)
        return self._rows

    def state_words(self) -> str:
        """Return "Driver · 3 of 8"."""
        name = self.shell.say(phrase(f"{self.step.KEY}.name"))
        return self.shell.say(ui("step.position", name=name, at=self.wizard.position(self.step), count=self.wizard.count))

    def title_words(self) -> str:
        """Return the question."""
        return self.shell.say(phrase(f"{self.step.KEY}.title"))

    def context_words(self) -> str:
        """Return the step's own sentence of context."""
        machine = self.wizard.machine
        return self.shell.say(self.step.intro(machine, self.wizard.answers)) if machine is not None else ""

    def about_words(self) -> str:
        """Return what a step is, for the help page."""
        return self.shell.say(ui("step.about"))

    def list_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the questions."""
        typed = self._field.text if self._field is not None else None
        return choice_list.draw(self.rows(), self.cursor, columns, rows, self.shell.say, typed)

    def hint_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the hint of the row under the cursor, or the teaching text."""
        row = self.row()
        if self._teaching:
            return teaching.lines(self.shell.language, self.step.KEY, row.choice, row.option, columns)[:rows]
        if row.option is not None and row.choice is not None:
            told = telling.told(self.shell, self.wizard, row.option, taken=row.option.value in row.choice.taken)
            return hint.hint(self.shell.language, row.choice, row.option, columns, rows, told)
        if row.choice is not None:
            title = self.shell.say(row.choice.title or "")
            return [(Span(title, "strong"),), (), *[(Span(line),) for line in wrap(self.shell.say(ui("step.text-hint")), columns)]]
        return []

    def taken_words(self) -> str:
        """Return the names of what is taken in the question under the cursor."""
        choice = self.row().choice
        if choice is None:
            return ""
        names = [self.shell.say(option.label) for option in choice.options if option.value in choice.taken]
        return (", " if self.shell.language == "en" else "、").join(names)

    def next_words(self) -> str:
        """Return what Enter does on this row, and what is taken."""
        say_ui, row, taken = self.shell.say, self.row(), self.taken_words()
        if self._field is not None:
            return say_ui(ui("step.next.typing"))
        if row.choice is not None and row.option is not None and not row.option.takeable and row.choice.kind == "one":
            return say_ui(ui("step.next.explains", taken=taken or say_ui(ui("step.nothing"))))
        following = self._following_name()
        if row.choice is not None and row.choice.kind == "one" and row.option is not None:
            if row.option.value in row.choice.taken:
                return say_ui(ui("step.next.keeps", next=following, taken=taken))
            if not choice_list.leads(self.rows(), self.cursor):
                stays = taken or say_ui(ui("step.nothing"))
                return say_ui(ui("step.next.space-takes", next=following, taken=stays, new=say_ui(row.option.label)))
            if taken:
                return say_ui(ui("step.next.takes", next=following, taken=taken, new=say_ui(row.option.label)))
            return say_ui(ui("step.next.takes-first", next=following, new=say_ui(row.option.label)))
        if row.choice is not None and row.choice.kind == "many" and row.option is not None and not row.option.takeable:
            return say_ui(ui("step.next.adds-nothing", name=say_ui(row.option.label), next=following))
        return say_ui(ui("step.next.goes-on", next=following))

    def _following_name(self) -> str:
        following = None if self.from_review else self.bringup.after(self.step)
        return self.shell.say(ui("step.review") if following is None else phrase(f"{following.KEY}.name"))

    # --- keys -----------------------------------------------------------------------------------------

    def key_table(self) -> Sequence[Key]:
        """Return the keys that this row answers, the most needed first."""
        row = self.row()
        if self._field is not None:
            return (Key((), "", "Enter", ui("key.keep-text")), Key((), "", "Esc", ui("key.leave-text")))
        if row.option is None:
            return keys_of(row, self.step.KEY, matrix=self.has_matrix())
        leads = choice_list.leads(self.rows(), self.cursor)
        fix = telling.fix_words(self.shell, self.wizard, row.option)
        command = telling.command_of(row.option) is not None
        return keys_of(row, self.step.KEY, leads=leads, fix=fix, matrix=self.has_matrix(), command=command)
