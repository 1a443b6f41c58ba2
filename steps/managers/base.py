"""What a package manager is to the engine: records of what it would do and did, and the protocol that all of them keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from steps import text
from steps.catalog import load
from steps.errors import PreflightError
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
    """The manager's own number of the last transaction, where it has one."""

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

    def simulate(self, action: Packages, host: Host) -> Simulation:
        """Return what the manager would do, without its doing it."""
        ...

    def snapshot(self, host: Host) -> Snapshot | None:
        """Return all packages as they are; `None` when they cannot be read."""
        ...

    def keeping(self, simulation: Simulation, host: Host, folder: str) -> tuple[Argv, ...]:
        """Return what puts the packages that would be replaced aside in `folder`; one that fails is a package that is lost."""
        ...

    def kept(self, simulation: Simulation, host: Host, folder: str) -> Kept:
        """Return what lies in `folder` now of the packages that would be replaced."""
        ...

    def restore(self, before: Snapshot, after: Snapshot, kept: Kept, names: frozenset[str] | None = None) -> tuple[Argv, ...]:
        """Return what takes the packages called `names` (`None`: all) from `after` back to `before`; empty when nothing differs."""
        ...

    def foresee(self, argv: Argv, host: Host) -> Simulation:
        """Return what one of the commands of `restore` would do, without its doing it."""
        ...

    def repair(self, host: Host) -> tuple[Argv, ...]:
        """Return what finishes an interrupted transaction; empty when all is well."""
        ...

    def installed(self, host: Host, names: tuple[str, ...]) -> Mapping[str, str | None]:
        """Return the installed and configured version of each name, `None` for absent ones; a name that is missing is not known."""
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


# --- what is asked before anything is changed -----------------------------------------------------


class Protected(Record):
    """A package that no plan may remove, by name or shell pattern; `{kernel}` is the target's kernel."""

    pattern: str
    reason: Literal["base", "remote", "network", "desktop", "boot", "kernel"]


def protected(name: str, kernel: str | None) -> str | None:
    """Return why the package called `name` may never be removed, or `None` when it may."""
    bare = name.partition(":")[0]
    rows: tuple[Protected, ...] = load.rows("protected.toml", "protected", Protected)
    for row in rows:
        if "{kernel}" in row.pattern and kernel is None:
            continue
        if fnmatchcase(bare, row.pattern.replace("{kernel}", kernel or "")):
            return row.reason
    return None


def check_return(action: Packages, simulation: Simulation, may_go: frozenset[str], *, kernel: str | None = None) -> None:
    """Raise `PreflightError` when a transaction of an undo would remove more than `may_go`, or what no plan may remove."""
    if simulation.problem is not None:
        raise PreflightError("packages-refused", action=action.id, reason=text.say("en", simulation.problem))
    _spare_protected(simulation, kernel)
    _refuse_others(simulation, lambda name: name in may_go)


def check(action: Packages, simulation: Simulation, host: Host, *, kernel: str | None = None) -> None:
    """Raise `PreflightError` when the simulated transaction must not be started; nothing was changed yet."""
    if simulation.problem is not None:
        raise PreflightError("packages-refused", action=action.id, reason=text.say("en", simulation.problem))
    _spare_protected(simulation, kernel)
    _refuse_others(simulation, lambda name: any(fnmatchcase(name.partition(":")[0], allowed) for allowed in action.may_remove))
    _check_space(simulation, host)


def _spare_protected(simulation: Simulation, kernel: str | None) -> None:
    """Raise when the transaction would remove what no plan may."""
    for name in simulation.removed:
        reason = protected(name, kernel)
        if reason is not None:
            raise PreflightError("removal-protected", package=name, reason=reason)


def _refuse_others(simulation: Simulation, allowed: Callable[[str], bool]) -> None:
    """Raise when the transaction would remove a package that is not `allowed` to go."""
    unexpected = [name for name in simulation.removed if not allowed(name)]
    if unexpected:
        raise PreflightError("removal-refused", packages=" ".join(unexpected), count=len(unexpected))


_SPARE = 200 << 20
"""What a system needs to stay usable: logs, an initramfs."""


def _check_space(simulation: Simulation, host: Host) -> None:
    """Raise when the unpacked packages or the download do not fit; apt itself checks the download only."""
    for path, needed in (("/usr", simulation.disk_bytes), ("/var/cache", simulation.download_bytes), ("/", simulation.disk_bytes)):
        free = host.free_bytes(path)
        if needed is not None and free is not None and needed + _SPARE > free:
            raise PreflightError("space-too-small", path=path, needed=_gigabytes(needed + _SPARE), free=_gigabytes(free))


def _gigabytes(size: int) -> str:
    """Return a size as disks are labelled."""
    return f"{size / 1e9:.1f} GB"


# --- probes ---------------------------------------------------------------------------------------


def packages_are(probe: PackagesAre, host: Host) -> bool | None:
    """Return whether every package of the probe is there at a version that its pattern matches; `None` when that is not known."""
    found = manager(probe.manager).installed(host, tuple(probe.packages))
    for name, wanted in probe.packages.items():
        if name not in found:
            return None
        version = found[name]
        if version is None or (wanted is not None and not fnmatchcase(version, wanted)):
            return False
    return True


_MODULE_FOLDERS = (
    "updates/dkms",
    "updates",
    "extra",
    "extra/*",
    "weak-updates",
    "weak-updates/*",
    "kernel/*",
    "kernel/drivers/*",
    "kernel/drivers/*/*",
)


def module_files(host: Host, module: str, kernel: str) -> tuple[str, ...]:
    """Return the files of a kernel module below `/lib/modules/<kernel>`; Debian calls its own `nvidia-current`."""
    # A DKMS package exits 0 without headers and without a module: only the file is proof.
    names = (f"{module}.ko*", f"{module}-current.ko*")
    return tuple(path for folder in _MODULE_FOLDERS for name in names for path in host.glob(f"/lib/modules/{kernel}/{folder}/{name}"))
