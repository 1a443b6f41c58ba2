"""On a slow link: few frames, a closed log, a way back; chosen by the answers of the terminal, unless a person said otherwise."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.ui.fake_run import halfway
from tests.ui.run_pilot import NOW, Watching, picture, shows, until
from tests.ui.screen import Terminal
from tests.ui.viewer_terminal import ROOT

pytestmark = pytest.mark.ui

VIEWER = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.ui.fake_run import halfway
from tui.app import watch
sys.exit(watch(halfway(Path({folder!r})), "en"))
"""


def far_away(folder: Path, trip: float, **environ: str) -> Terminal:
    """Return a viewer whose terminal answers after `trip` seconds."""
    argv = (sys.executable, "-I", "-c", VIEWER.format(root=str(ROOT), folder=str(folder)))
    terminal = Terminal(argv, {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8", **environ})
    answers: list[tuple[float, bytes]] = []
    terminal.screen.write_process_input = lambda data: answers.append((time.monotonic() + trip, data.encode()))  # type: ignore[method-assign]
    read = terminal.read

    def read_and_answer(seconds: float = 0.02) -> bool:
        alive = read(min(seconds, 0.02))
        while answers and answers[0][0] <= time.monotonic():
            os.write(terminal.fd, answers.pop(0)[1])
        return alive

    terminal.read = read_and_answer  # type: ignore[method-assign]
    return terminal


def test_a_far_terminal_over_ssh_is_found_out_and_b_leads_back(tmp_path: Path) -> None:
    with far_away(tmp_path, 0.2, SSH_CONNECTION="192.0.2.7 50000 192.0.2.9 22") as terminal:
        terminal.until("low bandwidth", "B full speed", "last line only", "Building initial module")
        terminal.press("B")
        shown = terminal.until("following · 2,114 lines", "Setting up nvidia-dkms-580-open")
        assert "low bandwidth" not in shown
        until_then = time.monotonic() + 1
        while time.monotonic() < until_then:
            terminal.read()
        assert "low bandwidth" not in terminal.text()


def test_a_far_terminal_without_ssh_and_a_near_one_with_it_are_painted_fully(tmp_path: Path) -> None:
    for trip, environ in ((0.2, {}), (0.0, {"SSH_CONNECTION": "192.0.2.7 50000 192.0.2.9 22"})):
        folder = tmp_path / str(trip)
        folder.mkdir()
        with far_away(folder, trip, **environ) as terminal:
            terminal.until("following · 2,114 lines")
            until_then = time.monotonic() + 1
            while time.monotonic() < until_then:
                terminal.read()
            assert "low bandwidth" not in terminal.text()


async def test_the_closed_log_shows_its_last_line_and_l_opens_it(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run, now=NOW + 2)
    async with app.run_test(size=(80, 24)) as pilot:
        app.low_bandwidth = True
        await until(pilot, lambda: shows(app, "last line only · l opens the log", "Building initial module for 6.5.0-41-generic"))
        assert not shows(app, "Setting up nvidia-dkms-580-open")
        assert "B full speed   ? help" in picture(app)[-1]
        await pilot.press("l")
        await until(pilot, lambda: shows(app, "following · 2,114 lines", "Setting up nvidia-dkms-580-open"))
        await pilot.press("escape", "slash", *"dkms")
        await pilot.press("enter")
        await until(pilot, lambda: shows(app, "Search: dkms"))


async def test_times_count_in_steps_of_five_seconds(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    app = Watching(run, now=NOW + 3)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "6:58 gone"))
        app.low_bandwidth = True
        await until(pilot, lambda: shows(app, "6:55 gone"))
