"""What this machine's core does now: the measure that the benches hold processor time against."""

from __future__ import annotations

import time

UNIT_MS = 0.9
"""What the work of `unit` takes on the idle two-core machine on which the limits hold."""


def unit() -> float:
    """Return the milliseconds of processor time that a fixed piece of work takes now."""
    table: dict[tuple[int, str], tuple[int, ...]] = {}
    begin = time.process_time()
    for turn in range(1500):
        table[turn % 61, str(turn % 17)] = tuple(one for one in (turn, turn + 1, turn + 2) if one % 2)
    assert len(table) > 1000
    return (time.process_time() - begin) * 1000
