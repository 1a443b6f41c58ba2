"""What `bringup detect` costs beyond starting an interpreter: imports, probes, printing and all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent.parent
DETECT = (sys.executable, "-I", "-m", "tui", "detect", "--json")

WANTED_MS, WANTED_LARGEST_MS = 150, 400
STARTS, STARTS_LARGEST = 17, 38
"""The same in starts of an interpreter, of 12 ms where the wish was written: a machine that is slow, or shared, is slow in both."""
ROUNDS = 12


class Cost(NamedTuple):
    """Milliseconds of one command with its children: of processor time, and by the clock."""

    processor: float
    clock: float


def once(*argv: str) -> Cost:
    """Return what a command costs now."""
    start = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Cost(1000 * (used.ru_utime + used.ru_stime), 1000 * (time.monotonic() - start))


def costs(title: str, *argv: str) -> tuple[Cost, Cost]:
    """Return what a bare interpreter and a command cost, the least of a dozen each, in turns: other work slows both alike."""
    pairs = [(once(sys.executable, "-I", "-c", "pass"), once(*argv)) for _ in range(ROUNDS)]
    bare, found = (Cost(min(one.processor for one in ones), min(one.clock for one in ones)) for ones in zip(*pairs, strict=True))
    print(
        f"detect, {title}: {found.processor - bare.processor:.0f} ms of processor, {found.clock - bare.clock:.0f} ms by the clock, "
        f"beyond a bare interpreter of {bare.processor:.0f} ms"
    )
    return bare, found


@pytest.mark.bench
def test_looking_at_this_machine_costs_little_processor_time(record_property: Callable[[str, object], None]) -> None:
    bare, found = costs("this machine", *DETECT)
    beyond = found.processor - bare.processor
    record_property("detect-live-ms", beyond)
    record_property("detect-live-clock-ms", found.clock)
    assert beyond < max(WANTED_MS, STARTS * bare.processor)
    # Probes run side by side: by the clock it takes little more than the slowest of them and its own work.
    assert found.clock < 1000


@pytest.mark.bench
def test_the_largest_capture_costs_less_than_400_ms(record_property: Callable[[str, object], None]) -> None:
    largest = max((ROOT / "tests/machines").glob("*.json"), key=lambda path: path.stat().st_size)
    bare, found = costs(largest.stem, *DETECT, "--machine", str(largest))
    beyond = found.processor - bare.processor
    record_property("detect-capture-ms", beyond)
    assert beyond < max(WANTED_LARGEST_MS, STARTS_LARGEST * bare.processor)
