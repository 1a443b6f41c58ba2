"""Package managers that will not: repositories, versions, branches, locks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.catalog import stack, versions
from steps.doctor import numbers
from steps.doctor.events.dkms import BuildFailed, DkmsTreeBroken
from steps.doctor.events.packages import (
    ArchitecturesDiffer,
    Conflict,
    HeldChange,
    ImpossibleRequest,
    Overwrite,
    Unmet,
    VersionNotFound,
)
from steps.doctor.events.repositories import (
    BadSignature,
    Failed,
    HashMismatch,
    KeyMissing,
    MetadataStale,
    NoRelease,
    OfferedFrom,
    SignedByConflict,
    UnexpectedSize,
)
from steps.doctor.events.runs import Conffile, Interrupted, Locked, NoSpace, NoTerminal
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Row, role
from steps.doctor.facts.processes import running
from steps.doctor.facts.repositories import codenames, token
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.rules.mixed_install import one_branch
from steps.doctor.rules.ssh_installer import half_configured
from steps.doctor.told import Fact, Told, fact

_CUDA_SUFFIX = re.compile(r"\+cuda(\d+(?:\.\d+)*)")
_LIBRARY = re.compile(r"lib(?:nccl|cudnn|nvinfer|nvonnx|cusparselt|cutensor|nvshmem)\S*|cudnn\S*|tensorrt\S*|python3-libnvinfer\S*")
_BRINGS_DRIVER = re.compile(r"cuda(?:-(?:runtime|demo-suite|drivers))?(?:-\d+)*")
"""Packages of NVIDIA's repository that bring a driver with them."""
_NVIDIA = re.compile(r"nvidia|cuda|cudnn|nccl|nsight|amdgpu|rocm|hip|libcu|nvinfer|tensorrt")
_BASE = re.compile(
    r"libc6|libc-bin|libssl\S*|libstdc\+\+6|libgcc-s1|libtinfo\d|libncurses\S*|python3(?:\.\d+)?|libpython3\S*|libicu\d+|glibc|libxml2\S*|libffi\d|libjson-c\d|libelf\S*|xorg-video-abi-\S+"
)


# -- repositories -----------------------------------------------------------------------------------------------------


@rule("apt-repo-key-rotated")
def key_rotated(seen: Evidence) -> Answer:
    """A repository for this very release is signed with a key that is not here."""
    missing = next((event for event in seen.all(KeyMissing) if _vendor(event.url)), None)
    if missing is None:
        return None
    foreign = _foreign(seen, missing.url or "")
    if foreign is not None:
        return out(foreign, missing)
    known = seen.system.id is not None and token(missing.url or "") is not None
    sure = CERTAIN if known else STRONG
    return found(
        sure - 0.1 if missing.weak else sure, missing, _release(seen), key=missing.key or "?", variant="weak" if missing.weak else ""
    )


def _vendor(url: str | None) -> bool:
    """Return whether an address, or the name of a repository or package, is a GPU vendor's."""
    return bool(url and re.search(r"nvidia|cuda|radeon|rocm|habana|intel\.com/graphics", url))


def _release(seen: Evidence) -> Fact | None:
    """Return what the machine is, or `None`; Debian's testing has no number."""
    if seen.system.id is None:
        return None
    if seen.system.version is None:
        return fact(seen.system.id, "/etc/os-release", f"ID={seen.system.id}")
    value = f"{seen.system.id}{seen.system.version.replace('.', '')}"
    return fact(value, "/etc/os-release", f"ID={seen.system.id} VERSION_ID={seen.system.version}")


