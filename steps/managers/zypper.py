"""zypper: the commands of SUSE, planned and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steps.managers import rpm
from steps.managers.base import Argv, Snapshot
from steps.managers.planned import Planned
from steps.model.action import ManagerName, Packages

if TYPE_CHECKING:
    from steps.host.base import Host


class Zypper(Planned):
    """The `PackageManager` of SUSE, as far as a plan goes."""

    @property
    def name(self) -> ManagerName:
        """Its name in actions."""
        return "zypper"

    def refresh_argv(self) -> Argv:
        """Return what fetches the package lists."""
        return ("zypper", "--non-interactive", "refresh")

    def argv(self, action: Packages, *, status_fd: int | None = None) -> Argv:
        """Return the install; NVIDIA's packages carry a licence that has to be agreed to."""
        return ("zypper", "--non-interactive", "install", "--auto-agree-with-licenses", *action.install)

    def shown(self, action: Packages) -> Argv:
        """Return the install without the options by which it asks nothing."""
        return ("zypper", "install", *action.install)

    def snapshot(self, host: Host) -> Snapshot | None:
        """Return every package of rpm's."""
        packages = rpm.packages(host)
        return None if packages is None else Snapshot(manager="zypper", packages=packages)

    def installed(self, host: Host, names: tuple[str, ...]) -> Mapping[str, str | None]:
        """Return what rpm has installed."""
        return rpm.installed(host, names)
