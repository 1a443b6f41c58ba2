"""Who asks for Chinese on a terminal without its letters is told why everything is English."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.made_up import MadeUp
from tests.ui.test_wizard import press, text, until
from tui.app import BringupApp
from tui.shell import Look, look_here
from tui.terminal import survey

pytestmark = pytest.mark.ui

REASON = "This terminal shows no Chinese; over SSH with a UTF-8 locale it does."


def look(term: str, language: str) -> Look:
    told = survey({"TERM": term, "LANG": "zh_CN.UTF-8"}, no_color=False)
    return {**look_here(told, language, low_bandwidth=False), "probe": False}


async def test_the_first_screen_says_so_until_a_key_is_pressed(tmp_path: Path) -> None:
    app = BringupApp(MadeUp(tmp_path), **look("linux", "zh_CN"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        assert REASON in text(app)
        await press(pilot, "down")
        assert REASON not in text(app)


@pytest.mark.parametrize(("term", "language"), [("linux", "en"), ("xterm-256color", "zh_CN")])
def test_nothing_is_said_where_nothing_is_lacking(term: str, language: str) -> None:
    assert look(term, language).get("lacks_han") is False