def _foreign(seen: Evidence, url: str) -> Fact | None:
    """Return this machine's release where an address names another distribution or release, else `None`."""
    theirs, mine = token(url), _release(seen)
    if theirs is None or mine is None:
        return None
    name, number = re.match(r"([a-z]+)(\d*)", theirs).groups()  # type: ignore[union-attr]  # a token begins with letters
    version = (seen.system.version or "").replace(".", "")
    family = {seen.system.id, *seen.system.like}
    cousins = {"rhel": {"rhel", "centos", "rocky", "almalinux", "ol", "fedora"}, "sles": {"sles", "suse", "opensuse"}}.get(name, {name})
    if not family & cousins:
        return mine
    # Ubuntu, and what is made of it, is Debian's family and takes nothing that was built for a Debian.
    if name == "debian" and "ubuntu" in family:
        return mine
    # A distribution made of another one counts its own releases.
    if seen.system.id not in cousins and name in ("ubuntu", "debian"):
        return None
    own = version if name in ("ubuntu", "fedora") else (seen.system.version or "").partition(".")[0]
    return None if own in (number, "") or not number else mine


@rule("repo-for-other-distro")
def other_distribution(seen: Evidence) -> Answer:
    """An address, a suite, or what its packages need is another release's."""
    for event, url in _addresses(seen):
        mine = _foreign(seen, url)
        if mine is not None:
            return found(CERTAIN, event, mine, theirs=token(url) or "?", mine=mine.value)
    base = next((unmet for unmet in seen.all(Unmet) if _wants_other_base(unmet)), None)
    for source in seen.repositories:
        mine = _foreign(seen, source.url)
        if mine is not None and (base or seen.has(Unmet) or seen.has(NoRelease)):
            return found(CERTAIN, source, mine, base, theirs=source.release or "?", mine=mine.value)
        if mine is not None and not seen.driver_answers:
            return found(POSSIBLE, source, mine, theirs=source.release or "?", mine=mine.value)
    suite = _foreign_suite(seen)
    if suite is not None:
        return found(STRONG, *suite, theirs=suite[0].value, mine=suite[1].value)
    if base is not None:
        return found(STRONG, base, _release(seen), theirs=base.version or base.wanted, mine=base.other or "-", variant="packages")
    return _package_suffix(seen)


def _addresses(seen: Evidence) -> Iterator[tuple[Told, str]]:
    """Yield every message about a repository with its address."""
    for missing in seen.all(KeyMissing):
        yield missing, missing.url or ""
    for absent in seen.all(NoRelease):
        yield absent, absent.url
    for bad in seen.all(BadSignature):
        yield bad, bad.url or ""
    for offer in seen.all(OfferedFrom):
        yield offer, offer.repository
    for failed in seen.all(Failed):
        yield failed, failed.url


def _wants_other_base(unmet: Unmet) -> bool:
    """Return whether a vendor's package needs a library of the system that this release has in another version, or not at all."""
    # A library whose name counts its interface, and that nobody offers, is another release's.
    library = unmet.why == "absent" and re.fullmatch(r"lib[a-z][a-z0-9+.-]*?\d+(?:t64)?", unmet.wanted) and not _NVIDIA.search(unmet.wanted)
    if (
        not (_BASE.fullmatch(unmet.wanted) or (library and unmet.name))
        or "xorg" in unmet.wanted
        or (unmet.name and not _NVIDIA.search(unmet.name))
    ):
        return False
    return unmet.why in ("other", "absent") or (unmet.why == "refused" and unmet.relation in (">=", ">>"))


def _foreign_suite(seen: Evidence) -> tuple[Fact, Fact] | None:
    """Return a suite of a vendor's source that is another release's, and this machine's release, or `None`."""
    mine = _release(seen) if seen.system.version else None
    for source in seen.repositories:
        known = codenames().get((source.suite or "").partition("-")[0])
        if known and mine and _vendor(source.url) and seen.system.id in known[0] and known[1] != seen.system.version:
            return Fact(place=source.place, value=source.suite or "?"), mine
    return _refused_suite(seen, mine) if mine is not None else None


_OF_LAUNCHPAD = re.compile(r"https?://ppa\.launchpad(?:content)?\.net/")
"""Its archives are for Ubuntu alone, and each suite is the name of a release."""


