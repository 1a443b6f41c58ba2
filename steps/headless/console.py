"""What was asked for, and where a verb writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from steps import documents
from steps.model.base import Record
from steps.text import Language

Write = Callable[[str], None]
DONE, FINDINGS, PROOF_FAILED = 0, 1, 20


class Asked(Record):
    """What the command line asked for, common to all verbs."""

    machine: str | None = None
    root: str | None = None
    profile: str | None = None
    json: bool = False
    language: Language = "en"
    yes: bool = False
    verbose: bool = False
    offline: bool = False
    """Whether no network is asked what is on offer."""


class Console:
    """Where a verb writes: facts to `out`, messages to `err`, and what is to be copied, whose lines stay as they are, to `whole`."""

    def __init__(self, asked: Asked, out: Write, err: Write, whole: Write | None = None) -> None:
        """Without a `whole`, `out` leaves lines as they are."""
        self.asked = asked
        self.out = out
        self.err = err
        self.whole = whole or out

    def document(self, shape: documents.Document) -> None:
        """Write one JSON document."""
        self.whole(documents.encode(shape))

    def lines(self, written: Iterable[str]) -> None:
        """Write readable lines."""
        for line in written:
            self.out(line)
