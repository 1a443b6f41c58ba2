"""What looking at a machine costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MEASURE = """
import resource, sys, time
from steps.detect.machine import detect
from steps.host.opening import open_host
before = time.process_time()
detect(open_host(sys.argv[1] or None, None))
children = resource.getrusage(resource.RUSAGE_CHILDREN)
print(1000 * (time.process_time() - before + children.ru_utime + children.ru_stime))
"""


def milliseconds(machine: str) -> float:
    """Return the processor time of one detection, probes included; the best of three, for the machine is shared."""
    argv = [sys.executable, "-c", MEASURE, machine]
    runs = [subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT).stdout for _ in range(3)]
    return min(float(text) for text in runs)


@pytest.mark.bench
def test_looking_at_this_machine_costs_less_than_150_ms_of_processor_time(record_property: Callable[[str, object], None]) -> None:
    found = milliseconds("")
    print(f"detect, this machine: {found:.0f} ms")
    record_property("detect-live-ms", found)
    assert found < 150


@pytest.mark.bench
def test_the_largest_capture_costs_less_than_400_ms(record_property: Callable[[str, object], None]) -> None:
    largest = max((ROOT / "tests/machines").glob("*.json"), key=lambda path: path.stat().st_size)
    found = milliseconds(str(largest))
    print(f"detect, {largest.stem}: {found:.0f} ms")
    record_property("detect-capture-ms", found)
    assert found < 400
