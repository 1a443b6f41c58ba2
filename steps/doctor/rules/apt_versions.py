"""Versions that apt cannot have together: branches, holds, bounds, architectures; and those that nobody has."""

from __future__ import annotations

import re

from steps.catalog import stack, versions
from steps.doctor import numbers
from steps.doctor.events.packages import (
    ArchitecturesDiffer,
    Conflict,
    HeldChange,
    ImpossibleRequest,
    Overwrite,
    Unmet,
    VersionNotFound,
)
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Row, role
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.rules.mixed_install import one_branch
from steps.doctor.told import Fact, fact
from steps.doctor.worded import MISSING

_CUDA_SUFFIX = re.compile(r"\+cuda(\d+(?:\.\d+)*)")
_LIBRARY = re.compile(r"lib(?:nccl|cudnn|nvinfer|nvonnx|cusparselt|cutensor|nvshmem)\S*|cudnn\S*|tensorrt\S*|python3-libnvinfer\S*")
_BRINGS_DRIVER = re.compile(r"cuda(?:-(?:runtime|demo-suite|drivers))?(?:-\d+)*")
"""Packages of NVIDIA's repository that bring a driver with them."""
OF_VENDORS = re.compile(r"nvidia|cuda|cudnn|nccl|nsight|amdgpu|rocm|hip|libcu|nvinfer|tensorrt")
"""What the names of the vendors' packages hold."""


@rule("conflicting-driver-branch-blocks-install")
def conflicting_branch(seen: Evidence) -> Answer:
    """What is wanted is offered in one version and refused; nothing is held."""
    if seen.packages.whole and not any(role(row.name) and (row.installed or row.half) for row in seen.packages.rows):
        return None  # no other branch is here
    refused = [
        event
        for event in seen.all(Unmet)
        if event.why in ("refused", "other")
        and (role(event.wanted) or (event.why == "refused" and _BRINGS_DRIVER.fullmatch(event.wanted) and not _past(event.wanted)))
        and not _CUDA_SUFFIX.search(event.version or "")
    ]
    exact = [event for event in refused if event.relation == "="]
    impossible = seen.first(ImpossibleRequest)
    conflict = next((event for event in seen.all(Conflict) if role(event.name) and role(event.other)), None)
    asked = next(
        (one for one in seen.commands("apt", "apt-get", "aptitude", "dnf", "yum") if any(role(_bare(word)) for word in one.words)), None
    )
    if any((_bound(event) and not _pins(seen, event)) or wants_old_branch(event) or one_branch(event) for event in seen.all(Unmet)) or any(
        event.why == "other" and event.relation == "=" for event in exact
    ):
        return None
    held = _held(seen)
    if held is not None and (role(held.value) or not exact):
        return out(held)
    installed = _other_branch(seen, exact)
    none_held = fact("", "apt-mark showhold", "apt-mark showhold: -") if seen.packages.held == () else None
    if conflict is not None:
        return found(CERTAIN, conflict, installed, impossible, wanted=conflict.name, installed=conflict.other)
    if exact and len({event.version for event in exact}) == 1:
        wanted = exact[0].version or "?"
        return found(
            CERTAIN if installed or none_held else STRONG,
            *exact[:3],
            installed,
            none_held,
            wanted=wanted,
            installed=installed.version if installed else MISSING,
        )
    if refused and not any(event.why == "absent" for event in seen.all(Unmet)):
        return found(
            LIKELY,
            *refused[:3],
            installed,
            none_held,
            wanted=refused[0].version or refused[0].wanted,
            installed=installed.version if installed else MISSING,
        )
    if impossible is not None and asked is not None and not seen.all(Unmet):
        return found(
            STRONG if none_held else LIKELY,
            impossible,
            asked,
            none_held,
            installed,
            wanted=" ".join(asked.words[2:5]),
            installed=installed.version if installed else MISSING,
        )
    return None


def _bare(word: str) -> str:
    """Return the name in `name=version`, `name/suite` or `name:arch`."""
    return re.split(r"[=/:]", word)[0]


