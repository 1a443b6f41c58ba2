"""What is on offer and how old the tables are, as the wizard shows it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steps.errors import PreflightError
from steps.model.base import phrase
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.offers import Offers
from steps.model.plan import Target
from tests.ui.made_up import MACHINE, MadeUp
from tests.ui.test_wizard import press, text, top, until
from tui.app import BringupApp
from tui.screens.review import ReviewScreen

pytestmark = pytest.mark.ui

UNSURE = Finding(
    code="unverified",
    severity="info",
    step="driver",
    subject="nvidia-driver-580-open",
    params={"action": "driver.install"},
    because=(phrase("general.because.index-unasked"),),
)
OLD = Finding(code="knowledge-old", severity="warning", step="driver", params={"date": "2026-11-30", "days": 150, "count": 3})
GONE = Finding(
    code="wheel-not-offered", severity="error", step="frameworks", subject="torch 9.9", params={"python": "3.12", "arch": "x86_64"}
)


class Offering(MadeUp):
    """A house that learns what is on offer after it has looked, or does not."""

    fails = False

    def offered(self, machine: Machine, target: Target) -> Machine:
        if self.fails:
            raise PreflightError("no-recommendation")
        return msgspec.structs.replace(machine, offers=Offers(asked=1.0))


async def test_the_review_marks_what_nobody_confirmed_and_says_how_old_the_tables_are(tmp_path: Path) -> None:
    house = MadeUp(tmp_path)
    house.unsure, house.notices = (UNSURE,), (OLD,)
    app = BringupApp(house)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "enter")
        top(app, ReviewScreen)
        await until(pilot, lambda: "replaces, unsure" in text(app))
        assert "2026-11-30" in text(app)
        assert "150 days" in text(app)


async def test_an_index_that_lacks_a_wheel_forbids_the_start(tmp_path: Path) -> None:
    house = MadeUp(tmp_path)
    house.unsure = (GONE,)
    app = BringupApp(house)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "enter")
        await until(pilot, lambda: "cannot be started" in text(app))
        await press(pilot, "enter")
        assert house.started == []


async def test_what_is_on_offer_is_taken_in_and_the_answers_stay(tmp_path: Path) -> None:
    app = BringupApp(Offering(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready)
        app.wizard.take({"driver.branch": "595"})
        await until(pilot, lambda: app.wizard.machine is not None and app.wizard.machine.offers is not None)
        assert app.wizard.machine is not None
        assert app.wizard.machine.offers == Offers(asked=1.0)
        assert app.wizard.answers.driver.branch == "595"
        assert app.trouble is None


async def test_without_an_answer_everything_goes_on_from_the_tables(tmp_path: Path) -> None:
    house = Offering(tmp_path)
    house.fails = True
    app = BringupApp(house)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        assert (app.wizard.machine, app.trouble) == (MACHINE, None)
        await press(pilot, "enter")
        top(app, ReviewScreen)
