"""Becoming root: `sudo` asks in the person's own terminal, and no password passes through us."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

Sudo = Callable[[tuple[str, ...]], int]


def sudo() -> Sudo | None:
    """Return what runs a command as root in this terminal, or `None` when there is no sudo; root needs none."""
    program = shutil.which("sudo")
    if program is None or os.geteuid() == 0:
        return None

    def run(argv: tuple[str, ...]) -> int:
        return subprocess.run((program, "--", *argv), check=False).returncode

    return run


def quiet_sudo() -> Sudo | None:
    """Return what runs a command as root where sudo needs to ask nothing, and fails where it would; `None` without sudo, or as root."""
    program = shutil.which("sudo")
    if program is None or os.geteuid() == 0:
        return None

    def run(argv: tuple[str, ...]) -> int:
        quiet = subprocess.DEVNULL
        return subprocess.run((program, "-n", "--", *argv), stdin=quiet, stdout=quiet, stderr=quiet, check=False).returncode

    return run


def is_root() -> bool:
    """Return whether this is root already."""
    return os.geteuid() == 0


def can_be_root() -> bool:
    """Return whether root is here or can be asked for."""
    return os.geteuid() == 0 or shutil.which("sudo") is not None
