"""What the doctor knows of a failure stands on its screen: the cause, the repair as the first way out, and the commands on a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.fake_run import FakeRun, halfway
from tests.ui.run_pilot import Watching, picture, shows, until

pytestmark = pytest.mark.ui
LINE = b"UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"


def without_kernels(folder: Path) -> FakeRun:
    """Return a run whose environment has a wheel that lacks the card's kernels."""
    run = halfway(folder)
    run.action("driver.install", "done", started=163, seconds=151)
    run.action("frameworks.environment", "failed", started=315, seconds=140, code=1)
    run.print("frameworks.environment", LINE)
    run.now_is("failed", code=1)
    run.has_runner = False
    return run


async def test_a_known_cause_stands_in_the_first_line_and_its_repair_is_the_first_way_out(tmp_path: Path) -> None:
    app = Watching(without_kernels(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "› f  Install a build with code for this card", "✓ advised"))
        text = "\n".join(picture(app))
        assert "ended with exit code" not in text
        assert "f repair" in picture(app)[-1]
        assert all(f"{key}  " in text for key in "rnuq")
        await pilot.press("enter")
        await until(pilot, lambda: shows(app, "How to repair it", "then r tries the step again", "1. Install a build"))
        await pilot.press("escape", "r")
        await until(pilot, lambda: ("retry", "frameworks.environment") in app.run_handle.told)


async def test_a_failure_that_the_doctor_does_not_know_keeps_its_exit_code_and_retry_as_the_advice(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.action("driver.install", "failed", started=163, seconds=151, code=10)
    run.print("driver.install", b"the script gave up for a reason of its own\n")
    run.now_is("failed", code=10)
    run.has_runner = False
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "ended with exit code 10", "› r  try step 3 again"))
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert not shows(app, "f  repair")
