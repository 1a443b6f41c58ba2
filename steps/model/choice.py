"""A question, its options, and what is known about each option before it is picked."""

from __future__ import annotations

from typing import Literal

from steps.model.base import Record, Words
from steps.model.finding import Finding, Patch

Mark = Literal["good", "catch", "bad", "info", "unknown"]
"""✓ can be taken · ! works with a catch · ✗ cannot work · nothing to do · ? not known."""
NoteLabel = Literal[
    "because",
    "measured",
    "matters",
    "change",
    "changes",
    "keeps",
    "leads-to",
    "cost",
    "undo",
    "trap",
    "instead",
    "bios",
    "linux",
    "after",
    "from",
    "source",
    "file",
]


class Note(Record):
    """One labelled line of the hint, in the order in which it is drawn; the label's word is `ui.note.<label>`."""

    label: NoteLabel
    text: Words
    command: bool = False
    """Whether `text` is a command line (drawn on its own line, never wrapped inside a word)."""


class Option(Record):
    """One row of a step: an answer that can be taken, or a fact that can be looked at."""

    value: str
    label: Words
    """The name in the row, at most 17 cells."""
    short: Words = ""
    """The name where there is little room, at most 12 cells; "" where the label will do."""
    mark: Mark = "good"
    tag: Words = ""
    """The word beside the mark, at most 11 cells (5 Han characters)."""
    detail: Words = ""
    """A second name column of fact rows (`4× RTX 4090`), drawn in the 17 cells of the name."""
    sentences: tuple[Words, ...] = ()
    """One to three sentences: what it is and what follows."""
    findings: tuple[Finding, ...] = ()
    notes: tuple[Note, ...] = ()
    patch: Patch = {}
    """What taking it changes in the answers; in a `many` choice, what toggling it changes from how it stands now."""
    recommended: bool = False

    @property
    def takeable(self) -> bool:
        """Whether Enter may take it."""
        return self.mark != "bad"


class Choice(Record):
    """One group of rows on a step's screen."""

    key: str
    """The profile key (or the group's own name when several keys change together)."""
    kind: Literal["one", "many", "facts", "text"]
    """Pick one, tick any, look only, or type a value."""
    title: Words | None = None
    """The group's heading; `None` for the first group of a step."""
    options: tuple[Option, ...] = ()
    taken: tuple[str, ...] = ()
    """The values that the answers hold now."""
    text: str | None = None
    """The typed value of a `text` choice."""
