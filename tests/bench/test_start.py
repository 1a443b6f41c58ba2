"""From exec to the first painted wizard screen, against a minimal Textual program of the same run."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.bench

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 9
MOST = 1.3
"""The wizard may take this many times the minimal program."""
MODULES = 450
"""How many modules may be loaded for the first screen, the painter among them: it draws that one too."""
LATER = (
    "pexpect",
    "pyte",
    "pynvml",
    "packaging",
    "tomli_w",
    "distro",
    "steps.engine",
    "steps.compat",
    "steps.detect",
    "steps.managers",
    "steps.catalog",
)
"""What the first screen never loads."""

MINIMAL = """
from textual.app import App
from textual.widgets import Label
class Minimal(App):
    def compose(self):
        yield Label("READY")
Minimal().run()
"""
WIZARD = "import sys; sys.argv[1:] = []; from tui.__main__ import main; main()"
IMPORTED = """
import sys
import tui.__main__, tui.options, steps.settings, steps.host.local, tui.terminal, tui.app
print(len(sys.modules)); print(*sys.modules)
"""
_ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


def _argv(source: str) -> list[str]:
    """Return how both programs are started: isolated, from this checkout, with compiled modules."""
    return [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{source}"]


def _first_text(argv: list[str], text: bytes) -> float:
    """Return the seconds from exec until `text` has been painted in a terminal of 80×24."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
    }
    begin = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, environ)
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        seen = b""
        while time.perf_counter() - begin < 30:
            if not select.select([terminal], [], [], 0.5)[0]:
                continue
            seen += os.read(terminal, 65536)
            if text in _ESCAPES.sub(b"", seen):
                return time.perf_counter() - begin
        raise AssertionError(f"{text!r} was never painted: {seen[-500:]!r}")
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_the_first_wizard_screen_is_painted_nearly_as_fast_as_a_program_with_one_label() -> None:
    programs = {"minimal": (_argv(MINIMAL), b"READY"), "wizard": (_argv(WIZARD), b"What do you want to do")}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(ROUNDS + 1):
        for name, (argv, text) in programs.items():
            taken = _first_text(argv, text)
            if turn:  # the first turn compiles the modules and fills the page cache
                times[name].append(taken)
    minimal, wizard = (statistics.median(times[name]) for name in programs)
    print(f"\nfirst screen: minimal {minimal * 1000:.0f} ms, wizard {wizard * 1000:.0f} ms, ratio {wizard / minimal:.2f} (at most {MOST})")
    # Other work on the machine only ever adds time, so the fastest of each is the fairer witness where the medians disagree.
    assert min(wizard / minimal, min(times["wizard"]) / min(times["minimal"])) <= MOST


def test_the_first_screen_loads_few_modules_and_nothing_of_what_only_a_run_needs() -> None:
    done = subprocess.run(_argv(IMPORTED), capture_output=True, text=True, check=True, timeout=60)
    count, names = done.stdout.splitlines()
    print(f"\nmodules loaded for the first screen: {count} (at most {MODULES})")
    loaded = set(names.split())
    assert int(count) <= MODULES
    assert not [name for name in LATER if name in loaded]
