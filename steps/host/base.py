"""The one door to a machine: what may be asked of it, and what may be done to it."""

from __future__ import annotations

from typing import Protocol

from steps.model.base import Record


class Result(Record):
    """What a probe printed; `status` is 127 for a program that is not installed, `None` when not known (never recorded, timed out)."""

    stdout: str = ""
    stderr: str = ""
    status: int | None = None

    @property
    def text(self) -> str:
        """Return both streams together: reports seldom tell which one a line came from."""
        return self.stdout + self.stderr


class Host(Protocol):
    """A machine that can be looked at; nothing here changes it."""

    @property
    def name(self) -> str:
        """The host name, or the name of a capture."""
        ...

    @property
    def root(self) -> str:
        """The folder below which the system lives: "/" but for a mounted system."""
        ...

    @property
    def rehearsal(self) -> bool:
        """Whether nothing real stands behind it, so that installs are only rehearsed."""
        ...

    def read(self, path: str) -> str | None:
        """Return the text of a file; `None` when it is absent, unreadable or was never recorded."""
        ...

    def read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a file; `None` as for `read`."""
        ...

    def exists(self, path: str) -> bool | None:
        """Return whether `path` is there, links followed; `None` when that is not known."""
        ...

    def listdir(self, path: str) -> tuple[str, ...] | None:
        """Return the sorted names in a folder; `None` when it is absent, unreadable or was never recorded."""
        ...

    def readlink(self, path: str) -> str | None:
        """Return where a symbolic link points, as it is written there; `None` when there is no such link."""
        ...

    def glob(self, pattern: str) -> tuple[str, ...]:
        """Return the sorted paths that match a shell pattern, links followed."""
        ...

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what a harmless probe prints under LC_ALL=C; never through a shell."""
        ...

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        """Return the command lines that a capture holds, for probes that accept any spelling; empty for a real machine."""
        ...

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return how `argv` is started on this host: itself, or behind `chroot`."""
        ...

    def free_bytes(self, path: str) -> int | None:
        """Return the space left for an ordinary user where `path` is or would be; `None` when not known."""
        ...


class WritableHost(Host, Protocol):
    """A machine that may be changed; only the engine's executor is handed one."""

    def write_bytes(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Replace a file as a whole; an existing file keeps its owner and mode, a new one gets `mode`."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file, a link or a tree; what is not there is fine, "/" and one-component paths are refused."""
        ...

    def remove_empty(self, path: str) -> None:
        """Remove a folder in which nothing is; one that holds something, is in use or is no folder stays as it is."""
        ...

    def mkdir(self, path: str, mode: int = 0o755) -> None:
        """Make a folder and its parents; one that is there stays as it is."""
        ...
