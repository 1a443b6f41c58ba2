"""What was read, and where: the base of every fact and event, so that a diagnosis can quote its evidence."""

from __future__ import annotations

from steps.model.base import Record

CONTAINER = "container-"
"""Logs whose name begins so were printed inside a container."""


class Place(Record):
    """One place in what was read: `source` is a canonical command, a path or the name of a log, `text` the words that stand there.

    `order` grows in the order of reading. `seconds` is the line's own time stamp: comparable inside one source only, `None` without one.
    """

    source: str
    text: str
    order: int = 0
    seconds: float | None = None

    @property
    def in_container(self) -> bool:
        """Return whether it was printed inside a container, as far as the name of the source tells."""
        return self.source.startswith(CONTAINER)


class Told(Record):
    """Something that was told at a place."""

    place: Place


class Fact(Told):
    """One value: a version, a name, a word."""

    value: str


class CutFact(Fact):
    """A version of which the last number may be left out: so NVML tells its own."""


def fact(value: str, source: str, text: str | None = None) -> Fact:
    """Return a fact; without `text` the value itself is what stands there."""
    return Fact(place=Place(source=source, text=text if text is not None else value), value=value)
