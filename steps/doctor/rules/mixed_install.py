"""Installs that got into each other's way: two versions of one set, two methods, two owners, two repositories."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.doctor import numbers
from steps.doctor.events.builds import CompilerRefused, CompilerShown
from steps.doctor.events.containers import OperatorDriver
from steps.doctor.events.ownership import Unowned
from steps.doctor.events.packages import ArchitecturesDiffer, Changed, Overwrite, Unmet
from steps.doctor.events.typed import Command
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Row, role
from steps.doctor.facts.versions import fit
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.rules.driver_mismatch import mismatch
from steps.doctor.told import Fact, Told, fact

# -- two methods, two owners ------------------------------------------------------------------------------------------


@rule("module-from-other-install")
def foreign_module(seen: Evidence) -> Answer:
    """The module was put there by NVIDIA's installer or by hand, and user space is of another version."""
    place = _unpackaged_file(seen) or _unowned_module(seen)
    # Where no kernel runs, as in a mounted system, the file on disk is what the next boot loads.
    loaded = next(iter((*seen.versions.loaded, *(seen.versions.on_disk if place else ()))), None)
    if loaded is None:
        return None
    by_hand = _other_method(seen, loaded)
    if by_hand is not None:
        return found(CERTAIN, loaded, *by_hand, mismatch(seen), loaded=loaded.value, variant="source")
    others: tuple[Row | Fact, ...] = (
        *seen.packages.driver(),
        *(one for one in seen.versions.user if not fit(one, loaded)),
    )
    package = next((one for one in others if not isinstance(one, Row) or not numbers.same(_version(one), loaded.value)), None)
    left = next(iter(seen.modules.leftovers), None)
    if package is None:
        return None
    if left is not None:
        return found(CERTAIN - 0.02, loaded, package, left, place, mismatch(seen), loaded=loaded.value, installed=_version(package))
    return found(LIKELY + 0.1, place, loaded, package, mismatch(seen), loaded=loaded.value, installed=_version(package)) if place else None


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


def _unowned_module(seen: Evidence) -> Unowned | None:
    """Return that no package has the module, where DKMS did not make it either; else `None`."""
    if any(line.module.startswith("nvidia") and line.state == "installed" for line in seen.modules.dkms or ()):
        return None
    return seen.first(Unowned, lambda event: "/modules/" in event.path and "/dkms/" not in event.path)


def _unpackaged_file(seen: Evidence) -> Fact | None:
    """Return the path of the module on disk where packages and DKMS never put one: NVIDIA's installer without DKMS does."""
    asked = (("modinfo", "nvidia"), ("modinfo", "-F", "filename", "nvidia"))
    text = "\n".join(seen.host.run(argv).stdout for argv in seen.host.forms(lambda argv: argv in asked, asked[0]))
    path = re.search(r"^(?:filename:[ \t]*)?(/\S+/kernel/drivers/video/nvidia\.ko\S*)", text, re.MULTILINE)
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
    library = seen.first(Unowned, lambda event: "/modules/" not in event.path)
    elsewhere = (next(_elsewhere(seen), None) or library) if said is not None else None
    loaded, disk = next(iter(seen.versions.loaded), None), next(iter(seen.versions.on_disk), None)
    packages = [row for row in seen.packages.driver("library", "tool", "meta") if row.driver]
    agreed = loaded is not None and bool(packages) and all(numbers.same(row.driver or "", loaded.value) for row in packages)
    if elsewhere is not None:
        return found(CERTAIN if agreed else STRONG, elsewhere, said, loaded, disk, *packages[:1])
    # Module and packages fit each other, and still a program meets another library: it is not theirs.
    if said is not None and agreed and (disk is None or loaded is None or fit(disk, loaded)):
        return found(LIKELY, said, loaded, disk, *packages[:1])
    return None


_SYSTEM = re.compile(r"^(?:/usr)?/(?:s?bin|lib\S*)/|^/usr/lib/wsl/|^/run/(?:nvidia|current-system|opengl-driver)")
"""The folders of a system's own programs and libraries, NixOS's among them."""
_SHOWS_TOOL = frozenset(("which", "readlink", "realpath", "type", "command", "whereis", "file", "ls"))


def _finds_driver(argv: tuple[str, ...]) -> bool:
    """Return whether a command tells which tool or library of the driver is found first."""
    return argv[0] in ("ldconfig", "ldd") or (argv[0] in _SHOWS_TOOL and "nvidia-smi" in " ".join(argv))


def _elsewhere(seen: Evidence) -> Iterator[Fact]:
    """Yield the paths of tools and libraries of the driver that are found first and are not the system's own."""
    for argv in seen.host.forms(_finds_driver, ("which", "-a", "nvidia-smi"), ("ldconfig", "-p")):
        text = seen.host.run(argv).stdout
        if argv[0] in ("ldconfig", "ldd"):
            paths = re.findall(r"lib(?:nvidia-ml|cuda)\.so\.1\b.*?=> (/\S+)", text)[:1]
        else:
            paths = re.findall(r"^(?!.*(?:No such file|cannot access|cannot open))[^\n/]*(/[^\s:'’]*nvidia-smi)\b", text, re.MULTILINE)[:1]
        yield from (fact(path, " ".join(argv)) for path in paths if not _SYSTEM.match(path))


_OPERATOR = "/run/nvidia/driver"
"""Where the operator's driver container mounts its root."""


