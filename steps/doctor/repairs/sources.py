"""Repairs of repositories: a key that is gone, two entries for one archive, an archive of another release, two of one driver."""

from __future__ import annotations

import re

import msgspec

from steps.catalog.stack import repository_at, repository_of
from steps.compat import toolkit_plan
from steps.compat.case import Case
from steps.compat.search import BARE
from steps.doctor.diagnosis import Step
from steps.doctor.events.repositories import KeyMissing
from steps.doctor.evidence import Evidence
from steps.doctor.facts.repositories import Source
from steps.doctor.repairs.base import (
    Plan,
    aside,
    made_of,
    manager_of,
    person,
    proof,
    refresh,
    repairs,
    write,
)  # fmt: skip
from steps.doctor.repairs.builds import machine_of
from steps.doctor.repairs.halves import completed
from steps.doctor.rules.base import Candidate
from steps.doctor.rules.mixed_install import builder
from steps.managers import apt_repository

_TOOLKIT = "nvidia.github.io/libnvidia-container"
_SEQUOIA = "/usr/share/apt/default-sequoia.config"
"""What apt asks of keys where it verifies with Sequoia, as the package has it."""
_SEQUOIA_HERE = "/etc/crypto-policies/back-ends/apt-sequoia.config"
"""The same as this machine wants it, read in its place."""


