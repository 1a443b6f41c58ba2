"""The command that a person would type for an action."""

from __future__ import annotations

import shlex

from steps.managers.base import manager
from steps.model.action import AnyAction, Keep, Manual, Packages, Reboot, Run, Service, Write


def shown(action: AnyAction) -> tuple[str, ...]:
    """Return the argv in its short form; empty for what is no command (a file, a reboot, something by hand)."""
    match action:
        case Run(argv=argv):
            return argv
        case Packages():
            return manager(action.manager).shown(action)
        case Service(unit=unit):
            return ("systemctl", "enable", "--now", unit)
        case Keep(moves=moves, path=path):
            how = ("mv", "--no-clobber") if moves else ("cp", "--archive", "--reflink=auto")
            return (*how, "--no-target-directory", "--", path, action.kept("RUN"))
        case Write() | Reboot() | Manual():
            return ()


def written(action: AnyAction) -> tuple[str, ...]:
    """Return the lines that a file will hold; empty for what writes none, or a copy of another file."""
    return tuple((action.text or "").splitlines()) if isinstance(action, Write) else ()


def copying(action: Write) -> tuple[str, ...]:
    """Return the command that copies what a file shall hold from another one; empty for a file with words of its own."""
    mode = f"{action.mode:o}"
    return ("install", "-D", "-m", mode, action.copy_of, action.path) if action.copy_of is not None else ()


CUT = "…"
"""Stands for a script in a command that a person is to read."""
_LONGEST = 60
"""Characters of a script that still reads as part of a command."""


def brief(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command without the text of a script that it carries (`-c`): "…" stands in its place, its arguments stay."""
    at = argv.index("-c") + 1 if "-c" in argv[:-1] else 0
    return (*argv[:at], CUT, *argv[at + 1 :]) if at and len(argv[at]) > _LONGEST else argv


def line(argv: tuple[str, ...]) -> str:
    """Return a command as one types it; what stands for a script is not quoted, for it is none."""
    return " ".join(word if word == CUT else shlex.quote(word) for word in argv)


def run(action: AnyAction) -> tuple[str, ...]:
    """Return the argv as it is really run, with every option; empty for what is no command."""
    match action:
        case Packages(install=()):
            return manager(action.manager).refresh_argv()
        case Packages():
            return manager(action.manager).argv(action)
        case _:
            return shown(action)
