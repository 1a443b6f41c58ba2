"""Files that are there whole or not at all, with exactly the mode they were meant to have."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

FOLDER_MODE = 0o750
FILE_MODE = 0o640


def open_new(path: Path, mode: int = FILE_MODE, gid: int | None = None) -> int:
    """Return a descriptor that appends to `path`; a new file gets exactly `mode`, and `gid` as its group."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, mode)
        if gid is not None:
            os.fchown(descriptor, -1, gid)
    return descriptor


def read_regular(path: Path, offset: int = 0) -> bytes:
    """Return what stands in a file from `offset` on; raises `OSError` for anything else, such as a pipe, which would keep us waiting."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), str(path))
        file.seek(offset)
        return file.read()


def write_at_once(descriptor: int, data: bytes) -> None:
    """Write all of `data` and close."""
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def write_whole(path: Path, data: bytes, mode: int = FILE_MODE, gid: int | None = None) -> None:
    """Replace `path` so that it holds all of `data` or what it held before, also across a power cut."""
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = open_new(beside, mode, gid)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    beside.rename(path)
    sync_folder(path.parent)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(path: Path) -> None:
    """Make the names in a folder last."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path, mode: int = FOLDER_MODE, gid: int | None = None) -> None:
    """Make one folder with exactly `mode`, that is there after a power cut too; raises `FileExistsError` when it is there."""
    path.mkdir(mode=mode)
    path.chmod(mode)
    if gid is not None:
        with contextlib.suppress(PermissionError):
            os.chown(path, -1, gid)
    with contextlib.suppress(PermissionError):
        # A folder that one may enter and not list cannot be opened, and belongs to somebody else.
        sync_folder(path.parent)
