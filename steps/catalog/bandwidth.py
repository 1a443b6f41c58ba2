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
    bridged: bool = False
    """Whether the figure is one of cards that NVLink bridges join, which others of the name are without."""
    source: str


def all_reduce(cards: tuple[str, ...], *, bridged: bool) -> AllReduce | None:
    """Return the row for cards of exactly these names ("H200 NVL" is another board than "H200"); `None` where no source speaks of them."""
    bare = {card.removeprefix("NVIDIA ") for card in cards}
    known: tuple[AllReduce, ...] = rows("bandwidth.toml", "all_reduce", AllReduce)
    return next((row for row in known if len(cards) == row.count and bare <= set(row.names) and (bridged or not row.bridged)), None)
