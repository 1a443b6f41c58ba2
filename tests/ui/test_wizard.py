"""The wizard's flows and keys, driven through Textual's pilot over a made-up house."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from textual.pilot import Pilot

from steps.model.profile import DriverAnswers, Profile, ToolkitAnswers
from tests.ui.made_up import MadeUp, RunStandIn
from tui.app import BringupApp
from tui.cells import plain
from tui.screens.base import Page
from tui.screens.review import ReviewScreen
from tui.screens.step import StepScreen
from tui.screens.welcome import WelcomeScreen
from tui.screens.why import WhyPage
from tui.widgets.sheet import Sheet

pytestmark = pytest.mark.ui

Drive = Pilot[int]


@asynccontextmanager
async def wizard(
    folder: Path, answers: Profile | None = None, *, size: tuple[int, int] = (80, 24), **how: Any
) -> AsyncIterator[tuple[BringupApp, Drive, MadeUp]]:
    """Yield a wizard that has looked at its machine."""
    language = how.pop("language", "en")
    marks = how.pop("marks", "unicode")
    backend = MadeUp(folder, **how)
    app = BringupApp(backend, answers, language=language, marks=marks)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        yield app, pilot, backend


async def until(pilot: Drive, true: Callable[[], bool]) -> None:
    """Wait until something is true; at most five seconds."""
    for _ in range(500):
        if true():
            await pilot.pause()
            return
        await pilot.pause(0.01)
    raise AssertionError("it never became true")


async def press(pilot: Drive, *keys: str) -> None:
    """Press keys one after the other, each handled before the next."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


P = TypeVar("P", bound=Page)


def top(app: BringupApp, kind: type[P]) -> P:
    """Return the screen on top, which must be one of this kind."""
    screen = app.screen
    assert isinstance(screen, kind), screen
    return screen


def nvitop(app: BringupApp) -> bool | None:
    """Return the answer of now."""
    return app.wizard.answers.monitoring.nvitop


def text(app: BringupApp) -> str:
    """Return the screen as bare text."""
    return "\n".join(plain(line).rstrip() for line in top(app, Page).query_one(Sheet).lines)


