"""The packages of a machine with their states, and which of them are parts of the driver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from steps.detect.packages import STATUS
from steps.detect.probes import Probes
from steps.doctor import numbers
from steps.doctor.facts.listings import listed, lists
from steps.doctor.told import Place, Told
from steps.host.release import release
from steps.model.base import Record

Manager = Literal["apt", "dnf", "pacman"]
Role = Literal["module", "library", "tool", "meta", "firmware"]
"""What a package of the driver brings: the kernel's half, libraries, nvidia-smi, only dependencies, firmware."""


class Row(Told):
    """One package; `state` are dpkg's two letters (`ii`, `rc`, `iF` …), `ii` for what other managers have installed."""

    name: str
    version: str
    arch: str | None = None
    state: str = "ii"

    @property
    def installed(self) -> bool:
        """Return whether it is wholly here."""
        return self.state[1:2] == "i"

    @property
    def half(self) -> bool:
        """Return whether it is unpacked, or half installed or configured."""
        return self.state[1:2] in ("U", "F", "H", "W", "t")

    @property
    def driver(self) -> str | None:
        """Return the driver's version that it is built from; `None` where it counts otherwise."""
        return numbers.upstream(self.version) if role(self.name) else None


class Upgradable(Told):
    """A package for which another version is on offer."""

    name: str
    old: str | None
    new: str


class Packages(Record):
    """What the package databases told; a list out of a report may be a part of the truth only."""

    manager: Manager | None = None
    rows: tuple[Row, ...] = ()
    held: tuple[str, ...] | None = None
    """Names that were told to stay as they are; `None` when nobody asked."""
    whole: bool = False
    """Whether the rows are a whole database, so that what is not among them is not installed."""

    def named(self, pattern: str, *, installed: bool = True) -> tuple[Row, ...]:
        """Return the rows whose whole name matches, those only of packages that are wholly here unless asked for all."""
        return tuple(row for row in self.rows if re.fullmatch(pattern, row.name) and (row.installed or not installed))

    def driver(self, *roles: Role) -> tuple[Row, ...]:
        """Return the installed packages of the driver that carry its version, of some roles or of all."""
        return tuple(row for row in self.rows if row.installed and row.driver and (not roles or role(row.name) in roles))


_NOT_DRIVER = re.compile(
    r"libnvidia-(container|egl|nscq|nvsdm)\S*|nvidia-driver-pinning\S*|"
    r"nvidia-(container|cuda|cudnn|settings|prime|docker|fabric-?manager|imex|vaapi|fs|peer|nsight|ctk)\S*"
)
_ROLES: tuple[tuple[str, Role], ...] = (
    (r"linux-(modules|objects|signatures)-nvidia-.*", "module"),
    (r"nvidia-(dkms|kernel-source|kernel-dkms|kernel-open-dkms|open-dkms|open-kernel-dkms)(-.*)?", "module"),
    (
        r"(k?mod|akmod|dkms)-nvidia(-.*)?|nvidia-(open-)?driver-G\d+(-signed)?(-cuda)?-kmp.*|nvidia-kmod|nvidia-(open|lts|open-lts)?-?dkms|nvidia-gfxG\d+-kmp.*|nvidia(-open)?(-lts)?",
        "module",
    ),
    (r"nvidia-(kernel-common|kernel-support|firmware|gsp|kmod-common)(-.*)?", "firmware"),
    (
        r"(lib(32)?nvidia-.*|libcuda1|xorg-x11-drv-nvidia(-\d+xx)?(-(cuda-)?libs)?|nvidia-driver-(libs|cuda-libs|cuda)(-.*)?|libnvcuvid1|xserver-xorg-video-nvidia.*|libgl1?x?-nvidia.*)",
        "library",
    ),
    (r"nvidia-(utils|smi|driver-bin|compute-utils|compute)(-.*)?|nvidia-x11-drv.*|xorg-x11-drv-nvidia(-\d+xx)?-cuda", "tool"),
    (r"nvidia-(driver|headless)(-.*)?|cuda-drivers(-.*)?", "meta"),
)


def role(name: str) -> Role | None:
    """Return what a package brings to the driver; `None` for one that is no part of it."""
    if _NOT_DRIVER.fullmatch(name):
        return None
    return next((found for pattern, found in _ROLES if re.fullmatch(pattern, name)), None)


