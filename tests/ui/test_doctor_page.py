"""The doctor's page: the cause with its chain, what it is not, the repair; Enter leads to the run, and nothing is changed before."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from steps.text import Language
from tests.ui.test_wizard import press, text, until
from tui.app import BringupApp
from tui.backend import House
from tui.cells import line_width
from tui.screens.doctor import DoctorPage
from tui.screens.lists import CheckPage
from tui.widgets.sheet import Sheet

pytestmark = pytest.mark.ui
MACHINES = Path(__file__).resolve().parents[1] / "machines"


@asynccontextmanager
async def asked(machine: Path, *, language: Language = "en") -> AsyncIterator[tuple[BringupApp, Pilot[int]]]:
    """Yield the wizard with the doctor's answer on a recorded machine."""
    app = BringupApp(House(machine=str(machine), root=None, language=language), language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, DoctorPage) and "…" not in text(app).splitlines()[1])
        yield app, pilot


async def test_a_broken_driver_is_offered_to_the_doctor_who_names_one_cause() -> None:
    app = BringupApp(House(machine=str(MACHINES / "vm-2080ti-library-mismatch.json"), root=None, language="en"), language="en")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        assert "! broken" in text(app)
        await press(pilot, "down", "down", "enter")
        await until(pilot, lambda: "One cause found." in text(app))
        shown = text(app)
        for words in ("What happened", "✗ this is the cause", "Repair, smallest first", "1 Unload the old module", "nvidia-smi"):
            assert words in shown, words
        await press(pilot, "end")
        assert "Not ruled out" in text(app)
        assert {row[37:39] for row in text(app).splitlines()[4:22]} == {" │"}, "words of the left column touch the rule"
        await press(pilot, "d")
        assert "All that was seen" in text(app)
        assert "r tries the step again" not in text(app)


async def test_enter_shows_the_plan_and_only_agreeing_starts_the_run(tmp_path: Path) -> None:
    class Watched(House):
        started: list[list[str]]

        def start(self, plan: object, sudo: object) -> object:
            self.started.append([action.id for action in plan.actions])  # type: ignore[attr-defined]  # it is a plan
            raise RuntimeError("a test starts nothing")

    house = Watched(machine=str(MACHINES / "vm-2080ti-library-mismatch.json"), root=None, language="en")
    house.started = []
    app = BringupApp(house, language="en")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "down", "down", "enter")
        await until(pilot, lambda: "One cause found." in text(app))
        await press(pilot, "enter")
        assert "Start this repair?" in text(app)
        assert "Let the doctor look again" in text(app)
        assert house.started == []
        await press(pilot, "d")
        assert "The whole plan" in text(app)
        assert "# modprobe -r" in text(app)
        await press(pilot, "escape")
        assert "Start this repair?" in text(app)
        await press(pilot, "escape")
        assert "One cause found." in text(app)
        assert house.started == []


@pytest.mark.parametrize("language", ["en", "zh_CN"])
async def test_no_line_is_wider_than_the_window(language: Language) -> None:
    async with asked(MACHINES / "2080ti-dkms-missing.json", language=language) as (app, _):
        assert all(line_width(line) <= 80 for line in app.screen.query_one(Sheet).lines)


async def test_a_machine_that_works_gets_no_repair(tmp_path: Path) -> None:
    capture = tmp_path / "m.json"
    capture.write_text(json.dumps({"schema": "bringup/capture", "version": 1, "files": {}, "commands": {}}))
    async with asked(capture) as (app, pilot):
        assert "Nothing is wrong here" in text(app)
        await press(pilot, "enter")
        assert isinstance(app.screen, DoctorPage)
        assert "bringup doctor --log FILE" in text(app)


async def test_the_list_of_findings_says_first_what_each_is_about() -> None:
    house = House(machine=str(MACHINES / "rtx4090x4-epyc.json"), root=None, language="en")
    app = BringupApp(house, language="en")
    async with app.run_test(size=(80, 50)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "down", "down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, CheckPage))
        rows = [line[:37].split() for line in text(app).splitlines()]
        assert ["NVLink", "·", "none"] in [row[-3:] for row in rows]
        assert not [row for row in rows if row[:2] == ["4×", "RTX"]]


async def test_check_from_the_first_screen_judges_the_machine_as_it_is() -> None:
    house = House(machine=str(MACHINES / "rtx5090-proprietary-refused.json"), root=None, language="en")
    app = BringupApp(house, language="en")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "down", "down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, CheckPage))
        shown = text(app)
        assert "What is known about this machine as it is now" in shown
        assert "✗ needs open" in shown.splitlines()[4]
        assert "needs the open kernel" in shown
