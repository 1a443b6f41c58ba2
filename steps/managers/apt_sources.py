"""The sources that apt reads, from its files: one-line and deb822, without those that are turned off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from steps.host.base import Host

_LINE = re.compile(r"^\s*deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)")
_FIELD = re.compile(r"^([\w-]+):[ \t]*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_NO = frozenset(("no", "false", "without", "off", "disable", "0"))
"""What apt takes for "no" in `Enabled` (apt-pkg's StringToBool)."""


class Reading(NamedTuple):
    """One address of packages, and a suite that is read from it."""

    url: str
    suite: str


def reads(host: Host, *urls: str, suite: str | None = None) -> bool:
    """Return whether apt reads packages from one of the addresses, whatever its scheme; with `suite`, from that one of it."""
    wanted = {_plain(url) for url in urls}
    return any(_plain(one.url) in wanted and suite in (None, one.suite) for one in readings(host))


def readings(host: Host) -> Iterator[Reading]:
    """Yield every address and suite of packages that apt's files name and do not turn off; a file that cannot be read names none."""
    for path in ("/etc/apt/sources.list", *host.glob("/etc/apt/sources.list.d/*.list")):
        for line in (host.read(path) or "").splitlines():
            if found := _LINE.match(line):
                yield Reading(found[1], found[2])
    for path in host.glob("/etc/apt/sources.list.d/*.sources"):
        text = re.sub(r"^#.*\n?", "", host.read(path) or "", flags=re.MULTILINE)
        for stanza in re.split(r"\n[ \t]*\n", text):
            fields = {found[1].lower(): found[2].split() for found in _FIELD.finditer(stanza)}
            if "deb" in fields.get("types", ()) and not _NO & {word.lower() for word in fields.get("enabled", ())}:
                yield from (Reading(url, suite) for url in fields.get("uris", ()) for suite in fields.get("suites", ()))


def _plain(url: str) -> str:
    """Return an address as two of them are compared: apt reads the same over http and https."""
    return re.sub(r"^[a-z+]+://", "", url).rstrip("/")
