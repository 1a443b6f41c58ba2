"""Locks that can be asked about without being taken (open-file-description locks)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from pathlib import Path

import msgspec

from steps.engine.durable import make_folder
from steps.engine.folder import Owner, state_folder
from steps.errors import Busy
from steps.model.base import Record
from steps.model.run import is_moment

_FLOCK = "hhqqi4x"
"""`struct flock` of 64-bit Linux: type, whence, start, length, pid."""

FAREWELL = 5.0
"""So long may a runner that refused, or has ended, take to let its locks go; seconds. On a busy machine that is more than a moment."""


class Holder(Record):
    """Who runs: written into the target's lock file by whoever holds it."""

    run: str
    user: str
    started: float


def is_held(path: Path) -> bool:
    """Return whether a run holds `path`; `False` when there is no such file or it may not be read.

    Whoever may read the file may lock it against writers, and is no run for that.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # To ask for a write lock needs no write permission.
        asked = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return bool(struct.unpack(_FLOCK, asked[: struct.calcsize(_FLOCK)])[0] == fcntl.F_WRLCK)
    finally:
        os.close(descriptor)


def try_take(path: Path, mode: int = 0o640) -> int | None:
    """Return a descriptor that holds `path` until it is closed, or `None` when another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        return None
    return descriptor


def born_of(pid: int) -> str | None:
    """Return when a process began, as the kernel counts; `None` when there is none of this number, or it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def target_lock(target: str, *, root: bool, owner: Owner) -> Path:
    """Return the lock that all runs which change the system below `target` share."""
    name = "machine" if target == "/" else target.strip("/").replace("_", "__").replace("/", "_")[-200:]
    return state_folder(root=root, owner=owner) / "locks" / name


def holder(path: Path) -> Holder | None:
    """Return who holds a target's lock, or `None` when it is free."""
    if not is_held(path):
        return None
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        found = msgspec.json.decode(path.read_bytes(), type=Holder)
        if is_moment(found.started):
            return found
    return Holder(run="?", user="?", started=0.0)


def busy(held: Holder) -> Busy:
    """Return the error that names the holder."""
    return Busy("run-active", run=held.run, user=held.user, since=time.strftime("%H:%M", time.localtime(held.started)))


def take_target(path: Path, me: Holder) -> int:
    """Return a descriptor that holds the target for this run; raises `Busy` with the holder's name."""
    if not path.parent.exists():
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            make_folder(path.parent, 0o755)
    descriptor = try_take(path, 0o644)
    if descriptor is None and not is_held(path) and (descriptor := try_take(path, 0o644)) is None and not is_held(path):
        raise Busy("lock-foreign", path=str(path))
    if descriptor is None:
        # A holder that ends between the two questions leaves nobody to name; it is told as it was.
        raise busy(holder(path) or Holder(run="?", user="?", started=time.time()))
    os.fchmod(descriptor, 0o644)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, msgspec.json.encode(me), 0)
    return descriptor
