"""What looking at a machine costs, beyond starting an interpreter: imports, probes and all."""

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
NOTHING = "pass"
LOOK = """
import sys
from steps.detect.machine import detect
from steps.host.opening import open_host
detect(open_host(sys.argv[1] or None, None))
"""


class Cost(NamedTuple):
    """Milliseconds of one command with its children: of processor time, and by the clock."""

    processor: float
    clock: float


def cost(*argv: str) -> Cost:
    """Return what a command costs; the least of five, for the machine is shared."""
    found: list[Cost] = []
    for _ in range(5):
        start = time.monotonic()
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=ROOT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        found.append(Cost(1000 * (used.ru_utime + used.ru_stime), 1000 * (time.monotonic() - start)))
    return Cost(min(one.processor for one in found), min(one.clock for one in found))


def python(program: str, *arguments: str) -> Cost:
    return cost(sys.executable, "-I", "-c", program, *arguments)


@pytest.fixture(scope="module")
def bare() -> Cost:
    """Return what an interpreter costs that does nothing."""
    found = python(NOTHING)
    print(f"bare interpreter: {found.processor:.0f} ms of processor, {found.clock:.0f} ms by the clock")
    return found


def beyond(bare: Cost, found: Cost, title: str) -> float:
    """Print a cost beyond the bare interpreter, and return its processor time."""
    more = found.processor - bare.processor
    print(f"detect, {title}: {more:.0f} ms of processor, {found.clock - bare.clock:.0f} ms by the clock, beyond the bare interpreter")
    return more


@pytest.mark.bench
def test_looking_at_this_machine_costs_less_than_150_ms_of_processor_time(
    bare: Cost, record_property: Callable[[str, object], None]
) -> None:
    found = beyond(bare, python(LOOK, ""), "this machine")
    record_property("detect-live-ms", found)
    assert found < 150


@pytest.mark.bench
def test_the_largest_capture_costs_less_than_400_ms(bare: Cost, record_property: Callable[[str, object], None]) -> None:
    largest = max((ROOT / "tests/machines").glob("*.json"), key=lambda path: path.stat().st_size)
    found = beyond(bare, python(LOOK, str(largest)), largest.stem)
    record_property("detect-capture-ms", found)
    assert found < 400


@pytest.mark.bench
def test_the_verb_itself_is_not_kept_waiting(bare: Cost, record_property: Callable[[str, object], None]) -> None:
    """Probes run side by side: by the clock the verb costs little more than the slowest of them and its own work."""
    found = cost(sys.executable, "-I", "-m", "tui", "detect", "--json")
    print(f"bringup detect: {found.processor:.0f} ms of processor, {found.clock:.0f} ms by the clock (bare: {bare.clock:.0f} ms)")
    record_property("detect-verb-ms", found.clock)
    assert found.clock < 1000
