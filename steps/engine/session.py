"""One command behind a pseudo-terminal of its own, its output in a spool file.

A command's output goes into the spool by a drain of its own (none of it passes through here), so nothing is lost however fast
it writes, and a runner that is killed leaves the command to finish. The pseudo-terminal is its controlling terminal and its
input: what asks there, or writes there, is read and appended to the same spool. An interactive command has the terminal for
its output too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import selectors
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pexpect
import ptyprocess

from steps.engine.drain import Drain
from steps.engine.durable import open_new
from steps.engine.folder import Owner
from steps.engine.waiting import descendants_of, processes_of, waits_for_input

ROWS, COLUMNS = 24, 80
"""A size that dialogs fit in and that never changes: whiptail does not redraw when it does."""
_BLOCK = 65536
_BLOCKS = 8
"""So many blocks are copied at once at most."""
_LOOK = 0.05
"""So often is looked whether a command has ended where the kernel does not wake us for it; seconds."""
_TIOCGPTN = 0x80045430
_PRIVATE = b"\x1b[?"
ALTERNATE = (b"\x1b[?1049", b"\x1b[?1047", b"\x1b[?47")
"""How a program goes to the alternate screen ("h") and back ("l"), where dialogs are painted."""


class NotStarted(Exception):
    """The command could not be started: there is no such program (127), or the system would not run it (126)."""

    def __init__(self, program: str, status: int, reason: Exception) -> None:
        super().__init__(program)
        self.status = status
        self.reason = reason


class Ended:
    """How a command ended: an exit code, or the signal that killed it."""

    def __init__(self, status: int | None, killed_by: int | None) -> None:
        self.status = status
        self.killed_by = killed_by

    @property
    def code(self) -> int:
        """The exit code as a shell reports it."""
        return self.status if self.status is not None else 128 + (self.killed_by or 0)


class _Spawn(pexpect.spawn):  # type: ignore[type-arg]
    """A pexpect child that is handed more descriptors, which ptyprocess can and pexpect does not pass on."""

    ptyproc: Any

    def __init__(self, command: str, arguments: list[str], handed: tuple[int, ...], **options: Any) -> None:
        self._handed = handed
        super().__init__(command, arguments, **options)

    def _spawnpty(self, args: Any, **options: Any) -> Any:
        return ptyprocess.PtyProcess.spawn(args, pass_fds=self._handed, **options)


class Session:
    """A running command; `pump` it until it returns `False`, then look at `ended`."""

    def __init__(
        self,
        argv: tuple[str, ...],
        spool: Path,
        *,
        environment: Mapping[str, str],
        interactive: bool = False,
        user: Owner | None = None,
        gid: int | None = None,
        folder: str = "/",
        handed: int | None = None,
    ) -> None:
        """Start `argv`, as `user` when one is given; `handed` is a descriptor the command inherits under the same number."""
        self._spool = open_new(spool, gid=gid)
        self.ended: Ended | None = None
        self._dialog = False
        self._drain = None if interactive else Drain(spool, user.uid if user is not None else os.geteuid())
        try:
            self._child = self._spawned(argv, environment, user, folder, handed)
        except (pexpect.ExceptionPexpect, OSError) as error:
            os.close(self._spool)
            if self._drain is not None:
                self._drain.settle()
            missing = isinstance(error, (pexpect.ExceptionPexpect, FileNotFoundError))
            raise NotStarted(argv[0], 127 if missing else 126, error) from error
        self._child.delaybeforesend = None
        self._child.ptyproc.delayafterclose = 0
        # Always a number once the child is started; before, pexpect says None.
        self.pid = self._child.pid or 0
        try:
            self._open_ends()
        except OSError as error:
            # Nobody would see it end, and nobody hear what it says.
            self._child.close(force=True)
            os.close(self._spool)
            if self._drain is not None:
                self._drain.settle()
            raise NotStarted(argv[0], 126, error) from error
        self._size = self.spooled()
        self.quiet_since = time.monotonic()

    def _spawned(
        self, argv: tuple[str, ...], environment: Mapping[str, str], user: Owner | None, folder: str, handed: int | None
    ) -> _Spawn:
        """Return the child; the drain's entrance is its alone afterwards, whether it started or not."""
        entrance = None if self._drain is None else self._drain.entrance
        try:
            return _Spawn(
                argv[0],
                list(argv[1:]),
                tuple(descriptor for descriptor in (handed, entrance) if descriptor is not None),
                env=dict(environment),
                cwd=folder,
                timeout=None,
                ignore_sighup=True,
                dimensions=(ROWS, COLUMNS),
                preexec_fn=_before_exec(entrance, user),
            )
        finally:
            if self._drain is not None:
                self._drain.shut()

    def _open_ends(self) -> None:
        """Hold the other end of the terminal too: then it gives no end-of-file while the command lives, and loses no last words."""
        name = f"/dev/pts/{struct.unpack('i', fcntl.ioctl(self._child.child_fd, _TIOCGPTN, bytes(4)))[0]}"
        self._far_end = os.open(name, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        self._terminal = os.fstat(self._far_end).st_rdev
        self._process = _watched(self.pid)
        self._ready = selectors.PollSelector()
        self._ready.register(self._child.child_fd, selectors.EVENT_READ)
        if self._process is not None:
            self._ready.register(self._process, selectors.EVENT_READ)
        self._block = memoryview(bytearray(_BLOCK))
        self._more = select.poll()
        self._more.register(self._child.child_fd, select.POLLIN)

    # --- looking -----------------------------------------------------------------------------------

    def spooled(self) -> int:
        """Return the size of the spool."""
        return os.fstat(self._spool).st_size

    def tail(self, count: int) -> bytes:
        """Return the last `count` bytes of the spool."""
        return os.pread(self._spool, count, max(0, self.spooled() - count))

    def silence(self) -> float:
        """Return for how many seconds nothing came."""
        size = self.spooled()
        if size != self._size:
            self._size = size
            self.quiet_since = time.monotonic()
        return time.monotonic() - self.quiet_since

    def waits(self) -> bool | None:
        """Return whether the command waits for input from its terminal; `None` when the kernel does not tell."""
        return waits_for_input(self.pid, self._terminal)

    @property
    def in_dialog(self) -> bool:
        """Whether a full-screen dialog is on the terminal."""
        return self._dialog

    @property
    def hides_typing(self) -> bool:
        """Whether the command takes a whole line without echo, as for a password."""
        flags = termios.tcgetattr(self._far_end)[3]
        return bool(flags & termios.ICANON) and not flags & termios.ECHO

    # --- moving ------------------------------------------------------------------------------------

    def pump(self, timeout: float) -> bool:
        """Copy what came on the terminal into the spool, waiting at most `timeout` seconds; `False` once the command has ended."""
        if self.ended is not None:
            return False
        if self._drain is not None:
            self._drain.look_after()
        for key, _ in self._ready.select(timeout if self._process is not None else min(timeout, _LOOK)):
            if key.fd == self._process:
                self._finish()
                return False
            self._copy()
        if self._process is None and os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            self._finish()
        return self.ended is None

    def _copy(self) -> None:
        """Copy what is there now; in a flood several blocks of it, for every turn through the caller costs as much as one."""
        for _ in range(_BLOCKS):
            size, more = 0, True
            # A terminal hands out 4 kB at most; what is there already goes into the spool in one piece.
            while more and size < _BLOCK:
                size += os.readv(self._child.child_fd, [self._block[size:]])
                more = bool(self._more.poll(0))
            piece = self._block[:size]
            self._look_for_dialog(bytes(piece))
            # A full disk takes no more; the command must not stand still for it, or be let go in the middle.
            with contextlib.suppress(OSError):
                while piece:
                    piece = piece[os.write(self._spool, piece) :]
            if not more:
                return

    def _look_for_dialog(self, block: bytes) -> None:
        """Note whether a dialog took the terminal, or gave it back."""
        if _PRIVATE not in block:
            return
        for mark in ALTERNATE:
            at = block.rfind(mark)
            if at >= 0:
                self._dialog = block[at + len(mark) : at + len(mark) + 1] == b"h"

    def _finish(self) -> None:
        self._child.isalive()
        while any(key.fd != self._process for key, _ in self._ready.select(0)):
            self._copy()
        if self._drain is not None:
            self._drain.settle()
        self.ended = Ended(self._child.exitstatus, self._child.signalstatus)
        self._ready.close()
        self._child.close(force=False)
        for descriptor in (self._far_end, self._process, self._spool):
            if descriptor is not None:
                os.close(descriptor)

    def send(self, data: bytes) -> None:
        """Type `data`; what a program that reads nothing leaves no room for is dropped, for it must not keep us from all else."""
        os.set_blocking(self._child.child_fd, False)
        try:
            rest = memoryview(data)
            with contextlib.suppress(BlockingIOError):
                while rest:
                    rest = rest[os.write(self._child.child_fd, rest) :]
        finally:
            os.set_blocking(self._child.child_fd, True)
        self.quiet_since = time.monotonic()

    def send_secret(self, line: str, patience: float = 5.0) -> bool:
        """Type a line once the terminal does not echo; `False`, and nothing typed, when it goes on echoing."""
        # The stubs have no answer for it; it says whether the echo went off in time.
        wait: Callable[..., Any] = self._child.waitnoecho
        if not wait(timeout=patience):
            return False
        self.send(line.encode() + b"\n")
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the command, those that left its session included."""
        for pid in {self.pid, *processes_of(self.pid), *descendants_of(self.pid)}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def _watched(pid: int) -> int | None:
    """Return a descriptor that is ready once the process has ended; `None` where an older kernel or a container's filter has none."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _before_exec(output: int | None, user: Owner | None) -> Any:
    """Return what the child does before it becomes the command."""
    groups = os.getgrouplist(user.name, user.gid) if user is not None and os.geteuid() == 0 else []

    def enter() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.umask(0o022)
        if output is not None:
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
        if user is not None and os.geteuid() == 0:
            os.fchown(0, user.uid, -1)
            os.setgroups(groups)
            os.setgid(user.gid)
            os.setuid(user.uid)

    return enter