async def test_two_keys_lead_from_the_first_screen_to_a_running_installation(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, backend):
        await press(pilot, "enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunStandIn))
        assert [action.id for action in backend.started[0].actions] == ["driver.install", "monitoring.nvitop"]


async def test_the_first_screen_says_what_was_found_and_what_is_recommended(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, _, _backend):
        shown = text(app)
        assert "ws-5090 · 1× RTX 5090 · Ubuntu 24.04.2" in shown
        assert "EPYC 7543, 512 GB; driver 550.90.07 works." in shown
        assert "580 open" in shown
        assert "· 1 run" in shown


async def test_a_step_opened_from_the_review_returns_to_it_with_the_cursor_on_start(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "enter", "1", "down", "enter")
        assert top(app, ReviewScreen).at == "start"
        assert app.wizard.answers.driver.branch == "595"


async def test_the_walk_goes_through_every_step_to_the_review_and_back_with_answers_kept(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "down", "enter")
        assert top(app, StepScreen).step.KEY == "monitoring"
        await press(pilot, "enter")
        top(app, ReviewScreen)
        await press(pilot, "escape", "b")
        assert top(app, StepScreen).step.KEY == "driver"
        assert app.wizard.answers.driver.branch == "595"


async def test_accepting_the_rest_reaches_the_review_from_a_step_in_one_key(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "a")
        top(app, ReviewScreen)


async def test_an_impossible_option_is_explained_and_never_taken(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "down", "down", "down")
        assert "✗ cannot work  580 proprietary" in text(app)
        assert "└ chip GB202, Blackwell" in text(app)
        assert "Taken so far: 580 open" in text(app)
        await press(pilot, "space")
        top(app, WhyPage)
        assert "Why not 580 proprietary?" in text(app)
        assert app.wizard.answers.driver.flavor == "open"


async def test_moving_the_cursor_changes_no_answer_and_paints_less_than_half_of_the_screen(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter")
        sheet, before, answers = app.screen.query_one(Sheet), app.screen.query_one(Sheet).painted, app.wizard.answers
        await press(pilot, "down")
        assert app.wizard.answers == answers
        assert 0 < sheet.painted - before < 400


async def test_a_way_out_is_taken_by_its_number(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "2", "space", "4", "w", "1")
        top(app, StepScreen)
        assert (app.wizard.answers.driver.branch, app.wizard.answers.driver.flavor) == ("580", "open")


async def test_the_fix_of_the_hint_is_one_key_and_z_takes_it_back(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "2", "space", "4", "f")
        assert app.wizard.answers.driver.branch == "580"
        await press(pilot, "z")
        assert app.wizard.answers.driver.branch == "595"


async def test_taking_says_what_changed_with_it(tmp_path: Path) -> None:
    chosen = Profile(driver=DriverAnswers(branch="580", flavor="open"), toolkit=ToolkitAnswers(cuda="13.0"))
    async with wizard(tmp_path, chosen) as (app, pilot, _):
        await press(pilot, "down", "enter", "3")
        assert "Changes  CUDA 13.0 → 12.8" in text(app)
        await press(pilot, "space")
        assert "Changed with it: CUDA 13.0 → 12.8. z takes it back." in text(app)
        assert app.wizard.answers.toolkit.cuda == "12.8"
        await press(pilot, "z")
        assert app.wizard.answers == chosen


async def test_a_tick_is_set_and_taken_away_with_space(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "enter", "space")
        assert nvitop(app) is False
        await press(pilot, "space")
        assert nvitop(app) is True
        await press(pilot, "down", "space")
        assert app.wizard.answers.monitoring.glances is None


async def test_a_typed_value_takes_letters_that_mean_something_elsewhere(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "tab", "tab", "enter", *["backspace"] * 9, "q", "a", "slash", "L", "enter")
        assert app.wizard.answers.environment.path == "qa/L"
        await press(pilot, "enter", "x", "escape")
        assert app.wizard.answers.environment.path == "qa/L"


async def test_leaving_asks_only_when_answers_would_be_lost(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "2", "space", "q")
        assert "You changed one answer." in text(app)
        await press(pilot, "escape")
        top(app, StepScreen)
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "q")
        assert app.return_value == 0


async def test_the_profile_is_saved_from_the_review_and_leaving_then_asks_nothing(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "enter", "1", "2", "enter", "s", "enter")
        assert (tmp_path / "ws-5090.toml").read_text() == "branch = 595\n"
        assert "Saved: ws-5090.toml" in text(app)
        await press(pilot, "q")
        assert app.return_value == 0


async def test_a_name_that_is_typed_takes_the_place_of_the_suggested_one(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (_, pilot, _):
        await press(pilot, "enter", "1", "2", "enter", "s", *"lab", "full_stop", *"toml", "enter")
        assert (tmp_path / "lab.toml").read_text() == "branch = 595\n"
        await press(pilot, "s", *["backspace"] * 5, *"-b", "enter")
        assert (tmp_path / "ws-5090-b").exists()  # Backspace goes on from what was suggested


async def test_a_profile_is_loaded_from_the_first_screen_and_a_missing_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.toml").touch()
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, *["down"] * 5, "enter", *"none.toml".replace(".", "\0").split("\0")[0], "full_stop", *"toml", "enter")
        top(app, WelcomeScreen)
        assert "none.toml" in text(app)
        await press(pilot, "enter", "a", "full_stop", *"toml", "enter")
        top(app, ReviewScreen)
        assert app.wizard.answers.driver.branch == "595"


async def test_a_profile_of_another_machine_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("4× RTX 4090 · Ubuntu 22.04.4", encoding="utf-8")
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, *["down"] * 5, "enter", "a", "full_stop", *"toml", "enter")
        assert "Made for 4× RTX 4090 · Ubuntu 22.04.4." in text(app)


async def test_the_language_changes_at_once_on_every_screen_and_keeps_the_cursor(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "2", "L")
        assert "Esc 返回" in text(app)
        assert top(app, StepScreen).cursor == 1
        await press(pilot, "L")
        assert "Esc back" in text(app)


