"""What the terminal is: whether it shows screens, in which colours and signs, and how far away it is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tui.theme import Marks, PaletteName

PROBE = "\x1b[H·"
"""Prints an ambiguous sign in the first cell, which the first frame paints over: where the cursor stands then tells its width."""


class Terminal(NamedTuple):
    """How the screens shall be drawn here."""

    palette: PaletteName
    marks: Marks
    han: bool
    """Whether Chinese letters can be shown."""
    ssh: bool


def environment() -> Mapping[str, str]:
    """Return the environment of this program."""
    return os.environ


def full_path(name: str) -> str:
    """Return a file name that a person typed as an absolute path, `~` included."""
    return str(Path(name).expanduser().absolute())


def exists(name: str) -> bool:
    """Return whether there is a file of a name that a person typed."""
    return Path(full_path(name)).exists()


def write_file(path: str, text: str) -> None:
    """Write a file that the person named; raises `OSError`."""
    Path(path).write_text(text, encoding="utf-8")


def say_aside(sentence: str) -> None:
    """Write a sentence to the real terminal while the screen is put aside."""
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def when_told_to_end(leave: Callable[[int], None]) -> None:
    """Call `leave` with the exit code when SIGINT or SIGTERM comes, instead of ending at once with the terminal as it is."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Only the main thread's loop takes signals; in another one they do what they always do.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, leave, 128 + number)


@contextlib.contextmanager
def told_to_end() -> Iterator[None]:
    """Make SIGTERM an exception (`SystemExit`, 143) while something is followed, as SIGINT is one already."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def is_root() -> bool:
    """Return whether this program runs as root."""
    return os.geteuid() == 0


def shows_screens(environ: Mapping[str, str]) -> bool:
    """Return whether standard input and output are a terminal that can address its cursor."""
    return environ.get("TERM", "dumb") not in ("", "dumb", "unknown") and os.isatty(0) and sys.stdout.isatty()


def survey(environ: Mapping[str, str], *, no_color: bool = False) -> Terminal:
    """Return what the environment says about the terminal; nothing is asked, so nothing waits."""
    term = environ.get("TERM", "")
    console = term == "linux" or term.startswith("vt")
    unicode = is_utf8(environ)
    marks: Marks = "unicode" if unicode and not console else "ascii" if unicode else "bare"
    return Terminal(
        _palette(environ, term, console=console, no_color=no_color), marks, unicode and not console, bool(environ.get("SSH_CONNECTION"))
    )


def _palette(environ: Mapping[str, str], term: str, *, console: bool, no_color: bool) -> PaletteName:
    if no_color or environ.get("NO_COLOR") or term.endswith(("-m", "-mono")):
        return "mono"
    many = environ.get("COLORTERM", "") in ("truecolor", "24bit") or any(
        part in term for part in ("256color", "direct", "kitty", "ghostty", "alacritty")
    )
    if console or not many:
        return "ansi"
    # COLORFGBG is "text;background" in palette numbers; 7 and 15 are the light ones.
    return "light" if environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15") else "dark"


def erases_in_colour(environ: Mapping[str, str]) -> bool:
    """Return whether an erase leaves the background of the moment: everywhere but in screen and tmux, as terminfo has it."""
    term = environ.get("TERM", "")
    return term.endswith("-bce") or not term.startswith(("screen", "tmux"))


def is_utf8(environ: Mapping[str, str]) -> bool:
    """Return whether the locale says that the terminal reads UTF-8."""
    names = ["LC_ALL", "LC_CTYPE", "LANG"]
    # Python itself writes LC_CTYPE=C.UTF-8 into the environment of a C locale (PEP 538): that says nothing about the terminal.
    if environ.get("LC_CTYPE") == "C.UTF-8" and environ.get("LANG", "C") in ("", "C", "POSIX"):
        names.remove("LC_CTYPE")
    locale = next((environ[name] for name in names if environ.get(name)), "")
    return "utf8" in locale.lower().replace("-", "")
