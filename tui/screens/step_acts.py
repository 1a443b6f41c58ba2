"""What the keys of a step do: move, take, tick, type, fix, teach, and open the pages that explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from textual import events

from steps.model.choice import Option
from tui import telling
from tui.screens.base import event_name, ui
from tui.screens.wizard_page import WizardPage
from tui.widgets import choice_list
from tui.widgets.choice_list import Row
from tui.widgets.field import Field
from tui.widgets.menu import window

if TYPE_CHECKING:
    from steps.model.step import Step

MATRIX_STEPS = ("driver", "toolkit", "frameworks")
"""The steps whose answers stand in the matrix."""


class StepActs(WizardPage):
    """The answers of one step change here; what is drawn stands in the screen."""

    def __init__(self, step: Step, *, from_review: bool = False) -> None:
        super().__init__()
        self.step = step
        self.from_review = from_review
        self.cursor = -1
        self._field: Field | None = None
        self._teaching = False
        self._typed_number = 0

    def rows(self) -> tuple[Row, ...]:
        """Return the rows for the answers of now."""
        return ()

    def row(self) -> Row:
        """Return the row under the cursor; an empty one when the step has no rows."""
        rows = self.rows()
        return rows[self.cursor] if rows else Row()

    def has_matrix(self) -> bool:
        """Whether `m` shows the matrix here: where drivers and toolkits of NVIDIA's are to be weighed."""
        machine = self.wizard.machine
        return self.step.KEY in MATRIX_STEPS and machine is not None and any(card.vendor == "nvidia" for card in machine.accelerators)

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
        """Move to the row, or do what the row is for when the cursor is there: take it, tick it, else what Enter does."""
        rows = self.rows()
        at = row + window(len(rows), self.cursor, height)
        if at == self.cursor:
            self._act()
        elif at < len(rows) and rows[at].selectable:
            self.cursor = at

    def _act(self) -> None:
        """Do what Enter does; where that would only go on, what Space does."""
        keys = self.key_table()
        goes_on = any("enter" in key.keys and key.action == "go_on" for key in keys)
        acting = next((key.action for key in keys if "space" in key.keys), None)
        if goes_on and acting is not None:
            self.perform(acting)
        else:
            self.enter()

    def do_first(self) -> None:
        """Move to the first row."""
        self.cursor = choice_list.ends(self.rows(), last=False)

    def do_last(self) -> None:
        """Move to the last row."""
        self.cursor = choice_list.ends(self.rows(), last=True)

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

    def _change(self, option: Option) -> None:
        """Take an option with what has to change with it, and say what that was."""
        effects = self.wizard.effects(option)
        if self.wizard.take(effects.patch) and effects.changes:
            self.remark(self.shell.say(ui("step.changed", what=telling.changes_words(self.shell, effects.changes))))

    def do_take(self) -> None:
        """Take the row and stay."""
        row = self.row()
        if row.option is not None and row.choice is not None and row.option.value not in row.choice.taken:
            self._change(row.option)

    def do_take_on(self) -> None:
        """Take the row and go on."""
        self.do_take()
        self.do_go_on()

    def do_toggle(self) -> None:
        """Tick the row, or take its tick away."""
        row = self.row()
        if row.option is not None and row.choice is not None:
            self._change(row.option)

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
        back = self.wizard.take_back()
        self.remark(self.shell.say(ui("step.taken-back" if back else "step.nothing-back")))
        if back:
            self._to_taken()

    def do_fix(self) -> None:
        """Apply the change that the hint offers; where it is taken already, say that it stays."""
        option = self.row().option
        fix = telling.fix_of(self.wizard, option) if option is not None else None
        if option is None or fix is None:
            return
        effects = self.wizard.effects_of(fix)
        words = telling.fix_words(self.shell, self.wizard, option)
        taken = telling.changes_words(self.shell, self.wizard.differences(effects.patch))
        if self.wizard.take(effects.patch):
            self.remark(self.shell.say(ui("step.changed-to", what=taken)) if taken else self.shell.say(ui("step.fixed")))
            self._to_taken()
        elif words:
            self.remark(self.shell.say(ui("step.stays", what=words)))
            self._to_taken()

    def _to_taken(self) -> None:
        """Move the cursor to what is taken in its question."""
        rows, here = self.rows(), self.row().choice
        taken = choice_list.taken_row(rows, here.key) if here is not None else None
        self.cursor = self.cursor if taken is None else taken

    def do_copy(self) -> None:
        """Hand the shown command to the terminal's clipboard (OSC 52), without the sign in front."""
        option = self.row().option
        command = telling.command_of(option) if option is not None else None
        if command is not None:
            self.app.copy_to_clipboard(command)
            self.remark(self.shell.say(ui("step.copied", command=command)))

    def do_matrix(self) -> None:
        """Show what goes with what, as a map."""
        from tui.screens.matrix import MatrixPage

        self.app.push_screen(MatrixPage(self))

    def do_variables(self) -> None:
        """List every variable of NCCL."""
        from tui.screens.variables import VariablesPage

        self.app.push_screen(VariablesPage())

    def do_map(self) -> None:
        """Show how the machine is connected."""
        from tui.screens.map import MapPage

        self.app.push_screen(MapPage(self))

    def do_card(self) -> None:
        """Write the card with the board's menu paths."""
        self.bringup.save_card()

    def do_why(self) -> None:
        """Open the page with the whole chain and the nearest ways out."""
        row = self.row()
        if row.choice is not None and row.option is not None:
            from tui.screens.why import WhyPage

            self.app.push_screen(WhyPage(self, row.choice, row.option))

    def do_teach(self) -> None:
        """Show the teaching text in place of the hint, or the hint again; it follows the cursor."""
        self._teaching = not self._teaching

    def do_again(self) -> None:
        """Look at the machine again."""
        self.bringup.look_again()

    def do_save(self) -> None:
        """Save the answers as a profile."""
        self.bringup.save_profile(self)

    def do_options(self) -> None:
        """Open the options."""
        self.bringup.open_options()
