"""What package managers, DKMS and installers say."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Changed(Event):
    """A package went from one version to another; `old` is `None` for a new one, `new` for one that was removed."""

    name: str
    old: str | None = None
    new: str | None = None


@parses(r"(?:^|[ ,:])(?P<name>[a-z0-9][\w.+-]*):(?P<arch>\w+) \((?P<old>\d[^,()\s]*), (?P<new>\d[^,()\s]*)\)", "Upgrade: ", "Downgrade: ")
def changed_by_apt(found: re.Match[str], at: Place) -> Changed:
    """Recognise each package in the history of apt."""
    return Changed(place=at, name=found["name"], old=found["old"], new=found["new"])


@parses(r"\b(?:upgrade|downgrade) (?P<name>[a-z0-9][\w.+-]*)(?::\w+)? (?P<old>\d\S*) (?P<new>\d\S*)$", " upgrade ", " downgrade ")
def changed_by_dpkg(found: re.Match[str], at: Place) -> Changed:
    """Recognise a line of dpkg.log."""
    return Changed(place=at, name=found["name"], old=found["old"], new=found["new"])


@parses(
    r"(?:upgraded|downgraded|Upgraded|Downgraded) (?P<name>[\w.+-]+) \((?P<old>\S+) -> (?P<new>\S+)\)",
    "upgraded ", "downgraded ", "Upgraded ", "Downgraded ",
)  # fmt: skip
def changed_by_pacman(found: re.Match[str], at: Place) -> Changed:
    """Recognise a line of pacman.log."""
    return Changed(place=at, name=found["name"], old=found["old"], new=found["new"])


class Unmet(Event):
    """apt cannot have what a package depends on; `other` is the version that would be installed instead, if apt names one."""

    name: str
    wanted: str
    relation: str | None
    version: str | None
    why: str
    """`refused` (offered, but not going to be installed), `absent` (nobody offers it), `other` (another version), `unknown`."""
    other: str | None = None


_NOBODY = re.compile(r"not installable|无法安装|n'est pas installable|nicht installierbar")


@parses(
    r"^[ \t]*(?:(?P<name>[a-z0-9][\w.+:-]*) ?: )?"
    r"(?:Pre)?(?:Depend|D[eé]pend|Hängt|Dipende|依赖|依賴|預先依賴)[^\s:]*(?: \w+)? ?: ?(?P<wanted>[a-z0-9][\w.+:-]*)"
    r"(?: \((?P<relation><<|<=|=|>=|>>) ?(?P<version>[^)\s]+)\))?(?P<rest>.*)$",
    "epends", "épend", "Hängt ab", "Dipende", "依赖", "依賴",
)  # fmt: skip
def unmet(found: re.Match[str], at: Place) -> Unmet:
    """Recognise a line of apt's list, in some languages of the people who report."""
    rest = found["rest"]
    other = re.search(r"(?<![\w.])(\d+[\w.+~:-]*\d[\w.+~:-]*)", rest)
    why = "other" if other else "absent" if _NOBODY.search(rest) else "refused" if rest.strip() else "unknown"
    return Unmet(
        place=at, name=(found["name"] or "").partition(":")[0], wanted=found["wanted"].partition(":")[0], relation=found["relation"],
        version=found["version"], why=why, other=other[1] if other else None,
    )  # fmt: skip


class Overwrite(Event):
    """dpkg will not write a file that another package owns; `shared` when it is another architecture of the same package."""

    file: str
    package: str | None
    shared: bool = False


@parses(r"'(?P<file>/[^']+)', which is also in package (?P<package>\S+)", "which is also in package", lines=2)
def overwrite(found: re.Match[str], at: Place) -> Overwrite:
    """Recognise the quarrel of two packages."""
    return Overwrite(place=at, file=found["file"], package=found["package"].partition(":")[0])
