"""apt: the manager that the engine runs planned packages with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steps.managers import apt_keep, apt_messages, apt_state
from steps.managers.base import Argv, Holder, Keep, Kept, Simulation, Snapshot
from steps.model.action import ManagerName, Packages
from steps.model.base import Words

if TYPE_CHECKING:
    from steps.host.base import Host

NETWORK = ("-o", "Acquire::Retries=3", "-o", "Acquire::http::Timeout=30", "-o", "Acquire::https::Timeout=30")
_LOCK_SECONDS = 300


class Apt:
    """The `PackageManager` of Debian and Ubuntu."""

    @property
    def name(self) -> ManagerName:
        """Its name in actions."""
        return "apt"

    def environment(self) -> Mapping[str, str]:
        """Return the variables that keep maintainer scripts, ucf, needrestart and apt-listchanges from asking."""
        return {
            "DEBIAN_FRONTEND": "noninteractive",
            "DEBIAN_PRIORITY": "critical",
            "UCF_FORCE_CONFFOLD": "1",
            "NEEDRESTART_MODE": "l",
            "NEEDRESTART_SUSPEND": "1",
            "APT_LISTCHANGES_FRONTEND": "none",
            "LC_ALL": "C.UTF-8",
            "LANGUAGE": "",
            "TERM": "xterm-256color",
            "PAGER": "cat",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        }

    def refresh_argv(self) -> Argv:
        """Return `apt-get update` as it should be: it fails when a list cannot be fetched, where plain apt ends with 0."""
        return ("apt-get", "-q", "-o", "APT::Update::Error-Mode=any", "-o", f"DPkg::Lock::Timeout={_LOCK_SECONDS}", *NETWORK, "update")

    def argv(self, action: Packages, *, status_fd: int | None = None) -> Argv:
        """Return the install; `--no-remove` unless the action names what may go, downgrades only where it names what may go back."""
        # The engine does the waiting itself: what it simulated no longer holds once somebody else has had the lock.
        progress = () if status_fd is None else ("-o", f"APT::Status-Fd={status_fd}", "-o", "DPkg::Lock::Timeout=0")
        guard = () if action.may_remove else ("--no-remove",)
        back = ("--allow-downgrades",) if action.may_downgrade else ()
        return ("apt-get", "-y", *apt_state.SAFE, *NETWORK, *progress, *guard, *back, "install", *action.install)

    def shown(self, action: Packages) -> Argv:
        """Return the install without our options; a plan's refresh has no packages."""
        back = ("--allow-downgrades",) if action.may_downgrade else ()
        return ("apt-get", "install", *back, *action.install) if action.install else ("apt-get", "update")

    def simulate(self, action: Packages, host: Host) -> Simulation:
        """Return what apt would do: removals are told, not refused, so that they can be named."""
        return apt_state.simulate(action, host)

    def readings(self) -> tuple[Argv, ...]:
        """Return one question to dpkg and one to apt, which refuses every one while its sources contradict each other."""
        return (("dpkg-query", "-W", "dpkg"), ("apt-mark", "showauto", "dpkg"))

    def installed_bytes(self, names: tuple[str, ...], host: Host) -> int | None:
        """Return the sum of what dpkg's list says of the packages."""
        return apt_state.installed_bytes(names, host)

    def snapshot(self, host: Host) -> Snapshot | None:
        """Return every package with its state, automatic mark and hold."""
        return apt_state.snapshot(host)

    def keeping(self, simulation: Simulation, host: Host, folder: str) -> tuple[Keep, ...]:
        """Return for each package a copy of what lies in apt's cache, else a download, else a rebuild from its installed files."""
        return apt_keep.keeping(simulation, host, folder)

    def kept(self, simulation: Simulation, host: Host, folder: str) -> Kept:
        """Return the .debs in `folder` of the packages that would be replaced."""
        return apt_keep.kept(simulation, host, folder)

    def restore(self, before: Snapshot, after: Snapshot, kept: Kept, names: frozenset[str]) -> tuple[Argv, ...]:
        """Return the one transaction that puts every version back and purges what is new, then the marks and holds."""
        return apt_state.restore(before, after, kept, names)

    def unpack_again(self, kept: Kept, now: Snapshot, host: Host) -> tuple[Argv, ...]:
        """Return what unpacks once more the packages whose files went with those that had taken them over."""
        return apt_keep.unpack_again(kept, now, host)

    def foresee(self, argv: Argv, host: Host) -> Simulation:
        """Return what apt or dpkg would do on the way back."""
        return apt_state.foresee(argv, host)

    def repair(self, host: Host, names: frozenset[str] = frozenset()) -> tuple[Argv, ...]:
        """Return dpkg's repair and then apt's: the other way round apt only says that dpkg was interrupted."""
        return apt_state.repair(host)

    def installed(self, host: Host, names: tuple[str, ...]) -> Mapping[str, str | None]:
        """Return what dpkg has installed and configured."""
        return apt_state.installed(host, names)

    def settings_of(self, names: tuple[str, ...], host: Host) -> tuple[str, ...]:
        """Return what dpkg calls conffiles."""
        return apt_state.settings_of(names, host)

    def lock_holder(self, host: Host) -> Holder | None:
        """Return who holds dpkg's or apt's locks, from the kernel's table of locks."""
        return apt_state.lock_holder(host)

    def busy(self, output: str) -> Holder | None:
        """Return the holder that apt or dpkg named; for the lists' and the archives' locks apt does not wait by itself."""
        return apt_messages.busy(output)

    def cause(self, output: str) -> Words | None:
        """Return why apt or dpkg failed."""
        return apt_messages.cause(output)
