"""From a key that moves the cursor to the repainted hint, and what it sends to the terminal."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import pytest
from textual.drivers.headless_driver import HeadlessDriver

from tests.ui.test_wizard import until
from tui.app import BringupApp
from tui.backend import House

pytestmark = pytest.mark.bench

MACHINES = Path(__file__).resolve().parents[1] / "machines"
MOST_MS = 30.0
MOST_BYTES = 7_100
"""What a move costs when every widget is updated; only the cells that differ must cost less."""
ROUNDS = 4


class CountingDriver(HeadlessDriver):
    """A terminal that only counts what it is sent."""

    sent = 0

    @property
    def is_headless(self) -> bool:
        """Return that frames are to be written, so that they can be counted."""
        return False

    def write(self, data: str) -> None:
        """Count the bytes."""
        CountingDriver.sent += len(data.encode())


@pytest.mark.parametrize(
    ("machine", "step"),
    [
        ("rtx5090-u2404-fresh", "driver"),
        ("rtx5090-u2404-fresh", "frameworks"),
        ("k80x2-board-legacy470", "toolkit"),
        ("rtx4090x4-epyc", "driver"),
    ],
)
async def test_a_cursor_move_repaints_the_hint_in_less_than_30_ms(machine: str, step: str) -> None:
    app: Any = BringupApp(House(machine=str(MACHINES / f"{machine}.json"), root=None, language="en"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        app.open_step(next(one for one in app.wizard.steps if step == one.KEY))
        await pilot.pause()
        screen = app.screen
        taken, sizes, first = list[float](), list[int](), 0.0
        count = sum(row.selectable for row in screen.rows())
        for turn in range(ROUNDS):
            for key in ["down"] * (count - 1) + ["up"] * (count - 1):
                painted = screen.query_one("Sheet").painted
                begin = time.perf_counter()
                screen.perform(key)
                screen.redraw()
                taken.append((time.perf_counter() - begin) * 1000)
                sizes.append(screen.query_one("Sheet").painted - painted)
            if turn == 0:  # the first walk imports the rules and reads the words
                first = max(taken)
                taken.clear()
                sizes.clear()
        worst, middle = max(taken), statistics.median(taken)
        print(
            f"\n{machine} {step}: move to hint {middle:.1f} ms (median), {worst:.1f} ms (worst of {len(taken)}), first walk {first:.1f} ms;"
            f" {statistics.median(sizes):.0f} of 1920 cells a move"
        )
        assert middle < MOST_MS
        assert sorted(taken)[int(len(taken) * 0.95)] < MOST_MS
