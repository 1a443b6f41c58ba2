"""A question takes the log's place, its safe answer first; a secret shows nothing; a dialog takes keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.fake_run import FakeRun, asking, by_hand, halfway
from tests.ui.run_pilot import Watching, picture, shows, until
from tui.screens.run import RunScreen

pytestmark = pytest.mark.ui


async def test_enter_takes_the_safe_answer_of_a_known_question(tmp_path: Path) -> None:
    run = asking(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: ready(app) and shows(app, "question from dpkg", "waits for you", "› (•)", "✓ safe"))
        await pilot.press("enter")
        await until(pilot, lambda: run.told == [("answer", 41, "keep")])


async def test_another_answer_is_chosen_by_arrow_or_digit(tmp_path: Path) -> None:
    run = asking(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: ready(app))
        await pilot.press("down", "enter", "3", "enter")
        await until(pilot, lambda: run.told == [("answer", 41, "new"), ("answer", 41, "diff")])


async def test_keys_typed_before_the_question_was_seen_answer_nothing(tmp_path: Path) -> None:
    run = halfway(tmp_path / "a")
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "following"))
        run.now_is("asks", prompt=asking(tmp_path / "b").state().prompt)
        screen = app.screen
        assert isinstance(screen, RunScreen)
        screen.poll()
        await pilot.press("enter", "enter")
        assert run.told == []
        await until(pilot, lambda: ready(app))
        await pilot.press("enter")
        await until(pilot, lambda: len(run.told) == 1)


async def test_an_unknown_question_takes_a_line(tmp_path: Path) -> None:
    run = asking(tmp_path, "line", "unknown")
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: ready(app) and shows(app, "We do not know this question", "*** nccl.conf (Y/I/N/O/D/Z)"))
        await pilot.press(*"quit", "backspace", "e", "t")
        await until(pilot, lambda: shows(app, "Answer: quiet_"))
        await pilot.press("enter")
        await until(pilot, lambda: run.told == [("answer", 41, "quiet")])


async def test_escape_leaves_the_field_and_the_question_stays(tmp_path: Path) -> None:
    run = asking(tmp_path, "line", "unknown")
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: ready(app))
        await pilot.press("escape", "l")
        await until(pilot, lambda: shows(app, "log of 5"))
        await pilot.press("escape")
        await until(pilot, lambda: shows(app, "We do not know this question"))
        await pilot.press("q")
    assert run.told == []
    assert app.return_code == 0


async def test_a_secret_shows_nothing_not_even_its_length(tmp_path: Path) -> None:
    run = asking(tmp_path, "secret", "unknown")
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: ready(app) and shows(app, "not stored and not logged"))
        before = picture(app)
        await pilot.press(*"hunter2")
        await pilot.pause(0.3)
        assert picture(app) == before
        screen = app.screen
        assert isinstance(screen, RunScreen)
        assert "hunter2" not in repr(vars(screen))
        await pilot.press("enter")
        await until(pilot, lambda: run.told == [("answer", 41, "hunter2")])


async def test_a_dialog_is_drawn_and_takes_keys_until_f10(tmp_path: Path) -> None:
    run = asking(tmp_path, "keys", "debconf-dialog")
    run.print(
        "toolkit.libraries", b"Setting up x ...\n\x1b[?1049h\x1b[2J\x1b[10;20H\x1b[44;97m Configuring libnccl2 \x1b[0m\x1b[14;30H<Ok>"
    )
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: ready(app) and shows(app, "dialog in step 5 · F10 back", "Configuring libnccl2", "<Ok>"))
        await pilot.press("tab", "down", "y", "escape", "enter")
        await until(pilot, lambda: [words[2] for words in run.told] == [b"\t", b"\x1b[B", b"y", b"\x1b", b"\r"])
        await pilot.press("f10")
        await until(pilot, lambda: shows(app, "Esc close"))
        await pilot.press("q")
    assert app.return_code == 0


async def test_what_only_a_person_can_do_is_said(tmp_path: Path) -> None:
    run = by_hand(tmp_path)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: ready(app) and shows(app, "This step is yours", "Turn on SR-IOV in the BIOS."))
        await pilot.press("enter")
        await until(pilot, lambda: run.told == [("answer", 7, "done")])


async def test_escapes_and_markup_in_a_question_are_text(tmp_path: Path) -> None:
    run = asking(tmp_path, "line", "unknown")
    prompt = run.state().prompt
    assert prompt is not None
    hostile = type(prompt)(seq=3, action=prompt.action, id="unknown", kind="line", excerpt="\x1b]0;owned\x07[bold]x[/] \x1b[31mred\x9b2J")
    run.now_is("asks", prompt=hostile)
    app = Watching(run)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "[bold]x[/]"))
        assert not any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 for row in picture(app) for letter in row)


def ready(app: Watching) -> bool:
    """Return whether the question was painted long enough for keys to be meant for it."""
    screen = app.screen
    return isinstance(screen, RunScreen) and screen._question is not None and screen._question.seen


def test_the_fake_is_what_the_engine_hands_out(tmp_path: Path) -> None:
    from steps.engine.client import RunHandle

    offered = {name for name in dir(FakeRun) if not name.startswith("_")}
    assert {name for name in dir(RunHandle) if not name.startswith("_")} - {"summary", "is_ours"} <= offered
