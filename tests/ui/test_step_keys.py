"""What the keys of a step do to cursor and answers, over the made-up house and over recorded machines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steps.model.step import Step
from steps.registry import SETUP
from tests.ui.test_wizard import Drive, press, text, top, until, wizard
from tests.ui.test_wizard_pty import bringup
from tui.app import BringupApp
from tui.backend import House
from tui.screens.step import StepScreen

pytestmark = pytest.mark.ui

MACHINES = Path(__file__).resolve().parents[1] / "machines"
STEPS: dict[str, Step] = {step.KEY: step for step in SETUP}


@asynccontextmanager
async def recorded(machine: str, step: str, *, from_review: bool = False) -> AsyncIterator[tuple[BringupApp, Drive]]:
    """Yield a wizard on a recorded machine that shows one step."""
    app = BringupApp(House(machine=str(MACHINES / f"{machine}.json"), root=None, language="en"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        app.open_step(STEPS[step], from_review=from_review)
        await pilot.pause()
        yield app, pilot


def under_cursor(app: BringupApp) -> str:
    """Return the value of the row under the cursor."""
    option = top(app, StepScreen).row().option
    return option.value if option is not None else ""


def values(app: BringupApp) -> list[str]:
    """Return the values of all rows in their order."""
    return [row.option.value for row in top(app, StepScreen).rows() if row.option is not None]


async def test_the_cursor_stays_on_the_row_that_space_took_and_enter_takes_no_other() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        before = values(app)
        await press(pilot, "down", "down")
        chosen = under_cursor(app)
        await press(pilot, "space")
        rows = values(app)
        assert under_cursor(app) == chosen
        assert [value for value in rows if value in before] == [value for value in before if value in rows]
        await press(pilot, "enter")
        driver = app.wizard.answers.driver
        assert f"{driver.branch}-{driver.flavor}" == chosen


async def test_a_row_of_a_later_question_that_was_only_read_is_not_taken_by_enter() -> None:
    async with recorded("laptop-katana-4070-secureboot", "driver") as (app, pilot):
        before = app.wizard.answers.driver
        await press(pilot, "tab", "down")
        assert under_cursor(app) not in top(app, StepScreen).row().choice.taken  # type: ignore[union-attr]  # the cursor is on a row
        assert "Space takes" in text(app)
        await press(pilot, "enter")
        assert app.wizard.answers.driver == before


async def test_the_review_names_the_source_and_the_plan_the_series_of_a_driver() -> None:
    async with recorded("laptop-katana-4070-secureboot", "driver") as (app, pilot):
        await press(pilot, "tab", "down")
        assert under_cursor(app) == "distro-server"
        await press(pilot, "space")
        app.go_review()
        await pilot.pause()
        await press(pilot, "down", "down", "down")
        assert "Chosen: 580 open, Ubuntu -server." in text(app)
        assert "Driver 580-server open" in text(app)


async def test_the_review_counts_what_the_step_marks() -> None:
    async with recorded("laptop-katana-4070-secureboot", "hardware") as (app, pilot):
        said = text(app).splitlines()[2]
        app.go_review()
        await pilot.pause()
        counted = next(line for line in text(app).splitlines() if "1 Hardware" in line).split()[2]
        assert f"{counted} points fall short" in said


async def test_after_a_fix_and_after_taking_back_the_cursor_is_on_what_is_taken(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "2", "space", "4", "f")
        assert under_cursor(app) == "580 open"
        await press(pilot, "z")
        assert under_cursor(app) == "595 open"


async def test_home_and_end_go_to_the_first_and_the_last_row(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "end")
        assert top(app, StepScreen).cursor == len(top(app, StepScreen).rows()) - 1
        await press(pilot, "home")
        assert top(app, StepScreen).cursor == 0


async def test_a_fix_that_would_change_nothing_is_not_offered() -> None:
    async with recorded("nogpu-dell-r6515", "monitoring") as (app, pilot):
        await press(pilot, "1")
        assert under_cursor(app) == "nvitop"
        assert "f  " not in text(app)
        assert all("f" not in key.keys for key in top(app, StepScreen).key_table())


async def test_a_setting_is_said_to_be_changed_and_a_sight_to_be_confirmed() -> None:
    async with recorded("rtx4090x4-epyc", "nccl") as (app, pilot):
        await press(pilot, "tab")
        assert under_cursor(app) == "p2p"
        assert "Space change" in text(app)
        assert "I have set this" not in text(app)
    async with recorded("rtx4090x4-epyc", "firmware") as (app, _):
        assert "Space I have set this" in text(app)


async def test_p2p_of_a_single_gpu_cannot_be_turned_off() -> None:
    async with recorded("rtx5090-u2404-fresh", "nccl") as (app, pilot):
        await press(pilot, "tab", "space")
        assert under_cursor(app) == "p2p"
        assert app.wizard.answers.nccl.p2p is None


async def test_the_line_below_says_a_kept_driver_once() -> None:
    async with recorded("rtx3060-prebuilt-open580", "driver") as (app, _):
        last = text(app).splitlines()[-2]
        assert last.count("keep") == 1


def test_keys_of_a_real_terminal_take_the_row_they_show() -> None:
    with bringup("--machine", str(MACHINES / "rtx5090-u2404-fresh.json")) as terminal:
        terminal.until("580 open", "REHEARSAL")
        terminal.press("down", "enter", "n", "n")
        terminal.until("3 of 8")
        terminal.press("end")
        terminal.until("Space takes NVIDIA repo")
        terminal.press("home", "down", "down")
        terminal.until("› ( ) 620 open", "Enter takes 620 open.")
        terminal.press("space")
        terminal.until("› (•) 620 open", "Taken: 620 open.")
        terminal.press("enter")
        terminal.until("4 of 8")
        terminal.press("b")
        terminal.until("› (•) 620 open")
