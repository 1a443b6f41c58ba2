"""Which host a command line means."""

from __future__ import annotations

from steps.host.base import Host
from steps.host.local import LocalHost
from steps.host.rooted import RootedHost


def open_host(machine: str | None, root: str | None) -> Host:
    """Return this machine, the capture `machine`, or the system below `root` on either's hardware.

    Raises `InputError`: `capture-unreadable`, `root-missing`.
    """
    hardware: Host = LocalHost() if machine is None else _captured(machine)
    return hardware if root is None else RootedHost(root, hardware)


def _captured(machine: str) -> Host:
    """Return the machine of a capture; what reads captures is loaded for one only."""
    from steps.host.captured import CapturedHost, load_capture

    return CapturedHost(load_capture(machine), machine)
