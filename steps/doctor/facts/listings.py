"""Lists of packages as every package manager prints them, row by row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Line(NamedTuple):
    """One row: its words, and what they say; `state` are dpkg's two letters."""

    text: str
    name: str
    version: str
    arch: str | None = None
    state: str = "ii"


_DPKG = re.compile(r"^(?P<state>[uihrp][nicurFUHWt])[R ]? +(?P<name>[^\s:]+)(?::(?P<arch>\w+))? +(?P<version>\S+).*$", re.MULTILINE)
_QUERIED = re.compile(r"^(?P<name>[a-z0-9][\w.+-]*)(?::(?P<arch>\w+))?\t(?P<version>\d\S*)[ \t]*$", re.MULTILINE)
_APT = re.compile(r"^(?P<name>[a-z0-9][\w.+-]*)/(?:\S+,)?now (?P<version>\d\S*) (?P<arch>\w+)\b.*$", re.MULTILINE)
"""What is installed has `now` among its archives, in every language."""
_POLICY = re.compile(r"^(?P<name>[a-z0-9][\w.+-]*)(?::(?P<arch>\w+))?:\n\s+[^\s:：]+[:：] ?(?P<version>\d\S*)$", re.MULTILINE)
_RPM = re.compile(
    r"^(?P<name>[\w.+-]+?)-(?P<version>(?:\d+:)?\d[\w.~^+]*-[\w.~^+]+?)(?:\.(?P<arch>x86_64|aarch64|noarch|i686|ppc64le))?"
    r"(?:\s+\w{3} \d[^\n]*|\s+\w{3} \w{3}[^\n]*|\s*)$",
    re.MULTILINE,
)
_DNF = re.compile(
    r"^(?P<name>[a-zA-Z0-9][\w.+-]*)\.(?P<arch>x86_64|aarch64|noarch|i686)\s+(?P<version>(?:\d+:)?\d[\w.~^+]*-\S+)\s+(?P<from>\S+)[ \t]*$",
    re.MULTILINE,
)
_ZYPPER = re.compile(
    r"^i[+ ]* *\| (?:\S* *\| )?(?P<name>[\w.+-]+) *\| package *\| (?P<version>\d\S*) *\| (?P<arch>\w+) *\|.*$",
    re.MULTILINE,
)
_PACMAN = re.compile(r"^(?:local/)?(?P<name>\S+) (?P<version>\d\S*)(?: \([^)\n]*\))?[ \t]*$", re.MULTILINE)
_KINDS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("dpkg", "-l"), _DPKG),
    (("dpkg", "--list"), _DPKG),
    (("dpkg-query", "-W"), _QUERIED),
    (("dpkg-query", "-l"), _DPKG),
    (("apt", "list"), _APT),
    (("apt", "policy"), _POLICY),
    (("apt-cache", "policy"), _POLICY),
    (("rpm", "-qa"), _RPM),
    (("rpm", "-q"), _RPM),
    (("dnf", "list"), _DNF),
    (("yum", "list"), _DNF),
    (("zypper", "se"), _ZYPPER),
    (("zypper", "search"), _ZYPPER),
    (("pacman", "-Q"), _PACMAN),
    (("pacman", "-Qs"), _PACMAN),
    (("pacman", "-Qe"), _PACMAN),
)
_DESCRIPTIONS = (("yum", "info"), ("dnf", "info"), ("pacman", "-Qi"))


def lists(argv: tuple[str, ...]) -> bool:
    """Return whether a command lists packages; what can be upgraded is not what is installed."""
    known = (*(words for words, _ in _KINDS), *_DESCRIPTIONS)
    return argv[:2] in known and not any("upgrad" in word or word in ("available", "--available", "updates") for word in argv)


def listed(argv: tuple[str, ...], text: str) -> Iterator[Line]:
    """Yield the rows of a list."""
    pattern = next((pattern for words, pattern in _KINDS if argv[:2] == words), None)
    if pattern is None:
        yield from _described(text, argv[-1])
        return
    for found in pattern.finditer(text):
        said = found.groupdict()
        if not (said.get("from") or "@").startswith(("@", "installed")) and not any("installed" in word for word in argv):
            continue
        state = said.get("state") or ("rc" if "residual" in found[0] else "ii")
        yield Line(" ".join(found[0].split()), found["name"], found["version"], said.get("arch"), state)


def _described(text: str, asked: str) -> Iterator[Line]:
    """Yield the packages that `yum info` or `pacman -Qi` describes; a version is enough when the name was the question."""
    for block in re.split(r"\n(?=Name *:)", text):
        name = re.search(r"^Name *: (\S+)", block, re.MULTILINE)
        version = re.search(r"^Version *: (\S+)", block, re.MULTILINE)
        if version and not re.search(r"^Repo\w* *: (?!@|installed)", block, re.MULTILINE):
            yield Line(version[0].strip(), name[1] if name else asked, version[1])
