"""The command that a person would type for an action."""

from __future__ import annotations

from steps.managers import apt, dnf
from steps.managers.base import manager
from steps.model.action import AnyAction, Manual, Packages, Reboot, Run, Service, Write


def shown(action: AnyAction) -> tuple[str, ...]:
    """Return the argv in its short form; empty for what is no command (a file, a reboot, something by hand)."""
    match action:
        case Run(argv=argv):
            return argv
        case Packages(manager="apt"):
            return apt.shown(action)
        case Packages(manager="dnf"):
            return dnf.shown(action)
        case Packages():
            return manager(action.manager).argv(action)
        case Service(unit=unit):
            return ("systemctl", "enable", "--now", unit)
        case Write() | Reboot() | Manual():
            return ()


def written(action: AnyAction) -> tuple[str, ...]:
    """Return the lines that a file will hold; empty for what writes none, or a copy of another file."""
    return tuple((action.text or "").splitlines()) if isinstance(action, Write) else ()


def run(action: AnyAction) -> tuple[str, ...]:
    """Return the argv as it is really run, with every option; empty for what is no command."""
    match action:
        case Packages(install=()):
            return manager(action.manager).refresh_argv()
        case Packages():
            return manager(action.manager).argv(action)
        case _:
            return shown(action)
