"""What the live monitor costs: eight GPUs whose figures change at every look, on a real terminal."""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import pytest

from tests.bench.pace import UNIT_MS, unit
from tests.ui.screen import Terminal
from tests.ui.test_wizard_pty import environment

pytestmark = pytest.mark.bench

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 8.0
WANTED, MOST, MOST_BYTES = 0.03, 0.05, 2500
"""The share of one core that watching should take, the program that asks NVML included; the gate, on a core as fast as the idle
machine's; and the bytes a second that it may send."""
CARD = (
    "card\nbus 00000000:{bus}:00.0\nname NVIDIA H100 80GB HBM3\nmemory 85520809984\nused ~85520809984\nlink 5 5 16 16\nbusy ~101\nstate 0\n"
    "temperature ~90\npower ~700000\nlimit 700000\nclock 1410 1980\nslowed ~256\nprocess 1 1000000000\nprocess 2 1000000000\n"
)
SHOWN = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from steps.host.gauge_feed import GaugeFeed
from tests.ui.made_up import MadeUp
from tui.app import BringupApp

class App(BringupApp):
    def gauges(self):
        return GaugeFeed((sys.executable, "-B", "-m", "steps.host.gauges"))

sys.exit(App(MadeUp(Path({folder!r})), probe=True).run() or 0)
"""


def used(pid: int) -> float:
    """Return the processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def watch(terminal: Terminal, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        terminal.read(0.1)


def test_watching_eight_cards_takes_three_hundredths_of_a_core(nvml_library: Path, tmp_path: Path) -> None:
    file = tmp_path / "nvml.txt"
    file.write_text("driver 570.124.06\n" + "".join(CARD.format(bus=f"{bus:02X}") for bus in range(8)), encoding="ascii")
    environ = environment(NVML_STAND_IN=str(file), LD_LIBRARY_PATH=str(nvml_library), PYTHONPATH=str(ROOT))
    source = SHOWN.format(root=str(ROOT), folder=str(tmp_path))
    with Terminal((sys.executable, "-c", source), environ) as terminal:
        terminal.until("ws-5090")
        terminal.press("g")
        terminal.until("8 of 8 GPUs answer")
        watch(terminal, 1.0)
        all_of_them = (terminal.pid, *children(terminal.pid))
        assert len(all_of_them) > 1
        before, sent, begun = sum(map(used, all_of_them)), len(terminal.raw), time.monotonic()
        paces = []
        for _ in range(int(SECONDS)):
            watch(terminal, 1.0)
            paces.append(unit())
        gone = time.monotonic() - begun
        share, rate = (sum(map(used, all_of_them)) - before) / gone, (len(terminal.raw) - sent) / gone
    slower = max(1.0, statistics.median(paces) / UNIT_MS)
    print(f"{share:.1%} of a core that works {slower:.1f} times as slowly as the idle one (wanted {WANTED:.0%}), {rate:.0f} bytes a second")
    assert share <= MOST * slower
    assert 0 < rate <= MOST_BYTES
