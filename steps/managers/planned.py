"""A manager whose commands we know and have never run: its plans are shown, and the engine is told not to run them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steps.managers.base import Argv, Holder, Keep, Kept, Simulation, Snapshot
from steps.model.action import Packages
from steps.model.base import Words, phrase

if TYPE_CHECKING:
    from steps.host.base import Host


class Planned:
    """The part of a `PackageManager` that says so."""

    def environment(self) -> Mapping[str, str]:
        """Return plain variables."""
        return {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def simulate(self, action: Packages, host: Host) -> Simulation:
        """Return the refusal: without a simulation that we can read, nothing is started."""
        return Simulation(problem=phrase("manager.plan-only", text=action.manager))

    def keeping(self, simulation: Simulation, host: Host, folder: str) -> tuple[Keep, ...]:
        """Return nothing: nothing was started."""
        return ()

    def kept(self, simulation: Simulation, host: Host, folder: str) -> Kept:
        """Return nothing: nothing was kept."""
        return Kept()

    def restore(self, before: Snapshot, after: Snapshot, kept: Kept, names: frozenset[str]) -> tuple[Argv, ...]:
        """Return nothing: nothing was changed."""
        return ()

    def unpack_again(self, kept: Kept, now: Snapshot, host: Host) -> tuple[Argv, ...]:
        """Return nothing: files are not left to another package here."""
        return ()

    def foresee(self, argv: Argv, host: Host) -> Simulation:
        """Return nothing: there is nothing to take back."""
        return Simulation()

    def readings(self) -> tuple[Argv, ...]:
        """Return nothing: nothing was started."""
        return ()

    def installed_bytes(self, names: tuple[str, ...], host: Host) -> int | None:
        """Return `None`: nothing was started that it would matter for."""
        return None

    def repair(self, host: Host, names: frozenset[str] = frozenset()) -> tuple[Argv, ...]:
        """Return nothing: nothing was started."""
        return ()

    def settings_of(self, names: tuple[str, ...], host: Host) -> tuple[str, ...]:
        """Return nothing: nothing was started."""
        return ()

    def lock_holder(self, host: Host) -> Holder | None:
        """Return `None`: it is not looked for."""
        return None

    def busy(self, output: str) -> Holder | None:
        """Return `None`: its messages are not read."""
        return None

    def cause(self, output: str) -> Words | None:
        """Return `None`: its messages are not read."""
        return None
