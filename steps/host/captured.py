"""A machine out of one file: what its probes saw, and nothing else."""

from __future__ import annotations

import base64
import binascii
import codecs
import os
import shlex
import stat
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from steps.errors import InputError
from steps.host.base import Host, Result
from steps.host.files import MOST_BYTES, decoded, parts_of
from steps.host.transcript import plain, session, whole

_MOST_PATH = 4096
_MOST_LINKS = 40
_INSIDE = "container-"
"""Logs whose name begins so were printed inside a container."""


class Encoded(msgspec.Struct, frozen=True):
    """Bytes that are no text."""

    base64: str


class Recorded(msgspec.Struct, frozen=True):
    """What one command printed."""

    stdout: str = ""
    stderr: str = ""
    status: int | None = None


class Capture(msgspec.Struct, frozen=True):
    """The document of the contract's section 4; keys that it does not know are left alone."""

    schema: Literal["bringup/capture"]
    version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    about: dict[str, Any] = {}
    files: dict[str, str | Encoded] = {}
    links: dict[str, str] = {}
    dirs: tuple[str, ...] | None = None
    commands: dict[str, Recorded] = {}
    logs: dict[str, str] = {}


def load_capture(path: str) -> Capture:
    """Return the capture in a file; raises `InputError` (`capture-unreadable`, with a reason) for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _unreadable(path, "not a regular file")
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from error
    if len(data) > MOST_BYTES:
        raise _unreadable(path, f"larger than {MOST_BYTES >> 20} MiB")
    return parse_capture(data, path)


def parse_capture(data: bytes, path: str = "") -> Capture:
    """Return the capture that `data` holds; raises as `load_capture`."""
    try:
        # Some editors begin a file with a byte order mark, which JSON does not know.
        return msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8), type=Capture)
    except (msgspec.DecodeError, UnicodeError, RecursionError, OverflowError) as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: str, reason: str) -> InputError:
    return InputError("capture-unreadable", path=path, reason=reason[:200])


class CapturedHost:
    """A machine that was recorded; see `Host` for what each method returns.

    With `dirs` the capture is a tree: below /sys, what was not recorded does not exist. All else is merely unknown.
    """

    root = "/"
    rehearsal = True

    def __init__(self, capture: Capture, path: str = "") -> None:
        name = capture.about.get("name")
        self.name = name if isinstance(name, str) and name else Path(path).stem
        self.logs = capture.logs
        self._tree = capture.dirs is not None
        self._files = {_checked(at, path): content for at, content in capture.files.items()}
        self._links = {_checked(at, path): target for at, target in capture.links.items()}
        recorded = {_argv(line): found for line, found in capture.commands.items()}
        self._commands = {argv if plain(argv) in recorded else plain(argv) or argv: found for argv, found in recorded.items()}
        self.typed = frozenset(self._pasted())
        self._children: dict[str, set[str]] = {"/": set()}
        self._real: dict[str, str | None] = {}
        for at in (*self._files, *self._links):
            self._know(at)
        for at in capture.dirs or ():
            folder = _checked(at, path)
            self._know(folder)
            self._children.setdefault(folder, set())

    def _pasted(self) -> Iterator[tuple[str, ...]]:
        """Take over, and yield, the commands that pasted sessions show and that were not recorded; printed files as well."""
        for name, text in self.logs.items():
            if name.startswith(_INSIDE):
                continue
            told = session(text)
            self._files = {**told.files, **self._files}
            for argv, output in (told.commands or whole(text)).items():
                if argv not in self._commands:
                    self._commands[argv] = Recorded(stdout=output)
                    yield argv

    def _know(self, path: str) -> None:
        """Enter a path into the folders above it."""
        while path != "/":
            above, _, name = path.rpartition("/")
            above = above or "/"
            known = self._children.get(above)
            if known is not None:
                known.add(name)
                return
            self._children[above] = {name}
            path = above

    def _resolve(self, path: str, *, follow_last: bool = True) -> str | None:
        """Return the recorded path that `path` stands for; `None` for a circle of links."""
        if follow_last and path in self._real:
            return self._real[path]
        done: list[str] = []
        todo = parts_of(path)[::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                del done[-1:]
                continue
            target = self._links.get("/" + "/".join([*done, part])) if todo or follow_last else None
            if target is None:
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS or len(todo) > _MOST_PATH:
                self._real[path] = None
                return None
            if target.startswith("/"):
                done.clear()
            todo.extend(parts_of(target[:_MOST_PATH])[::-1])
        real = "/" + "/".join(done)
        if follow_last:
            self._real[path] = real
        return real

    def read_bytes(self, path: str) -> bytes | None:
        """Return the recorded bytes."""
        content = self._files.get(self._resolve(path) or "")
        if content is None or isinstance(content, str):
            return None if content is None else content.encode("utf-8", errors="replace")
        try:
            return base64.b64decode(content.base64, validate=True)
        except (binascii.Error, ValueError):
            return None

    def read(self, path: str) -> str | None:
        """Return the recorded text."""
        content = self._files.get(self._resolve(path) or "")
        if isinstance(content, str):
            return content
        data = self.read_bytes(path) if content is not None else None
        return None if data is None else decoded(data)

    def exists(self, path: str) -> bool | None:
        """Return whether it was recorded; below /sys of a tree what was not does not exist, elsewhere `test -e` may have said so."""
        real = self._resolve(path)
        if real is not None and (real in self._files or real in self._children):
            return True
        if self._tree and f"{real or path}/".startswith("/sys/"):
            return False
        tried = self._commands.get(absence(path))
        return False if tried is not None and tried.status == 1 else None

    def listdir(self, path: str) -> tuple[str, ...] | None:
        """Return the recorded names."""
        known = self._children.get(self._resolve(path) or "")
        return None if known is None else tuple(sorted(known))

    def readlink(self, path: str) -> str | None:
        """Return the recorded target."""
        return self._links.get(self._resolve(path, follow_last=False) or "")

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return the recorded paths that match; a link counts though what it points at was not recorded."""
        found = [""]
        for part in parts_of(pattern):
            if has_magic(part):
                found = [f"{at}/{name}" for at in found for name in self.listdir(at or "/") or () if _matches(name, part)]
            else:
                found = [f"{at}/{part}" for at in found]
        return tuple(sorted(path for path in found if self.exists(path) or self.readlink(path) is not None))

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what was recorded; a probe that never was has status `None`."""
        del timeout
        found = self._commands.get(argv)
        return Result() if found is None else Result(stdout=found.stdout, stderr=found.stderr, status=found.status)

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        """Return the command lines that were recorded."""
        return tuple(self._commands)

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return `argv` itself: a rehearsal only shows it."""
        return argv

    def free_bytes(self, path: str) -> int | None:
        """Return `None`: captures do not tell."""
        del path
        return None


def absence(path: str) -> tuple[str, ...]:
    """Return the command by which a capture says that a path is not there: it ends with 1."""
    return ("test", "-e", path)


def _checked(path: str, capture: str) -> str:
    """Return a recorded path in its plain spelling; raises for one that is not absolute and plain."""
    parts = parts_of(path) if path.startswith("/") and len(path) <= _MOST_PATH else [".."]
    if ".." in parts or "\0" in path:
        raise _unreadable(capture, f"not an absolute path: {path[:80]!r}")
    return "/" + "/".join(parts)


def _argv(line: str) -> tuple[str, ...]:
    """Return the argv that a recorded command line stands for."""
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return (line,)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))


def typed(host: Host) -> frozenset[tuple[str, ...]]:
    """Return the commands of a capture that were not recorded by themselves but stand in its logs; empty for any other host."""
    return host.typed if isinstance(host, CapturedHost) else frozenset()


def pasted(host: Host) -> Mapping[str, str]:
    """Return the output of programs that a person put into a capture, by name; empty for any other host."""
    return host.logs if isinstance(host, CapturedHost) else {}