async def test_a_terminal_without_han_keeps_english_and_says_why(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        app.can_show_han = False
        await press(pilot, "L")
        assert app.language == "en"
        assert "shows no Chinese" in text(app)


async def test_help_lists_every_key_of_the_screen_below(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "question_mark")
        shown = text(app)
        assert "Help" in shown
        assert "accept rest" in shown
        assert "take back the last answer" in shown
        await press(pilot, "escape")
        top(app, StepScreen)


async def test_a_click_moves_and_a_click_on_the_cursor_is_enter(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await pilot.click(offset=(6, 5))
        assert top(app, WelcomeScreen).at == "steps"
        await pilot.click(offset=(6, 5))
        await pilot.pause()
        await pilot.click(offset=(6, 5))
        assert top(app, StepScreen).cursor == 1
        await pilot.click(offset=(60, 6))
        assert top(app, StepScreen).cursor == 1


async def test_the_palette_finds_an_action_by_its_english_name_in_both_languages(tmp_path: Path) -> None:
    async with wizard(tmp_path, language="zh_CN") as (app, pilot, _):
        await press(pilot, "down", "enter", "ctrl+p", *"accept", "enter")
        top(app, ReviewScreen)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 18), (79, 23)])
async def test_every_row_is_exactly_as_wide_as_the_window(tmp_path: Path, size: tuple[int, int], language: str) -> None:
    from tui.cells import line_width

    async with wizard(tmp_path, size=size, language=language) as (app, pilot, _):
        for keys in (("a",), ("escape", "down", "enter"), ("w",), ("escape", "question_mark"), ("escape", "o")):
            await press(pilot, *keys)
            lines = app.screen.query_one(Sheet).lines
            assert len(lines) == size[1]
            assert {line_width(line) for line in lines} == {size[0]}


async def test_a_tiny_window_says_its_size_and_growing_restores_the_screen(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "2")
        await pilot.resize_terminal(52, 14)
        await until(pilot, lambda: "The window is 52×14." in text(app))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "The window is" not in text(app))
        assert top(app, StepScreen).cursor == 1


async def test_plain_marks_move_nothing(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, _):
        await press(pilot, "down", "enter", "4")
        before = text(app)
        await press(pilot, "ctrl+t")
        after = text(app)
        assert "x cannot work  580 proprietary" in after
        assert [len(line) for line in before.splitlines()] == [len(line) for line in after.splitlines()]


async def test_without_utf8_nothing_but_ascii_is_shown(tmp_path: Path) -> None:
    async with wizard(tmp_path, marks="bare") as (app, pilot, _):
        assert text(app).isascii()
        await press(pilot, "down", "enter", "4")
        assert text(app).isascii()


async def test_without_root_and_sudo_the_own_part_starts_and_the_rest_becomes_a_request(tmp_path: Path) -> None:
    async with wizard(tmp_path, privilege="none") as (app, pilot, backend):
        await press(pilot, "enter")
        assert "No root here. Your own part can start" in text(app)
        await press(pilot, "e", "enter")
        assert (tmp_path / "bringup-request.txt").read_text() == "2 actions\n"
        await press(pilot, "enter")
        await until(pilot, lambda: bool(backend.started))
        assert [action.by for action in backend.started[0].actions] == ["user"]


async def test_a_plan_with_an_error_is_explained_and_not_started(tmp_path: Path) -> None:
    async with wizard(tmp_path, Profile(driver=DriverAnswers(branch="580", flavor="proprietary"))) as (app, pilot, backend):
        await press(pilot, "enter")
        assert "This cannot be started as it is." in text(app)
        await press(pilot, "enter")
        assert "580 proprietary × GB202" in text(app)
        assert not backend.started


async def test_a_recorded_machine_is_marked_as_a_rehearsal_on_every_screen(tmp_path: Path) -> None:
    async with wizard(tmp_path) as (app, pilot, backend):
        await press(pilot, *["down"] * 4, "enter", "enter")
        await until(pilot, lambda: backend.looks == 2 and app.wizard.ready)
        assert "REHEARSAL" in text(app)
        await press(pilot, "a")
        assert "REHEARSAL" in text(app)


async def test_names_with_control_characters_and_markup_are_shown_and_never_obeyed(tmp_path: Path) -> None:
    from steps.model.plan import Target

    async with wizard(tmp_path, target=Target(name="[red]gpu\x1b[2J", summary="a[/]b")) as (app, _, _backend):
        assert "[red]gpu?[2J · a[/]b" in text(app)
