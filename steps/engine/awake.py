"""Keeping the machine from going to sleep or off while a run is at work: an idle desktop suspends in the middle of a module build."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

_LOGIND = Path("/run/systemd/system")
_FAREWELL = 2.0
"""So long is waited for the helper at the end of a run; seconds."""


@contextlib.contextmanager
def awake(run: str, *, tool: str = "systemd-inhibit", logind: Path = _LOGIND) -> Iterator[None]:
    """Hold logind's lock on sleep and shutdown; where there is no logind, or it refuses, nothing is held and nothing is said.

    A helper holds it for as long as our end of its pipe is open, so it ends with us however we end.
    """
    helper = _started(run, tool) if logind.is_dir() else None
    try:
        yield
    finally:
        if helper is not None and helper.stdin is not None:
            helper.stdin.close()
            try:
                helper.wait(_FAREWELL)
            except subprocess.TimeoutExpired:
                # Nobody answered it on the bus.
                helper.kill()
                helper.wait()


def _started(run: str, tool: str) -> subprocess.Popen[bytes] | None:
    """Return the helper, or `None` where there is no such program."""
    why = ("--who=bringup", f"--why=Run {run} changes this system")
    argv = (tool, "--what=sleep:shutdown", "--mode=block", *why, "cat")
    null = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=null, stderr=null, cwd="/", start_new_session=True)
    return None
