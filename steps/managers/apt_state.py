"""What apt and dpkg have and would do: simulations, snapshots, and the way back between two snapshots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard

from steps.managers import apt_messages
from steps.managers.base import Argv, Change, Holder, Installed, Kept, Simulation, Snapshot
from steps.model.action import Packages
from steps.model.base import phrase

if TYPE_CHECKING:
    from steps.host.base import Host

SAFE = (
    "-o",
    "Dpkg::Options::=--force-confdef",
    "-o",
    "Dpkg::Options::=--force-confold",
    "-o",
    "DPkg::Lock::Timeout=300",
    # The engine's spool is the child's own standard output: apt's second terminal would lose the tail of a flood.
    "-o",
    "Dpkg::Use-Pty=0",
)
"""No conffile prompt, waiting for the lock, and nothing of the output lost."""

_PROBE_SECONDS = 120.0
_CONFFILES = ("--force-confdef", "--force-confold")


# --- simulation -----------------------------------------------------------------------------------

# Inst name [old] (new origin [arch]) []      Remv name [old]
_INST = re.compile(r"^Inst (?P<name>\S+)(?: \[(?P<before>[^\]]+)\])? \((?P<after>\S+)")
_REMV = re.compile(r"^(?:Remv|Purg) (?P<name>\S+)(?: \[(?P<before>[^\]]+)\])?")
_TO_REMOVE = re.compile(r"^\d+ upgraded, \d+ newly installed, (?:\d+ downgraded, )?(\d+) to remove", re.MULTILINE)
_DOWNGRADED = re.compile(r"^The following packages will be DOWNGRADED:\n((?: .*\n)+)", re.MULTILINE)
_GROWTH = re.compile(r"After this operation, ([\d.,]+) ([kMGT]?B)(?: of additional)? disk space will be (used|freed)")
_URI = re.compile(r"^'[^']+' \S+ (\d+) ", re.MULTILINE)
_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_changes(output: str) -> tuple[Change, ...]:
    """Return the changes that the output of `apt-get -s` announces."""
    changes: list[Change] = []
    for line in output.splitlines():
        if found := _INST.match(line):
            changes.append(Change(name=found["name"], before=found["before"], after=found["after"]))
        elif found := _REMV.match(line):
            changes.append(Change(name=found["name"], before=found["before"] or "", after=None))
    return tuple(changes)


def parse_sizes(output: str) -> tuple[int | None, int | None]:
    """Return download and growth in bytes from the output of `apt-get --print-uris`; growth is `None` when nothing is said."""
    growth = None
    if found := _GROWTH.search(output):
        growth = round(float(found[1].replace(",", "")) * _UNITS[found[2]]) * (1 if found[3] == "used" else -1)
    return sum(int(size) for size in _URI.findall(output)), growth


_NO_PROGRAM = 127


def simulate(action: Packages, host: Host) -> Simulation:
    """Return what apt would do for `action`; two questions, since neither answers for both names and sizes."""
    told = _foretold(("install", *action.install), host)
    if told.problem is not None:
        return told
    sized = host.run(("apt-get", "-y", "--print-uris", "install", *action.install), timeout=_PROBE_SECONDS)
    download, growth = parse_sizes(sized.stdout) if sized.status == 0 else (None, None)
    return Simulation(changes=told.changes, download_bytes=download, disk_bytes=growth, downgraded=told.downgraded)


def _foretold(words: Argv, host: Host) -> Simulation:
    """Return the changes that `apt-get` with these words announces."""
    told = host.run(("apt-get", "-s", *words), timeout=_PROBE_SECONDS)
    if told.status == _NO_PROGRAM:
        return Simulation(problem=phrase("engine.failed.missing", program="apt-get"))
    if told.status is None:
        return Simulation(problem=phrase("manager.apt.silent"))
    if told.status != 0:
        return Simulation(problem=apt_messages.cause(told.stdout + told.stderr) or apt_messages.last_error(told.stderr))
    changes = parse_changes(told.stdout)
    announced = _TO_REMOVE.search(told.stdout)
    # A removal that was not read would slip past every check: the summary has to agree.
    if announced is None or int(announced[1]) != sum(change.after is None for change in changes):
        return Simulation(problem=phrase("manager.apt.unread"))
    older = _DOWNGRADED.search(told.stdout)
    return Simulation(changes=changes, downgraded=tuple(older[1].split()) if older else ())


def foresee(argv: Argv, host: Host) -> Simulation:
    """Return what one of the commands of `restore` would do; setting marks changes no package."""
    if argv[0] == "apt-get":
        return _foretold(argv[1:], host)
    if argv[:2] == ("dpkg", "--purge"):
        return Simulation(changes=tuple(Change(name=name, before="") for name in argv[2:]))
    return Simulation()


# --- snapshot -------------------------------------------------------------------------------------

_FORMAT = r"${Package}\t${Architecture}\t${Version}\t${db:Status-Abbrev}\n"


def snapshot(host: Host) -> Snapshot | None:
    """Return every package that dpkg knows, configuration files of removed ones included; `None` when dpkg did not answer."""
    listed = host.run(("dpkg-query", "-W", "-f", _FORMAT), timeout=_PROBE_SECONDS)
    marked = host.run(("apt-mark", "showauto"), timeout=_PROBE_SECONDS)
    native = host.run(("dpkg", "--print-architecture"))
    if listed.status != 0 or marked.status != 0 or native.status != 0:
        return None
    automatic = set(marked.stdout.split())
    own = native.stdout.strip()
    packages: dict[str, Installed] = {}
    for line in listed.stdout.splitlines():
        name, architecture, version, status = line.split("\t")
        if status.startswith("un"):
            continue
        key = name if architecture in (own, "all") else f"{name}:{architecture}"
        packages[key] = Installed(
            version=version, architecture=architecture, status=status.strip(), automatic=key in automatic, held=status.startswith("h")
        )
    return Snapshot(manager="apt", packages=packages)


def installed(host: Host, names: tuple[str, ...]) -> Mapping[str, str | None]:
    """Return the version of each name that is installed and configured, `None` for the others; empty when dpkg did not answer."""
    if not names:
        return {}
    told = host.run(("dpkg-query", "-W", "-f", _FORMAT, *names), timeout=_PROBE_SECONDS)
    # dpkg-query ends with 1 when one of several names is unknown, and still lists the others.
    if told.status not in (0, 1):
        return {}
    found: dict[str, str | None] = dict.fromkeys(names)
    for line in told.stdout.splitlines():
        name, architecture, version, status = line.split("\t")
        if status[1:2] == "i" and status[2:3] in ("", " "):
            for key in (name, f"{name}:{architecture}"):
                if key in found:
                    found[key] = version
    return found


def installed_bytes(names: tuple[str, ...], host: Host) -> int | None:
    """Return the installed size of the packages called `names`; `None` when dpkg did not answer."""
    if not names:
        return 0
    told = host.run(("dpkg-query", "-W", "-f", r"${Installed-Size}\n", *names), timeout=_PROBE_SECONDS)
    sizes = [int(line) for line in told.stdout.split() if line.isdigit()]
    # In units of 1024 bytes.
    return sum(sizes) << 10 if sizes else None


def unfinished(host: Host) -> tuple[str, ...] | None:
    """Return the packages that are neither installed and configured nor gone; `None` where there is no dpkg to ask."""
    told = host.run(("dpkg-query", "-W", "-f", _FORMAT), timeout=_PROBE_SECONDS)
    if told.status != 0:
        return None
    rows = [line.split("\t") for line in told.stdout.splitlines()]
    # The first letter is what is wanted, the second what is, the third that it has to be installed again.
    return tuple(name for name, _, _, status in rows if status[1:2] not in ("n", "c", "i") or status[2:3] == "R")


_CONFFILE = re.compile(r"^ (/\S.*?) (?:[0-9a-f]{32}|newconffile)(?: obsolete)?$", re.MULTILINE)


def settings_of(names: tuple[str, ...], host: Host) -> tuple[str, ...]:
    """Return the conffiles of the installed packages among `names`; a space in a name is none of a package's, but of its field."""
    if not names:
        return ()
    told = host.run(("dpkg-query", "-W", "-f", r"${Conffiles}\n", *names), timeout=_PROBE_SECONDS)
    return tuple(dict.fromkeys(_CONFFILE.findall(told.stdout)))


