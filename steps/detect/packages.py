"""The packages that matter here, from the package databases."""

from __future__ import annotations

import re
from typing import Literal

from steps.detect.probes import Probes
from steps.model.software import Package

STATUS = "/var/lib/dpkg/status"
_RPM = ("rpm", "-qa", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE}\\n")


class Packages:
    """The installed packages: name → version; `known` tells whether any database was seen."""

    def __init__(self, found: dict[str, str], manager: Literal["apt", "dnf"] | None) -> None:
        self._found = found
        self._names = "\n".join(sorted(found))
        self.manager: Literal["apt", "dnf"] | None = manager

    @property
    def known(self) -> bool:
        """Return whether a package database was seen at all."""
        return self.manager is not None

    def version(self, name: str) -> str | None:
        """Return the version of an installed package; `None` when it is not installed or not known."""
        return self._found.get(name)

    def matching(self, pattern: str) -> tuple[Package, ...]:
        """Return the installed packages whose whole name matches, sorted by name."""
        names = (found[0] for found in re.finditer(f"^(?:{pattern})$", self._names, re.MULTILINE))
        return tuple(Package(name=name, version=self._found[name]) for name in names)


def packages(host: Probes) -> Packages:
    """Return what is installed; dpkg's database is read, rpm's is asked."""
    status = host.read(STATUS)
    if status is not None:
        return Packages(from_dpkg_status(status), "apt")
    listed = next((found for argv in (("dpkg", "-l"),) if (found := _recorded(host, argv))), "")
    if listed:
        return Packages(from_dpkg_list(listed), "apt")
    if host.exists("/var/lib/rpm") or host.exists("/usr/lib/sysimage/rpm"):
        result = host.run(_RPM, timeout=20)
        if result.status == 0:
            return Packages(from_rpm(result.stdout), "dnf")
    listed = _recorded(host, ("rpm", "-qa"))
    return Packages(from_rpm(listed), "dnf") if listed else Packages({}, None)


def held(host: Probes) -> tuple[str, ...] | None:
    """Return the packages that dpkg was told to leave as they are; `None` where that could not be seen (rpm keeps its own list)."""
    status = host.read(STATUS)
    if status is not None:
        # Few machines hold a package, and the file has a megabyte: the mark is looked for, and then the line before it.
        before = (part.rpartition("\n")[2] for part in status.split("\nStatus: hold ")[:-1])
        return tuple(line.removeprefix("Package: ") for line in before if line.startswith("Package: "))
    listed = _recorded(host, ("dpkg", "-l"))
    return tuple(name.partition(":")[0] for name in re.findall(r"^h[a-zA-Z][ R]? +(\S+)", listed, re.MULTILINE)) if listed else None


def _recorded(host: Probes, argv: tuple[str, ...]) -> str:
    return host.run(argv).stdout if argv in host.host.recorded() else ""


def from_dpkg_status(text: str) -> dict[str, str]:
    """Return the packages that dpkg has installed; those whose settings only are left do not count."""
    found: dict[str, str] = {}
    for stanza in text.split("\n\n"):
        status = _field(stanza, "Status")
        if status is None or status.split()[-1:] != ["installed"]:
            continue
        name, version = _field(stanza, "Package"), _field(stanza, "Version")
        if name and version:
            found[name] = version
    return found


def _field(stanza: str, name: str) -> str | None:
    """Return a field of one line; found by searching, for there are thousands of stanzas and a dozen lines in each."""
    mark = f"{name}: "
    if stanza.startswith(mark):
        start = len(mark)
    else:
        at = stanza.find(f"\n{mark}")
        if at < 0:
            return None
        start = at + len(mark) + 1
    end = stanza.find("\n", start)
    return (stanza[start:] if end < 0 else stanza[start:end]).strip()


def from_dpkg_list(text: str) -> dict[str, str]:
    """Return the installed packages of `dpkg -l`."""
    return {name.partition(":")[0]: version for name, version in re.findall(r"^[ih]i[ R]? +(\S+) +(\S+)", text, re.MULTILINE)}


def from_rpm(text: str) -> dict[str, str]:
    """Return the packages of `rpm -qa`, in our format or its own (name-version-release.arch)."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, space, version = line.strip().partition(" ")
        whole = re.fullmatch(r"(\S+?)-(\d[^-]*-[^-]+?)(?:\.(?:x86_64|aarch64|noarch|i686))?", name)
        if space:
            found[name] = version
        elif whole:
            found[whole[1]] = whole[2]
    return found