def _refused_suite(seen: Evidence, mine: Fact) -> tuple[Fact, Fact] | None:
    """Return the suite of another release that a server has not, and this machine's release, or `None`."""
    named = {release: name for name, (ids, release) in codenames().items() if seen.system.id in ids}
    own = seen.system.codename or named.get(seen.system.version or "")
    for absent in seen.all(NoRelease):
        suite = (absent.suite or "").partition("-")[0]
        if not suite or own in (None, suite):
            continue
        known = codenames().get(suite)
        listed = known is not None and _vendor(absent.url) and seen.system.id in known[0]
        if listed or (seen.system.id == "ubuntu" and _OF_LAUNCHPAD.match(absent.url)):
            return Fact(place=absent.place, value=suite), mine
    return None


def _package_suffix(seen: Evidence) -> Answer:
    """Decide by the release in a package's own version, as AMD's repository writes it."""
    mine = _release(seen) if seen.system.version else None
    if mine is None or seen.system.id != "ubuntu":
        return None
    for row in seen.packages.rows:
        told = re.search(r"[.-](\d\d\.\d\d)$", row.version)
        if told and re.match(r"amdgpu|rocm|hip", row.name) and told[1] != seen.system.version:
            return found(POSSIBLE, row, mine, theirs=told[1], mine=mine.value, variant="packages")
    return None


@rule("apt-signed-by-conflict")
def signed_by(seen: Evidence) -> Answer:
    """Two entries name different keys for one repository."""
    said = seen.first(SignedByConflict)
    if said is None:
        return None
    twice = [source for source in seen.repositories if source.url.rstrip("/") == said.url.rstrip("/")]
    if not (said.one and said.other):
        return found(CERTAIN, said, *twice[:2], url=said.url, one=said.one or said.other or "?", variant="none")
    return found(CERTAIN, said, *twice[:2], url=said.url, one=said.one, other=said.other)


@rule("http-cache-corrupts-repo-data")
def corrupted(seen: Evidence) -> Answer:
    """What came has the right size and another content, or a signature by a known key does not fit."""
    bad = seen.first(BadSignature, lambda event: event.url is None or not event.url.startswith("https:"))
    same = next((event for event in seen.all(HashMismatch) if event.expected is not None and event.expected == event.received), None)
    unknown = next((event for event in seen.all(HashMismatch) if event.expected is None or event.received is None), None)
    if seen.has(HashMismatch, lambda event: None not in (event.expected, event.received) and event.expected != event.received):
        other = seen.first(HashMismatch, lambda event: event.expected != event.received)
        return out(other)
    event = same or bad or unknown
    if event is None or seen.first(NoSpace):
        return None
    url = event.url or ""
    if url.startswith("https:"):
        return found(POSSIBLE - 0.1, event, url=url)
    if event is unknown:
        return found(POSSIBLE + 0.05, event, url=url or "?")
    return found(CERTAIN if url else STRONG, event, url=url or "?")


@rule("repo-inconsistent-on-server")
def inconsistent(seen: Evidence) -> Answer:
    """The server's files are of two states, or nobody offers the members of one version."""
    size = seen.first(UnexpectedSize)
    other = seen.first(HashMismatch, lambda event: None not in (event.expected, event.received) and event.expected != event.received)
    if size or other or seen.first(MetadataStale):
        return found(CERTAIN if size or other else STRONG, size, other, seen.first(MetadataStale))
    absent = [event for event in seen.all(Unmet) if event.why == "absent" and event.version and _NVIDIA.search(event.wanted)]
    exact = [event for event in absent if event.relation == "=" or (event.version and _NVIDIA.search(event.name))]
    refused = [event for event in seen.all(Unmet) if event.why in ("refused", "other") and _NVIDIA.search(event.wanted)]
    if not absent and not refused:
        lone = next((event for event in seen.all(Unmet) if event.why == "absent" and _of_one_branch(event)), None)
        return found(POSSIBLE + 0.1, lone, variant="members") if lone is not None else None
    old = any(_old_branch(event) for event in (*exact, *refused))
    if exact and not old and not any(_wants_other_base(event) for event in seen.all(Unmet)):
        return found(STRONG if len(exact) > len(refused) else LIKELY - 0.1, *exact[:3], variant="members")
    return None


