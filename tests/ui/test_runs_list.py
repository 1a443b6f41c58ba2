"""The wizard's list of earlier runs, and what an undo says before its word is typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.model.run import RunSummary
from steps.text import Language
from tests.ui.fake_run import failed, real
from tests.ui.run_pilot import Watching, shows
from tests.ui.run_pilot import until as until_shown
from tests.ui.test_wizard import text, top, until, wizard
from tui.screens.lists import RunsPage
from tui.widgets.sheet import Sheet

pytestmark = pytest.mark.ui

RUNS = (
    RunSummary(id="1130-b", folder="/x", owner="ana", started=0.0, status="done", rehearsal=True, title="CUDA 12.8"),
    RunSummary(id="1130-a", folder="/x", owner="ana", started=0.0, status="done", title="NVIDIA 580 open"),
)


@pytest.mark.parametrize(
    ("language", "rehearsal", "nothing"), [("en", "rehearsal", "nothing was touched."), ("zh_CN", "演练", "没有改动任何东西。")]
)
async def test_a_rehearsal_is_marked_as_one_and_each_run_says_what_it_installs(
    tmp_path: Path, language: Language, rehearsal: str, nothing: str
) -> None:
    async with wizard(tmp_path, size=(120, 30), language=language) as (app, pilot, _):
        app.earlier = RUNS
        app.push_screen(RunsPage())
        await until(pilot, lambda: isinstance(app.screen, RunsPage) and len(app.screen.query(Sheet)) == 1 and "1130-a" in text(app))
        rows = text(app).splitlines()
        assert [rehearsal in row for row in rows if "1130-" in row and "  " in row.strip()] == [True, False]
        page = top(app, RunsPage)
        assert page.explained("1130-b").startswith("CUDA 12.8. " if language == "en" else "CUDA 12.8。由")
        assert page.explained("1130-b").endswith(nothing)
        assert page.explained("1130-a").startswith("NVIDIA 580 open. " if language == "en" else "NVIDIA 580 open。由")
        assert nothing not in page.explained("1130-a")


async def test_the_word_for_undo_stands_below_the_folders_that_go_whole(tmp_path: Path) -> None:
    run = real(failed(tmp_path))
    run.now_is("cancelled", code=5)
    run.goes = ("/home/ana/envs/dl",)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until_shown(pilot, lambda: shows(app, "stopped by you"))
        await pilot.press("u")
        await until_shown(pilot, lambda: shows(app, "/home/ana/envs/dl goes with everything in it", "Type undo and Enter"))
