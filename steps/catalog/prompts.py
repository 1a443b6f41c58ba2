"""The prompts that we know: how each is recognised, and its answers."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from steps.catalog import load
from steps.model.base import Phrase, Record, phrase
from steps.text import lookup

NEWLINE, _KILL_LINE = "\n", "\x15"


class PromptAnswer(Record):
    """One answer: `send` is what is typed."""

    id: str
    send: str


class PromptRow(Record):
    """One prompt; its explanation is `engine.prompt.<id>.explain`."""

    id: str
    pattern: str
    """Matched at the end of the program's last lines, control sequences removed; for a dialog, anywhere in its text."""
    kind: Literal["line", "secret", "choice", "keys"]
    answers: tuple[PromptAnswer, ...] = ()
    """Of a dialog: the keys that are pressed where nobody is there to press any."""
    default: str | None = None
    """The safe answer: what is chosen when nobody says otherwise."""
    ask: bool = False
    """Whether a person is asked though there is a default."""
    prefilled: bool = False
    """Whether the program may have typed an answer already, which a line takes the place of."""
    omit: str = ""
    """What of the program's text a person need not read, since our answers say it."""
    exit: int = 2
    """The exit code of a run that ends because nobody was there to answer."""
    source: str
    """Where its wording was read."""

    def answer(self, id: str) -> PromptAnswer | None:
        """Return the answer called `id`, or `None`."""
        return next((answer for answer in self.answers if answer.id == id), None)

    def typed(self, text: str) -> str:
        """Return what is typed for a line of text, or for the answer that `text` names."""
        answer = self.answer(text)
        if answer is not None:
            return answer.send
        return f"{_KILL_LINE if self.prefilled and text.strip() else ''}{text.removesuffix(NEWLINE)}{NEWLINE}"

    @property
    def profile_answers(self) -> tuple[str, ...] | None:
        """What a profile may say under `prompts.<id>`; empty for any line, `None` where only a person can answer."""
        if self.kind == "secret" or self.pattern == NEVER or (self.kind == "keys" and not self.answers):
            return None
        return tuple(answer.id for answer in self.answers)


def answer_words(row: PromptRow, answer: PromptAnswer) -> Phrase:
    """Return the words of an answer: the row's own `engine.prompt.<row>.answer.<id>`, else those that many share."""
    own = f"engine.prompt.{row.id}.answer.{answer.id}"
    return phrase(own if lookup("en", own) is not None else f"engine.answer.{answer.id}")


NEVER = "(?!)"
"""The pattern of a question of our own, which no program prints."""
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
