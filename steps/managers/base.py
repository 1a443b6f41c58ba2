"""What a package manager is to the engine: records of what it would do and did, and the protocol that all of them keep."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Protocol

import msgspec

from steps.detect.places import PLACES
from steps.model.action import ManagerName, Packages, PackagesAre
from steps.model.base import Record, Words

if TYPE_CHECKING:
    from steps.host.base import Host

Argv = tuple[str, ...]


class Change(Record):
    """One package that a transaction would touch: `before` is `None` for a new one, `after` for a removed one."""

    name: str
    before: str | None = None
    after: str | None = None


class Simulation(Record):
    """What the manager says it would do; `problem` is its reason when it would refuse."""

    changes: tuple[Change, ...] = ()
    download_bytes: int | None = None
    disk_bytes: int | None = None
    """Announced growth after unpacking; negative when space becomes free."""
    problem: Words | None = None
    downgraded: tuple[str, ...] = ()
    """The names of the packages that would go back to an older version, where the manager says so."""

    @property
    def removed(self) -> tuple[str, ...]:
        """The names of the packages that would go."""
        return tuple(change.name for change in self.changes if change.after is None)

    @property
    def replaced(self) -> tuple[Change, ...]:
        """The changes whose old package is gone afterwards: what has to be kept for undo."""
        return tuple(change for change in self.changes if change.before is not None)


class Installed(Record):
    """One package as it is: `status` is dpkg's three letters without blanks ("ii", "rc", "hi", "iF"), "ii" elsewhere."""

    version: str
    architecture: str = ""
    status: str = "ii"
    automatic: bool = False
    held: bool = False


class Snapshot(Record):
    """All packages at one moment, by name (with ":arch" for a foreign architecture)."""

    manager: ManagerName
    packages: Mapping[str, Installed] = {}
    transaction: str | None = None
    """Not used any more; return points of earlier releases have it."""

    def has(self, name: str) -> bool:
        """Return whether files of the package are unpacked, in whatever state."""
        package = self.packages.get(name)
        return package is not None and package.status[1:2] not in ("n", "c")

    def only(self, names: frozenset[str]) -> Snapshot:
        """Return the part that is about these packages."""
        return msgspec.structs.replace(self, packages={name: package for name, package in self.packages.items() if name in names})


class Kept(Record):
    """Package files that were put aside: "name=version" → path, and what could not be had."""

    files: Mapping[str, str] = {}
    lost: tuple[str, ...] = ()


class NewFile(Record):
    """A file that the engine writes on the way."""

    path: str
    data: bytes


Step = Argv | NewFile


PARTIAL = "partial"


class Way(Record):
    """Steps that lead to a kept package, one after the other; the first that fails ends them."""

    steps: tuple[Step, ...]
    fetches: bool = False
    """Whether it needs the network: where there is none, it is tried once and not once a package."""


class Keep(Record):
    """How a package that will be replaced is put aside: the first way that works."""

    file: str
    """Its name; each way makes it in the folder's `PARTIAL`, and it is moved from there once it is whole and on disk."""
    ways: tuple[Way, ...]


class Holder(Record):
    """Who holds the package manager; process and name are `None` when they cannot be known (another namespace)."""

    lock: str
    pid: int | None = None
    name: str | None = None