def _listed(seen: Evidence) -> Fact | None:
    """Return the list of a folder that shows the operator's root, or `None`."""
    for argv in seen.host.forms(lambda argv: argv[0] == "ls" and any(word.startswith("/run/nvidia") for word in argv)):
        text = seen.host.run(argv).text
        inside = any(word.rstrip("/").startswith(_OPERATOR) for word in argv)
        if "cannot access" not in text and "No such file" not in text and re.search(r"\busr\b|\bdev\b" if inside else r"\bdriver\b", text):
            return fact(_OPERATOR, " ".join(argv))
    return None


@rule("driver-owned-by-two-managers")
def two_managers(seen: Evidence) -> Answer:
    """The operator's driver container and packages of the host are both there."""
    mounted = fact(_OPERATOR, _OPERATOR) if seen.host.exists(_OPERATOR) else _listed(seen)
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
        builders = "-" in (unmet.version or "") and builder(unmet.version or "") != builder(unmet.other or "")
        return found(CERTAIN if builders else STRONG, unmet, wanted=unmet.version or "?", chosen=unmet.other or "?")
    sisters = seen.first(ArchitecturesDiffer, _of_two_builders)
    return found(CERTAIN, sisters, wanted=sisters.version, chosen=sisters.other) if sisters is not None else None


def _of_two_builders(sisters: ArchitecturesDiffer) -> bool:
    """Return whether the two architectures of a package of the driver were built by two, out of one branch."""
    one, other = numbers.upstream(sisters.version), numbers.upstream(sisters.other)
    if one is None or other is None or role(sisters.package) is None or numbers.branch(one) != numbers.branch(other):
        return False
    return "-" in sisters.version and builder(sisters.version) != builder(sisters.other)


def one_branch(unmet: Unmet) -> bool:
    """Return whether a package of the driver is wanted in one version, or from it on, and another one of its branch would be chosen."""
    wanted, chosen = numbers.upstream(unmet.version), numbers.upstream(unmet.other)
    if wanted is None or chosen is None or unmet.version == unmet.other or numbers.branch(wanted) != numbers.branch(chosen):
        return False
    return unmet.relation == "=" or (unmet.relation in (">=", ">>") and numbers.parts(chosen) < numbers.parts(wanted))


def builder(version: str) -> str:
    """Return whose packages carry a version like this: Ubuntu's archive, a PPA, System76, or NVIDIA's repository."""
    suffix = version.partition("-")[2]
    if "pop" in suffix or "~" in suffix:
        return "pop" if "pop" in suffix else "ppa"
    return "ubuntu" if re.search(r"ubuntu0\.\d\d\.\d\d", suffix) else "ubuntu-devel" if re.search(r"ubuntu\d+\.", suffix) else "nvidia"


@rule("driver-package-file-conflict")
def file_conflict(seen: Evidence) -> Answer:
    """Dpkg or rpm will not let one package of the driver overwrite another one's file."""
    quarrel = seen.first(Overwrite, lambda event: not event.shared and bool(event.package and re.search(r"nvidia|cuda", event.package)))
    if quarrel is None:
        return None
    variant = "both" if quarrel.both or _not_there(seen, quarrel.package or "") else ""
    return found(CERTAIN, quarrel, variant=variant, file=quarrel.file, package=quarrel.package or "?")


def _not_there(seen: Evidence, package: str) -> bool:
    """Return whether rpm's list is without a package of the driver: it is to be installed too, in whatever language rpm says that."""
    listed = seen.packages.rows if seen.packages.manager == "dnf" else ()
    # A recorded list may be a part of one, of other packages.
    told = bool(listed) and (not seen.rehearsal or any(role(row.name) for row in listed))
    return told and not seen.packages.named(re.escape(package))


_VENDOR, _DISTRIBUTIONS = "/usr/local/", "/usr/bin/nvcc"


@rule("distro-nvcc-first-in-path")
def distribution_nvcc(seen: Evidence) -> Answer:
    """The nvcc that ran, or is found first, is the distribution's."""
    refused = seen.first(CompilerRefused, lambda event: event.header is not None)
    if refused is not None and refused.header is not None:
        ours = not refused.header.startswith(_VENDOR) and re.match(r"/usr/(?:include|lib)/", refused.header)
        return found(CERTAIN, refused, path=refused.header) if ours else out(refused)
    # Of a real machine nobody asked it: two compilers are no fault as long as nothing fails.
    for argv in seen.host.forms(lambda argv: argv[0] == "which" and argv[-1] == "nvcc"):
        paths = re.findall(r"^/\S+", seen.host.run(argv).stdout, re.MULTILINE)
        listed, shown = any(path.startswith(_VENDOR) for path in paths), _vendors(seen)
        if paths[:1] == [_DISTRIBUTIONS] and (listed or shown is not None):
            somewhere = seen.first(CompilerRefused)
            told = fact(paths[0], " ".join(argv), " ".join(paths))
            return found(STRONG if somewhere else LIKELY, told, None if listed else shown, somewhere, path=paths[0])
    return None


def _vendors(seen: Evidence) -> CompilerShown | None:
    """Return an answer of the nvcc of NVIDIA's own toolkit, asked by its path: so it is there, wherever the search path leads."""
    return seen.first(CompilerShown, lambda event: event.path.startswith(_VENDOR))