# --- the way back ---------------------------------------------------------------------------------


def _present(package: Installed | None) -> TypeGuard[Installed]:
    """Whether files of the package are unpacked, in whatever state."""
    return package is not None and package.status[1:2] not in ("n", "c")


def restore(before: Snapshot, after: Snapshot, kept: Kept, names: frozenset[str]) -> tuple[Argv, ...]:
    """Return the commands from `after` to `before` for the packages called `names`.

    One transaction names every package that differs, so that the resolver has nothing left to choose.
    """
    before, after = before.only(names), after.only(names)
    back: dict[str, str] = {}
    halves: list[str] = []
    gone: list[str] = []
    purge: list[str] = []
    for name in sorted(before.packages.keys() | after.packages.keys()):
        was, now = before.packages.get(name), after.packages.get(name)
        if _present(was):
            if not _present(now) or now.version != was.version or now.status[1:] != was.status[1:]:
                back[name] = kept.files.get(f"{name}={was.version}", f"{name}={was.version}")
            if _present(now) and _is_half(now):
                halves.append(back[name])
        elif now is not None:
            if _present(now):
                gone.append(name)
            # What was removed but not purged before keeps its configuration files.
            if was is None:
                purge.append(name)
    commands = _made_whole(halves, [name for name in gone if _is_half(after.packages[name])])
    if back or gone:
        # apt calls some packages that only came with others essential (systemd-sysv); what may go is looked at by its name before.
        permit = ("--allow-downgrades", "--allow-change-held-packages", "--allow-remove-essential", "--no-install-recommends")
        commands.append(("apt-get", "-y", *SAFE, *permit, "install", *back.values(), *(f"{name}-" for name in gone)))
    if purge:
        commands.append(("dpkg", "--purge", *purge))
    return (*commands, *_marks(before, after, frozenset(back)))


