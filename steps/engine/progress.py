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


class Work(Record):
    """What the manager says of itself."""

    phase: Literal["download", "install"]
    percent: float
    """Of this phase: each runs from 0 to 100 by itself."""
    what: str = ""
    """The package at work, or what is fetched."""
    objects: int | None = None
    """How many objects a module's build has made so far; `None` while none is built."""


def work_of(status: Path, root: str, since: float | None) -> Work | None:
    """Return how far the manager is by the end of its progress file; `None` when it has said nothing yet.

    `since` is when its action began: an older build is not its own.
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
    return Work(
        phase="download" if fetching else "install",
        percent=float(last["percent"]),
        what=(last["text"] if fetching else last["what"]).decode("utf-8", errors="replace"),
        objects=None if fetching else _objects(root, since),
    )


def _objects(root: str, since: float | None) -> int | None:
    """Return how many objects the build at work has made, from the newest log below dkms's folder; `None` when none is at work."""
    newest: tuple[float, Path] | None = None
    for log in Path(root, "var/lib/dkms").glob("*/*/build/make.log"):
        with contextlib.suppress(OSError):
            changed = log.stat().st_mtime
            if changed >= (since or 0.0) and (newest is None or changed > newest[0]):
                newest = changed, log
    if newest is None:
        return None
    try:
        descriptor = os.open(newest[1], os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return len(_OBJECT.findall(file.read(_MOST_LOG)))
