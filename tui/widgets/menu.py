"""A list of things to do: rows with a name, and at its place in the grid a mark with a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui.cells import BLANK, Line, Span, cut, pad, width
from tui.theme import MARKS

WORD_AT = 23
"""The column of mark and word, the same as on a step."""
NAME, SHORT_WORD = 13, 9
"""Where there is a second column: cells of the first, and of mark and a short word at the end."""


class Item(NamedTuple):
    """One row: `key` names it to its screen; a row without a key is a heading or empty and holds no cursor."""

    key: str
    name: str
    middle: str = ""
    """A second column, at column 16 (`580 open`); mark and word then stand at the end of the row, and the word is short."""
    mark: str = ""
    word: str = ""


def heading(name: str = "") -> Item:
    """Return a heading, or an empty row."""
    return Item(key="", name=name)


def moved(items: Sequence[Item], cursor: int, by: int) -> int:
    """Return the row the cursor comes to; it stays at both ends."""
    at = cursor + by
    while 0 <= at < len(items):
        if items[at].key:
            return at
        at += by
    return cursor


def window(count: int, cursor: int, rows: int) -> int:
    """Return the first row to show so that the cursor is in view."""
    return max(0, min(cursor - rows // 2, count - rows)) if count > rows else 0


def draw(items: Sequence[Item], cursor: int, columns: int, height: int, typed: str | None = None) -> list[Line]:
    """Return the rows in view; `typed` is the text of an open field in the row under the cursor."""
    first = window(len(items), cursor, height)
    return [_row(items[at], at == cursor, columns, typed if at == cursor else None) for at in range(first, min(len(items), first + height))]


def _row(item: Item, here: bool, columns: int, typed: str | None) -> Line:
    if not item.key:
        return (Span("  "), Span(cut(item.name, columns - 3), "mute")) if item.name else BLANK
    spans: list[Span] = [Span("› " if here else "  ", "key")]
    word_at = WORD_AT + columns - 37
    if typed is not None:
        room = columns - 4 - width(item.name) - 2
        shown = f"{typed}_"
        spans += [Span(f"{item.name}  "), Span(shown if width(shown) <= room else "…" + shown[-(room - 1) :], "accent")]
    elif item.middle:
        spans += [Span(pad(item.name, NAME)), Span(pad(item.middle, columns - NAME - 2 - SHORT_WORD - 1)), Span(" ")]
    elif item.mark:
        spans.append(Span(pad(item.name, word_at - 3) + " "))
    else:
        spans.append(Span(cut(item.name, columns - 3)))
    if item.mark and typed is None:
        spans += [Span(MARKS[item.mark], item.mark), Span(f" {cut(item.word, 11)}")]
    if here:
        spans.append(Span(" " * (columns - sum(width(span.text) for span in spans))))
        return tuple(span._replace(ground="cursor") for span in spans)
    return tuple(spans)
