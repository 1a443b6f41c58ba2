"""Installs that got into each other's way: two versions of one set, two methods, two owners, two repositories."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.doctor import numbers
from steps.doctor.events.builds import CompilerRefused
from steps.doctor.events.containers import OperatorDriver
from steps.doctor.events.packages import Changed, Overwrite, Unmet
from steps.doctor.events.typed import Command
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Row, Upgradable, role
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.rules.driver_mismatch import mismatch
from steps.doctor.told import Fact, Told, fact

# -- one set, two versions --------------------------------------------------------------------------------------------


@rule("partial-driver-upgrade")
def partial_upgrade(seen: Evidence) -> Answer:
    """The package database, or what a package manager was told, has the driver's parts in two versions."""
    said = mismatch(seen)
    if said is None and seen.driver_answers is not False and not seen.versions.differ:
        return None
    pair = _two_versions(seen)
    if pair is not None:
        one, other = pair
        return found(STRONG if said or seen.versions.differ else LIKELY, one, other, said, one=one.version, other=other.version)
    pinned = _pinned(seen)
    library = next(iter(seen.versions.user), None)
    if pinned is not None and library is not None and not numbers.agree(pinned.value, library.value):
        return found(LIKELY + 0.1, pinned, library, said, one=pinned.value, other=library.value)
    moved = next(
        (change for change in seen.all(Changed) if role(change.name) and numbers.upstream(change.old) and numbers.upstream(change.new)),
        None,
    )
    if moved is not None and _left_behind(seen, moved):
        return found(LIKELY, moved, said, one=moved.old or "?", other=moved.new or "?")
    pulled = next((command for command in seen.all(Command) if _pulls_libraries(command)), None)
    if pulled is not None and said is not None:
        return found(POSSIBLE + 0.1, pulled, said, one="?", other="?", variant="pulled")
    return out(*seen.packages.driver()[:1]) if seen.packages.driver() else None


def _two_versions(seen: Evidence) -> tuple[Row, Row] | None:
    """Return two packages of the driver that belong together and have different versions, or `None`."""
    rows = [row for row in seen.packages.driver("module", "library", "tool", "meta") if row.arch not in ("i386", "i686", "armhf")]
    for row in rows[1:]:
        if row.driver and rows[0].driver and not numbers.agree(row.driver, rows[0].driver):
            return rows[0], row
    return None


def _pinned(seen: Evidence) -> Fact | None:
    """Return the version at which a typed command asked for only some packages of the driver, or `None`."""
    for command in seen.commands("dnf", "yum", "apt", "apt-get", "zypper"):
        for word in command.words:
            found_ = re.match(r"(?P<name>[a-z][\w.+-]*?)[-=](?:\d+:)?(?P<version>[3-9]\d\d\.\d+(?:\.\d+)*)", word)
            if found_ and role(found_["name"]) in ("library", "tool"):
                return Fact(place=command.place, value=found_["version"])
    return None


def _left_behind(seen: Evidence, moved: Changed) -> bool:
    """Return whether other parts of the driver kept their version when this one moved."""
    new = numbers.upstream(moved.new)
    together = {numbers.upstream(change.new) for change in seen.all(Changed) if role(change.name) in ("module", "meta")}
    return new is not None and new not in together


def _pulls_libraries(command: Command) -> bool:
    """Return whether a command installs a program that brings some libraries of the driver with it."""
    return "install" in command.words and any(
        re.fullmatch(r"nvtop|nvidia-cuda-toolkit|libnvidia-\S+|nvidia-utils-\S+", word) for word in command.words
    )


def _on_offer(seen: Evidence, last: str | None) -> tuple[Upgradable, ...]:
    """Return what an upgrade would bring; a real machine is asked only where a card that stands still has no driver that answers."""
    return seen.upgradable if seen.rehearsal or (last is not None and not seen.driver_answers) else ()


@rule("transitional-package-replaces-legacy-driver")
def transitional(seen: Evidence) -> Answer:
    """The branch in the name and the version differ, and the card needs the branch in the name."""
    card = next((card for card in seen.cards.cards if card.row and card.row.last_driver_branch), None)
    last = card.row.last_driver_branch if card and card.row else None
    if card is None and seen.cards.cards and all(other.row for other in seen.cards.cards):
        return out(*seen.cards.cards[:2])
    offers: Iterator[tuple[str, str, Told]] = ((row.name, row.new, row) for row in _on_offer(seen, last))
    installed: Iterator[tuple[str, str, Told]] = ((row.name, row.version, row) for row in seen.packages.rows if row.installed)
    for name, version, row in (*offers, *installed):
        branch, built = re.search(r"-(\d{3})(?:$|-)", name), numbers.upstream(version)
        if branch and built and role(name) and numbers.parts(built)[0] > int(branch[1]):
            if last is None:
                return found(POSSIBLE, row, named=branch[1], built=built, card="?")
            if numbers.parts(last)[0] < numbers.parts(built)[0]:
                return found(CERTAIN, row, card, named=branch[1], built=built, card=(card.name if card else None) or "?")
    return None


