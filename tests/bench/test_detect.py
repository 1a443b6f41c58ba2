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

WANTED_MS, GATE_MS = 150, 225
"""What is wanted on a quiet machine, and what no machine that runs these tests may go beyond: they share their cores."""


class Cost(NamedTuple):
    """Milliseconds of one command with its children: of processor time, and by the clock."""

    processor: float
    clock: float


def cost(*argv: str) -> Cost:
    """Return what a command costs; the least of twelve, for the machine is shared."""
    found: list[Cost] = []
    for _ in range(12):
        start = time.monotonic()
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=ROOT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        found.append(Cost(1000 * (used.ru_utime + used.ru_stime), 1000 * (time.monotonic() - start)))
    return Cost(min(one.processor for one in found), min(one.clock for one in found))


@pytest.fixture(scope="module")
def bare() -> Cost:
    """Return what an interpreter costs that does nothing."""
    found = cost(sys.executable, "-I", "-c", "pass")
    print(f"bare interpreter: {found.processor:.0f} ms of processor, {found.clock:.0f} ms by the clock")
    return found


def beyond(bare: Cost, found: Cost, title: str) -> float:
    """Print a cost beyond the bare interpreter, and return its processor time."""
    more = found.processor - bare.processor
    print(f"detect, {title}: {more:.0f} ms of processor, {found.clock - bare.clock:.0f} ms by the clock, beyond the bare interpreter")
    return more


@pytest.mark.bench
def test_looking_at_this_machine_costs_little_processor_time(bare: Cost, record_property: Callable[[str, object], None]) -> None:
    used = cost(*DETECT)
    found = beyond(bare, used, "this machine")
    record_property("detect-live-ms", found)
    record_property("detect-live-clock-ms", used.clock)
    print(f"wanted {WANTED_MS} ms, gate {GATE_MS} ms")
    assert found < GATE_MS
    # Probes run side by side: by the clock it takes little more than the slowest of them and its own work.
    assert used.clock < 1000


@pytest.mark.bench
def test_the_largest_capture_costs_less_than_400_ms(bare: Cost, record_property: Callable[[str, object], None]) -> None:
    largest = max((ROOT / "tests/machines").glob("*.json"), key=lambda path: path.stat().st_size)
    found = beyond(bare, cost(*DETECT, "--machine", str(largest)), largest.stem)
    record_property("detect-capture-ms", found)
    assert found < 400
