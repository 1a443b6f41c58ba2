"""The one screen that draws any step from its choices and findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from textual import events

from steps.model.base import phrase
from steps.model.choice import Choice, Option
from steps.model.finding import Patch
from steps.text import lookup, say
from tui.cells import Line, Span, wrap
from tui.screens.base import Key, event_name, ui
from tui.screens.step_keys import keys_of
from tui.screens.wizard_page import WizardPage
from tui.widgets import choice_list, hint
from tui.widgets.choice_list import Row
from tui.widgets.field import Field
from tui.widgets.menu import window

if TYPE_CHECKING:
    from steps.model.step import Step


class StepScreen(WizardPage):
    """One step; opened from the review it returns there, opened in the walk it goes on to the next step."""

    def __init__(self, step: Step, *, from_review: bool = False) -> None:
        super().__init__()
        self.step = step
        self.from_review = from_review
        self.cursor = -1
        self._rows: tuple[Row, ...] = ()
        self._seen: tuple[Choice, ...] | None = None
        self._field: Field | None = None
        self._teaching = False
        self._typed_number = 0

    # --- what is drawn --------------------------------------------------------------------------------

    def here(self) -> Step:
        """Return the step of this screen."""
        return self.step

    def rows(self) -> tuple[Row, ...]:
        """Return the rows for the answers of now; the cursor keeps its row where the row still is."""
        choices = self.wizard.choices(self.step)
        if choices is not self._seen:
            self._seen, self._rows = choices, choice_list.rows_of(choices)
            if self.cursor < 0 or self.cursor >= len(self._rows) or not self._rows[self.cursor].selectable:
                self.cursor = choice_list.first_row(self._rows)
        return self._rows

    def row(self) -> Row:
        """Return the row under the cursor; an empty one when the step has no rows."""
        rows = self.rows()
        return rows[self.cursor] if rows else Row()

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
            return list[Line]((Span(line),) for line in wrap(self.teaching(), columns))[:rows]
        if row.option is not None and row.choice is not None:
            return hint.hint(self.shell.language, row.choice, row.option, columns, rows)
        if row.choice is not None:
            title = self.shell.say(row.choice.title or "")
            return [(Span(title, "strong"),), (), *[(Span(line),) for line in wrap(self.shell.say(ui("step.text-hint")), columns)]]
        return []

    def teaching(self) -> str:
        """Return the teaching text of the row, else of the step, "" when none is written."""
        option = self.row().option
        keys = [f"{self.step.KEY}.teach.{option.value}"] if option is not None else []
        for key in (*keys, f"{self.step.KEY}.teach.step", f"{self.step.KEY}.teach"):
            if lookup("en", key) is not None:
                return say(self.shell.language, phrase(key))
        return ""

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
        return keys_of(row, self.step.KEY)

    def on_key(self, event: events.Key) -> None:
        """Remember a digit, then do what the key says."""
        name = event_name(event)
        self._typed_number = int(name) if name.isdigit() and name.isascii() else 0
        super().on_key(event)

    def typing(self, event: events.Key) -> bool:
        """Give the key to the open field; a value that the profile refuses keeps it open and says so."""
        if self._field is None:
            return False
        outcome = self._field.key(event_name(event) if event_name(event) != "space" else "", event.character)
        if outcome == "done":
            choice = self.row().choice
            try:
                if choice is not None:
                    self.wizard.take({choice.key: self._field.text.strip() or None})
                self._field = None
            except msgspec.ValidationError:
                self.remark(self.shell.say(ui("step.refused")))
        elif outcome == "left":
            self._field = None
        return True

    def on_paste(self, event: events.Paste) -> None:
        """Paste into the open field."""
        if self._field is not None:
            self._field.paste(event.text)
            self.redraw()

    def clicked(self, row: int, height: int) -> None:
        """Move to the row, or do what Enter does when the cursor is there."""
        rows = self.rows()
        at = row + window(len(rows), self.cursor, height)
        if at == self.cursor:
            self.enter()
        elif at < len(rows) and rows[at].selectable:
            self.cursor = at

    def do_down(self) -> None:
        """Move the cursor down."""
        self.cursor = choice_list.moved(self.rows(), self.cursor, 1)

    def do_up(self) -> None:
        """Move the cursor up."""
        self.cursor = choice_list.moved(self.rows(), self.cursor, -1)

    def do_group(self) -> None:
        """Move to the next question."""
        self.cursor = choice_list.next_group(self.rows(), self.cursor)

    def do_number(self) -> None:
        """Move to the row of the digit."""
        found = choice_list.nth(self.rows(), self._typed_number)
        self.cursor = self.cursor if found is None else found

    def do_edit(self) -> None:
        """Open the text field."""
        choice = self.row().choice
        self._field = Field(choice.text or "" if choice is not None else "")

    def _change(self, option: Option, patch: Patch) -> None:
        """Take a patch and say what changed with it."""
        if self.wizard.take(patch):
            changes = next((note.text for note in option.notes if note.label == "changes"), None)
            if changes is not None:
                self.remark(self.shell.say(ui("step.changed", what=self.shell.say(changes))))

    def do_take(self) -> None:
        """Take the row and stay."""
        row = self.row()
        if row.option is not None and row.choice is not None and row.option.value not in row.choice.taken:
            self._change(row.option, row.option.patch)

    def do_take_on(self) -> None:
        """Take the row and go on."""
        self.do_take()
        self.do_go_on()

    def do_toggle(self) -> None:
        """Tick the row, or take its tick away."""
        row = self.row()
        if row.option is not None and row.choice is not None:
            self._change(row.option, row.option.patch)

    def do_go_on(self) -> None:
        """Go to the next step, or back to the review that this step was opened from."""
        self.bringup.go_on(self)

    def do_back(self) -> None:
        """Go one step back; the answers are kept."""
        self.bringup.go_back(self)

    def do_skip(self) -> None:
        """Go on without changing anything here."""
        self.bringup.go_on(self)

    def do_accept_rest(self) -> None:
        """Take the recommendation for all that is open, and go to the review."""
        self.wizard.accept_rest()
        if self.from_review:
            self.bringup.go_on(self)
        else:
            self.bringup.go_review()

    def do_take_back(self) -> None:
        """Take the last answer back."""
        self.remark(self.shell.say(ui("step.taken-back" if self.wizard.take_back() else "step.nothing-back")))

    def do_fix(self) -> None:
        """Apply the change that the hint offers."""
        option = self.row().option
        finding = hint.fix_of(option) if option is not None else None
        if finding is not None and finding.fix is not None and self.wizard.take(finding.fix):
            self.remark(self.shell.say(ui("step.fixed")))

    def do_why(self) -> None:
        """Open the page with the whole chain and the nearest ways out."""
        row = self.row()
        if row.choice is not None and row.option is not None:
            from tui.screens.why import WhyPage

            self.app.push_screen(WhyPage(self, row.choice, row.option))

    def do_teach(self) -> None:
        """Show the teaching text in place of the hint, or the hint again."""
        if self.teaching():
            self._teaching = not self._teaching
        else:
            self.remark(self.shell.say(ui("step.no-teaching")))

    def do_map(self) -> None:
        """Show how the machine is connected."""
        from tui.screens.map import MapPage

        self.app.push_screen(MapPage(self))

    def do_card(self) -> None:
        """Write the card with the board's menu paths."""
        self.bringup.save_card()

    def do_again(self) -> None:
        """Look at the machine again."""
        self.bringup.look_again()

    def do_save(self) -> None:
        """Save the answers as a profile."""
        self.bringup.save_profile(self)

    def do_options(self) -> None:
        """Open the options."""
        self.bringup.open_options()
