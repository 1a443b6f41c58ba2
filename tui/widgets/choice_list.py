"""The left side of a step: its questions as rows, the answer that is taken and the row the cursor is on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from steps.model.base import Words
from steps.model.choice import Choice, Option
from tui.cells import BLANK, Line, Span, cut, pad, width
from tui.theme import MARKS
from tui.widgets.menu import window

COLUMNS, WIDE_COLUMNS = 37, 44
"""The left column at 80 and from 100 columns on; cursor 2, radio 4, name 17 (24), mark and word 13, one blank."""
_TAIL = 14

Say = Callable[[Words], str]


class Row(NamedTuple):
    """One row: an option or a typed value of a question, else a heading or an empty row."""

    choice: Choice | None = None
    option: Option | None = None
    heading: Words | None = None

    @property
    def selectable(self) -> bool:
        """Whether the cursor may stand here."""
        return self.option is not None or (self.choice is not None and self.choice.kind == "text")


def rows_of(choices: Sequence[Choice]) -> tuple[Row, ...]:
    """Return the rows of the questions: an empty row and a heading between groups."""
    rows: list[Row] = []
    for choice in choices:
        if rows and (choice.title is not None or choice.kind != "text"):
            rows.append(Row())
        if choice.title is not None and choice.kind != "text":
            rows.append(Row(choice=None, heading=choice.title))
        if choice.kind == "text":
            rows.append(Row(choice=choice))
        rows += [Row(choice=choice, option=option) for option in choice.options]
    return tuple(rows)


def first_row(rows: Sequence[Row]) -> int:
    """Return where the cursor starts: on the answer that is taken, else on the first row that can hold it."""
    fallback = next((at for at, row in enumerate(rows) if row.selectable), 0)
    if not rows or rows[fallback].choice is None or rows[fallback].choice.kind != "one":  # type: ignore[union-attr]  # asked before
        return fallback
    question = rows[fallback].choice
    return next(
        (at for at, row in enumerate(rows) if row.option and row.choice is question and question and row.option.value in question.taken),
        fallback,
    )


def followed(rows: Sequence[Row], old: Row) -> int | None:
    """Return where the row that was under the cursor stands now, wherever it has moved to; `None` when it is gone."""
    if old.choice is None:
        return None
    value = old.option.value if old.option is not None else None
    return next(
        (
            at
            for at, row in enumerate(rows)
            if row.choice and row.choice.key == old.choice.key and (row.option and row.option.value) == value
        ),
        None,
    )


def taken_row(rows: Sequence[Row], question: str) -> int | None:
    """Return the row of the answer that is taken in a question of which only one can be; `None` without one."""
    for at, row in enumerate(rows):
        if row.choice and row.choice.key == question and row.choice.kind == "one" and row.option and row.option.value in row.choice.taken:
            return at
    return None


def leads(rows: Sequence[Row], cursor: int) -> bool:
    """Whether the cursor is in the step's first question, whose row Enter takes; in the others only Space does."""
    first = next((row.choice for row in rows if row.choice is not None), None)
    return bool(rows) and rows[cursor].choice is not None and rows[cursor].choice is first


def ends(rows: Sequence[Row], last: bool) -> int:
    """Return the first or the last row that can hold the cursor."""
    selectable = [at for at, row in enumerate(rows) if row.selectable]
    return selectable[-1 if last else 0] if selectable else 0


def moved(rows: Sequence[Row], cursor: int, by: int) -> int:
    """Return the row the cursor comes to; it stays where it is at both ends."""
    at = cursor + by
    while 0 <= at < len(rows):
        if rows[at].selectable:
            return at
        at += by
    return cursor


def next_group(rows: Sequence[Row], cursor: int) -> int:
    """Return the first row of the next question, round to the first one."""
    here = rows[cursor].choice if cursor < len(rows) else None
    order = [*range(cursor + 1, len(rows)), *range(cursor + 1)]
    return next((at for at in order if rows[at].selectable and rows[at].choice is not here), cursor)


def nth(rows: Sequence[Row], number: int) -> int | None:
    """Return the row of the `number`-th answer, counted from 1, or `None` when there is none."""
    selectable = [at for at, row in enumerate(rows) if row.selectable]
    return selectable[number - 1] if 0 < number <= len(selectable) else None


def _label_width(choice: Choice, say: Say, room: int) -> int:
    """Return the width of the first column of a group of facts; all of `room` when no fact has a second."""
    if not any(option.detail for option in choice.options):
        return room
    longest = max(width(say(option.label)) for option in choice.options)
    return min(max(8, longest), room - 6)


def _mark(option: Option, say: Say) -> tuple[Span, Span]:
    return Span(MARKS[option.mark], option.mark), Span(f" {cut(say(option.tag), _TAIL - 3)}")


def draw_row(row: Row, here: bool, columns: int, say: Say, typed: str | None = None) -> Line:
    """Return one row in at most `columns` cells; `typed` is the text of an open field."""
    room = columns - _TAIL - 6
    cursor = Span("› " if here else "  ", "key")
    if row.heading is not None:
        return (Span("  "), Span(cut(say(row.heading), columns - 3), "mute"))
    if row.choice is None:
        return BLANK
    if row.option is None:
        label = say(row.choice.title or "")
        left = max(9, width(label) + 1)
        value = f"{typed}_" if typed is not None else (row.choice.text or "")
        shown = value if width(value) <= columns - left - 3 else "…" + value[-(columns - left - 5) :]
        return (cursor, Span(pad(label, left)), Span(shown, "accent" if typed is not None else "text"))
    option = row.option
    if row.choice.kind == "facts":
        left = _label_width(row.choice, say, room + 3)
        name = pad(say(option.label), left)
        detail = pad(say(option.detail), room + 3 - left) if left < room + 3 else ""
        return (cursor, Span(f"{name} {detail}" if detail else f"{name} "), *_mark(option, say))
    taken = option.value in row.choice.taken
    box = ("(•)" if taken else "( )") if row.choice.kind == "one" else ("[x]" if taken else "[ ]")
    return (cursor, Span(f"{box} "), Span(pad(cut(say(option.label), room - 1), room)), *_mark(option, say))


def draw(rows: Sequence[Row], cursor: int, columns: int, height: int, say: Say, typed: str | None = None) -> list[Line]:
    """Return the rows that are in view, the one under the cursor on its own ground."""
    first = window(len(rows), cursor, height)
    lines: list[Line] = []
    for at in range(first, min(len(rows), first + height)):
        line = draw_row(rows[at], at == cursor, columns, say, typed if at == cursor else None)
        if at == cursor and rows[at].selectable:
            used = sum(width(span.text) for span in line)
            line = tuple(span._replace(ground="cursor") for span in (*line, Span(" " * (columns - used))))
        lines.append(line)
    return lines
