"""Long lines of a verb on a terminal: broken between words, further rows as far in as what they continue."""

from __future__ import annotations

import re

from tui.cells import width, wrap

_LEAST = 40
"""Columns below which the terminal itself breaks better."""
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")
_WORD = re.compile(r"[!-~]+")
_COMMAND = ("$ ", "# ")
"""What opens a command to copy: a line break of ours would end it."""


def folded(line: str, columns: int) -> list[str]:
    """Return a line in rows of at most `columns` cells; a command stays whole, and so does a word that is longer than a row."""
    inner = line.lstrip(" ")
    indent = len(line) - len(inner)
    if columns < _LEAST or width(line) <= columns or inner.startswith(_COMMAND):
        return [line]
    gaps = [gap.end() for gap in _GAP.finditer(line)]
    # A line of columns goes on below its last column, as long as that leaves the column half of the row.
    at = max((gap for gap in gaps if width(line[:gap]) <= columns // 2), default=indent)
    if line[at:].startswith(_COMMAND):
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
