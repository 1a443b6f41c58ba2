"""Downloading ahead in the wizard: nothing before a yes, changed answers begin anew, leaving stops it, the header says how far."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps.model.action import installing
from steps.model.machine import Machine
from steps.model.plan import Plan, Target
from steps.model.profile import DriverAnswers, NetworkAnswers, Profile
from steps.text import Language
from tests.ui import test_wizard as kit
from tests.ui.fake_run import FakeRun
from tests.ui.made_up import MadeUp
from tui import ahead
from tui.app import BringupApp
from tui.cells import line_width
from tui.privilege import Sudo
from tui.screens.confirm import ConfirmPage
from tui.shell import Shell
from tui.widgets.sheet import Sheet

pytestmark = pytest.mark.ui


class Fetching(MadeUp):
    """A made-up house whose started plans are runs that only a test moves on."""

    def __init__(self, folder: Path, **how: Any) -> None:
        super().__init__(folder, **how)
        self.handles: list[FakeRun] = []

    def start(self, plan: Plan, sudo: Sudo | None) -> FakeRun:
        super().start(plan, sudo)
        self.handles.append(FakeRun(self.folder / f"fetch-{len(self.handles)}", plan))
        return self.handles[-1]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_SETTLED", 0.05)
    monkeypatch.setattr("tui.app.LOOK", 0.05)


def app_of(folder: Path, *, language: Language = "en", answers: Profile | None = None) -> tuple[BringupApp, Fetching]:
    house = Fetching(folder)
    return BringupApp(house, answers, language=language), house


async def test_nothing_is_fetched_before_a_yes_and_the_header_says_how_far_it_is(tmp_path: Path) -> None:
    app, house = app_of(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await kit.until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await kit.press(pilot, "D")
        assert isinstance(app.screen, ConfirmPage)
        assert "420 MB" in kit.text(app)
        await kit.press(pilot, "escape")
        assert house.started == []
        await kit.press(pilot, "D", "enter")
        await kit.until(pilot, lambda: len(house.handles) == 1)
        assert house.started[0].ahead is not None
        await kit.until(pilot, lambda: "downloading ahead 0/1" in kit.text(app).splitlines()[0])
        house.handles[0].action("ahead.driver", "done", started=1, seconds=3)
        house.handles[0].now_is("done", code=0)
        await kit.until(pilot, lambda: "downloaded ahead" in kit.text(app).splitlines()[0])


class Beside(Fetching):
    """A house whose plans bring a package that no fetch holds yet: its repository comes with the plan."""

    def ahead(self, plan: Plan, *, root: bool) -> Plan:
        headers = installing("apt", "ahead.headers", "Headers", ("linux-headers",), download_bytes=20_700)
        return msgspec.structs.replace(super().ahead(plan, root=root), actions=(headers,))

    def plan(self, machine: Machine, answers: Profile, target: Target) -> Plan:
        made = super().plan(machine, answers, target)
        return msgspec.structs.replace(made, actions=(*made.actions, installing("apt", "driver.more", "Driver", ("nvidia-open",))))


@pytest.mark.parametrize(
    ("language", "size", "asked", "said"),
    [
        ("en", "Up to 21 kB", "Only what apt knows now", "downloaded ahead what apt knows now"),
        ("zh_CN", "最多 21 kB", "只下载 apt 现在找得到的", "已提前下载 apt 现有的部分"),
    ],
)
async def test_what_apt_does_not_know_yet_is_not_called_downloaded(
    tmp_path: Path, language: Language, size: str, asked: str, said: str
) -> None:
    house = Beside(tmp_path)
    app = BringupApp(house, None, language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        await kit.until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await kit.press(pilot, "D")
        assert size in kit.text(app)
        assert asked in kit.text(app)
        await kit.press(pilot, "enter")
        await kit.until(pilot, lambda: len(house.handles) == 1)
        house.handles[0].action("ahead.headers", "done", started=1, seconds=3)
        house.handles[0].now_is("done", code=0)
        await kit.until(pilot, lambda: said in kit.text(app).splitlines()[0])


async def test_a_download_that_failed_is_named(tmp_path: Path) -> None:
    app, house = app_of(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await kit.until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await kit.press(pilot, "D", "enter")
        await kit.until(pilot, lambda: len(house.handles) == 1)
        house.handles[0].action("ahead.driver", "failed", started=1, seconds=3, code=100, error="apt-get ended with 100.")
        house.handles[0].now_is("done", code=1)
        await kit.until(pilot, lambda: "downloaded ahead 0/1, 1 failed" in kit.text(app).splitlines()[0])
        assert "Download ahead failed: 580. apt-get ended with 100." in kit.text(app)


async def test_changed_answers_stop_it_and_begin_anew_once_they_stand(tmp_path: Path) -> None:
    app, house = app_of(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await kit.until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await kit.press(pilot, "D", "enter")
        await kit.until(pilot, lambda: len(house.handles) == 1)
        app.wizard.take({"driver.branch": "595"})
        await kit.until(pilot, lambda: house.stopped == 1)
        await kit.until(pilot, lambda: len(house.handles) == 2)
        assert [plan.actions[0].title for plan in house.started] == ["580", "595"]
        await kit.press(pilot, "D")
        await kit.until(pilot, lambda: house.stopped == 2)
        assert not app.ahead.on
        assert "ahead" not in kit.text(app).splitlines()[0]


async def test_a_run_that_starts_takes_over(tmp_path: Path) -> None:
    app, house = app_of(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await kit.until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await kit.press(pilot, "D", "enter")
        await kit.until(pilot, lambda: len(house.handles) == 1)
        plan = app.wizard.plan()
        assert plan is not None
        app.language = "zh_CN"
        app.start(plan)
        await kit.until(pilot, lambda: len(house.started) == 2 and not app.ahead.on)
        assert house.language == "zh_CN"


async def test_the_profile_can_say_yes_beforehand(tmp_path: Path) -> None:
    answers = Profile(driver=DriverAnswers(branch="580", flavor="open"), network=NetworkAnswers(download_ahead=True))
    app, house = app_of(tmp_path, answers=answers)
    async with app.run_test(size=(80, 24)) as pilot:
        await kit.until(pilot, lambda: len(house.handles) == 1)
        assert app.ahead.on


@pytest.mark.parametrize(("language", "words"), [("en", "Up to 420 MB"), ("zh_CN", "最多 420 MB")])
async def test_the_question_fits_into_the_window(tmp_path: Path, language: Language, words: str) -> None:
    app, _ = app_of(tmp_path, language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        await kit.until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        await kit.press(pilot, "D")
        assert words in kit.text(app)
        assert all(line_width(line) <= 80 for line in app.screen.query_one(Sheet).lines)


@pytest.mark.parametrize("breaks", [False, True])
def test_nothing_goes_on_after_the_program_however_it_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: bool) -> None:
    app, house = app_of(tmp_path)

    def left(_: Shell) -> int:
        if breaks:
            raise RuntimeError("a fault of ours")
        return 0

    monkeypatch.setattr(Shell, "ran", left)
    if breaks:
        with pytest.raises(RuntimeError):
            app.ran()
    else:
        assert app.ran() == 0
    assert house.stopped == 0
    app.ahead._on = True
    with contextlib.suppress(RuntimeError):
        app.ran()
    assert (house.stopped, app.ahead.on) == (1, False)
