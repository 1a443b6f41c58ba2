"""The wizard in a real terminal: keys in, the screen decoded by pyte."""

from __future__ import annotations

import base64
import os
import re
import select
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.ui.screen import Terminal

pytestmark = pytest.mark.ui

ROOT = Path(__file__).resolve().parents[2]
MADE_UP = """
import os, subprocess, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.ui.made_up import MadeUp
from tui import terminal
from tui.app import BringupApp

class House(MadeUp):
    def start(self, plan, sudo):
        if self.privilege() == "sudo":
            subprocess.run(("sudo", "true"))
        return super().start(plan, sudo)

told = terminal.survey(os.environ)
house = House(Path({folder!r}), privilege={privilege!r})
app = BringupApp(house, language={language!r}, palette=told.palette, marks=told.marks, probe=True)
app.can_show_han = told.han
sys.exit(app.run() or 0)
"""


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a person's terminal."""
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "TERM": "xterm-256color", "LANG": "C.UTF-8", **more}


def made_up(
    folder: Path,
    *,
    language: str = "en",
    privilege: str = "root",
    columns: int = 80,
    rows: int = 24,
    environ: Mapping[str, str] | None = None,
) -> Terminal:
    """Return a terminal with the wizard over the made-up house."""
    source = MADE_UP.format(root=str(ROOT), folder=str(folder), privilege=privilege, language=language)
    return Terminal((sys.executable, "-I", "-c", source), environ or environment(), columns=columns, rows=rows)


def bringup(*arguments: str, environ: Mapping[str, str] | None = None, columns: int = 80, rows: int = 24) -> Terminal:
    """Return a terminal with the command itself."""
    source = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:] = {list(arguments)!r}\nfrom tui.__main__ import main; main()"
    return Terminal((sys.executable, "-I", "-c", source), environ or environment(), columns=columns, rows=rows)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_the_first_screen_fits_and_enter_twice_starts(tmp_path: Path, language: str) -> None:
    words = {
        "en": ("What do you want to do with this machine?", "? help", "Start the installation"),
        "zh_CN": ("要对这台机器做什么？", "? 帮助", "开始安装"),
    }
    title, help_key, start = words[language]
    with made_up(tmp_path, language=language) as terminal:
        shown = terminal.until(title, help_key, "580 open")
        assert len(shown.splitlines()) == 24
        assert shown.splitlines()[0].startswith(" bringup   ws-5090 · 1× RTX 5090 · Ubuntu 24.04.2")
        terminal.press("enter")
        terminal.until(start, "nvitop", "320 MB")
        terminal.press("enter")
        terminal.until("running")


def test_the_cursor_shows_the_findings_of_each_option_at_once(tmp_path: Path) -> None:
    with made_up(tmp_path) as terminal:
        terminal.until("580 open")
        terminal.press("down", "enter")
        terminal.until("Branch and kernel modules")
        terminal.press("4")
        terminal.until("✗ cannot work  580 proprietary", "└ open modules only", "Enter here explains and takes nothing.")
        terminal.press("enter")
        terminal.until("Why not 580 proprietary?", "Nearest ways")
        terminal.press("escape")
        terminal.until("Branch and kernel modules")
        terminal.press("2", "enter")
        terminal.until("2 of 3")
        terminal.press("b")
        terminal.until("(•) 595 open")


def test_a_moved_cursor_costs_less_than_two_kilobytes(tmp_path: Path) -> None:
    with made_up(tmp_path) as terminal:
        terminal.until("580 open")
        terminal.press("down", "enter")
        terminal.until("› (•) 580 open")
        while terminal.read(0.3) and terminal.raw:
            before = len(terminal.raw)
            terminal.read(0.3)
            if len(terminal.raw) == before:
                break
        before = len(terminal.raw)
        terminal.press("down")
        terminal.until("› ( ) 595 open", "Enter takes 595 open")
        terminal.read(0.3)
        print(f"\na moved cursor: {len(terminal.raw) - before} bytes")
        assert len(terminal.raw) - before < 2000


def test_sudo_asks_in_the_real_terminal_and_the_screen_comes_back(tmp_path: Path) -> None:
    stand_in = tmp_path / "sudo"
    stand_in.write_text("#!/bin/sh\nprintf 'password for you: '\nread answer\necho got $answer\n", encoding="utf-8")
    stand_in.chmod(0o755)
    environ = environment(PATH=f"{tmp_path}:{os.environ['PATH']}")
    with made_up(tmp_path, privilege="sudo", environ=environ) as terminal:
        terminal.until("580 open")
        terminal.press("enter")
        terminal.until("Enter starts; sudo asks for your password.")
        terminal.press("enter")
        terminal.until("it does not pass through bringup", "password for you:")
        terminal.press("secret", "enter")
        terminal.until("running", "? help")
        terminal.press("ctrl+c")
        assert terminal.ended() == 0
        assert b"secret" in terminal.raw


def test_a_tiny_terminal_gets_one_sentence_and_growing_brings_the_screen_back(tmp_path: Path) -> None:
    with made_up(tmp_path, columns=52, rows=14) as terminal:
        terminal.until("The window is 52×14.")
        terminal.resize(80, 24)
        terminal.until("What do you want to do with this machine?", "580 open")


def test_without_utf8_every_sign_is_ascii(tmp_path: Path) -> None:
    with made_up(tmp_path, environ=environment(LANG="C")) as terminal:
        terminal.until("580 open")
        terminal.press("down", "enter", "4")
        shown = terminal.until("x cannot work  580 proprietary", "` chip GB202, Blackwell")
        assert shown.isascii()


