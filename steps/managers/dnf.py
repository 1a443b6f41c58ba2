"""dnf: the manager for Fedora, RHEL and their kin."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from steps.managers import rpm
from steps.managers.base import PARTIAL, Argv, Change, Holder, Keep, Kept, Simulation, Snapshot, Way
from steps.model.action import ManagerName, Packages
from steps.model.base import Words, phrase

if TYPE_CHECKING:
    from steps.host.base import Host

_SECTION = re.compile(
    r"^(Installing|Upgrading|Removing|Downgrading|Reinstalling)(?: (?:weak )?(?:dependencies)| (?:dependent|unused) \w+)?:$"
)
_ROW = re.compile(r"^ (?P<name>[\w.+-]+)\s+(?P<arch>noarch|x86_64|aarch64|i686)\s+(?P<version>\S+)\s")
_SIZE = re.compile(
    r"^(?P<what>Total download size|Total size|Installed size|Freed space): (?P<value>[\d.]+) (?P<unit>[kMGT]?)B?$", re.MULTILINE
)
_WRAPPED = re.compile(r"^( \S+)\n +(?=\S)", re.MULTILINE)
_REMOVES = re.compile(r"^ *Remov(?:e|ing:) +(?P<count>\d+) [Pp]ackages?$", re.MULTILINE)
_FETCH = ("dnf", "-y", "--downloadonly", "--setopt=keepcache=False")
_DUPLICATE = re.compile(r'^(\S+)(?: is a duplicate with |\n duplicate with ")([^\s"]+)"?$', re.MULTILINE)
_UNITS = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_ERROR = re.compile(
    r"^(?:Error: *\n Problem[^:\n]*: |Error: |Failed |No match for argument: )(?P<text>[^\n]+(?:\n  - [^\n]+)*)", re.MULTILINE
)


def _specs(action: Packages) -> Argv:
    """Return the packages in dnf's spelling: the version follows a dash."""
    return tuple(package.replace("=", "-", 1) for package in action.install)


