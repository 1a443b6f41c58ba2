"""What machines in good order reach, as records."""

from __future__ import annotations

from steps.catalog.load import rows
from steps.model.base import Record


class AllReduce(Record):
    """The least bus bandwidth (GB/s of 10^9 bytes, as nccl-tests defines it) of so many cards of a name, for a message of so many bytes."""

    names: tuple[str, ...]
    count: int
    least: float
    message: int
    source: str


def all_reduce(cards: tuple[str, ...]) -> AllReduce | None:
    """Return the row for cards of these names; `None` for machines that no source speaks of."""
    known: tuple[AllReduce, ...] = rows("bandwidth.toml", "all_reduce", AllReduce)
    return next((row for row in known if len(cards) == row.count and all(any(name in card for name in row.names) for card in cards)), None)
