"""pacman: the commands of Arch, planned and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steps.managers.base import Argv, Installed, Snapshot
from steps.managers.planned import Planned
from steps.model.action import ManagerName, Packages

if TYPE_CHECKING:
    from steps.host.base import Host


def _names(action: Packages) -> Argv:
    """Return the packages without versions."""
    return tuple(package.partition("=")[0] for package in action.install)


class Pacman(Planned):
    """The `PackageManager` of Arch, as far as a plan goes."""

    @property
    def name(self) -> ManagerName:
        """Its name in actions."""
        return "pacman"

    def refresh_argv(self) -> Argv:
        """Return what fetches the package lists together with the upgrade: Arch does not support one without the other."""
        return ("pacman", "-Syu", "--noconfirm")

    def argv(self, action: Packages, *, status_fd: int | None = None) -> Argv:
        """Return the install; pacman knows no versions but the current one."""
        return ("pacman", "-S", "--needed", "--noconfirm", *_names(action))

    def shown(self, action: Packages) -> Argv:
        """Return the install without the option by which it asks nothing."""
        return ("pacman", "-S", "--needed", *_names(action))

    def snapshot(self, host: Host) -> Snapshot | None:
        """Return every package; `None` when pacman did not answer."""
        told = host.run(("pacman", "-Q"), timeout=60.0)
        if told.status != 0:
            return None
        rows = (line.split() for line in told.stdout.splitlines())
        return Snapshot(manager="pacman", packages={name: Installed(version=version) for name, version in rows})

    def installed(self, host: Host, names: tuple[str, ...]) -> Mapping[str, str | None]:
        """Return what is installed; empty when pacman did not answer."""
        found = self.snapshot(host)
        if found is None:
            return {}
        return {name: found.packages[name].version if name in found.packages else None for name in names}
