"""Repairs of repositories: a key that is gone, two entries for one archive, an archive of another release, two of one driver."""

from __future__ import annotations

import re

import msgspec

from steps.catalog.stack import repository_of
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
    tool,
    write,
)  # fmt: skip
from steps.doctor.repairs.builds import machine_of
from steps.doctor.rules.base import Candidate
from steps.managers import apt_repository

_TOOLKIT = "nvidia.github.io/libnvidia-container"
_NVIDIA = "developer.download.nvidia.com/compute/cuda/repos/"


@repairs("apt-repo-key-rotated")
def new_key(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the repository anew with the key that signs it now, confined to it; the entry of the old key goes out of the way."""
    url = next((event.url for event in seen.all(KeyMissing) if event.url and _NVIDIA in event.url), None) or _configured(seen)
    if url is None or manager_of(seen) != "apt":
        return Plan(steps=(person("key-by-hand"), refresh(manager_of(seen))), verify=proof("lists", manager_of(seen)))
    address = re.match(r"\S*?/repos/[^/\s]+/[^/\s]+", url)
    whole = f"{address[0] if address else url.rstrip('/')}/"
    return Plan(steps=(*_without(seen, whole), _added(whole)), verify=proof("lists", "apt"))


def _configured(seen: Evidence) -> str | None:
    return next((source.url for source in seen.repositories if _NVIDIA in source.url), None)


def nvidias_archive(seen: Evidence, key: str) -> tuple[Step, ...]:
    """Return what makes NVIDIA's archive for this system known; nothing where it, or the toolkit's own, is known already.

    A person's where NVIDIA has none for the system.
    """
    manager = manager_of(seen)
    if manager == "pacman" or any(_NVIDIA in source.url or _TOOLKIT in source.url for source in seen.repositories):
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
    """Return what makes one file say nothing of an archive: the file goes aside, or its lines become remarks where it names others too."""
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
    last = _added(own) if own and any(_NVIDIA in url for url in foreign) else refresh("apt")
    return Plan(steps=(*away, last), verify=proof("lists", "apt"))


def _own_url(seen: Evidence) -> str | None:
    """Return NVIDIA's repository for this release and architecture, or `None` where there is none."""
    row = repository_of(seen.system.id, seen.system.version)
    arch = {"aarch64": "sbsa"}.get(seen.system.architecture or "", "x86_64")
    return row.url.replace("{arch}", arch) if row and arch in row.arches else None


@repairs("two-repos-same-branch")
def one_source(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the pin that takes the driver from one archive only, the one that the installed packages are from."""
    manager, chosen = manager_of(seen), str(candidate.params.get("chosen", ""))
    if manager != "apt":
        return Plan(steps=(person("one-source"), refresh(manager)), verify=proof("packages", manager))
    ours = "ubuntu0." in chosen or (bool(seen.packages.driver()) and any("ubuntu0." in row.version for row in seen.packages.driver()))
    names = "*nvidia* cuda-drivers* libcuda1* libxnvctrl* xserver-xorg-video-nvidia*"
    priority = -1 if ours else 900
    text = f"# The driver comes from one archive only.\nPackage: {names}\nPin: release l=NVIDIA CUDA\nPin-Priority: {priority}\n"
    pin = write("one-source", "/etc/apt/preferences.d/bringup-one-driver-source", text)
    return Plan(steps=(pin, refresh("apt"), tool("fix-broken", "fix-broken", "apt")), verify=proof("packages", "apt"))