class Dnf:
    """The `PackageManager` of the Red Hat family."""

    @property
    def name(self) -> ManagerName:
        """Its name in actions."""
        return "dnf"

    def environment(self) -> Mapping[str, str]:
        """Return plain variables: dnf and rpm scriptlets do not ask."""
        return {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def refresh_argv(self) -> Argv:
        """Return what fetches the metadata anew."""
        return ("dnf", "-y", "--setopt=skip_if_unavailable=False", "makecache")

    def argv(self, action: Packages, *, status_fd: int | None = None) -> Argv:
        """Return the install; dnf removes nothing unless it is allowed to erase, and has no progress descriptor."""
        erase = ("--allowerasing",) if action.may_remove else ()
        return ("dnf", "-y", "--setopt=install_weak_deps=True", *erase, "install", *_specs(action))

    def shown(self, action: Packages) -> Argv:
        """Return the install without our options."""
        return ("dnf", "install", *_specs(action))

    def simulate(self, action: Packages, host: Host) -> Simulation:
        """Return what `dnf --assumeno` says; it ends with 1 when it has asked."""
        erase = ("--allowerasing",) if action.may_remove else ()
        told = host.run(("dnf", "--assumeno", *erase, "install", *_specs(action)), timeout=300.0)
        if told.status not in (0, 1):
            return Simulation(problem=self.cause(told.text) or "?")
        if "Operation aborted" not in told.text and told.status == 1:
            return Simulation(problem=self.cause(told.text) or "?")
        found = parse(told.stdout)
        named = frozenset((*(package.partition("=")[0] for package in action.install), *(change.name for change in found.changes)))
        if twice := _twice(host, named):
            return Simulation(problem=phrase("manager.dnf.twice", packages=" ".join(one for both in twice.values() for one in both)))
        return found

    def unpack_again(self, kept: Kept, now: Snapshot, host: Host) -> tuple[Argv, ...]:
        """Return nothing: files are not left to another package here."""
        return ()

    def foresee(self, argv: Argv, host: Host) -> Simulation:
        """Return what `--assumeno` says in the place of `-y`."""
        told = host.run(tuple("--assumeno" if word == "-y" else word for word in argv), timeout=300.0)
        if told.status == 0 or (told.status == 1 and "Operation aborted" in told.text):
            return parse(told.stdout)
        return Simulation(problem=self.cause(told.text) or "?")

    def readings(self) -> tuple[Argv, ...]:
        """Return a question to rpm."""
        return (("rpm", "-q", "--last", "rpm"),)

    def installed_bytes(self, names: tuple[str, ...], host: Host) -> int | None:
        """Return the sum of what rpm says of the packages."""
        return rpm.installed_bytes(names, host)

    def snapshot(self, host: Host) -> Snapshot | None:
        """Return every package of rpm's."""
        packages = rpm.packages(host)
        return None if packages is None else Snapshot(manager="dnf", packages=packages)

    def keeping(self, simulation: Simulation, host: Host, folder: str) -> tuple[Keep, ...]:
        """Return one download a package that would be replaced: of a reinstall only that, for `dnf download` is a plugin of its own."""
        found: list[Keep] = []
        for spec, file in _replaced(simulation, host).values():
            if not host.exists(f"{folder}/{file}"):
                found.append(
                    Keep(file=file, ways=(Way(steps=((*_FETCH, f"--destdir={folder}/{PARTIAL}", "reinstall", spec),), fetches=True),))
                )
        return tuple(found)

    def kept(self, simulation: Simulation, host: Host, folder: str) -> Kept:
        """Return the rpms in `folder`; what is missing can only come from a repository."""
        replaced = _replaced(simulation, host)
        files = {package: f"{folder}/{file}" for package, (_, file) in replaced.items() if host.exists(f"{folder}/{file}")}
        return Kept(files=files, lost=tuple(package for package in replaced if package not in files))

    def restore(self, before: Snapshot, after: Snapshot, kept: Kept, names: frozenset[str]) -> tuple[Argv, ...]:
        """Return exact installs of what was replaced, then the removal of what is new.

        dnf's own rollback would take back what others did since, too.
        """
        before, after = before.only(names), after.only(names)
        new = sorted(after.packages.keys() - before.packages.keys())
        changed = sorted(name for name, was in before.packages.items() if after.packages.get(name) != was)
        back = [kept.files.get(f"{name}={before.packages[name].version}", f"{name}-{before.packages[name].version}") for name in changed]
        commands: list[Argv] = []
        # First the old ones: to remove what they are not to need any more would take along what still needs it.
        if back:
            commands.append(("dnf", "-y", "--allowerasing", "--setopt=install_weak_deps=False", "install", *back))
        if new:
            commands.append(("dnf", "-y", "--setopt=clean_requirements_on_remove=False", "remove", *new))
        return tuple(commands)

    def repair(self, host: Host, names: frozenset[str] = frozenset()) -> tuple[Argv, ...]:
        """Return a rebuild of rpm's database when rpm cannot read it, and the end of upgrades of `names` that were cut off; else nothing.

        Such an upgrade leaves both releases in the database: the older one goes, the newer one is installed once more. Where more
        would go than that one package, it is left to a person: the simulation then refuses.
        """
        if rpm.packages(host) is None:
            return (("rpm", "--rebuilddb"),)
        commands: list[Argv] = []
        for name, (*old, new) in _twice(host, names).items():
            goes: Argv = ("dnf", "-y", "--setopt=clean_requirements_on_remove=False", "remove", *old)
            foreseen = self.foresee(goes, host)
            if foreseen.problem is None and [change.name for change in foreseen.changes] == [name] * len(old):
                commands += [goes, ("dnf", "-y", "reinstall", new)]
        return tuple(commands)

    def installed(self, host: Host, names: tuple[str, ...]) -> Mapping[str, str | None]:
        """Return what rpm has installed."""
        return rpm.installed(host, names)

    def settings_of(self, names: tuple[str, ...], host: Host) -> tuple[str, ...]:
        """Return what rpm calls configuration files."""
        return rpm.settings_of(names, host)

    def lock_holder(self, host: Host) -> Holder | None:
        """Return the process that dnf wrote into its lock file."""
        text = host.read("/var/run/dnf.pid") or host.read("/var/lib/dnf/rpmdb_lock.pid")
        if text is None or not text.strip().isdigit():
            return None
        pid = int(text)
        name = host.read(f"/proc/{pid}/comm")
        return Holder(lock="/var/run/dnf.pid", pid=pid, name=name.strip()) if name else None

    def busy(self, output: str) -> Holder | None:
        """Return the holder that dnf waits for."""
        found = re.search(r"Waiting for process with pid (\d+) to finish", output)
        return Holder(lock="/var/run/dnf.pid", pid=int(found[1])) if found else None

    def cause(self, output: str) -> Words | None:
        """Return dnf's own first error line."""
        found = _ERROR.search(output)
        return phrase("manager.dnf.error", text=found["text"].strip()) if found else None


def _twice(host: Host, names: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the packages among `names` that are there several times and should not be, each release in full, the newest last."""
    # With nothing to say it ends with 0; what is meant to be there in several releases, as kernels are, it leaves out.
    told = host.run(("dnf", "-q", "check", "--duplicates"), timeout=120.0).stdout if names else ""
    listed = {one for found in _DUPLICATE.finditer(told) for one in found.groups()}
    both = {name: rpm.releases(host, name) for name in sorted(names) if any(one.startswith(f"{name}-") for one in listed)}
    found = {name: tuple(one for one in full if one in listed) for name, full in both.items()}
    return {name: full for name, full in found.items() if len(full) > 1}


def _replaced(simulation: Simulation, host: Host) -> Mapping[str, tuple[str, str]]:
    """Return for each package that would be replaced, as "name=version", how dnf names it and its file.

    The table of a transaction says the version that comes; the one that goes is rpm's to say.
    """
    installed = rpm.packages(host) or {}
    found: dict[str, tuple[str, str]] = {}
    for change in simulation.replaced:
        if package := installed.get(change.name):
            plain = package.version.rpartition(":")[2]
            found[f"{change.name}={package.version}"] = (
                f"{change.name}-{package.version}.{package.architecture}",
                f"{change.name}-{plain}.{package.architecture}.rpm",
            )
    return found


def parse(output: str) -> Simulation:
    """Return the changes and sizes in dnf's table of a transaction; a problem when the table was not read completely."""
    changes: list[Change] = []
    downgraded: list[str] = []
    kind = ""
    # A name that is too long for its column stands alone, and its row goes on in the next line.
    for line in _WRAPPED.sub(r"\1 ", output).splitlines():
        if found := _SECTION.match(line):
            kind = found[1]
        elif kind and (row := _ROW.match(line)):
            name, version = row["name"], row["version"]
            match kind:
                case "Removing":
                    changes.append(Change(name=name, before=version, after=None))
                case "Installing":
                    changes.append(Change(name=name, after=version))
                case _:
                    # The table does not say the version that goes; the snapshot knows it.
                    changes.append(Change(name=name, before="", after=version))
                    downgraded += [name] if kind == "Downgrading" else []
    sizes = {found["what"]: round(float(found["value"]) * _UNITS[found["unit"]]) for found in _SIZE.finditer(output)}
    freed = sizes.get("Freed space")
    growth = sizes.get("Installed size", -freed if freed is not None else None)
    simulation = Simulation(
        changes=tuple(changes), download_bytes=sizes.get("Total download size"), disk_bytes=growth, downgraded=tuple(downgraded)
    )
    announced = sum(int(found["count"]) for found in _REMOVES.finditer(output))
    if announced != len(simulation.removed):
        return Simulation(problem=phrase("manager.dnf.unread", count=announced))
    return simulation
