"""How the viewer of a run meets what is not a key, and how it ends when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from steps.text import say
from tests.ui.fake_run import halfway
from tests.ui.run_pilot import Watching, picture, shows, until
from tests.ui.screen import Terminal
from tests.ui.viewer_terminal import ROOT, Viewer

pytestmark = pytest.mark.ui

_ATTENTIVE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A job in the background of a shell ignores SIGINT, and so would what it starts."""
_LINES = """
import os, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from steps.headless.console import Asked, Console
from tests.ui.fake_run import FakeRun
from tui.running import follow_to_end
run = FakeRun(Path({folder!r}))
run.action("driver.install", "running", started=1)
asked = Asked()
sys.exit(follow_to_end(run, Console(asked, lambda line: print(line, flush=True), lambda line: print(line, file=sys.stderr)), "attach"))
"""


@pytest.mark.parametrize("typed", [b"\xd6\xd0", b"\xff", b"\xe4\xb8"])
def test_bytes_of_another_encoding_are_dropped_and_the_next_key_counts(tmp_path: Path, typed: bytes) -> None:
    with closing(Viewer(tmp_path)) as viewer:
        viewer.until(lambda seen: "following" in seen)
        viewer.press(typed)
        viewer.look(0.3)
        viewer.press(b"?")
        viewer.until(lambda seen: "Esc" in seen)
        viewer.press(b"\x1b")
        viewer.until(lambda seen: "following" in seen)
        assert viewer.leave() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_viewer_that_is_told_to_end_says_that_the_run_goes_on(tmp_path: Path, number: int, code: int) -> None:
    with closing(Viewer(tmp_path)) as viewer:
        viewer.until(lambda seen: "following" in seen)
        os.kill(viewer.pid, number)
        assert viewer.ended() == code
        assert "The run goes on. Come back with: bringup attach" in viewer.seen


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, -2)])
def test_lines_that_are_told_to_end_say_that_the_run_goes_on(tmp_path: Path, number: int, code: int) -> None:
    argv = (sys.executable, "-I", "-c", _ATTENTIVE + _LINES.format(root=str(ROOT), folder=str(tmp_path)))
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as lines:
        assert lines.stdout is not None
        assert lines.stdout.readline()
        time.sleep(0.3)
        lines.send_signal(number)
        _, said = lines.communicate(timeout=30)
    assert lines.returncode == code
    assert "The run goes on. Come back with: bringup attach" in said


def test_a_fault_of_ours_is_an_exit_code(tmp_path: Path) -> None:
    source = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom tui.shell import Shell\n"
    source += "class Broken(Shell):\n    def on_mount(self):\n        self.call_later(self.panic, 'broken')\nsys.exit(Broken().ran())"
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    with Terminal((sys.executable, "-I", "-c", source), environ) as terminal:
        assert terminal.ended() == 1


async def test_a_command_with_a_long_path_stays_whole_above_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRINGUP_COMMAND", "/data/projects/somebody/bringup/bringup")
    app = Watching(halfway(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "Come back with: /data/projects/somebody/bringup/bringup attach"))
        assert "Log in again" not in "".join(picture(app))


def test_text_without_a_command_is_never_filled() -> None:
    assert say("en", "a {bringup} of no key") == "a {bringup} of no key"
