"""What the wizard's own screens share: the answers, the machine in words, and the rail of a wide window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from textual import events

from steps.errors import BringupError
from steps.model.base import phrase
from steps.text import say_error
from tui import summary
from tui.ahead import KEY as AHEAD
from tui.cells import BLANK, Line, Span, beside, pad
from tui.screens.base import FIXED_ROWS, Key, Page, ui
from tui.widgets.choice_list import COLUMNS, WIDE_COLUMNS

if TYPE_CHECKING:
    from steps.model.step import Step
    from tui.app import BringupApp
    from tui.wizard import Wizard

WIDE = 100
RAIL = 21
NARROW_COLUMNS, NARROW_ROWS = 80, 24
NARROW_HINT = 6
"""How many rows the hint has below the list in a narrow or low window."""
FIRST_BODY_ROW = 4
RULE: Line = (Span("│ ", "rule"),)


class WizardPage(Page):
    """A screen that shows and changes the answers."""

    def __init__(self) -> None:
        super().__init__()
        self._said = ""

    @property
    def wizard(self) -> Wizard:
        """The machine and the answers."""
        return self.bringup.wizard

    @property
    def bringup(self) -> BringupApp:
        """The application with the wizard."""
        return cast("BringupApp", self.app)

    def all_keys(self) -> Iterator[Key]:
        """Yield every key that works here, with the one that downloads ahead."""
        yield from super().all_keys()
        if not any(key.action == AHEAD.action for key in self.key_table()):
            yield AHEAD

    def do_ahead(self) -> None:
        """Ask whether to download ahead, or stop it."""
        self.bringup.ask_ahead()

    def remark(self, sentence: str) -> None:
        """Say a sentence in the line below the title until the next key."""
        self.wizard.remark = sentence

    def said(self, error: BringupError) -> str:
        """Return the words of an error."""
        return say_error(self.shell.language, error.code, error.params)

    def perform(self, action: str) -> None:
        """Do what a key says; a remark stands until the next key."""
        self.wizard.remark = ""
        super().perform(action)

    def sub_words(self) -> str:
        """Return what just happened, else the sentence of context."""
        return self.wizard.remark or self.context_words()

    def context_words(self) -> str:
        """Return the sentence of context."""
        return ""

    # --- the mouse: never needed ----------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row that was clicked; a click on the row of the cursor is Enter."""
        columns, rows = self.size
        left = RAIL if columns >= WIDE else 0
        room = rows - FIXED_ROWS
        narrow = columns < NARROW_COLUMNS or rows < NARROW_ROWS
        height = max(5, room - NARROW_HINT - 1) if narrow else room
        row = event.screen_y - FIRST_BODY_ROW
        if 0 <= row < height and left <= event.screen_x < left + (COLUMNS if columns < WIDE else WIDE_COLUMNS):
            self.clicked(row, height)
            self.redraw()

    def clicked(self, row: int, height: int) -> None:
        """Take a click on a row of the list, which is `height` rows high."""

    def enter(self) -> None:
        """Do what Enter does here."""
        for key in self.key_table():
            if "enter" in key.keys:
                self.perform(key.action)
                return

    # --- the body -------------------------------------------------------------------------------------

    def list_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the left side."""
        return []

    def hint_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the right side."""
        return []

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return list and hint side by side, with the rail in a wide window, below each other in a narrow one."""
        if columns < NARROW_COLUMNS or rows < NARROW_ROWS - 6:
            above = max(5, rows - NARROW_HINT - 1)
            upper = self.list_lines(min(columns, WIDE_COLUMNS), above)
            rule = (Span("─" * columns, "rule"),)
            lower = [(Span(" "), *line) for line in self.hint_lines(columns - 2, rows - above - 1)]
            return [*upper, *[BLANK] * (above - len(upper)), rule, *lower]
        left = WIDE_COLUMNS if columns >= WIDE else COLUMNS
        rail = RAIL if columns >= WIDE else 0
        room = columns - rail - left - 3
        right = self.hint_lines(room, rows)
        lines = beside(self.list_lines(left, rows), left + 1, right, rows, RULE)
        return beside(self.rail_lines(), RAIL, lines, rows, ()) if rail else lines

    def rail_lines(self) -> list[Line]:
        """Return the steps in order with a word each, and what the plan comes to so far."""
        lines = [self._rail_step(step) for step in self.wizard.steps]
        lines.append(self._rail_line(self.shell.say(ui("rail.review")), "here" if self.is_review else "", ""))
        lines += [(Span("  "), Span(self.shell.say(ui(f"rail.{key}")))) for key in ("run", "verify")]
        totals = summary.totals(self.shell, self.wizard)
        if totals:
            lines += [BLANK, (Span("  "), Span(self.shell.say(ui("rail.so-far")), "strong"))]
            lines += [(Span("  "), Span(total)) for total in totals]
        return lines

    @property
    def is_review(self) -> bool:
        """Whether this is the review."""
        return False

    def here(self) -> Step | None:
        """Return the step of this screen, or `None`."""
        return None

    def _rail_step(self, step: Step) -> Line:
        name = self.shell.say(phrase(f"{step.KEY}.name"))
        if step is self.here():
            return self._rail_line(name, "here", "")
        worst = summary.worst(self.wizard.check(step))
        if step.KEY not in self.bringup.visited:
            return self._rail_line(name, "", "")
        return self._rail_line(name, worst, worst)

    def _rail_line(self, name: str, word: str, mark: str) -> Line:
        ink = {"here": "key", "bad": "bad-strong", "catch": "catch-strong", "good": "good-strong"}.get(word, "mute")
        shown = self.shell.say(ui(f"rail.{word}")) if word else ""
        return (
            Span("› " if word == "here" else "  ", "key"),
            Span(pad(name, 11), "strong" if word == "here" else "text"),
            Span(shown, ink),
        )
