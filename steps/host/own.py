"""A folder of a person's own, also when root asks: read with care, written with that person's rights, so that nothing of root's stays."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
from pathlib import Path

from steps.host.files import decoded

_SECONDS = 10.0


class OwnFolder:
    """A folder that belongs to a person; nobody else's file counts there."""

    def __init__(self, path: str, *, uid: int, gid: int) -> None:
        self.path = path
        self._uid = uid
        self._gid = gid

    def read(self, name: str, *, most: int) -> str | None:
        """Return the text of a file; `None` when there is none, and where it is no plain file of that person's or root's.

        A file of more than `most` bytes comes back one byte longer than that, for the reader to refuse.
        """
        try:
            # No link at the end, and no waiting for the other end of a pipe.
            descriptor = os.open(f"{self.path}/{name}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            seen = os.fstat(descriptor)
            if not stat.S_ISREG(seen.st_mode) or seen.st_uid not in (0, self._uid):
                return None
            return decoded(file.read(most + 1))

    def write(self, name: str, data: bytes, *, private: bool = False) -> str | None:
        """Replace a file as a whole; return why it could not be, or `None`. A private one, and its folder, only that person may read."""
        if os.geteuid() == 0 and self._uid != 0:
            return self._as_the_person(name, data, private)
        target = Path(self.path, name)
        new = target.with_name(f".{name}.new")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if private:
                target.parent.chmod(0o700)
            new.unlink(missing_ok=True)
            mode = 0o600 if private else 0o644
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(data)
            new.replace(target)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink()
            return error.strerror or type(error).__name__
        return None

    def _as_the_person(self, name: str, data: bytes, private: bool) -> str | None:
        """Write through programs that run as the person: a link in the folder leads nowhere they could not write themselves."""
        new = f"{self.path}/.{name}.new"
        folder = (("chmod", "700", "--", self.path),) if private else ()
        for argv in (
            ("mkdir", "-p", "--", self.path),
            *folder,
            ("dd", f"of={new}", "status=none"),
            ("chmod", "600" if private else "644", "--", new),
            ("mv", "-f", "--", new, f"{self.path}/{name}"),
        ):
            trouble = self._run(argv, data)
            if trouble:
                return trouble
        return None

    def _run(self, argv: tuple[str, ...], data: bytes) -> str | None:
        """Run a program as the person; return why it failed, or `None`."""
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        try:
            ended = subprocess.run(
                argv,
                check=False,
                input=data,
                capture_output=True,
                user=self._uid,
                group=self._gid,
                extra_groups=(),
                env=environment,
                cwd="/",
                umask=0o022,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return getattr(error, "strerror", None) or type(error).__name__
        return None if ended.returncode == 0 else decoded(ended.stderr).strip().rpartition(": ")[2] or f"{argv[0]}: {ended.returncode}"