@rule("driver-utilities-package-missing")
def no_utilities(seen: Evidence) -> Answer:
    """Module and libraries are packages that are here, the package of nvidia-smi is not."""
    if seen.smi.installed is not False:
        return None
    here = [row for row in seen.packages.rows if row.installed and role(row.name) in ("module", "library", "firmware")]
    tools = seen.packages.named(r"nvidia-(compute-)?utils(-.*)?|nvidia-smi|nvidia-driver-cuda", installed=False)
    if not here or any(row.installed and "compute" not in row.name for row in tools):
        return None
    removed = next((row for row in tools if row.state[1:] == "c"), None)
    missing = fact("127", "nvidia-smi", "command not found")
    return found(CERTAIN if removed else STRONG, missing, removed, here[0], package=here[0].name)


# -- two methods, two owners ------------------------------------------------------------------------------------------


@rule("module-from-other-install")
def foreign_module(seen: Evidence) -> Answer:
    """The module was put there by NVIDIA's installer or by hand, and user space is of another version."""
    place = _unpackaged_file(seen)
    # Where no kernel runs, as in a mounted system, the file on disk is what the next boot loads.
    loaded = next(iter((*seen.versions.loaded, *(seen.versions.on_disk if place else ()))), None)
    if loaded is None:
        return None
    by_hand = _other_method(seen, loaded)
    if by_hand is not None:
        return found(CERTAIN, loaded, *by_hand, mismatch(seen), loaded=loaded.value, variant="source")
    others: tuple[Row | Fact, ...] = (
        *seen.packages.driver(),
        *(one for one in seen.versions.user if not numbers.agree(one.value, loaded.value)),
    )
    package = next((row for row in others if not numbers.agree(_version(row), loaded.value)), None)
    left = next(iter(seen.modules.leftovers), None)
    if package is None:
        return None
    if left is not None:
        return found(CERTAIN - 0.02, loaded, package, left, place, mismatch(seen), loaded=loaded.value, installed=_version(package))
    return found(LIKELY + 0.1, place, loaded, package, loaded=loaded.value, installed=_version(package)) if place else None


def _version(told: Row | Fact) -> str:
    return (told.driver or told.version) if isinstance(told, Row) else told.value


def _other_method(seen: Evidence, loaded: Fact) -> tuple[Told, ...] | None:
    """Return the commands that took user space from NVIDIA's file without its modules, while the module is of another version."""
    for command in seen.all(Command):
        version = numbers.inside(" ".join(command.words))
        if version is None or not any("NVIDIA-Linux" in word for word in command.words):
            continue
        if "--no-kernel-modules" in command.words or "--no-kernel-module" in command.words or version != loaded.value:
            source = next((one for one in seen.all(Command) if "open-gpu-kernel-modules" in " ".join(one.words)), None)
            return (command, *([source] if source else [])) if version != loaded.value else None
    return None


def _unpackaged_file(seen: Evidence) -> Fact | None:
    """Return the path of the module on disk where packages and DKMS never put one: NVIDIA's installer without DKMS does."""
    text = seen.host.run(("modinfo", "nvidia")).stdout
    path = re.search(r"^filename:[ \t]*(/\S+/kernel/drivers/video/nvidia\.ko\S*)", text, re.MULTILINE)
    dkms = any(line.module.startswith("nvidia") and line.state == "installed" for line in seen.modules.dkms or ())
    return fact(path[1], "modinfo nvidia", " ".join(path[0].split())) if path and not dkms and seen.packages.manager == "apt" else None


@rule("userspace-from-other-install")
def foreign_user_space(seen: Evidence) -> Answer:
    """A tool meets a library that it does not fit, or the tool that is found first is not the system's."""
    lacking = seen.nvml("function-not-found")
    if lacking is not None:
        return found(STRONG, lacking, seen.nvml("mismatch"))
    said = mismatch(seen)
    # Without a mismatch it says nothing: a driver that hangs or finds no card does so whichever tool asks it.
    elsewhere = next(_elsewhere(seen), None) if said is not None else None
    loaded, disk = next(iter(seen.versions.loaded), None), next(iter(seen.versions.on_disk), None)
    packages = [row for row in seen.packages.driver("library", "tool", "meta") if row.driver]
    agreed = loaded is not None and bool(packages) and all(numbers.agree(row.driver or "", loaded.value) for row in packages)
    if elsewhere is not None:
        return found(CERTAIN if agreed else STRONG, elsewhere, said, loaded, disk, *packages[:1])
    # Module and packages fit each other, and still a program meets another library: it is not theirs.
    if said is not None and agreed and (disk is None or numbers.agree(disk.value, loaded.value if loaded else "")):
        return found(LIKELY, said, loaded, disk, *packages[:1])
    return None


_SYSTEM = re.compile(r"^(?:/usr)?/(?:s?bin|lib\S*)/|^/usr/lib/wsl/|^/run/nvidia")