def _is_half(package: Installed) -> bool:
    """Return whether dpkg was cut off while it unpacked or removed the package: some of its files are there."""
    return package.status[1:2] == "H" or package.status[2:3] == "R"


def _made_whole(back: list[str], gone: list[str]) -> list[Argv]:
    """Return what ends the state of packages that were half unpacked: until then apt does nothing at all."""
    commands: list[Argv] = []
    if gone:
        commands.append(("dpkg", "--force-remove-reinstreq", "--force-depends", "--remove", *gone))
    files = [name for name in back if name.startswith("/")]
    if files:
        # Unpacked only: what it depends on comes with the transaction after it.
        commands.append(("dpkg", *_CONFFILES, "--force-downgrade", "--unpack", *files))
    return commands


_WANTED = {"i": "install", "r": "deinstall", "p": "purge"}
"""What dpkg is to do with a package, by the first letter of its status, as `apt-mark` calls it."""


def _marks(before: Snapshot, after: Snapshot, back: frozenset[str]) -> tuple[Argv, ...]:
    """Return what puts automatic marks, holds and wants back: a package that is named in a transaction counts as asked for.

    apt tells dpkg what it is going to remove before it removes anything; killed in between, it leaves that behind.
    """
    groups: dict[str, list[str]] = {"auto": [], "manual": [], "unhold": [], "install": [], "deinstall": [], "purge": [], "hold": []}
    for name, was in before.packages.items():
        now = after.packages.get(name)
        if not _present(was):
            continue
        if name in back or now is None or now.automatic != was.automatic:
            groups["auto" if was.automatic else "manual"].append(name)
        if was.held and (name in back or now is None or not now.held):
            groups["hold"].append(name)
        if not was.held and now is not None and now.held:
            groups["unhold"].append(name)
        wants = "i" if now is None or name in back or now.held else now.status[:1]
        if was.status[:1] in _WANTED and was.status[:1] != wants:
            groups[_WANTED[was.status[:1]]].append(name)
    return tuple(("apt-mark", mark, *sorted(names)) for mark, names in groups.items() if names)


