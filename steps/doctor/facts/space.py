"""How full the file systems are, as df, lsblk and mount tell."""

from __future__ import annotations

import re

from steps.detect.probes import Probes
from steps.doctor.numbers import number
from steps.doctor.told import Place, Told

DF = ("df", "-h")
_UNITS = {"": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_DF = re.compile(
    r"^(?P<device>\S+)\s+(?:\w+\s+)?(?P<size>[\d.]+)(?P<size_unit>[KMGTP]?)i?B?\s+(?P<used>[\d.]+)(?P<used_unit>[KMGTP]?)i?B?\s+"
    r"(?P<free>[\d.]+)(?P<free_unit>[KMGTP]?)i?B?\s+(?P<percent>\d+)%\s+(?P<on>/\S*)\s*$",
    re.MULTILINE,
)
_BLOCK = re.compile(r"^\S*?(?P<device>\w+)\s+\d+:\d+\s+\d\s+(?P<size>[\d.]+)(?P<unit>[KMGTP])\s+\d\s+\w+\s+(?P<on>/\S*)", re.MULTILINE)


class FileSystem(Told):
    """One file system; sizes in bytes, `free` is `None` where only its size was told."""

    device: str
    on: str
    size: int
    free: int | None

    @property
    def full(self) -> bool:
        """Return whether hardly anything fits on it: a fiftieth of it, or what an image of the kernel's takes."""
        return self.free is not None and self.free < max(self.size // 50, 0)


def file_systems(host: Probes) -> tuple[FileSystem, ...]:
    """Return every file system that a recorded list names; on a real machine df is asked."""
    found: list[FileSystem] = []
    for argv in host.forms(lambda argv: argv[0] in ("df", "lsblk"), DF):
        text, source = host.run(argv, timeout=5).stdout, " ".join(argv)
        for line in _DF.finditer(text):
            place = Place(source=source, text=" ".join(line[0].split()))
            size, free = _bytes(line["size"], line["size_unit"]), _bytes(line["free"], line["free_unit"])
            if size is None:
                continue
            found.append(FileSystem(place=place, device=line["device"], on=line["on"], size=size, free=free))
        for line in _BLOCK.finditer(text):
            place = Place(source=source, text=" ".join(line[0].split()))
            if (size := _bytes(line["size"], line["unit"])) is not None:
                found.append(FileSystem(place=place, device=line["device"], on=line["on"], size=size, free=None))
    return tuple(found)


def _bytes(told: str, unit: str) -> int | None:
    found = number(told)
    return None if found is None else int(found * _UNITS[unit])


def holding(systems: tuple[FileSystem, ...], path: str) -> FileSystem | None:
    """Return the file system that a path lies on, or `None`."""
    fits = [one for one in systems if path == one.on or path.startswith(one.on.rstrip("/") + "/")]
    return max(fits, key=lambda one: len(one.on), default=None)
