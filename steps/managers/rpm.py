"""What rpm has: the part that dnf and zypper share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from steps.managers.base import Installed

if TYPE_CHECKING:
    from steps.host.base import Host

_FORMAT = r"%{NAME}\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\t%{ARCH}\n"


def packages(host: Host) -> Mapping[str, Installed] | None:
    """Return every installed package; kernels and others that live side by side are named "name-version". `None`: not known."""
    told = host.run(("rpm", "-qa", "--qf", _FORMAT), timeout=120.0)
    if told.status != 0:
        return None
    found: dict[str, Installed] = {}
    for line in sorted(told.stdout.splitlines()):
        name, version, architecture = line.split("\t")
        key = name if name not in found else f"{name}-{version}"
        found[key] = Installed(version=version, architecture=architecture)
    return found


def installed(host: Host, names: tuple[str, ...]) -> Mapping[str, str | None]:
    """Return the newest installed version of each name, `None` for absent ones; empty when rpm did not answer."""
    found: dict[str, str | None] = {}
    for name in names:
        told = host.run(("rpm", "-q", "--qf", _FORMAT, name), timeout=30.0)
        if told.status is None or told.status == 127:
            return {}
        lines = [line.split("\t") for line in told.stdout.splitlines() if line.count("\t") == 2]
        found[name] = lines[-1][1] if told.status == 0 and lines else None
    return found


def releases(host: Host, name: str) -> tuple[str, ...]:
    """Return every installed release of a package as "name-epoch:version-release.arch", the newest last; none where there is none."""
    told = host.run(("rpm", "-q", "--qf", _FORMAT, name), timeout=30.0)
    rows = (line.split("\t") for line in told.stdout.splitlines() if line.count("\t") == 2)
    return tuple(f"{name}-{version}.{architecture}" for name, version, architecture in rows)


def installed_bytes(names: tuple[str, ...], host: Host) -> int | None:
    """Return the installed size of the packages called `names`; `None` when rpm did not answer."""
    if not names:
        return 0
    told = host.run(("rpm", "-q", "--qf", r"%{LONGSIZE}\n", *names), timeout=60.0)
    # Of a package that is not installed rpm says so in a sentence, in the same stream.
    sizes = [int(line) for line in told.stdout.splitlines() if line.isdigit()]
    return sum(sizes) if sizes else None


def settings_of(names: tuple[str, ...], host: Host) -> tuple[str, ...]:
    """Return the configuration files of the installed packages among `names`."""
    if not names:
        return ()
    # Of a package that is not installed rpm says so in a sentence, in the same stream.
    return tuple(line for line in host.run(("rpm", "-qc", *names), timeout=60.0).stdout.splitlines() if line.startswith("/"))
