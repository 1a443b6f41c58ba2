"""The pipe between a command and its spool, emptied by a process that outlives the runner.

The spool itself as standard output would do, but for one habit of shell scripts: `echo … > /dev/stderr` opens it anew and cuts
it to nothing. A pipe has no length to cut. `tee` empties it, in a session of its own: a runner that is killed takes neither
it nor the command along, and when the disk is full it goes on emptying, so that dpkg does not die of a broken pipe.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import subprocess
import termios
import time
from pathlib import Path

_PIPE_SIZE = 1 << 20


class Drain:
    """One pipe: hand `entrance` to the command, then `shut` it here."""

    def __init__(self, spool: Path, uid: int) -> None:
        self._spool = str(spool)
        self._exit, self.entrance = os.pipe()
        with contextlib.suppress(OSError):
            # Fewer turns between the two; more than an ordinary user may have is refused, which costs speed only.
            fcntl.fcntl(self._exit, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
        if os.geteuid() == 0:
            # Else a script of the person's could not open its own /dev/stderr.
            os.fchown(self._exit, uid, -1)
        os.set_inheritable(self.entrance, True)
        self._tee = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        null = subprocess.DEVNULL
        return subprocess.Popen(("tee", "-a", self._spool), stdin=self._exit, stdout=null, stderr=null, cwd="/", start_new_session=True)

    def shut(self) -> None:
        """Let go of the entrance: only the command and its children hold it now."""
        os.close(self.entrance)

    def look_after(self) -> None:
        """Start the emptying again when somebody has killed it; the command would stand still otherwise."""
        if self._tee.poll() is not None and self._tee.returncode not in (0, 1):
            self._tee = self._start()

    def settle(self, patience: float = 2.0) -> None:
        """Wait until all that the command wrote is in the spool, then let go; a service it left behind may keep the pipe."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            try:
                self._tee.wait(0.02)
                break
            except subprocess.TimeoutExpired:
                if self._left() == 0 and time.monotonic() > deadline - patience + 0.2:
                    break
        os.close(self._exit)

    def _left(self) -> int:
        return int(struct.unpack("i", fcntl.ioctl(self._exit, termios.FIONREAD, bytes(4)))[0])
