"""What a killed runner left at work: found again by a variable that every command of a run carries, and waited for."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from steps.engine import journal
from steps.engine.context import Context
from steps.engine.durable import open_new
from steps.engine.folder import AHEAD, MARK, RunFolder
from steps.engine.lock import is_held
from steps.engine.waiting import all_processes, processes_of
from steps.errors import BringupError

_LOOK = 0.2


_ROOM = 16
"""More than the digits of a session and the end of the line."""


class Mark:
    """The place where the session of an action's command is written down: made before the command, since after it must not fail."""

    def __init__(self, context: Context, action: str) -> None:
        """Raise `OSError` where there is no room."""
        self._descriptor = open_new(_file(context.folder, action), gid=context.owner.gid)
        self._end = os.fstat(self._descriptor).st_size
        os.write(self._descriptor, b"\n" * _ROOM)

    def set(self, session: int) -> None:
        """Write down the session; over what is there already, so that a full disk is no hindrance."""
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags & ~os.O_APPEND)
        with contextlib.suppress(OSError):
            os.pwrite(self._descriptor, str(session).encode(), self._end)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def _file(folder: RunFolder, action: str) -> Path:
    return folder.path / "output" / f"{action}.session"


def left_at_work(folder: RunFolder, action: str) -> tuple[int, ...]:
    """Return the processes of the action's last command that still run; services that left its session are not meant."""
    try:
        session = int(_file(folder, action).read_text(encoding="ascii").split()[-1])
    except (OSError, ValueError, IndexError):
        return ()
    # A number may have been given to somebody else since, hence the mark.
    return tuple(pid for pid in processes_of(session) if _is_marked(pid, folder, action))


def left_by_others(folder: RunFolder, root: str, others: Iterable[RunFolder]) -> tuple[str, int] | None:
    """Return a run besides this one that was cut off on the same system while its command goes on, and that process; else `None`."""
    for other in others:
        if other.id == folder.id or other.id.startswith(AHEAD) or is_held(other.lock):
            continue
        # A run that is damaged, or somebody else's, tells nothing of its commands.
        with contextlib.suppress(BringupError):
            plan, state = other.read_plan(), journal.fold(journal.read(other.journal)[0])
            # One that was stopped while it waited for what is at work has left that at work.
            over = journal.is_over(state) and state.status != "cancelled"
            if plan.target.rehearsal or plan.target.root != root or over:
                continue
            # What an action that was done has left running is no half of it, and may run for ever; an undo works on what was done.
            done = {one.id for one in state.actions.values() if one.ended is not None and state.undoing_since is None}
            for action in plan.actions:
                if action.id not in done and (pids := left_at_work(other, action.id)):
                    return other.id, pids[0]
    return None


def _is_marked(pid: int, folder: RunFolder, action: str) -> bool:
    marked = f"{MARK}={folder.mark_of(action)}".encode()
    with contextlib.suppress(OSError):
        return marked in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return False


def sweep(context: Context, action: str) -> None:
    """End what a stopped command has left behind, wherever it went: it was told to stop, and is half done."""
    for number, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 1.0)):
        deadline = time.monotonic() + patience
        left = [pid for pid in all_processes() if _is_marked(pid, context.folder, action)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        while left and time.monotonic() < deadline:
            time.sleep(0.05)
            left = [pid for pid in left if _is_marked(pid, context.folder, action)]


def wait_for(context: Context, action: str) -> None:
    """Wait until what was left at work has ended: to start the same beside it, or to kill it, would break what it does."""
    pids = left_at_work(context.folder, action)
    if not pids:
        return
    context.spool_line(action, f"[bringup: waiting for process {pids[0]}, which is still at work]")
    while left_at_work(context.folder, action) and not context.switches.cancelled.wait(_LOOK):
        continue
