"""What the package manager of a machine could install now, from the indexes it already has; nothing is fetched or changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steps.host.base import Host

Offered = Mapping[str, tuple[str, ...]]
_SECONDS = 20.0
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")
_DRIVER = re.compile(r"nvidia-driver-(\d{3,4})(?:-server)?(?:-open)?|nvidia-tesla-(\d{3,4})-driver")
# What every machine of the kind can install: when not even this is offered, the lists are empty and say nothing.
_APT_SURE, _DNF_SURE = "apt", "bash"
_STATUS = "/var/lib/dpkg/status"


def by(manager: str | None, host: Host, names: Iterable[str]) -> Offered | None:
    """Return what a manager offers under these names, empty for a name that it does not; `None` when it cannot say."""
    wanted = tuple(dict.fromkeys(name for name in names if _NAME.fullmatch(name)))
    if manager == "apt":
        return by_apt(host, wanted)
    return by_dnf(host, wanted) if manager == "dnf" else None


def by_apt(host: Host, names: tuple[str, ...]) -> Offered | None:
    """Return the versions in apt's lists, the one that would be installed first; `None` when the lists are not there."""
    told = host.run(("apt-cache", "policy", _APT_SURE, *names), timeout=_SECONDS)
    if told.status != 0:
        return None
    found = dict(_policies(told.stdout))
    if not found.get(_APT_SURE):
        return None
    return {name: found.get(name, ()) for name in names}


def _policies(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each package of `apt-cache policy` with its versions that come from a repository, the candidate first."""
    for section in re.split(r"^(?=\S+:$)", text, flags=re.MULTILINE):
        name, _, body = section.partition(":\n")
        candidate = re.search(r"^  Candidate: (\S+)$", body, re.MULTILINE)
        versions: list[str] = []
        for entry in re.split(r"^(?= (?:\*\*\*|   ) \S)", body.partition("Version table:\n")[2], flags=re.MULTILINE):
            head, _, origins = entry.partition("\n")
            version = re.match(r" (?:\*\*\*|   ) (\S+)", head)
            places = [line.split() for line in origins.splitlines() if line.strip()]
            if version and any(place[1:2] != [_STATUS] for place in places):
                versions.append(version[1])
        first = candidate[1] if candidate else None
        if name:
            yield name, tuple(sorted(versions, key=lambda one: one != first))


def by_dnf(host: Host, names: tuple[str, ...]) -> Offered | None:
    """Return the versions in dnf's cache; `None` when there is no cache. Read as dnf's manual shows it, not yet tried on a real one."""
    told = host.run(("dnf", "-q", "-C", "repoquery", "--qf", "%{name} %{version}-%{release}\n", _DNF_SURE, *names), timeout=_SECONDS)
    if told.status != 0:
        return None
    found: dict[str, list[str]] = {}
    for line in told.stdout.splitlines():
        name, _, version = line.strip().partition(" ")
        if version and version not in found.setdefault(name, []):
            found[name].append(version)
    if not found.get(_DNF_SURE):
        return None
    return {name: tuple(reversed(found.get(name, ()))) for name in names}


def drivers(host: Host) -> tuple[str, ...]:
    """Return the names of the driver packages that apt knows, whatever their branch; empty when it cannot say."""
    told = host.run(("apt-cache", "pkgnames", "nvidia-"), timeout=_SECONDS)
    return tuple(sorted({name for name in told.stdout.split() if told.status == 0 and _DRIVER.fullmatch(name)}))


def branch_of(package: str) -> str | None:
    """Return the driver branch that a package's name says (`nvidia-driver-580-open`: 580), or `None`."""
    found = _DRIVER.fullmatch(package)
    return (found[1] or found[2]) if found else None


def upstream(version: str) -> str:
    """Return the driver's own version in a package's: `1:580.126.09-0ubuntu1` is 580.126.09."""
    found = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", version)
    return found[1] if found else version


def gpus_of(host: Host, package: str) -> tuple[str, ...] | None:
    """Return the modalias patterns that a driver package lists, lower case; `None` when it lists none, as outside Ubuntu."""
    told = host.run(("apt-cache", "show", "--no-all-versions", package), timeout=_SECONDS)
    found = re.search(r"^Modaliases: (.*)$", told.stdout, re.MULTILINE) if told.status == 0 else None
    return tuple(re.findall(r"pci:[^,)\s]+", found[1].lower())) if found else None
