"""The repositories that a machine is configured for, and whether each is for its release."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.catalog.load import remembered, rows
from steps.catalog.stack import Distribution
from steps.detect.probes import Probes
from steps.doctor.told import Place, Told

_TOKEN = re.compile(
    r"/compute/(?:cuda|machine-learning)/repos/(?P<token>[a-z]+-?[a-z]*\d*)/|/(?P<vendor>(?:ubuntu|debian|fedora|rhel|centos|amzn|sles|opensuse)\d{2,4}(?:\.\d+)?)/|"
    r"^cuda-(?P<named>(?:fedora|rhel|amzn|sles|opensuse)\d+)-"
)
_APT = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources")
_PLACES = (*_APT, "/etc/yum.repos.d/*.repo", "/etc/zypp/repos.d/*.repo")


class Source(Told):
    """One address of a repository; `release` is the distribution's token in it (`ubuntu2204`), `suite` apt's word behind it."""

    url: str
    release: str | None = None
    suite: str | None = None


def token(url: str) -> str | None:
    """Return the distribution and release that an address is for, as NVIDIA writes them, or `None`.

    The container toolkit's old addresses name a release too, and serve one set of packages to all of them.
    """
    if "nvidia.github.io/" in url:
        return None
    found = _TOKEN.search(f"{url.rstrip('/')}/")
    name = (found["token"] or found["vendor"] or found["named"]).replace(".", "").replace("-", "") if found else None
    return name if name and re.search(r"\d", name) and not name.startswith("wslubuntu") else None


def sources(host: Probes) -> tuple[Source, ...]:
    """Return the repositories of every configuration file that can be read."""
    return tuple(source for pattern in _PLACES for path in _paths(host, pattern) for source in _parsed(path, host.read(path) or ""))


def _paths(host: Probes, pattern: str) -> tuple[str, ...]:
    return tuple(host.glob(pattern)) if "*" in pattern else (pattern,)


def _parsed(path: str, text: str) -> Iterator[Source]:
    suites = re.search(r"^Suites: *(\S+)", text, re.MULTILINE)
    for line in text.splitlines():
        found = re.match(r"\s*(?:deb(?:-src)?(?: +\[[^\]]*\])? +|URIs: *|baseurl *= *)(?P<url>\S+)(?: +(?P<suite>\S+))?", line)
        if found:
            suite = found["suite"] or (suites[1] if suites else None)
            yield Source(place=Place(source=path, text=line.strip()), url=found["url"], release=token(found["url"]), suite=suite)


@remembered
def codenames() -> dict[str, tuple[tuple[str, ...], str]]:
    """Return the distribution and the release of every codename that the tables know."""
    known: tuple[Distribution, ...] = rows("distros.toml", "distribution", Distribution)
    return {row.codename: (row.os, row.version) for row in known if row.codename is not None}