def _other_branch(seen: Evidence, wanted: list[Unmet]) -> Row | None:
    """Return an installed package of another branch than the wanted one, or `None`."""
    branch = numbers.branch(numbers.upstream(wanted[0].version) or "") if wanted else None
    rows = (row for row in seen.packages.driver() if row.driver)
    return next((row for row in rows if branch and numbers.branch(row.driver or "") != branch), None)


def _held(seen: Evidence) -> Fact | None:
    """Return the first package that is held and concerns the vendor's software, or `None`."""
    name = next((name for name in seen.packages.held or () if OF_VENDORS.search(name)), None)
    return fact(name, "apt-mark showhold") if name else None


@rule("held-package-blocks-install")
def held_library(seen: Evidence) -> Answer:
    """A library is wanted for one CUDA and installed, or held, for another."""
    for event in seen.all(Unmet):
        wanted, there = _CUDA_SUFFIX.search(event.version or ""), _CUDA_SUFFIX.search(event.other or "")
        if wanted and there and wanted[1] != there[1]:
            return found(CERTAIN, event, _held(seen), library=event.wanted, wanted=event.version or "?", installed=event.other or "?")
        if wanted and _LIBRARY.fullmatch(event.wanted):
            row = next(iter(seen.packages.named(re.escape(event.wanted))), None)
            other = _CUDA_SUFFIX.search(row.version) if row else None
            if row and other and other[1] != wanted[1]:
                return found(CERTAIN, event, row, _held(seen), library=event.wanted, wanted=event.version or "?", installed=row.version)
            if event.why in ("refused", "other") and event.other != event.version:
                return found(LIKELY, event, _held(seen), library=event.wanted, wanted=event.version or "?", installed=event.other or "-")
    held, changed = _held(seen), seen.first(HeldChange)
    if held is not None and _LIBRARY.fullmatch(held.value) and (changed or seen.first(ImpossibleRequest)):
        return found(STRONG, held, changed, seen.first(ImpossibleRequest), library=held.value, wanted="?", installed="-")
    refused = next((event for event in seen.all(Unmet) if event.why in ("refused", "other") and role(event.wanted)), None)
    blamed = next((event for event in seen.all(ImpossibleRequest) if event.held), None)
    if held is not None and role(held.value) and (changed or refused or blamed):
        return found(STRONG, held, changed, refused, blamed, library=held.value, wanted="?", installed="-", variant="held")
    if changed is not None and held is None:
        return found(LIKELY, changed, library="?", wanted="?", installed="-")
    return None


@rule("package-version-not-in-repo")
def no_such_version(seen: Evidence) -> Answer:
    """The package is known, and no repository has the version."""
    said = next((event for event in seen.all(VersionNotFound) if OF_VENDORS.search(event.name) or _LIBRARY.fullmatch(event.name)), None)
    said = said or seen.first(VersionNotFound)
    return found(CERTAIN, said, package=said.name, version=said.version) if said else None


def _bound(event: Unmet) -> bool:
    """Return whether prebuilt modules, or what stands for them, put an upper bound on the driver's version."""
    return event.relation in ("<=", "<<") and bool(
        re.match(r"nvidia-kernel-(common|source)|nvidia-driver|linux-(modules|objects)-nvidia", event.wanted)
    )


def _pins(seen: Evidence, bound: Unmet) -> bool:
    """Return whether an upper bound is half of a pair that names the one release which the rest of the list wants by `=`."""
    least = numbers.upstream(bound.version)
    all_unmet = seen.all(Unmet)
    lower = any(event.wanted == bound.wanted and event.relation == ">=" and numbers.upstream(event.version) == least for event in all_unmet)
    exact = any(event.relation == "=" and numbers.upstream(event.version) == least for event in all_unmet)
    prebuilt = any(re.match(r"linux-(?:modules|objects|signatures)-nvidia", event.name) for event in all_unmet)
    return bound.other is None and lower and exact and not prebuilt


