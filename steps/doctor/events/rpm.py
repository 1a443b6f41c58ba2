"""What yum, dnf and zypper say of packages that they cannot have together, and of what a package requires and nobody offers."""

from __future__ import annotations

import re

from steps.doctor.events.base import parses
from steps.doctor.events.packages import Conflict, Overwrite, Unmet
from steps.doctor.told import Place


@parses(
    r"(?:package|problem with installed package) (?P<name>[\w.+-]+?)(?:-\d\S*)? (?:from \S+ )?conflicts with (?P<other>[\w.+-]+)",
    " conflicts with ",
)  # fmt: skip
def conflict_of_rpm(found: re.Match[str], at: Place) -> Conflict:
    """Recognise the reason that dnf gives."""
    return Conflict(place=at, name=found["name"], other=found["other"])


_NEVRA = r"(?P<{}>[A-Za-z0-9][\w.+-]*?)-(?:\d+:)?\d[\w.~^+]*-[\w.~^+]+\.(?:x86_64|i[3-6]86|noarch|aarch64|ppc64le)\b"


@parses(rf"^Error: (?P<name>[a-z][\w.+-]*) conflicts with (?:\d+:)?{_NEVRA.format('other')}", " conflicts with ")
def conflict_of_yum(found: re.Match[str], at: Place) -> Conflict:
    """Recognise yum's last word; the conflicts that it goes through on its way are none yet."""
    return Conflict(place=at, name=found["name"], other=found["other"])


_RPM = r"[\w.+-]*(?:nvidia|cuda-drivers)[\w.+-]*?"


@parses(
    rf"cannot install both (?P<name>{_RPM})-(?:\d+:)?(?P<new>[3-9]\d\d\.\d[\w.~^]*)-\S+ (?:from \S+ )?"
    rf"and (?P<other>{_RPM})-(?:\d+:)?(?P<old>[3-9]\d\d\.\d[\w.~^]*)-\S+",
    "cannot install both",
)  # fmt: skip
def both_versions(found: re.Match[str], at: Place) -> Conflict | Unmet:
    """Recognise the two versions of one package that dnf cannot have together: of two branches, or of one branch out of two origins."""
    if found["new"].partition(".")[0] != found["old"].partition(".")[0]:
        return Conflict(place=at, name=found["name"], other=found["other"])
    return Unmet(place=at, name="", wanted=found["name"], relation="=", version=found["new"], why="other", other=found["old"])


@parses(
    rf"(?P<file>/[^\s:'\"«»“”]+)[^/]{{1,80}}?{_NEVRA.format('new')}[^/]{{1,80}}?{_NEVRA.format('package')}",
    "conflicts with file from", "conflicts between attempted", "en conflit avec", "in Konflikt mit", "en conflicto con", "in conflitto con",
    "conflita com", "конфликтует с", "конфліктує з", "w konflikcie z", "冲突", "衝突", "競合",
    lines=2,
)  # fmt: skip
def overwrite_of_rpm(found: re.Match[str], at: Place) -> Overwrite:
    """Recognise rpm's check before it begins by what is not translated: the path, and the two packages that bring it."""
    shared, both = found["new"] == found["package"], "attempted installs" in found[0]
    return Overwrite(place=at, file=found["file"], package=found["package"], shared=shared, both=both)


_GLIBC = re.compile(r"lib(?:c|m|pthread|dl)\.so\.\d\(GLIBC_(\d+\.\d+)\)")


@parses(
    r"nothing provides ['\"]?(?P<wanted>[\w.+()/-]+)(?: (?P<relation><=|>=|=|<|>) (?:\d+:)?(?P<version>[\w.~^+-]+))?['\"]? "
    r"needed by (?:the (?:to be )?installed )?(?P<name>[\w.+:~^-]+)",
    "nothing provides ",
    lines=2,
)
def nobody_provides(found: re.Match[str], at: Place) -> Unmet | None:
    """Recognise dnf and zypper."""
    return _absent(found, at)


@parses(
    r"Error: Package: (?P<name>\S+) \(\S+\)\n[ \t]+Requires: (?P<wanted>\S+)(?: (?P<relation><=|>=|=|<|>) (?:\d+:)?(?P<version>\S+))?"
    r"(?P<offered>(?:\n[ \t]+(?!Requires:)\S[^\n]*){0,12})",
    "Error: Package: ",
    lines=15,
)
def nobody_provides_to_yum(found: re.Match[str], at: Place) -> Unmet | None:
    """Recognise yum, which lists below it what is here and on offer under that name; what is among that was refused."""
    version = found["version"]
    offered = version is not None and re.search(rf"(?:^|[ :=-]){re.escape(version)}(?:[-.][^\n]*)?$", found["offered"], re.MULTILINE)
    return None if offered else _absent(found, at)


def _absent(found: re.Match[str], at: Place) -> Unmet | None:
    """Return what nobody offers where that tells something: one certain version of the vendor's, or the C library of another release.

    Other names (`dkms`, `libvdpau`) are of repositories that are not turned on, and a lower bound is of a release that is to come.
    """
    name = re.match(r"(?:\d+:)?(.+?)(?:-(?:\d+:)?\d\S*)?$", found["name"])
    mine = name[1] if name else found["name"]
    libc = _GLIBC.match(found["wanted"])
    if libc is not None:
        return Unmet(place=at, name=mine, wanted="glibc", relation=">=", version=libc[1], why="absent")
    if found["relation"] != "=":
        return None
    return Unmet(place=at, name=mine, wanted=found["wanted"], relation="=", version=found["version"], why="absent")
