"""Long lines of a verb on a terminal: broken between words, further rows as far in as what they continue."""

from __future__ import annotations

import re

from tui.cells import width, wrap

_LEAST = 40
"""Columns below which the terminal itself breaks better."""
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_WORD = re.compile(r"[!-~]+")
_COMMAND = re.compile(r" *[\w.:@-]*[$#] ")
"""What opens a command to copy, after the name of a machine maybe: a line break of ours would end it."""


def folded(text: str, columns: int) -> list[str]:
    """Return a text in rows of at most `columns` cells; a command stays whole, its script's lines too, and a word longer than a row."""
    lines = text.split("\n")
    return lines if _COMMAND.match(text) else [row for line in lines for row in _rows(line, columns)]


def _rows(line: str, columns: int) -> list[str]:
    indent = len(line) - len(line.lstrip(" "))
    if columns < _LEAST or width(line) <= columns:
        return [line]
    gaps = [gap.end() for gap in _GAP.finditer(line)]
    # A line of columns goes on below its last column, as long as that leaves the column half of the row.
    at = max((gap for gap in gaps if width(line[:gap]) <= columns // 2), default=indent)
    if _COMMAND.match(line, at):
        return [line]
    late = next((gap for gap in gaps if gap > at), None)
    if late is not None and at == indent:
        # What stands before a late column is a command: it stays whole, and its words go below it.
        head, below = line[:late].rstrip(), " " * (indent + 4)
        return [head, *(below + part for part in wrap(line[late:], columns - len(below)))]
    head, room = line[:at], columns - width(line[:at])
    if any(len(word) > room for word in _WORD.findall(line[at:])):
        return [line]
    return [(head if not number else " " * width(head)) + part for number, part in enumerate(wrap(line[at:], room))]
