"""Frames wait for the terminal's answers, and for nothing else."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from textual import events

from tests.ui.screen import Terminal
from tests.ui.viewer_terminal import ROOT, Viewer
from tui.driver import Pieces
from tui.gate import ASK, PATIENCE, SLOW_PACE, Gate


def answering(trip: float, *, slow: bool = False) -> Gate:
    """Return a gate whose terminal has answered three times, each time after `trip` seconds."""
    gate = Gate()
    gate.slow = slow
    for number in range(3):
        assert gate.sent(number) == ASK
        gate.answered(number + trip)
    return gate


def test_a_terminal_that_never_answers_is_asked_twice_and_never_waited_for() -> None:
    gate = Gate()
    sent = []
    for number in range(50):
        assert gate.wait(number / 10) == 0
        sent.append(gate.sent(number / 10))
    assert sent.count(ASK) == 2
    assert gate.patience(0.2) > 0
    assert gate.patience(5.0) == 0


def test_two_frames_are_under_way_and_the_third_waits_for_an_answer() -> None:
    gate = answering(0.01)
    for at in (10.0, 10.1):
        assert gate.wait(at) == 0
        gate.sent(at)
    assert gate.wait(10.2) == pytest.approx(PATIENCE - 0.2)
    gate.answered(10.3)
    assert gate.wait(10.3) == 0


def test_an_answer_that_is_lost_holds_frames_up_once_and_silence_ends_the_waiting() -> None:
    gate = answering(0.01)
    gate.sent(10.0)
    gate.sent(10.1)
    assert gate.wait(12.9) > 0
    assert gate.wait(13.05) == 0
    gate.sent(13.05)
    assert gate.wait(13.06) > 0
    assert gate.wait(13.2) == 0
    gate.answered(13.3)
    gate.sent(13.4)
    gate.sent(13.4)
    assert gate.wait(13.5) > 0


def test_a_slow_link_has_one_frame_under_way_and_four_a_second_at_most() -> None:
    gate = answering(0.01, slow=True)
    gate.sent(10.0)
    assert gate.wait(10.1) > SLOW_PACE
    gate.answered(10.1)
    assert gate.wait(10.1) == pytest.approx(SLOW_PACE - 0.1)
    assert gate.wait(10.25) == 0


@pytest.mark.parametrize(("trips", "far"), [((0.2, 0.3, 0.2), True), ((0.2, 0.01, 0.4), False), ((0.5, 0.5), False)])
def test_a_link_is_far_when_three_answers_in_a_row_took_long(trips: tuple[float, ...], far: bool) -> None:
    gate = Gate()
    for trip in trips:
        gate.sent(1.0)
        gate.answered(1.0 + trip)
    assert gate.far is far


def test_answers_that_come_late_are_not_typed_into_the_shell_afterwards(tmp_path: Path) -> None:
    argv = (sys.executable, "-I", "-c", LATE.format(root=str(ROOT), folder=str(tmp_path)))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    with Terminal(argv, environ) as terminal:
        late: list[tuple[float, bytes]] = []
        terminal.screen.write_process_input = lambda data: late.append((time.monotonic() + 0.3, data.encode()))  # type: ignore[method-assign]
        pressed = False
        while b"left with" not in terminal.raw:
            assert terminal.read(0.02), terminal.raw[-500:]
            while late and late[0][0] <= time.monotonic():
                os.write(terminal.fd, late.pop(0)[1])
            if not pressed and "following" in terminal.text():
                terminal.press("pageup", "q")
                pressed = True
        assert not late
        assert b"left with b'' in hand" in terminal.raw


LATE = """
import os, select, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.ui.fake_run import FakeRun
from tui.app import watch
run = FakeRun(Path({folder!r}))
run.action("driver.install", "running", started=1)
watch(run, "en")
import termios, tty
tty.setcbreak(0)
print("left with", os.read(0, 100) if select.select([0], [], [], 1)[0] else b"", "in hand", flush=True)
"""


def nothing(data: str) -> None:
    """Answer nothing."""


@pytest.mark.ui
def test_a_silent_terminal_is_painted_at_once(tmp_path: Path) -> None:
    with closing(Viewer(tmp_path)) as viewer:
        viewer.screen.write_process_input = nothing  # type: ignore[method-assign]
        viewer.until(lambda seen: "following" in seen)
        viewer.press(b"?")
        assert viewer.until(lambda seen: "Esc" in seen) < 2


@pytest.mark.ui
def test_a_viewer_that_was_stopped_paints_everything_again(tmp_path: Path) -> None:
    with closing(Viewer(tmp_path)) as viewer:
        viewer.until(lambda seen: "following" in seen)
        os.kill(viewer.pid, signal.SIGTSTP)
        while Path(f"/proc/{viewer.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            viewer.look(0.02)
        viewer.look(0.05)
        viewer.screen.reset()
        os.kill(viewer.pid, signal.SIGCONT)
        viewer.until(lambda seen: "bringup" in seen and "1 Return point saved" in seen and "following" in seen and "? help" in seen)
        assert viewer.leave() == 0


@pytest.mark.parametrize("cut", range(1, 6))
@pytest.mark.parametrize("sure", [True, False])
def test_an_answer_in_pieces_is_an_answer(cut: int, sure: bool) -> None:
    gate = answering(0.2) if sure else Gate()
    gate.sent(10.0)
    pieces = Pieces(gate)
    answer = "\x1b[7;12R"
    came = [one for key in keys(answer[:cut]) + keys(answer[cut:]) for one in pieces.take(key, 10.5)]
    places = [(one.x, one.y) for one in came if isinstance(one, events.CursorPosition)]
    assert places == [(11, 6)]
    # A terminal that never answered may have sent a real Escape: that one is not kept from the person.
    assert [one.key for one in came if isinstance(one, events.Key)] == ([] if sure or cut > 1 else ["escape"])


@pytest.mark.parametrize("typed", ["\x1b", "[", "[1", "[1;5", "[x", "[12;5x", "1;5R"])
def test_keys_that_are_no_answer_come_through_in_order(typed: str) -> None:
    gate = answering(0.2)
    gate.sent(10.0)
    pieces = Pieces(gate)
    last = events.CursorPosition(0, 0)
    came = [one for message in (*keys(typed), last) for one in pieces.take(message, 10.5)]
    assert "".join(one.character or "" for one in came if isinstance(one, events.Key)) == typed
    assert came[-1] is last


def test_keys_are_not_held_when_no_answer_is_to_come() -> None:
    pieces = Pieces(answering(0.2))
    for key in keys("\x1b[1;5R"):
        assert pieces.take(key, 10.0) == (key,)


@pytest.mark.parametrize("typed", ["\x1b", "[1;"])
def test_keys_are_let_go_once_the_answer_is_lost_though_nothing_else_comes(typed: str) -> None:
    gate = answering(0.2)
    gate.sent(10.0)
    pieces = Pieces(gate)
    typed_keys = keys(typed)
    assert [one for key in typed_keys for one in pieces.take(key, 11.0)] == []
    assert pieces.held_until == 10.0 + PATIENCE
    # Further questions do not put it off.
    gate.sent(12.0)
    assert pieces.let_go(12.9) == ()
    assert pieces.let_go(13.0) == tuple(typed_keys)
    assert pieces.held_until is None


def test_keys_are_not_held_for_an_answer_that_counts_as_lost_already() -> None:
    gate = answering(0.2)
    gate.sent(10.0)
    pieces = Pieces(gate)
    (escape,) = keys("\x1b")
    assert pieces.take(escape, 10.0 + PATIENCE) == (escape,)


@pytest.mark.ui
def test_an_escape_reaches_the_screen_though_the_terminal_answers_no_more(tmp_path: Path) -> None:
    with closing(Viewer(tmp_path)) as viewer:
        viewer.until(lambda seen: "following" in seen)
        viewer.press(b"?")
        viewer.until(lambda seen: "Esc" in seen)
        # From here on every answer is lost.
        viewer.screen.write_process_input = nothing  # type: ignore[method-assign]
        viewer.press(b"\x1b")
        assert viewer.until(lambda seen: "following" in seen) < PATIENCE + 3


def keys(text: str) -> list[events.Key]:
    """Return the keys as which Textual hands on the letters of a sequence that it gave up on: Escape alone, or only what follows it."""
    letters = text if text == "\x1b" else text.lstrip("\x1b")
    return [events.Key("escape" if letter == "\x1b" else letter, letter) for letter in letters]


@pytest.mark.ui
def test_answers_that_the_link_cuts_in_two_are_no_keys(tmp_path: Path) -> None:
    with closing(Viewer(tmp_path, SSH_CONNECTION="192.0.2.7 50000 192.0.2.9 22")) as viewer:
        answers: list[str] = []
        viewer.screen.write_process_input = lambda data: answers.append(data)  # type: ignore[method-assign]  # noqa: PLW0108 - pyte names it
        viewer.until(lambda seen: "following" in seen or bool(answers))
        for pause in (1.5, 0.25, 0.25):
            while answers:
                answer = answers.pop(0)
                viewer.press(answer[:1].encode())
                viewer.look(pause)
                viewer.press(answer[1:].encode())
            viewer.look(0.3)
        viewer.until(lambda seen: "3 Driver 580 open" in seen)
        # The letters of an answer are "[1;1R": 1 would show the log of the first action.
        assert "log of 1:" not in viewer.seen
        assert "log of 3:" in viewer.seen