class PackageManager(Protocol):
    """One package manager at run time; the executor starts every argv itself, through `Host.command`."""

    @property
    def name(self) -> ManagerName:
        """Its name in actions."""
        ...

    def environment(self) -> Mapping[str, str]:
        """Return the variables that every command of this manager is started with."""
        ...

    def refresh_argv(self) -> Argv:
        """Return what fetches the package lists and fails when one of them cannot be fetched."""
        ...

    def argv(self, action: Packages, *, status_fd: int | None = None) -> Argv:
        """Return what installs; with `status_fd`, progress lines go to that descriptor where the manager can."""
        ...

    def shown(self, action: Packages) -> Argv:
        """Return the command that a person would type for the same result."""
        ...

    def simulate(self, action: Packages, host: Host) -> Simulation:
        """Return what the manager would do, without its doing it."""
        ...

    def readings(self) -> tuple[Argv, ...]:
        """Return the commands behind `snapshot` that print little: one of them fails, and says why, where that returns `None`."""
        ...

    def installed_bytes(self, names: tuple[str, ...], host: Host) -> int | None:
        """Return how much the installed packages among `names` take on disk; `None` when that is not known."""
        ...

    def snapshot(self, host: Host) -> Snapshot | None:
        """Return all packages as they are; `None` when they cannot be read."""
        ...

    def keeping(self, simulation: Simulation, host: Host, folder: str) -> tuple[Keep, ...]:
        """Return how the packages that would be replaced are put aside in `folder`; one that no way leads to is lost."""
        ...

    def kept(self, simulation: Simulation, host: Host, folder: str) -> Kept:
        """Return what lies in `folder` now of the packages that would be replaced."""
        ...

    def restore(self, before: Snapshot, after: Snapshot, kept: Kept, names: frozenset[str]) -> tuple[Argv, ...]:
        """Return what takes the packages called `names` from `after` back to `before`; empty when nothing differs."""
        ...

    def unpack_again(self, kept: Kept, now: Snapshot, host: Host) -> tuple[Argv, ...]:
        """Return what brings back files that kept packages lack after a way back, though they count as there; empty when none does."""
        ...

    def foresee(self, argv: Argv, host: Host) -> Simulation:
        """Return what one of the commands of `restore` would do, without its doing it."""
        ...

    def repair(self, host: Host, names: frozenset[str] = frozenset()) -> tuple[Argv, ...]:
        """Return what finishes an interrupted transaction, of `names` where a manager can tell them apart; empty when all is well."""
        ...

    def installed(self, host: Host, names: tuple[str, ...]) -> Mapping[str, str | None]:
        """Return the installed and configured version of each name, `None` for absent ones; a name that is missing is not known."""
        ...

    def settings_of(self, names: tuple[str, ...], host: Host) -> tuple[str, ...]:
        """Return the configuration files of the installed packages among `names`."""
        ...

    def lock_holder(self, host: Host) -> Holder | None:
        """Return who holds the package manager now, or `None` when nobody is seen to."""
        ...

    def busy(self, output: str) -> Holder | None:
        """Return the holder that the end of a failed command's output names, when a lock was its reason."""
        ...

    def cause(self, output: str) -> Words | None:
        """Return why a command failed in one sentence, or `None` when its output is not recognised."""
        ...


def manager(name: ManagerName) -> PackageManager:
    """Return the package manager called `name`."""
    # Imported here: one run needs one manager, and each module imports this one.
    match name:
        case "apt":
            from steps.managers.apt import Apt

            return Apt()
        case "dnf":
            from steps.managers.dnf import Dnf

            return Dnf()
        case "zypper":
            from steps.managers.zypper import Zypper

            return Zypper()
        case "pacman":
            from steps.managers.pacman import Pacman

            return Pacman()


# --- probes ---------------------------------------------------------------------------------------


def packages_are(probe: PackagesAre, host: Host) -> bool | None:
    """Return whether every package of the probe is there at a version that its pattern matches; `None` when that is not known."""
    found = manager(probe.manager).installed(host, tuple(probe.packages))
    for name, wanted in probe.packages.items():
        if name not in found:
            return None
        version = found[name]
        # An epoch that is not said does not count.
        if version is None or (wanted is not None and not any(fnmatchcase(one, wanted) for one in (version, version.partition(":")[2]))):
            return False
    return True


def module_files(host: Host, module: str, kernel: str) -> tuple[str, ...]:
    """Return the files of a kernel module below `/lib/modules/<kernel>`; Debian calls its own `nvidia-current`."""
    # A DKMS package exits 0 without headers and without a module: only the file is proof.
    names = (f"{module}.ko*", f"{module}-current.ko*")
    return tuple(path for folder in PLACES for name in names for path in host.glob(f"/lib/modules/{kernel}/{folder}/{name}"))