def _finds_driver(argv: tuple[str, ...]) -> bool:
    """Return whether a command tells which tool or library of the driver is found first."""
    return argv[0] in ("ldconfig", "ldd") or (argv[0] in ("which", "readlink", "type") and "nvidia-smi" in " ".join(argv))


def _elsewhere(seen: Evidence) -> Iterator[Fact]:
    """Yield the paths of tools and libraries of the driver that are found first and are not the system's own."""
    for argv in seen.host.forms(_finds_driver, ("which", "-a", "nvidia-smi"), ("ldconfig", "-p")):
        text = seen.host.run(argv).stdout
        if argv[0] in ("ldconfig", "ldd"):
            paths = re.findall(r"lib(?:nvidia-ml|cuda)\.so\.1\b.*?=> (/\S+)", text)[:1]
        else:
            paths = re.findall(r"(/\S*nvidia-smi\S*)", text)[:1]
        yield from (fact(path, " ".join(argv)) for path in paths if not _SYSTEM.match(path))


_OPERATOR = "/run/nvidia/driver"
"""Where the operator's driver container mounts its root."""


@rule("driver-owned-by-two-managers")
def two_managers(seen: Evidence) -> Answer:
    """The operator's driver container and packages of the host are both there."""
    mounted = fact(_OPERATOR, _OPERATOR) if seen.host.exists(_OPERATOR) else None
    operator = mounted or seen.first(OperatorDriver)
    row = next(iter(seen.packages.driver()), None)
    own = row or seen.first(Changed, lambda change: role(change.name) is not None)
    if operator is None:
        return None
    if own is not None:
        return found(STRONG if mounted else LIKELY + 0.1, operator, own, mismatch(seen), package=own.name)
    met = seen.first(OperatorDriver, lambda event: event.blocked)
    return found(POSSIBLE + 0.1, met, mismatch(seen), variant="met") if met is not None else None


# -- two repositories, two files, two compilers -----------------------------------------------------------------------


@rule("two-repos-same-branch")
def two_repositories(seen: Evidence) -> Answer:
    """A wanted and a chosen version of one branch carry the marks of two builders, or are of two releases."""
    for unmet in seen.all(Unmet):
        if not one_branch(unmet):
            continue
        builders = "-" in (unmet.version or "") and _builder(unmet.version or "") != _builder(unmet.other or "")
        return found(CERTAIN if builders else STRONG, unmet, wanted=unmet.version or "?", chosen=unmet.other or "?")
    return None


def one_branch(unmet: Unmet) -> bool:
    """Return whether a package of the driver is wanted in one version, or from it on, and another one of its branch would be chosen."""
    wanted, chosen = numbers.upstream(unmet.version), numbers.upstream(unmet.other)
    if wanted is None or chosen is None or unmet.version == unmet.other or numbers.branch(wanted) != numbers.branch(chosen):
        return False
    return unmet.relation == "=" or (unmet.relation in (">=", ">>") and numbers.parts(chosen) < numbers.parts(wanted))


def _builder(version: str) -> str:
    """Return whose packages carry a version like this: Ubuntu's archive, a PPA, System76, or NVIDIA's repository."""
    suffix = version.partition("-")[2]
    if "pop" in suffix or "~" in suffix:
        return "pop" if "pop" in suffix else "ppa"
    return "ubuntu" if re.search(r"ubuntu0\.\d\d\.\d\d", suffix) else "ubuntu-devel" if re.search(r"ubuntu\d+\.", suffix) else "nvidia"


@rule("driver-package-file-conflict")
def file_conflict(seen: Evidence) -> Answer:
    """Dpkg will not let one package of the driver overwrite another one's file."""
    quarrel = seen.first(Overwrite, lambda event: not event.shared and bool(event.package and re.search(r"nvidia|cuda", event.package)))
    return found(CERTAIN, quarrel, file=quarrel.file, package=quarrel.package or "?") if quarrel else None


_VENDOR = "/usr/local/"


@rule("distro-nvcc-first-in-path")
def distribution_nvcc(seen: Evidence) -> Answer:
    """The nvcc that ran, or is found first, is the distribution's."""
    refused = seen.first(CompilerRefused)
    if refused is not None:
        ours = not refused.header.startswith(_VENDOR) and re.match(r"/usr/(?:include|lib)/", refused.header)
        return found(CERTAIN, refused, path=refused.header) if ours else out(refused)
    # Of a real machine nobody asked it: two compilers are no fault as long as nothing fails.
    for argv in seen.host.forms(lambda argv: argv[0] == "which" and argv[-1] == "nvcc"):
        paths = re.findall(r"^/\S+", seen.host.run(argv).stdout, re.MULTILINE)
        if paths[:1] == ["/usr/bin/nvcc"] and any(path.startswith(_VENDOR) for path in paths):
            return found(LIKELY, fact(paths[0], " ".join(argv), " ".join(paths)), path=paths[0])
    return None
