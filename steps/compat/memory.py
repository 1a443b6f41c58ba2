"""What was worked out for the machine at hand: every option of every question asks for the same few things."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from steps.catalog.load import remembered
from steps.model.machine import Machine

T = TypeVar("T")
MOST = 4096
"""How many answers are kept before all are forgotten."""


@remembered
def _kept() -> list[tuple[Machine, dict[Hashable, object]]]:
    """Return the machine asked for last with what is known of it; other tables make a new list."""
    return []


def once(machine: Machine, key: Hashable, work: Callable[[], T]) -> T:
    """Return what `work` returned for this very machine and key, working it out the first time."""
    kept = _kept()
    if not (kept and kept[0][0] is machine) or len(kept[0][1]) > MOST:
        kept[:] = [(machine, {})]
    known = kept[0][1]
    if key not in known:
        found = work()
        known[key] = found
        return found
    return cast(T, known[key])
