"""Linux in Windows: the driver is Windows' own, and what its log prints is mostly noise."""

from __future__ import annotations

import re

from steps.doctor.events.containers import DxgNoise, NotSymlink
from steps.doctor.events.driver_files import DriverFile
from steps.doctor.events.python import NoGpuSeen
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Row
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, fact

_LINUX_DRIVER = re.compile(
    r"(?:nvidia-(?:driver|utils|kernel|dkms|open|headless|compute-utils)[\w-]*|cuda(?:-drivers[\w-]*)?|libnvidia-compute-\d+\S*)$"
)


def _linux_driver(seen: Evidence) -> Row | Fact | DriverFile | None:
    """Return a package of the Linux driver in the distribution: installed, or asked for by a command."""
    row = next((row for row in seen.packages.rows if row.installed and _LINUX_DRIVER.match(row.name)), None)
    if row is not None:
        return row
    typed = next(
        (
            one
            for one in seen.commands("apt", "apt-get", "aptitude", "dnf")
            if "install" in one.words and any(_LINUX_DRIVER.match(word) for word in one.words)
        ),
        None,
    )
    return (
        fact(" ".join(typed.words), typed.place.source, typed.place.text)
        if typed is not None
        else _before_windows(seen) or _taken_first(seen)
        if not seen.driver_answers or seen.has(NoGpuSeen)
        else None
    )


_LENT = "/usr/lib/wsl/"
"""Where Windows lends its libraries and tools."""


def _in_wsl(seen: Evidence) -> bool:
    """Return whether this is Linux in Windows, as the system says or as a program does that found what Windows lends."""
    lent = seen.has(DriverFile, lambda event: event.path.startswith(_LENT) and not event.place.in_container)
    return seen.system.wsl is True or (seen.system.wsl is None and lent)


def _taken_first(seen: Evidence) -> DriverFile | None:
    """Return the library of a Linux driver that a program met, or `None`; where it cannot use those of Windows either it is none."""
    files = [event for event in seen.all(DriverFile) if not event.place.in_container]
    if any(event.refused and event.path.startswith(_LENT) for event in files):
        return None
    own = (event for event in files if event.version is not None and not event.path.startswith(_LENT))
    return next((event for event in own if event.refused or seen.has(NoGpuSeen)), None)


def _tells_first(argv: tuple[str, ...]) -> bool:
    """Return whether a command tells which tool or library is found first."""
    return argv[:2] == ("ldconfig", "-p") or (argv[0] in ("which", "type") and argv[-1] == "nvidia-smi")


def _before_windows(seen: Evidence) -> Fact | None:
    """Return the tool or library of the driver that is found before the one that Windows lends, or `None`: only a Linux package has it."""
    for argv in seen.host.forms(_tells_first):
        text = seen.host.run(argv).stdout
        found_ = re.search(r"(/\S*/nvidia-smi)" if argv[0] != "ldconfig" else r"lib(?:nvidia-ml|cuda)\.so\.1\b.*?=> (/\S+)", text)
        if found_ and not found_[1].startswith(_LENT):
            return fact(found_[1], " ".join(argv), found_[0].strip())
    for argv in seen.host.forms(lambda argv: argv[0] in ("ls", "find", "locate")):
        text = seen.host.run(argv).stdout
        own = re.search(r"^.*\blibnvidia-ml\.so\.\d+\.\d+.*$", text, re.MULTILINE)
        if own and _LENT not in f"{' '.join(argv)} {own[0]}":
            return fact(own[0].strip(), " ".join(argv))
    return None


@rule("linux-driver-installed-in-wsl")
def linux_driver(seen: Evidence) -> Answer:
    """A Linux driver's libraries stand before those that Windows lends."""
    if not _in_wsl(seen):
        return None
    package = _linux_driver(seen)
    if package is None:
        return None
    blocked = seen.nvml("blocked-by-os", "no-driver", "library-not-found", "mismatch")
    none = seen.first(NoGpuSeen)
    if seen.driver_answers is True and blocked is None:
        return found(LIKELY if none else POSSIBLE, package, none)
    return found(CERTAIN if blocked else STRONG, package, blocked, none)


@rule("wsl-gpu-not-in-wddm-mode")
def not_wddm(seen: Evidence) -> Answer:
    """A card of this machine is not in the mode that WSL can use."""
    if seen.system.wsl is not True:
        return None
    blocked, handle = seen.nvml("blocked-by-os"), seen.nvml("no-handle", "no-devices")
    if blocked is None and handle is None:
        return None
    package = _linux_driver(seen)
    if package is not None:
        return out(package)
    mode = re.search(r"^\|\s+\d+\s.*\b(TCC|MCDM)\b.*$", seen.host.run(("nvidia-smi.exe",)).stdout, re.MULTILINE)
    shown = fact(mode[1], "nvidia-smi.exe", mode[0]) if mode else None
    return found(CERTAIN if shown else STRONG if blocked else LIKELY, blocked, handle, shown, mode=shown.value if shown else "?")


@rule("wsl-harmless-messages")
def harmless(seen: Evidence) -> Answer:
    """Lines that healthy machines print too."""
    noise = seen.first(NotSymlink) or seen.first(DxgNoise)
    if noise is None:
        return None
    failing = seen.nvml("blocked-by-os", "no-handle", "no-devices", "no-driver", "library-not-found")
    if failing is not None:
        return out(failing)
    return found(STRONG, noise)
