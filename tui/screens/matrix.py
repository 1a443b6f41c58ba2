"""The matrix: drivers by CUDA lines, the framework builds below, and one line that explains the cell under the cursor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steps.compat import matrix as compat
from steps.compat.matrix import Cell, Matrix, Row
from steps.model.base import Words
from steps.model.choice import Choice, Option
from steps.text import say_finding
from tui import telling
from tui.cells import BLANK, Line, Span, cut, pad, width, wrap
from tui.screens.base import Key, ui
from tui.screens.wizard_page import WizardPage
from tui.theme import MARKS
from tui.widgets.menu import window

if TYPE_CHECKING:
    from tui.screens.step_acts import StepActs

NAME, COLUMN = 15, 12
"""Cells of the first column, and of each CUDA line."""
BELOW = 5
"""Rows of the explanation and of the words below it."""


class MatrixPage(WizardPage):
    """Arrows move; Enter takes driver and CUDA of the cell together."""

    def __init__(self, below: StepActs) -> None:
        super().__init__()
        self.below = below
        self._matrix: Matrix | None = None
        self._row = 0
        self._column = 0

    # --- what is drawn --------------------------------------------------------------------------------

    def map(self) -> Matrix:
        """Return the matrix for the answers of now; made once, since nothing changes while it is open."""
        if self._matrix is None:
            self._matrix = self.wizard.matrix() or Matrix(cudas=(), rows=(), builds=())
            self._row, self._column = self._matrix.at
        return self._matrix

    def cell(self) -> Cell | None:
        """Return the cell under the cursor, or `None` when there is no driver to choose."""
        rows = self.map().rows
        return rows[self._row].cells[self._column] if rows else None

    def state_words(self) -> str:
        """Return the state of the step below."""
        return self.below.state_words()

    def title_words(self) -> str:
        """Return the title."""
        return self.shell.say(ui("matrix.title"))

    def context_words(self) -> str:
        """Return how it is read."""
        return self.shell.say(ui("matrix.sub"))

    def about_words(self) -> str:
        """Return what this page is."""
        return self.shell.say(ui("matrix.about"))

    def next_words(self) -> str:
        """Return what Enter does on this cell."""
        cell = self.cell()
        return self.shell.say(ui("matrix.next" if cell is not None and cell.mark != "bad" else "matrix.next-bad"))

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return head, drivers, builds, the explanation of the cell and the words used; the windows follow the cursor."""
        found = self.map()
        if not found.rows:
            return [(Span(" "), Span(line)) for line in wrap(self.shell.say(ui("matrix.empty")), columns - 2)]
        count = max(1, min(len(found.cudas), (columns - 2 - NAME) // COLUMN))
        first = max(0, min(self._column - count // 2, len(found.cudas) - count))
        seen = range(first, first + count)
        room = max(2, rows - 4 - len(found.builds) - BELOW)
        top = window(len(found.rows), self._row, room)
        drivers = [self._driver(at, found.rows[at], seen) for at in range(top, min(len(found.rows), top + room))]
        builds = [
            (Span(" "), Span(pad(row.name, NAME), "mute"), *(Span(pad(f" {self._worded(row.cells[at])}", COLUMN)) for at in seen))
            for row in found.builds
        ]
        used = [found.rows[at].cells[column] for at in range(top, min(len(found.rows), top + room)) for column in seen]
        return [
            self._head(found, seen),
            BLANK,
            *drivers,
            BLANK,
            *builds,
            BLANK,
            *self._below(used, columns - 2),
        ]

    def _worded(self, words: Words) -> str:
        return self.shell.say(words)

    def _head(self, found: Matrix, seen: range) -> Line:
        """Return the CUDA lines in view, with a sign where there are more."""
        before, after = ("‹" if seen.start > 0 else " "), ("›" if seen.stop < len(found.cudas) else "")
        names = [Span(pad(f"CUDA {found.cudas[at]}", COLUMN), "strong" if at == self._column else "mute") for at in seen]
        return (Span(" "), Span(" " * (NAME - 2)), Span(f"{before} ", "key"), *names, Span(after, "key"))

    def _driver(self, at: int, row: Row, seen: range) -> Line:
        """Return one driver with its cells in view; the cursor sign takes the leading blank of its cell."""
        here = at == self._row
        spans = [Span(" "), Span(pad(self._worded(row.label), NAME), "strong" if here else "text")]
        for column in seen:
            cell = row.cells[column]
            word = cut(self._word(cell), COLUMN - 4)
            ground = "cursor" if here and column == self._column else "page"
            spans += [
                Span("›" if ground == "cursor" else " ", "key", ground),
                Span(MARKS[cell.mark], cell.mark, ground),
                Span(f" {word} ", "text", ground),
                Span(" " * (COLUMN - 4 - width(word))),
            ]
        return tuple(spans)

    def _word(self, cell: Cell) -> str:
        return self.shell.say(ui(f"matrix.word.{cell.word}"))

    def _cell_name(self) -> str:
        """Return the name of the cell under the cursor: "580 open × CUDA 13.0"."""
        found = self.map()
        return f"{self._worded(found.rows[self._row].label)} × CUDA {found.cudas[self._column]}"

    def _below(self, used: Sequence[Cell], columns: int) -> list[Line]:
        """Return what the cell is, an empty row, and as many of the words in view as the rest has room for."""
        explained = self._explained(columns)[: BELOW - 2]
        return [*explained, BLANK, *self._legend(used, columns)[: BELOW - 1 - len(explained)]]

    def _explained(self, columns: int) -> list[Line]:
        """Return what the cell is, in as many rows as it needs."""
        cell = self.cell()
        if cell is None:
            return []
        head = f"{self._cell_name()}  "
        mark = f"{MARKS[cell.mark]} {self._word(cell)}  "
        if cell.findings:
            text = say_finding(self.shell.language, cell.findings[0], "sentence")
        else:
            text = self.shell.say(ui("matrix.own" if cell.own else "matrix.newer"))
        beside = columns - width(head) - width(mark)
        lines = wrap(text, columns)
        first: Line = (Span(" "), Span(head, "strong"), Span(mark, f"{cell.mark}-strong"))
        if width(text) <= beside:
            first, lines = (*first, Span(text)), []
        return [first, *[(Span(" "), Span(line)) for line in lines]]

    def _legend(self, cells: Sequence[Cell], columns: int) -> list[Line]:
        """Return the words in view with what they mean."""
        entries = [(self._word(cell), self.shell.say(ui(f"matrix.means.{cell.word}"))) for cell in cells if cell.word != "ok"]
        lines: list[list[Span]] = [[]]
        left = columns
        for word, means in dict.fromkeys(entries):
            size = width(word) + 2 + width(means)
            if lines[-1] and size + 3 > left:
                lines.append([])
                left = columns
            gap = "   " if lines[-1] else " "
            lines[-1] += [Span(gap), Span(word, "text"), Span(f"  {means}", "mute")]
            left -= size + len(gap)
        return [tuple(line) for line in lines]

    # --- keys -----------------------------------------------------------------------------------------

    def key_table(self) -> Sequence[Key]:
        """Return the keys of the map."""
        cell = self.cell()
        takes = cell is not None and cell.mark != "bad"
        return (
            Key(("left", "h"), "left", "←↑↓→", ui("key.move")),
            Key(("right",), "right", "", ui("key.move"), footer=False),
            Key(("down", "j"), "down", "", ui("key.move"), footer=False),
            Key(("up", "k"), "up", "", ui("key.move"), footer=False),
            Key(("home",), "first", "Home", ui("key.first-column"), footer=False),
            Key(("end",), "last", "End", ui("key.last-column"), footer=False),
            Key(("enter", "space"), "take" if takes else "why", "Enter", ui("key.take-both" if takes else "key.why-not")),
            Key(("w",), "why", "w", ui("key.why")),
            Key(("escape", "b", "m", "q"), "close", "Esc", ui("key.close")),
        )

    def _move(self, down: int, right: int) -> None:
        found = self.map()
        self._row = max(0, min(self._row + down, len(found.rows) - 1))
        self._column = max(0, min(self._column + right, len(found.cudas) - 1))

    def do_left(self) -> None:
        """One CUDA line to the left."""
        self._move(0, -1)

    def do_right(self) -> None:
        """One CUDA line to the right."""
        self._move(0, 1)

    def do_up(self) -> None:
        """One driver up."""
        self._move(-1, 0)

    def do_down(self) -> None:
        """One driver down."""
        self._move(1, 0)

    def do_first(self) -> None:
        """To the oldest CUDA line."""
        self._column = 0

    def do_last(self) -> None:
        """To the newest CUDA line."""
        self._column = max(0, len(self.map().cudas) - 1)

    def do_take(self) -> None:
        """Take driver and CUDA of the cell together, say what changed, and close."""
        cell = self.cell()
        if cell is None:
            return
        effects = self.wizard.effects_of(cell.patch)
        changed = telling.changes_words(self.shell, self.wizard.differences(effects.patch))
        if self.wizard.take(effects.patch):
            self.remark(self.shell.say(ui("step.changed-to", what=changed)) if changed else self.shell.say(ui("step.fixed")))
        self.dismiss()

    def do_why(self) -> None:
        """Explain the cell: what forbids it or wants to be watched, and the nearest ways."""
        cell, machine = self.cell(), self.wizard.machine
        if cell is None or machine is None:
            return
        from tui.screens.why import WhyPage

        sentence = () if cell.findings else (ui("matrix.own" if cell.own else "matrix.newer"),)
        findings = compat.findings_of(machine, self.wizard.answers, cell)
        option = Option(
            value=self._cell_name(), label=self._cell_name(), mark=cell.mark, sentences=sentence, findings=findings, patch=cell.patch
        )
        self.app.push_screen(WhyPage(self, Choice(key="matrix", kind="one", options=(option,)), option))