def _of_one_branch(event: Unmet) -> bool:
    """Return whether a package of the driver wants another one with the same branch in its name."""
    mine, theirs = re.search(r"-(\d{3})\b", event.name), re.search(r"-(\d{3})\b", event.wanted)
    return mine is not None and theirs is not None and mine[1] == theirs[1] and bool(_NVIDIA.search(f"{event.name} {event.wanted}"))


# -- versions ---------------------------------------------------------------------------------------------------------


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
    if any((_bound(event) and not _pins(seen, event)) or _old_branch(event) or one_branch(event) for event in seen.all(Unmet)) or any(
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
            installed=installed.version if installed else "-",
        )
    if refused and not any(event.why == "absent" for event in seen.all(Unmet)):
        return found(
            LIKELY,
            *refused[:3],
            installed,
            none_held,
            wanted=refused[0].version or refused[0].wanted,
            installed=installed.version if installed else "-",
        )
    if impossible is not None and asked is not None and not seen.all(Unmet):
        return found(
            STRONG if none_held else LIKELY,
            impossible,
            asked,
            none_held,
            installed,
            wanted=" ".join(asked.words[2:5]),
            installed=installed.version if installed else "-",
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
    name = next((name for name in seen.packages.held or () if _NVIDIA.search(name)), None)
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
    said = next((event for event in seen.all(VersionNotFound) if _NVIDIA.search(event.name) or _LIBRARY.fullmatch(event.name)), None)
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


def _old_branch(event: Unmet) -> bool:
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
    wants = next((event for event in seen.all(Unmet) if _old_branch(event)), None)
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


# -- runs -------------------------------------------------------------------------------------------------------------


@rule("dpkg-interrupted")
def interrupted(seen: Evidence) -> Answer:
    """An earlier run died, and nothing says of what."""
    said = seen.first(Interrupted)
    half = half_configured(seen)
    if said is None and not half:
        return None
    holder = _holder(seen)
    if holder is not None and said is None:
        return out(holder)
    asked = seen.first(Conffile) or (seen.first(NoTerminal) if half and not said else None)
    reasons: tuple[Told | None, ...] = (
        seen.first(BuildFailed),
        seen.first(DkmsTreeBroken),
        seen.first(Overwrite),
        seen.first(NoSpace),
        asked,
    )
    reason = next((one for one in reasons if one is not None), None)
    if reason is not None:
        return found(POSSIBLE - 0.1, said, *half[:2], package=half[0].value if half else "?")
    if said is None:
        failed = next((row for row in seen.packages.rows if row.state[1:2] == "F"), None)
        return found(POSSIBLE, *half[:3], package=failed.name if failed else half[0].value, variant="failed" if failed else "")
    return found(CERTAIN if half else STRONG + 0.05, said, *half[:3], package=half[0].value if half else "?")


def _holder(seen: Evidence) -> Told | None:
    """Return who holds a lock and lives, as a list of processes tells, or `None`."""
    return running(seen.processes, r"unattended-upgr\S*|packagekitd|apt|apt-get|dpkg|aptitude|aptd|dnf|yum|zypper|synaptic|update-manager")


@rule("apt-lock-held")
def lock_held(seen: Evidence) -> Answer:
    """Another package manager lives and holds the lock."""
    locks = sorted(seen.all(Locked), key=lambda event: (event.holder is None, event.pid is None))
    if not locks:
        return None
    lock, holder = locks[0], _holder(seen)
    if seen.first(Interrupted) and lock.pid is None and holder is None:
        return None
    name = lock.holder or (holder.place.text if holder else None) or "?"
    return found(CERTAIN if lock.holder or lock.pid or holder else LIKELY, lock, holder, holder=name[:60], pid=str(lock.pid or "?"))