def repair(host: Host) -> tuple[Argv, ...]:
    """Return the repair when dpkg's own audit finds something, or cannot be asked, or apt would find something; else nothing."""
    audit = host.run(("dpkg", "--audit"), timeout=_PROBE_SECONDS)
    # What dpkg wrote down and had not yet taken into its list: the audit is silent about it, and apt calls it interrupted.
    pending = any(name.isdigit() for name in host.listdir("/var/lib/dpkg/updates") or ())
    if audit.status == 0 and not audit.stdout.strip() and not pending:
        return ()
    files = _for_halves(host)
    unpack = (("dpkg", *_CONFFILES, "--unpack", *files),) if files else ()
    return (*unpack, ("dpkg", *_CONFFILES, "--configure", "-a"), ("apt-get", "-y", *SAFE, "--no-remove", "-f", "install"))


def _for_halves(host: Host) -> tuple[str, ...]:
    """Return the fetched .debs of half unpacked packages: apt refuses all work when an archive does not have the old version."""
    told = host.run(("dpkg-query", "-W", "-f", _FORMAT), timeout=_PROBE_SECONDS)
    rows = [line.split("\t") for line in told.stdout.splitlines() if line.count("\t") == _FORMAT.count(r"\t")]
    found = (
        (f"{name}_{version.replace(':', '%3a')}_", host.glob(f"/var/cache/apt/archives/{name}_*_{architecture}.deb"))
        for name, architecture, version, status in rows
        if status[2:3] == "R"
    )
    return tuple(_meant(files, named) for named, files in found if files)


def _meant(files: tuple[str, ...], named: str) -> str:
    """Return the archive of the version that dpkg names, else the newest: numbers count by their value, and 580.105 is above 580.95."""
    exact = next((path for path in files if path.rpartition("/")[2].startswith(named)), None)
    return exact or max(files, key=lambda path: [(int(part or -1), rest) for part, rest in re.findall(r"(\d+)|(\D+)", path)])


# --- locks ----------------------------------------------------------------------------------------

LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock", "/var/lib/apt/lists/lock", "/var/cache/apt/archives/lock")
_LOCK_LINE = re.compile(r"^\d+: \S+\s+\S+\s+WRITE (?P<pid>-?\d+) (?P<major>[0-9a-f]+):(?P<minor>[0-9a-f]+):(?P<inode>\d+) ", re.MULTILINE)
_HOLDERS = ("apt", "aptitude", "dpkg", "unattended-upgr", "packagekitd", "synaptic", "software-proper", "update-manager")


def lock_holder(host: Host) -> Holder | None:
    """Return the first lock of apt's that somebody holds; asking takes no lock."""
    table = host.read("/proc/locks")
    told = host.run(("stat", "-c", "%i %d %n", *LOCKS))
    if table is None:
        return None
    files = {inode: (int(device), lock) for inode, device, lock in (line.split(" ", 2) for line in told.stdout.splitlines())}
    found: dict[str, Holder] = {}
    for line in _LOCK_LINE.finditer(table):
        if line["inode"] not in files:
            continue
        device, lock = files[line["inode"]]
        pid = int(line["pid"])
        name = (host.read(f"/proc/{pid}/comm") or "").strip() if pid > 0 else ""
        # btrfs and overlays show another device here than stat does: there the holder's name has to speak.
        if device == _device(int(line["major"], 16), int(line["minor"], 16)) or name.startswith(_HOLDERS):
            found[lock] = Holder(lock=lock, pid=pid if pid > 0 else None, name=name or None)
    return next((found[lock] for lock in LOCKS if lock in found), None)


def _device(major: int, minor: int) -> int:
    """Return a device number as stat prints it."""
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)
