"""What came before what, across runs: by the turns of work on them, which follow one another, and not by a clock that may be set back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steps.engine import journal
from steps.engine.folder import RunFolder
from steps.errors import BringupError
from steps.model.run import Entry


class Moment(NamedTuple):
    """When something was written down: in which turn of all, and where in it."""

    turn: int = 0
    """0 before everything, and in the journals of earlier versions, which did not count."""
    at: float = 0.0
    """The entry's number; its time where turns were not counted."""


NEVER = Moment()


def dated(entries: Iterable[Entry]) -> Iterator[tuple[Entry, Moment]]:
    """Yield the entries of one run, each with its moment."""
    turn = 0
    for entry in entries:
        if entry.kind == "run-started":
            turn = turn_of(entry)
        yield entry, Moment(turn, float(entry.seq) if turn else entry.at)


def turn_of(entry: Entry) -> int:
    """Return which turn of all begins with this entry; 0 where that was not counted."""
    told = entry.data.get("turn")
    return told if isinstance(told, int) and not isinstance(told, bool) else 0


def next_turn(folders: Iterable[RunFolder]) -> int:
    """Return the number of a turn that begins now: greater than that of every turn before it."""
    greatest = 0
    for folder in folders:
        # A run that is damaged, or somebody else's, has no say in it.
        with contextlib.suppress(BringupError):
            greatest = max(greatest, *(turn_of(entry) for entry in journal.read(folder.journal)[0] if entry.kind == "run-started"), 0)
    return greatest + 1


def last_moment(folder: RunFolder) -> Moment:
    """Return when something was done on a run last; `NEVER` for one that did not begin, or cannot be read."""
    return max((moment for _, moment in _of(folder)), default=NEVER)


def _of(folder: RunFolder) -> tuple[tuple[Entry, Moment], ...]:
    with contextlib.suppress(BringupError):
        return tuple(dated(journal.read(folder.journal)[0]))
    return ()
