"""The lists of the review and of the check: what is to be looked at, and nothing that nobody can do."""

from __future__ import annotations

import pytest

from tests import scoring
from tests.ui.test_wizard import press, text, until
from tui.app import BringupApp
from tui.backend import House
from tui.screens.review import ReviewScreen

pytestmark = pytest.mark.ui


async def test_tools_that_cannot_be_had_are_nothing_to_do() -> None:
    app = BringupApp(House(machine=str(scoring.MACHINES / "jetson-agx-orin.json"), root=None, language="en"), language="en")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "enter")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen))
        rows = {row.split()[1]: row[:38].split()[2:] for row in text(app).splitlines() if row[2:3].isdigit()}
        assert rows["Monitoring"] == ["–", "✓", "ok"]
        assert rows["Hardware"] == ["4", "to", "do", "!", "look"]


async def test_findings_about_the_driver_are_named_in_the_language_of_the_screen() -> None:
    app = BringupApp(House(machine=str(scoring.MACHINES / "rtx4070x3-riser-x1.json"), root=None, language="zh_CN"), language="zh_CN")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "down", "down", "down", "enter")
        await until(pilot, lambda: "严重的在前" in text(app))
        rows = [row[2:22].rstrip() for row in text(app).splitlines()]
        assert "535 驱动" in {row.split("!")[0].strip() for row in rows}
        assert not any(row.startswith("driver ") for row in rows)