def packages(host: Probes) -> Packages:
    """Return what is installed, from dpkg's own file or from whatever list there is."""
    status = host.read(STATUS)
    if status is not None:
        rows = tuple(_from_status(status))
        held = tuple(row.name for row in rows if row.state[:1] == "h")
        return Packages(manager="apt", rows=rows, held=held or (_held(host) if host.host.rehearsal else None) or (), whole=True)
    rows = tuple(row for argv in _lists(host) for row in _rows(argv, host.run(argv, timeout=20).stdout))
    return Packages(manager=_manager(host, rows), rows=rows, held=_held(host))


def _rows(argv: tuple[str, ...], text: str) -> Iterator[Row]:
    """Yield the rows of one list."""
    for line in listed(argv, text):
        place = Place(source=" ".join(argv), text=line.text)
        yield Row(place=place, name=line.name, version=line.version, arch=line.arch, state=line.state)


def _manager(host: Probes, rows: tuple[Row, ...]) -> Manager | None:
    sources = {row.place.source.split()[0] for row in rows}
    recorded = {argv[0] for argv in host.forms(lambda _: True)}
    kinds: tuple[tuple[Manager, set[str]], ...] = (
        ("apt", {"dpkg", "apt", "apt-cache", "dpkg-query"}),
        ("dnf", {"rpm", "yum", "dnf"}),
        ("pacman", {"pacman"}),
    )
    found: Manager | None = next((manager for manager, names in kinds if sources & names or recorded & names), None)
    told = release(host.host)
    # rpm is SUSE's as well, and dnf is not.
    suse = any("suse" in name or name.startswith("sle") for name in (told.id or "", *told.like))
    return None if suse and found == "dnf" else found


def _lists(host: Probes) -> tuple[tuple[str, ...], ...]:
    """Return the commands that list packages: the recorded ones, on a real machine the one that its database wants."""
    databases = (("/var/lib/rpm", ("rpm", "-qa")), ("/usr/lib/sysimage/rpm", ("rpm", "-qa")), ("/var/lib/pacman", ("pacman", "-Q")))
    usual = dict.fromkeys(argv for path, argv in databases if not host.host.rehearsal and host.exists(path))
    return host.forms(lists, *usual)


_LETTERS = {"install": "i", "hold": "h", "deinstall": "r", "purge": "p", "unknown": "u"}
_STATES = {
    "installed": "i",
    "config-files": "c",
    "unpacked": "U",
    "half-configured": "F",
    "half-installed": "H",
    "triggers-awaited": "W",
    "triggers-pending": "t",
    "not-installed": "n",
}


def _from_status(text: str) -> Iterator[Row]:
    """Yield the packages of dpkg's file, with the states of `dpkg -l`."""
    for stanza in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Status|Architecture|Version): (\S.*)$", stanza, re.MULTILINE))
        words = fields.get("Status", "").split()
        if "Package" not in fields or len(words) != 3:
            continue
        state = _LETTERS.get(words[0], "u") + _STATES.get(words[2], "n")
        name, version = fields["Package"], fields.get("Version", "")
        place = Place(source=STATUS, text=f"{name} {version} {words[2]}")
        yield Row(place=place, name=name, version=version, arch=fields.get("Architecture"), state=state)


_UPGRADABLE = re.compile(r"^(?P<name>[a-z0-9][\w.+-]*)/\S+ (?P<new>\S+) \w+(?: \[upgradable from: (?P<old>\S+)\])?", re.MULTILINE)


def upgradable(host: Probes) -> tuple[Upgradable, ...]:
    """Return what `apt list --upgradable` says; it may take seconds."""
    argv = ("apt", "list", "--upgradable")
    text = host.run(argv).text
    return tuple(
        Upgradable(
            place=Place(source=" ".join(argv), text=" ".join(found[0].split())), name=found["name"], old=found["old"], new=found["new"]
        )
        for found in _UPGRADABLE.finditer(text)
    )


def _held(host: Probes) -> tuple[str, ...] | None:
    result = host.run(("apt-mark", "showhold"))
    return tuple(result.stdout.split()) if result.status == 0 or result.stdout else None