def test_without_colour_no_colour_is_painted(tmp_path: Path) -> None:
    with made_up(tmp_path, environ=environment(NO_COLOR="1")) as terminal:
        terminal.until("580 open")
        assert b"[38;" not in terminal.raw
        assert b"[48;" not in terminal.raw


def test_control_c_leaves_with_the_terminal_as_it_was(tmp_path: Path) -> None:
    with made_up(tmp_path) as terminal:
        terminal.until("580 open")
        terminal.press("ctrl+c")
        assert terminal.ended() == 0
        assert b"\x1b[?1049l" in terminal.raw


# --- the command itself, on recorded machines --------------------------------------------------------


MACHINES = ROOT / "tests" / "machines"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_step_of_the_setup_fits_the_terminal_with_real_data(language: str) -> None:
    titles = {
        "en": ("1 of 8", "2 of 8", "3 of 8", "4 of 8", "5 of 8", "6 of 8", "7 of 8", "8 of 8"),
        "zh_CN": tuple(f"第 {at} 步" for at in range(1, 9)),
    }
    machine = MACHINES / "rtx5090-u2404-fresh.json"
    with bringup("--machine", str(machine), "--lang", language) as terminal:
        terminal.until("580", "PyTorch")
        terminal.press("down", "enter")
        for title in titles[language]:
            # pyte keeps the second cell of a wide letter empty, which its display shows as nothing.
            # The last words of the last row come last: with them the picture is whole.
            shown = terminal.until(title, {"en": "? help", "zh_CN": "? 帮助"}[language])
            lines = shown.splitlines()
            assert len(lines) == 24
            assert "│" in lines[4]
            assert "?" in lines[23]
            terminal.press("enter")


def test_an_impossible_driver_says_why_on_a_recorded_machine() -> None:
    with bringup("--machine", str(MACHINES / "rtx5090-u2404-fresh.json")) as terminal:
        terminal.until("580 open", "REHEARSAL")
        terminal.press("down", "enter", "n", "n")
        terminal.until("3 of 8", "595 proprietary")
        terminal.press("5")
        terminal.until("✗ cannot work", "└", "f  stay with 580 open")
        terminal.press("a")
        terminal.until("8 of 8", "Start the installation")


def test_repainting_only_what_changed_leaves_no_half_letters() -> None:
    with bringup("--machine", str(MACHINES / "rtx5090-u2404-fresh.json"), "--lang", "zh_CN") as terminal:
        terminal.until("PyTorch", "重启")
        for key in ["down", "enter", *["enter", "down", "down", "m", "right", "escape", "w", "escape", "t", "down", "t"] * 3]:
            terminal.press(key)
            for _ in range(4):
                terminal.read(0.05)
        while select.select([terminal.fd], [], [], 0.2)[0]:
            terminal.read()
        assert terminal.orphans() == 0


def test_a_dumb_terminal_gets_the_same_questions_as_lines() -> None:
    with bringup("--machine", str(MACHINES / "rtx5090-u2404-fresh.json"), environ=environment(TERM="dumb")) as terminal:
        terminal.until("1 ")
        assert b"\x1b[?1049h" not in terminal.raw


def test_a_profile_with_an_unknown_key_ends_with_two_and_names_the_line(tmp_path: Path) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text('[toolkit]\ncudda = "12.8"\n', encoding="utf-8")
    with bringup("--profile", str(profile)) as terminal:
        assert terminal.ended() == 2
        assert "cudda" in terminal.text()
        assert "Traceback" not in terminal.text()


def test_a_file_that_is_no_recording_is_said_on_the_first_screen() -> None:
    # A long path would be broken into rows.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder, "broken.json").write_text("{", encoding="utf-8")
        with bringup("--machine", f"{folder}/broken.json") as terminal:
            terminal.until("The machine could not be read.", "broken.json")
            terminal.press("q")
            assert terminal.ended() == 2


def test_two_keys_rehearse_the_whole_path_on_a_recorded_machine(tmp_path: Path) -> None:
    environ = environment(BRINGUP_STATE=str(tmp_path / "state"), XDG_RUNTIME_DIR=str(tmp_path))
    with bringup("--machine", str(MACHINES / "rtx5090-u2404-fresh.json"), environ=environ) as terminal:
        terminal.until("PyTorch", "REHEARSAL")
        terminal.press("enter")
        terminal.until("Start the installation", "Driver 580 open", "Enter starts the rehearsal.")
        terminal.press("enter")
        shown = terminal.until("Rehearsed. Nothing was changed.", " Prove it: driver", "there is nothing to undo.", seconds=60)
        assert "none was run" in shown
        assert "Undo stays possible" not in shown
        terminal.press("q")
        assert terminal.ended() == 0
    assert any((tmp_path / "state" / "runs").iterdir())


def test_the_shown_command_reaches_the_clipboard_of_the_terminal(tmp_path: Path) -> None:
    machine = ROOT / "tests" / "machines" / "rtx5090-u2404-fresh.json"
    with bringup("--machine", str(machine), environ=environment(XDG_CONFIG_HOME=str(tmp_path))) as terminal:
        terminal.until("Proof")
        terminal.press("enter")
        terminal.until("Change something")
        terminal.press("3")
        terminal.until("Which NVIDIA driver?")
        terminal.press("down")
        terminal.until("Enter takes 595 open")
        terminal.press("c")
        terminal.until("Copied")
        sent = re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)", terminal.raw)
        assert sent is not None
        assert base64.b64decode(sent.group(1)).startswith(b"apt-get install nvidia-")
