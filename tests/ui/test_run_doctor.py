"""What the doctor knows of a failure stands on its screen: the cause, the repair as the first way out, and the commands on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from steps.doctor.diagnosis import Diagnosis
from steps.engine import client
from steps.errors import Busy
from steps.headless import runs
from steps.model.base import phrase
from steps.model.plan import Plan
from steps.text import Language
from tests.ui.fake_run import START, FakeRun, halfway
from tests.ui.run_pilot import Watching, picture, shows, until
from tui.cells import plain, width
from tui.screens.run import RunScreen
from tui.screens.run_panes import failure_lines
from tui.screens.run_seen import Seen

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
        assert all(f"{key}  " in text for key in "rnq")
        await pilot.press("enter")
        await until(pilot, lambda: shows(app, "How to repair it", "then r tries the step again", "1. Install a build"))
        await pilot.press("escape", "r")
        await until(pilot, lambda: ("retry", "frameworks.environment") in app.run_handle.told)


async def test_a_failure_that_the_doctor_does_not_know_keeps_its_exit_code_and_is_not_advised_to_try_again_as_it_is(tmp_path: Path) -> None:
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
        assert not shows(app, "advised")


# --- the repair as a run of its own -----------------------------------------------------------------


def interrupted(folder: Path) -> FakeRun:
    """Return a run that met a half-installed package of somebody else's."""
    run = halfway(folder)
    run.action("driver.install", "failed", started=163, seconds=151, code=100)
    run.action("frameworks.environment", "done", started=315, seconds=140)
    run.print("driver.install", b"E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem. \n")
    run.now_is("failed", code=1, ended=START + 455)
    run.has_runner = False
    return run


class Machine:
    """Two runs on one machine: the one that stopped, and the one that a screen starts to repair it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.stopped = interrupted(folder / "stopped")
        self.folder = folder
        self.repairs: list[FakeRun] = []
        self.busy = False
        self.language: Language | None = None
        patch.setattr(runs, "start", self.start)
        patch.setattr(client, "find_repair", lambda _: next((one for one in self.repairs if one.state().status == "done"), None))
        patch.setattr(client, "find_repaired", lambda _: self.stopped)

    def start(self, plan: Plan, _: object, *, language: Language) -> FakeRun:
        self.language = language
        if self.busy:
            raise Busy("run-active", run="1130-x", user="wei", since="14:20")
        repair = FakeRun(self.folder / "repair", plan)
        repair.id = "1130-b"
        repair._state = msgspec.structs.replace(repair.state(), started=START + 500)
        self.repairs.append(repair)
        return repair

    def ends(self, *, well: bool) -> None:
        """Let the repair end."""
        (repair,) = self.repairs
        first, *rest = repair.plan.actions
        repair.action(first.id, "done" if well else "failed", started=500, seconds=3, code=0 if well else 1)
        for action in rest if well else ():
            repair.action(action.id, "done", started=504, seconds=1, code=0)
        repair.now_is("done" if well else "failed", code=0 if well else 1, ended=START + 510)
        repair.has_runner = False


async def repairing(app: Watching, pilot: Pilot[Any]) -> None:
    """Look at the repair of the stopped run, and start it."""
    await until(pilot, lambda: shows(app, "› f  Finish the packages"))
    await pilot.press("f")
    await until(pilot, lambda: shows(app, "Start this repair?"))
    await pilot.press("enter")
    await until(pilot, lambda: shows(app, "Repairing run 1130-a"))


async def test_the_repair_is_reviewed_runs_beside_the_stopped_run_and_leads_back_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    app = Watching(machine.stopped)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "› f  Finish the packages"))
        await pilot.press("f")
        await until(pilot, lambda: shows(app, "Start this repair?", "dpkg --force-confdef --force-confold --configure -a", "Undo"))
        assert machine.repairs == []
        await pilot.press("enter")
        await until(pilot, lambda: shows(app, "Repairing run 1130-a"))
        assert len([screen for screen in app.screen_stack if isinstance(screen, RunScreen)]) == 1
        machine.ends(well=True)
        await until(pilot, lambda: shows(app, "Repaired. Run 1130-a can go on.", "Enter go on with the run"))
        await pilot.press("enter")
        await until(pilot, lambda: ("resume",) in machine.stopped.told)
        await until(pilot, lambda: shows(app, "run 1130-a"))
        assert machine.repairs[0].told == []


async def test_after_a_repair_that_worked_the_stopped_run_advises_to_try_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    app = Watching(machine.stopped)
    async with app.run_test(size=(80, 24)) as pilot:
        await repairing(app, pilot)
        machine.ends(well=True)
        await until(pilot, lambda: shows(app, "Repaired."))
        await pilot.press("escape")
        await until(
            pilot, lambda: shows(app, "› r  try step 3 again: run 1130-b repaired the cause", "✓ advised", "  f  Finish the packages")
        )
        await pilot.press("enter")
        await until(pilot, lambda: ("retry", "driver.install") in machine.stopped.told)


async def test_a_repair_that_failed_leads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    app = Watching(machine.stopped)
    async with app.run_test(size=(80, 24)) as pilot:
        await repairing(app, pilot)
        machine.ends(well=False)
        await until(pilot, lambda: shows(app, "leave it as it is for now", "Esc the run"))
        await pilot.press("escape")
        await until(pilot, lambda: shows(app, "Step 3 failed", "› f  Finish the packages"))


async def test_a_machine_that_another_run_holds_is_said_and_the_stopped_run_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    machine.busy = True
    app = Watching(machine.stopped)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "› f  Finish the packages"))
        await pilot.press("f")
        await until(pilot, lambda: shows(app, "Start this repair?"))
        await pilot.press("enter")
        await until(pilot, lambda: shows(app, "1130-x", "Step 3 failed"))


@pytest.mark.parametrize("language", ["en", "zh_CN"])
async def test_no_row_of_the_repair_is_wider_than_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: Language) -> None:
    machine = Machine(tmp_path, monkeypatch)
    app = Watching(machine.stopped, language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "› f  "))
        await pilot.press("f")
        await until(pilot, lambda: shows(app, "dpkg --force-confdef"))
        assert {width(row) for row in picture(app)} == {80}
        await pilot.press("enter")
        await until(pilot, lambda: shows(app, "1130-b"))
        assert machine.language == language
        machine.ends(well=True)
        await until(pilot, lambda: shows(app, "Repaired." if language == "en" else "已修复。"))
        assert {width(row) for row in picture(app)} == {80}


class Known:
    """What the doctor knows of a failure that takes many words."""

    mended = None

    def __init__(self, path: str) -> None:
        self.cause = Diagnosis(
            id="x",
            part="cause",
            severity="broken",
            confidence=0.9,
            title=phrase("driver.title"),
            because=phrase("verify.because.file-missing", path=path),
        )


def test_the_cause_is_said_whole_before_any_output_and_a_cut_one_shows_that_it_is_cut(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    seen = Seen(run.plan, run.state(), run.id, START, "en", gone=False, quiet=0.0)
    paths = [f"/etc/apt/sources.list.d/cuda-ubuntu2204-x86_64-{number}.list" for number in range(4)]
    for rows, whole in ((16, True), (6, False)):
        shown = failure_lines(seen, ["E: the last line"] * 3, 0, 80, rows, told=Known(" and ".join(paths)))  # type: ignore[arg-type]
        text = " ".join(plain(line).strip() for line in shown)
        assert len(shown) <= rows
        assert all(path in text for path in paths) is whole
        assert ("…" in text) is not whole
