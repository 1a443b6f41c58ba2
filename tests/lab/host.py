"""A lab machine's root as a host, and the smallest executor that can change it."""

from __future__ import annotations

import subprocess

from steps.host.base import Result
from steps.host.files import FileTree
from steps.managers.apt_repository import without_armour
from steps.managers.base import Argv, manager
from steps.model.action import AnyAction, Packages, Run, Write
from tests.lab.lab import LabMachine


class LabHost(FileTree):
    """The root of a lab machine, looked at from outside its namespaces."""

    name = "lab"
    rehearsal = False

    def __init__(self, machine: LabMachine) -> None:
        super().__init__("/")
        # Not through the constructor: it would resolve /proc/PID/root to this machine's own root.
        self.root = str(machine.path(""))
        self.machine = machine

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what a probe prints in the root."""
        try:
            done = self.machine.run("env", "LC_ALL=C", *argv, timeout=timeout)
        except subprocess.TimeoutExpired:
            return Result(status=None)
        return Result(stdout=done.stdout, stderr=done.stderr, status=done.returncode)

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        """Return no command: this is no recording."""
        return ()

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return how `argv` is started in the root from here."""
        return self.machine.inside(*argv)


def start(machine: LabMachine, argv: Argv) -> subprocess.CompletedProcess[str]:
    """Run a command of apt's in the root, with its own environment."""
    environment = manager("apt").environment()
    return machine.run("env", *(f"{name}={value}" for name, value in environment.items()), *argv)


def perform(host: LabHost, action: AnyAction) -> subprocess.CompletedProcess[str] | None:
    """Do one action; `None` for a file, which was written."""
    match action:
        case Run():
            return start(host.machine, action.argv)
        case Packages(install=()):
            return start(host.machine, manager("apt").refresh_argv())
        case Packages():
            return start(host.machine, manager("apt").argv(action))
        case Write():
            data = (action.text or "").encode()
            if action.copy_of is not None:
                data = without_armour(host.read_bytes(host.glob(action.copy_of)[0]) or b"")
            host.write_bytes(action.path, data, action.mode)
            return None
        case _:
            raise NotImplementedError(action.id)


def done(host: LabHost, action: AnyAction) -> str:
    """Do one action and return its output; fail with the output when it fails."""
    result = perform(host, action)
    if result is None:
        return ""
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr
