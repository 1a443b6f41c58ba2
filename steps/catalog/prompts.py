"""The prompts that we know: how each is recognised, and its answers."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from steps.catalog import load
from steps.model.base import Record


class PromptAnswer(Record):
    """One answer: its words are `engine.prompt.<row>.answer.<id>`, `send` is what is typed."""

    id: str
    send: str


class PromptRow(Record):
    """One prompt; its explanation is `engine.prompt.<id>.explain`."""

    id: str
    pattern: str
    """Matched at the end of the program's last lines, control sequences removed; for a dialog, anywhere in its text."""
    kind: Literal["line", "secret", "choice", "keys"]
    answers: tuple[PromptAnswer, ...] = ()
    default: str | None = None
    """The safe answer: what is chosen when nobody says otherwise."""
    ask: bool = False
    """Whether a person is asked though there is a default."""

    def answer(self, id: str) -> PromptAnswer | None:
        """Return the answer called `id`, or `None`."""
        return next((answer for answer in self.answers if answer.id == id), None)


UNKNOWN = "unknown"
"""What a prompt is called that no row knows."""


@cache
def prompt_rows() -> tuple[PromptRow, ...]:
    """Return all rows in the order in which they are tried."""
    return load.rows("prompts.toml", "prompts", PromptRow)


def prompt_row(id: str) -> PromptRow | None:
    """Return the row called `id`, or `None`."""
    return next((row for row in prompt_rows() if row.id == id), None)


@cache
def _pattern(pattern: str, *, anywhere: bool) -> re.Pattern[str]:
    return re.compile(pattern if anywhere else rf"(?:{pattern})\s*\Z")


def recognise(text: str, *, dialog: bool = False) -> PromptRow | None:
    """Return the row that knows the prompt at the end of `text` (or in the dialog `text`), or `None`."""
    for row in prompt_rows():
        if (row.kind == "keys") == dialog and _pattern(row.pattern, anywhere=dialog).search(text):
            return row
    return None
