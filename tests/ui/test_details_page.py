"""The whole plan on the screen: words and commands that a person can read, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.text import Language
from tests.ui.test_wizard import press, text, until
from tui.app import BringupApp
from tui.backend import House
from tui.screens.details import DetailsPage

pytestmark = pytest.mark.ui
MACHINE = Path(__file__).resolve().parents[1] / "machines" / "article-rtx3090-5900x-u2004.json"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
async def test_the_details_show_no_script_and_say_where_it_is_shown(language: Language) -> None:
    app = BringupApp(House(machine=str(MACHINE), root=None, language=language), language=language)
    async with app.run_test(size=(80, 120)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await press(pilot, "enter")
        await press(pilot, "d")
        await until(pilot, lambda: isinstance(app.screen, DetailsPage))
        shown = text(app)
        assert "-c … " in shown
        assert "import " not in shown
        assert """'"'"'""" not in shown
        assert "plan -v" in shown