@rule("prebuilt-modules-lag-driver")
def prebuilt_lag(seen: Evidence) -> Answer:
    """Prebuilt modules allow the driver's packages up to a version that lies below the one on offer."""
    bound = next((event for event in seen.all(Unmet) if _bound(event) and not _pins(seen, event)), None)
    if bound is None:
        return None
    least = numbers.upstream(bound.version) or bound.version or "?"
    offered = numbers.upstream(bound.other) or bound.other
    if offered and numbers.agree(offered, least) and bound.other == bound.version:
        return out(bound)
    return found(CERTAIN if offered else STRONG, bound, bound=least, offered=offered or "?")


def wants_old_branch(event: Unmet) -> bool:
    """Return whether CUDA packages, not the driver's own, want a branch of the driver."""
    wants = re.match(
        r"(?:lib)?nvidia-(?:compute|driver|headless|utils|kernel)\S*?-(\d{3})\b|nvidia-(\d{3})$|cuda-drivers(?:-(\d{3}))?$|libcuda1$|xorg-video-abi-\S+",
        event.wanted,
    )
    ours = bool(
        re.match(
            r"cuda(?:-\d|-runtime|-demo|$)|nvidia-cuda|nvidia-cudnn|nvidia-profiler|libcuinj64|libcublas|libcudart|libcudnn|libnvblas|libnccl|nvidia-visual",
            event.name,
        )
    )
    return bool(wants) and ours


_METAPACKAGES = re.compile(r"cuda(?:-runtime)?(?:-\d+-\d+)? cuda-(?:runtime-|demo-suite-)?\d+-\d+")


def _past(package: str) -> bool:
    """Return whether a CUDA package is of a line that is older than all that we know."""
    line = re.search(r"-(\d+)-(\d+)$", package)
    return line is not None and versions.number(f"{line[1]}.{line[2]}") < min(versions.number(known) for known in stack.cudas())


@rule("old-cuda-packages-want-old-driver")
def old_cuda(seen: Evidence) -> Answer:
    """CUDA packages need a branch of the driver below the installed one."""
    wants = next((event for event in seen.all(Unmet) if wants_old_branch(event)), None)
    abi = next((event for event in seen.all(Unmet) if event.wanted.startswith("xorg-video-abi")), None)
    if wants is None and abi is None:
        # apt stops at the first link of the chain: of its metapackages only the driver's is one that it cannot have.
        chain = next(
            (
                event
                for event in seen.all(Unmet)
                if event.why == "refused" and _METAPACKAGES.fullmatch(f"{event.name} {event.wanted}") and _past(event.wanted)
            ),
            None,
        )
        return found(POSSIBLE, chain, package=chain.name, variant="chain") if chain is not None and seen.has(ImpossibleRequest) else None
    first = wants or abi
    if first is None:
        return None
    branch = re.search(r"-(\d{3})\b", first.wanted)
    package = next((row for row in seen.packages.driver() if row.driver), None)
    loaded = next(iter(seen.versions.loaded), None)
    mine = package or loaded
    version = package.driver if package is not None else loaded.value if loaded is not None else None
    needs = branch[1] if branch else (numbers.upstream(first.version) or first.wanted)
    if branch and version and int(branch[1]) >= int(numbers.branch(version)):
        return out(first, mine)
    return found(CERTAIN if wants and version else STRONG, wants, abi, mine, package=first.name or "cuda", branch=needs)


@rule("multiarch-driver-version-skew")
def multiarch(seen: Evidence) -> Answer:
    """Two architectures of one package differ in version."""
    shared = next((event for event in seen.all(Overwrite) if event.shared), None)
    differ = seen.first(ArchitecturesDiffer)
    pair = _two_architectures(seen)
    name = (shared.package if shared else None) or (differ.package if differ else None)
    if shared or differ:
        return found(CERTAIN, shared, differ, *pair, package=name or "?")
    if pair and (seen.all(Unmet) or seen.first(ImpossibleRequest)):
        return found(LIKELY, *pair, package=pair[0].name)
    return None


def _two_architectures(seen: Evidence) -> tuple[Row, ...]:
    """Return the two rows of a driver's package that differ by architecture and version, or nothing."""
    rows = [row for row in seen.packages.rows if row.arch and role(row.name)]
    for one in rows:
        for other in rows:
            if one.name == other.name and one.arch != other.arch and one.version != other.version:
                return (one, other)
    return ()
