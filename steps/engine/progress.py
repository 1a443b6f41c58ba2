"""How far a package manager is with its present work: from its own progress lines, and from the log of a silent build."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import Literal

from steps.model.base import Record

_TAIL = 8192
_MOST_LOG = 16 << 20
_LINE = re.compile(rb"^(?P<kind>dlstatus|pmstatus):(?P<what>[^:]*):(?P<percent>[0-9.]+):(?P<text>[^\n]*)\n", re.MULTILINE)
_OBJECT = re.compile(rb"^.*(?: -c -o |CC \[M\])", re.MULTILINE)
"""A line of a module's build that makes one object: dkms shows neither it nor anything else until the build is over."""
_SOURCE = re.compile(rb"^\s*\w+_SOURCES\s*[+:]?=\s*\S+\.c\b", re.MULTILINE)
_MODULE = re.compile(rb"^\s*BUILT_MODULE_NAME\b", re.MULTILINE)
_HEAD = 4 << 20
_FETCHED = re.compile(rb"^Fetched [^\n]* in (?:(\d+)h )?(?:(\d+)min )?(\d+)s", re.MULTILINE)
_STYLE = re.compile(rb"\x1b\[[0-9;]*m")
_WHEEL = re.compile(rb"^ *Downloading (\S+) \(([0-9.]+) ?([kMG]i?B)\)", re.MULTILINE)
_COME = re.compile(rb"^ *Downloaded (\S+)", re.MULTILINE)
_WHEELS_OVER = re.compile(rb"^(?:Prepared \d+ package|Installing collected packages)", re.MULTILINE)
_UNITS = {b"kb": 1e3, b"mb": 1e6, b"gb": 1e9, b"kib": 1024.0, b"mib": 1024.0**2, b"gib": 1024.0**3}


class Work(Record):
    """What the manager says of itself."""

    phase: Literal["download", "install"]
    percent: float
    """Of this phase: each runs from 0 to 100 by itself."""
    what: str = ""
    """The package at work, or what is fetched."""
    objects: int | None = None
    """How many objects a module's build has made so far; `None` while none is built."""
    of: int | None = None
    """How many it will make; `None` when its makefiles do not list their sources as NVIDIA's do."""
    stirred: float | None = None
    """When the build last wrote into its own log; `None` while none is built."""
    fetching: float | None = None
    """Seconds that the download took, as the manager says at its end."""
    bytes: int | None = None
    """What was announced to be fetched so far; `None` where only shares are told."""
    fetched: int | None = None
    """How much of that is here."""


def work_of(status: Path, root: str, since: float | None, output: Path | None = None) -> Work | None:
    """Return how far the manager is by the end of its progress file; `None` when it has said nothing yet.

    `since` is when its action began: an older build is not its own. `output` is where its own words stand.
    """
    try:
        with status.open("rb") as file:
            file.seek(max(0, status.stat().st_size - _TAIL))
            tail = file.read()
    except OSError:
        return None
    lines = [*_LINE.finditer(tail)]
    if not lines:
        return None
    last = lines[-1]
    fetching = last["kind"] == b"dlstatus"
    log = None if fetching else _at_work(root, since)
    return Work(
        phase="download" if fetching else "install",
        percent=float(last["percent"]),
        what=(last["text"] if fetching else last["what"]).decode("utf-8", errors="replace"),
        objects=None if log is None else _objects(log[1]),
        of=None if log is None else _announced(log[1].parent),
        stirred=None if log is None else log[0],
        fetching=None if fetching or output is None else _fetched_in(output),
    )


def _at_work(root: str, since: float | None) -> tuple[float, Path] | None:
    """Return the log of the build at work, the newest below dkms's folder, and when it grew; `None` when none is at work."""
    newest: tuple[float, Path] | None = None
    # Folders come and go below it while we look.
    with contextlib.suppress(OSError):
        for log in Path(root, "var/lib/dkms").glob("*/*/build/make.log"):
            changed = log.stat().st_mtime
            if changed >= (since or 0.0) and (newest is None or changed > newest[0]):
                newest = changed, log
    return newest


def _objects(log: Path) -> int | None:
    """Return how many objects the build has made by its log; `None` when the log is gone."""
    written = _read(log)
    return None if written is None else len(_OBJECT.findall(written))


def _announced(folder: Path) -> int | None:
    """Return how many objects the build in `folder` makes: one a listed source, and one a module for what the kernel adds to it."""
    listed = sum(len(_SOURCE.findall(_read(file) or b"")) for place in (folder, *_parts(folder)) for file in _makefiles(place))
    modules = len(_MODULE.findall(_read(folder / "dkms.conf") or b""))
    return listed + modules if listed and modules else None


def _parts(folder: Path) -> list[Path]:
    """Return the folders of a build's modules; what its tests make and remove beside them all the time has a dot before its name."""
    return [folder / name for name in _names(folder) if not name.startswith(".")]


def _makefiles(folder: Path) -> list[Path]:
    """Return the makefiles of a folder that may list sources."""
    return [folder / name for name in _names(folder) if name.endswith(("Kbuild", ".mk"))]


def _names(folder: Path) -> list[str]:
    """Return what lies in a folder; nothing where it is none, or gone."""
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _read(path: Path) -> bytes | None:
    """Return a file, or its beginning where it is larger than any is; `None` when it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(_MOST_LOG)


def _fetched_in(output: Path) -> float | None:
    """Return how many seconds apt says that its download took; `None` where it did not say so at the beginning of its output."""
    try:
        with output.open("rb") as file:
            found = _FETCHED.findall(file.read(_HEAD))
    except OSError:
        return None
    if not found:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found[-1])
    return 3600.0 * hours + 60.0 * minutes + seconds


def wheels_of(output: Path) -> Work | None:
    """Return how far uv or pip is with what it fetches, by its own lines; `None` while it has announced nothing."""
    try:
        with output.open("rb") as file:
            text = _STYLE.sub(b"", file.read(_HEAD))
    except OSError:
        return None
    sizes: dict[bytes, float] = {}
    last = b""
    for name, number, unit in _WHEEL.findall(text):
        sizes[name] = float(number) * _UNITS[unit.lower()]
        last = name
    if not sizes:
        return None
    if _WHEELS_OVER.search(text):
        return Work(phase="install", percent=50.0)
    # pip fetches one file after the other and says nothing at the end of each; uv names each that has come.
    come = set(_COME.findall(text)) if b"Resolved " in text else set(sizes) - {last}
    fetched = sum(size for name, size in sizes.items() if name in come)
    return Work(phase="download", percent=100.0 * fetched / sum(sizes.values()), bytes=round(sum(sizes.values())), fetched=round(fetched))
