"""What the GPUs do, followed: a program of ours is asked again and again, and nobody ever waits for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time

import msgspec

from steps import resources
from steps.host.local import probe_environment
from steps.model.gauge import Gauges

COMMAND = resources.module_command("steps.host.gauges")
_MOST = 1 << 20
"""An answer that is longer is none."""
_GIVEN_UP = 15.0
"""Seconds after which a program that does not answer is ended; the next turn starts another."""
_AGAIN = 5.0
"""Seconds between the end of one program and the start of the next."""


class GaugeFeed:
    """The newest answer about the GPUs of this machine."""

    def __init__(self, command: tuple[str, ...] = COMMAND) -> None:
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        self._read = b""
        self._asked: float | None = None
        """When this program was asked what it has not answered yet."""
        self._since: float | None = None
        """The same, whichever program was asked first."""
        self._ended = -_AGAIN
        self._newest: Gauges | None = None

    def turn(self) -> Gauges | None:
        """Take in what was answered since, ask anew, and return the newest whole answer; `None` before the first."""
        if self._child is None and time.monotonic() - self._ended >= _AGAIN:
            self._start()
        if self._child is not None:
            self._take(self._child)
        if self._child is not None and self._asked is None:
            self._ask(self._child)
        if self._asked is not None and time.monotonic() - self._asked > _GIVEN_UP:
            self.close()
        return self._newest

    @property
    def silent(self) -> float:
        """For how many seconds a question has had no answer; 0 when none is open."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    def close(self) -> None:
        """End the program; one that hangs in a driver is left behind, not waited for."""
        child, self._child = self._child, None
        if child is None:
            return
        self._ended, self._asked = time.monotonic(), None
        child.kill()
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=0.05)

    def _start(self) -> None:
        self._read = b""
        self._since = self._since or time.monotonic()
        try:
            child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=probe_environment(),
                bufsize=0,
                start_new_session=True,
            )
        except OSError:
            self._ended = time.monotonic()
            return
        for stream in (child.stdin, child.stdout):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
        self._child = child

    def _ask(self, child: subprocess.Popen[bytes]) -> None:
        if child.stdin is None:
            return
        try:
            child.stdin.write(b"\n")
            self._asked = time.monotonic()
            self._since = self._since or self._asked
        except OSError:
            self.close()

    def _take(self, child: subprocess.Popen[bytes]) -> None:
        """Take in what the program has written; the end of it ends the child."""
        while child.stdout is not None and (block := child.stdout.read(65536)) is not None:
            self._read += block
            if not block or len(self._read) > _MOST:
                self.close()
                return
        line, newline, rest = self._read.rpartition(b"\n")
        if not newline:
            return
        self._read, self._asked, self._since = rest, None, None
        with contextlib.suppress(msgspec.DecodeError, UnicodeError):
            self._newest = msgspec.json.decode(line.rpartition(b"\n")[2], type=Gauges)