@repairs("apt-repo-key-rotated")
def new_key(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the repository anew with the key that signs it now, confined to it; the entry of the old key goes out of the way.

    What is fetched has the table's address, whatever a log says. A key that is refused for its age helps nobody anew: where the
    repository has no younger one a person decides whether apt may still take it.
    """
    manager, whole = manager_of(seen), _signed_anew(seen)
    known = repository_at(whole) if whole else None
    if candidate.variant == "weak" and (known is None or known[0].key_by_sha1 is not False):
        allow = person("key-policy", "install", "-D", "-m", "644", _SEQUOIA, _SEQUOIA_HERE, path=_SEQUOIA_HERE)
        return Plan(steps=(allow, refresh(manager)), verify=proof("lists", manager))
    if whole is None or manager != "apt":
        return Plan(steps=(person("key-by-hand"), refresh(manager)), verify=proof("lists", manager))
    return Plan(steps=(*_without(seen, whole), _added(whole)), verify=proof("lists", "apt"))


def _signed_anew(seen: Evidence) -> str | None:
    """Return the address of the repository of NVIDIA's whose key is missing, by the table; `None` where it is not one for this system."""
    configured = [found[1] for source in seen.repositories if (found := repository_at(source.url))]
    named = next((found[1] for event in seen.all(KeyMissing) if event.url and (found := repository_at(event.url))), None)
    asked = any(event.url for event in seen.all(KeyMissing))
    own = _own_url(seen)
    if named is None:
        return next(iter(configured), None) if not asked else None
    # One that is neither this system's nor here was somebody else's.
    return named if named in (own, *configured) or own is None else None


def nvidias_archive(seen: Evidence, key: str) -> tuple[Step, ...]:
    """Return what makes NVIDIA's archive for this system known; nothing where it, or the toolkit's own, is known already.

    A person's where NVIDIA has none for the system.
    """
    manager = manager_of(seen)
    if manager == "pacman" or any(repository_at(source.url) or _TOOLKIT in source.url for source in seen.repositories):
        return ()
    actions = toolkit_plan.source(Case(machine_of(seen), BARE), manager) if manager else ()
    return (made_of(key, actions),) if actions else (person(f"{key}-by-hand"),)


def _added(url: str) -> Step:
    """Return the repository by way of NVIDIA's keyring package."""
    actions = apt_repository.nvidia_repository(url)
    # A key file that is there may be the old key.
    fresh = tuple(msgspec.structs.replace(one, done_when=()) if one.id == "repository.key" else one for one in actions)
    return made_of("repository-anew", fresh, url=url)


def _same(one: str, other: str) -> bool:
    return re.sub(r"^https?://", "", one).rstrip("/") == re.sub(r"^https?://", "", other).rstrip("/")


def _without(seen: Evidence, url: str, *, but: str | None = None) -> tuple[Step, ...]:
    """Return what takes the entries for an archive out of the way, those of one file excepted."""
    paths = dict.fromkeys(source.place.source for source in seen.repositories if _same(source.url, url) and source.place.source != but)
    return tuple(_disabled(seen, path, url) for path in paths)


def _disabled(seen: Evidence, path: str, url: str) -> Step:
    """Return what makes one file say nothing of an archive: the file goes aside, or its lines become comments where it names others too."""
    others = [source for source in seen.repositories if source.place.source == path and not _same(source.url, url)]
    if not others and path.startswith("/etc/apt/sources.list.d/"):
        return aside("entry-aside", path, url=url)
    text = seen.host.read(path) or ""
    if path.endswith(".sources"):
        return person("entry-by-hand", path=path, url=url)
    lines = [f"# bringup: {line}" if _names(line, url) else line for line in text.splitlines()]
    return write("entry-out", path, "\n".join(lines) + "\n", url=url)


def _names(line: str, url: str) -> bool:
    found = re.match(r"\s*deb(?:-src)?(?: +\[[^\]]*\])? +(\S+)", line)
    return found is not None and _same(found[1], url)


@repairs("apt-signed-by-conflict")
def one_entry(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what leaves one entry for the archive: the one whose key is there, else the first."""
    url = str(candidate.params.get("url", ""))
    mine = [source for source in seen.repositories if _same(source.url, url)]
    if len({source.place.source for source in mine}) < 2:
        return Plan(
            steps=(person("one-entry", "grep", "-r", url or "nvidia", "/etc/apt", url=url), refresh("apt")), verify=proof("lists", "apt")
        )
    keep = next((source for source in mine if _key_there(seen, source)), mine[0])
    return Plan(steps=(*_without(seen, url, but=keep.place.source), refresh("apt")), verify=proof("lists", "apt"))


def _key_there(seen: Evidence, source: Source) -> bool:
    """Return whether an entry names a key file that exists."""
    text = seen.host.read(source.place.source) or ""
    found = re.search(r"signed-by=([^\]\s]+)|^Signed-By: *(\S+)", text, re.MULTILINE | re.IGNORECASE)
    return found is not None and seen.host.exists(found[1] or found[2]) is True


@repairs("repo-for-other-distro")
def own_release(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what takes the other release's archive away and, where NVIDIA has one for this release, adds that."""
    manager, theirs = manager_of(seen), str(candidate.params.get("theirs", ""))
    foreign = list(dict.fromkeys(source.url for source in seen.repositories if source.release and source.release == theirs))
    if manager != "apt" or not foreign:
        keys = ("foreign-packages",) if candidate.variant == "packages" else ("foreign-entry",)
        return Plan(steps=(*(person(key, theirs=theirs) for key in keys), refresh(manager)), verify=proof("lists", manager))
    away = tuple(step for url in foreign for step in _without(seen, url))
    own = _own_url(seen)
    # A second entry for an archive, with another key, would stop every call of apt.
    there = own is not None and any(_same(source.url, own) for source in seen.repositories)
    last = _added(own) if own and not there and any(repository_at(url) for url in foreign) else refresh("apt")
    return Plan(steps=(*away, last), verify=proof("lists", "apt"))


def _own_url(seen: Evidence) -> str | None:
    """Return NVIDIA's repository for this release and architecture, or `None` where there is none."""
    row = repository_of(seen.system.id, seen.system.version)
    arch = {"aarch64": "sbsa"}.get(seen.system.architecture or "", "x86_64")
    return row.url.replace("{arch}", arch) if row and arch in row.arches else None


_DRIVER = (
    "cuda-drivers cuda-drivers-[0-9]* libcuda1* libnvcuvid1* libnvoptix1* libnvidia-[0-9]* libnvidia-a* libnvidia-cfg* libnvidia-com* "
    "libnvidia-d* libnvidia-eglcore* libnvidia-en* libnvidia-ex* libnvidia-f* libnvidia-g* libnvidia-if* libnvidia-ml* libnvidia-ng* "
    "libnvidia-nvvm* libnvidia-op* libnvidia-p* libnvidia-r* libnvidia-vks* libxnvctrl* linux-modules-nvidia-* linux-objects-nvidia-* "
    "linux-signatures-nvidia-* nvidia-compute* nvidia-dkms* nvidia-driver* nvidia-firmware* nvidia-headless* nvidia-kernel* "
    "nvidia-libopencl1* nvidia-modprobe* nvidia-open* nvidia-persistenced* nvidia-settings* nvidia-smi* nvidia-utils* "
    "nvidia-vdpau-driver* nvidia-xconfig* xserver-xorg-video-nvidia*"
)
"""Globs of the driver's own packages: none of the container toolkit's, the fabric manager's or CUDA's libraries."""


@repairs("two-repos-same-branch")
def one_source(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the pin that takes the driver from one archive only: the one that the installed packages are from.

    Where none is installed it is the one that apt would choose; where they are from both a person decides.
    """
    manager, chosen = manager_of(seen), str(candidate.params.get("chosen", ""))
    versions = {row.version for row in seen.packages.driver() if "-" in row.version} or {chosen}
    builders = {builder(version) == "nvidia" for version in versions}
    if manager != "apt" or len(builders) > 1:
        return Plan(steps=(person("one-source"), refresh(manager)), verify=proof("packages", manager))
    priority = 900 if builders == {True} else -1
    text = f"# The driver comes from one archive only.\nPackage: {_DRIVER}\nPin: release l=NVIDIA CUDA\nPin-Priority: {priority}\n"
    pin = write("one-source", "/etc/apt/preferences.d/bringup-one-driver-source", text)
    return Plan(steps=(pin, refresh("apt"), completed("apt")), verify=proof("packages", "apt"))
