"""The driver's packages as one set: parts of two versions, a branch's name on another branch's build, and a part that is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.doctor import numbers
from steps.doctor.events.containers import OperatorDriver, ToolMissing
from steps.doctor.events.packages import Changed, SetDiffers
from steps.doctor.events.typed import Command
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Row, Upgradable, role
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.rules.driver_mismatch import mismatch
from steps.doctor.told import Fact, Told, fact
from steps.host.rooted import version_key


@rule("partial-driver-upgrade")
def partial_upgrade(seen: Evidence) -> Answer:
    """The package database, or what a package manager was told, has the driver's parts in two versions."""
    said = mismatch(seen)
    checked = seen.first(SetDiffers, lambda event: not numbers.same(event.one, event.other))
    if checked is not None and not seen.driver_answers:
        return found(LIKELY + 0.1, checked, said, one=checked.one, other=checked.other)
    unknown = seen.driver_answers is None and not seen.versions.loaded
    if said is None and seen.driver_answers is not False and not seen.versions.differ and not unknown:
        return None
    pair = _two_versions(seen)
    if pair is not None:
        one, other = pair
        return found(
            STRONG if said or seen.versions.differ else LIKELY - (0.1 if unknown else 0.0),
            one,
            other,
            said,
            one=one.version,
            other=other.version,
        )
    agreed = _agreed(seen)
    if agreed:
        # What was typed or written down before is over where the database itself has the parts at one version.
        return out(*agreed)
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
    brought = _brought(seen)
    if brought is not None and said is not None:
        return found(LIKELY + 0.1, brought, *seen.versions.loaded[:1], said, one=brought.new or "?", other=_loaded(seen), variant="brought")
    pulled = next((command for command in seen.all(Command) if _pulls_libraries(command)), None)
    if pulled is not None and said is not None:
        return found(POSSIBLE + 0.1, pulled, said, one="?", other="?", variant="pulled")
    return out(*seen.packages.driver()[:1]) if seen.packages.driver() else None


def _two_versions(seen: Evidence) -> tuple[Row, Row] | None:
    """Return two packages of the driver that belong together and have different versions, or `None`."""
    rows = [
        row
        for row in seen.packages.driver("module", "library", "tool", "meta")
        if row.arch not in ("i386", "i686", "armhf") and not _of_other_kernel(seen, row)
    ]
    for row in rows[1:]:
        if row.driver and rows[0].driver and not numbers.same(row.driver, rows[0].driver):
            return rows[0], row
    return None


def _agreed(seen: Evidence) -> tuple[Row, ...]:
    """Return a module's and a library's package that are installed at one version; empty where one is missing or they differ."""
    modules, libraries = (
        [row for row in seen.packages.driver(kind) if row.installed and row.driver and not _of_other_kernel(seen, row)]
        for kind in ("module", "library")
    )
    return next(((one, other) for one in modules for other in libraries if numbers.same(one.driver or "", other.driver or "")), ())


def _of_other_kernel(seen: Evidence, row: Row) -> bool:
    """Return whether a package is the module for one kernel, and that is not the running one; the newest counts where none is known."""
    kernel, running = _kernel_of(row), seen.system.kernel
    if kernel is None:
        return False
    if running is not None:
        return not running.value.startswith(kernel)
    # Kernels stay installed beside newer ones, each with the module that was built for it: only the newest one's has to fit.
    kernels = {_kernel_of(other) for other in seen.packages.driver("module")} - {None}
    return kernel != max((one for one in kernels if one), key=version_key)


def _kernel_of(row: Row) -> str | None:
    """Return the one kernel that a module's package is for, as its name says; `None` where it is for any."""
    kernel = re.search(r"-(\d+\.\d+\.\d+-\d[\w.]*)", row.name)
    return kernel[1] if kernel else None


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


def _loaded(seen: Evidence) -> str:
    return seen.versions.loaded[0].value if seen.versions.loaded else "?"


def _brought(seen: Evidence) -> Changed | None:
    """Return a library of the driver that came new, as another package's dependency, without a module of its version; else `None`."""
    new = (change for change in seen.all(Changed) if change.old is None and role(change.name) in ("library", "tool"))
    fresh = next((change for change in new if numbers.upstream(change.new) and _left_behind(seen, change)), None)
    if fresh is None or any(numbers.same(one.value, numbers.upstream(fresh.new) or "") for one in seen.versions.loaded):
        return None
    return fresh


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


_TOOLS = r"nvidia-(compute-)?utils(-.*)?|nvidia-smi|nvidia-driver-cuda|xorg-x11-drv-nvidia(-\d+xx)?-cuda"
"""The packages of nvidia-smi: Ubuntu's, Debian's, NVIDIA's and RPM Fusion's."""


@rule("driver-utilities-package-missing")
def no_utilities(seen: Evidence) -> Answer:
    """Module and libraries are packages that are here, the package of nvidia-smi is not."""
    absent = seen.first(ToolMissing, lambda event: not event.place.in_container and "exec" not in event.place.text)
    silent = absent or _not_in_path(seen)
    if seen.smi.installed is not False and (silent is None or seen.smi.installed):
        return None
    here = [row for row in seen.packages.rows if row.installed and role(row.name) in ("module", "library", "firmware")]
    if not seen.packages.rows:
        loaded = _loaded_here(seen)
        return found(LIKELY, silent or fact("127", "nvidia-smi", "command not found"), loaded, variant="loaded") if loaded else None
    tools = seen.packages.named(_TOOLS, installed=False)
    if not here or any(row.installed and "compute" not in row.name for row in tools):
        return None
    removed = next((row for row in tools if row.state[1:] == "c"), None)
    missing = silent or fact("127", "nvidia-smi", "command not found")
    return found(CERTAIN if removed else STRONG, missing, removed, here[0], package=here[0].name)


def _loaded_here(seen: Evidence) -> Fact | None:
    """Return that the driver's module is loaded by what this system has; `None` inside a container, in WSL and beside GPU Operator's."""
    if seen.system.container or seen.system.wsl or seen.host.exists("/run/nvidia/driver") or seen.has(OperatorDriver):
        return None
    told = next(iter(seen.versions.loaded), None)
    return told or (fact("nvidia", "lsmod") if seen.modules.loads("nvidia") else None)


def _not_in_path(seen: Evidence) -> Fact | None:
    """Return that the shell was asked where nvidia-smi is, and had nothing to say."""
    asked = seen.host.forms(lambda argv: argv[0] in ("which", "type") and argv[-1] == "nvidia-smi")
    empty = next((argv for argv in asked if not seen.host.run(argv).stdout.strip()), None)
    return fact("-", " ".join(empty), f"{' '.join(empty)}: -") if empty else None
