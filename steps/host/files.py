# ruff: noqa: PTH100, PTH101, PTH102, PTH108, PTH115, PTH116, PTH118, PTH207, PTH208
# Descriptors, links inside another root and races need the functions of `os`; pathlib follows and joins as it likes.
"""The files of one system below a root folder; links are resolved inside that root, as `chroot` would."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from steps.errors import InputError

MOST_BYTES = 64 << 20
"""More is never read from one file: no fact needs it."""
_MOST_LINKS = 40
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY)
"""What the kernel says of a folder that holds something, is gone, is a link by now, or has a disk mounted on it."""


def parts_of(path: str) -> list[str]:
    """Return the components of an absolute path, `.` and empty ones left out."""
    return [part for part in path.split("/") if part not in ("", ".")]


class FileTree:
    """Reads and changes the files below one root; no path, link or `..` leads out of it."""

    def __init__(self, root: str = "/") -> None:
        self.root = os.path.realpath(root)

    # -- where a path really is ---------------------------------------------------------------------------------------

    def real(self, path: str, *, follow_last: bool = True) -> str:
        """Return the path inside the root that `path` stands for, every link followed (the last one only if asked).

        Raises `OSError(ELOOP)` on a circle of links.
        """
        done: list[str] = []
        # A relative path is the caller's own, which only makes sense on the running system.
        todo = parts_of(os.path.abspath(path) if self.root == "/" else path)[::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                del done[-1:]
                continue
            here = self._outside([*done, part])
            target = None
            if todo or follow_last:
                with contextlib.suppress(OSError):
                    target = os.readlink(here)
            if target is None:
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                done.clear()
            todo.extend(parts_of(target)[::-1])
        return "/" + "/".join(done)

    def _outside(self, parts: list[str]) -> str:
        return os.path.join(self.root, *parts)

    def outside(self, path: str, *, follow_last: bool = True) -> str:
        """Return the path as the running system spells it."""
        if self.root == "/":
            return path
        return self._outside(parts_of(self.real(path, follow_last=follow_last)))

    # -- looking ------------------------------------------------------------------------------------------------------

    def read_bytes(self, path: str) -> bytes | None:
        """Return at most `MOST_BYTES` of a regular file; `None` when it cannot be read."""
        try:
            # O_NONBLOCK: opening a FIFO that somebody left in the way must not hang.
            descriptor = os.open(self.outside(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as file:
            try:
                return file.read(MOST_BYTES)
            except OSError:
                return None

    def read(self, path: str) -> str | None:
        """Return the text of a file, or `None`."""
        data = self.read_bytes(path)
        return None if data is None else decoded(data)

    def exists(self, path: str) -> bool | None:
        """Return whether `path` is there; `None` where looking is not allowed."""
        try:
            os.stat(self.outside(path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError):
            return None
        return True

    def listdir(self, path: str) -> tuple[str, ...] | None:
        """Return the sorted names in a folder, or `None`."""
        try:
            return tuple(sorted(os.listdir(self.outside(path))))
        except (OSError, ValueError):
            return None

    def readlink(self, path: str) -> str | None:
        """Return what a link says, or `None`."""
        try:
            return os.readlink(self.outside(path, follow_last=False))
        except (OSError, ValueError):
            return None

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return the sorted paths (as seen inside the root) that match."""
        if self.root == "/":
            return tuple(sorted(glob.glob(pattern)))
        found = [""]
        for part in parts_of(pattern):
            if glob.has_magic(part):
                found = [f"{at}/{name}" for at in found for name in self.listdir(at or "/") or () if _matches(name, part)]
            else:
                found = [f"{at}/{part}" for at in found]
        return tuple(sorted(path for path in found if self.exists(path)))

    def free_bytes(self, path: str) -> int | None:
        """Return the free space of the file system that `path` is, or would be, on."""
        try:
            at = Path(self.outside(path))
            while not at.exists() and at != at.parent:
                at = at.parent
            found = os.statvfs(at)
        except (OSError, ValueError):
            return None
        return found.f_bavail * found.f_frsize

    # -- changing -----------------------------------------------------------------------------------------------------

    def write_bytes(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Replace the file as a whole: written beside it, synced, renamed over it.

        Raises `InputError` (`file-not-plain`) for a folder or a device: renaming over a device would take it from everybody.
        """
        *folders, name = parts_of(self.real(path))
        folder = self._open_folder(folders)
        beside = f".{name}.bringup-{os.getpid()}"
        try:
            try:
                before: os.stat_result | None = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                before = None
            if before is not None and not stat.S_ISREG(before.st_mode):
                raise InputError("file-not-plain", file=path)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    if before is not None:
                        _give(file.fileno(), before)
                    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) if before is not None else mode)
                    os.fsync(file.fileno())
                os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(beside, dir_fd=folder)
                raise
            os.fsync(folder)
        finally:
            os.close(folder)

    def remove(self, path: str) -> None:
        """Remove what is at `path`, a link itself and not what it points at."""
        real = self.real(path, follow_last=False)
        parts = parts_of(real)
        if len(parts) < 2:
            raise InputError("remove-refused", path=path)
        at = self._outside(parts)
        try:
            if stat.S_ISDIR(os.lstat(at).st_mode):
                # Three compression libraries come along with it, which nobody who only looks needs.
                import shutil

                shutil.rmtree(at)
            else:
                os.unlink(at)
        except FileNotFoundError:
            return

    def remove_empty(self, path: str) -> None:
        """Remove a folder in which nothing is; the kernel looks, so that nothing goes that somebody puts there meanwhile."""
        at = self._outside(parts_of(self.real(path, follow_last=False)))
        try:
            Path(at).rmdir()
        except OSError as error:
            if error.errno not in _NOT_EMPTY:
                raise

    def mkdir(self, path: str, mode: int = 0o755) -> None:
        """Make the folder and what is missing above it."""
        at = self.root
        for part in parts_of(self.real(path)):
            at = os.path.join(at, part)
            try:
                os.mkdir(at, mode)
            except FileExistsError:
                continue
            # The caller's umask must not decide what a system folder looks like.
            os.chmod(at, mode)

    def _open_folder(self, parts: list[str]) -> int:
        """Return a descriptor of a folder; a link put in the way since it was resolved is an error, not a way out."""
        at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parts:
            try:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            finally:
                os.close(at)
            at = below
        return at


def _give(descriptor: int, before: os.stat_result) -> None:
    """Hand a new file to the owner of the one it replaces, where that is allowed."""
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)


def _matches(name: str, pattern: str) -> bool:
    """Match one component as a shell does: a leading dot only by a dot."""
    return fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))


def decoded(data: bytes) -> str:
    """Return text; bytes that are none are replaced, never an error."""
    return data.decode("utf-8", errors="replace")


def parent(path: str) -> str:
    """Return the folder of a path."""
    return str(PurePosixPath(path).parent)
