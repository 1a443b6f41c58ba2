"""The review's list of steps: what is to be looked at, and nothing that nobody can do."""

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
