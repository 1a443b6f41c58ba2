"""Whether a program behind a terminal waits for a person, as the kernel tells it."""

from __future__ import annotations

import contextlib
import os
import platform
import struct
from collections.abc import Iterator
from pathlib import Path

_TTY = os.makedev(5, 0)
"""`/dev/tty`: each process's own controlling terminal."""


class _Calls:
    """The numbers of the system calls in which a program waits for input."""

    def __init__(self, read: int, select: tuple[int, ...], poll: tuple[int, ...]) -> None:
        self.read = read
        self.select = select
        self.poll = poll


_CALLS = {
    "x86_64": _Calls(read=0, select=(23, 270), poll=(7, 271)),
    "aarch64": _Calls(read=63, select=(72,), poll=(73,)),
}


def processes_of(session: int) -> Iterator[int]:
    """Yield the processes of a session, the zombies left out."""
    for pid, fields in _all():
        if int(fields[3]) == session:
            yield pid


def _all() -> Iterator[tuple[int, list[bytes]]]:
    """Yield every living process with its fields: state, parent, group, session, terminal and so on."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    yield int(folder.name), fields


def all_processes() -> Iterator[int]:
    """Yield every living process."""
    yield from (pid for pid, _ in _all())


def descendants_of(ancestor: int) -> tuple[int, ...]:
    """Return all children of a process and theirs, those that left its session included."""
    parents: dict[int, int] = {}
    for pid, fields in _all():
        parents[pid] = int(fields[1])
    found = [ancestor]
    for known in found:
        found.extend(pid for pid, parent in parents.items() if parent == known)
    return tuple(found[1:])


def waits_for_input(session: int, terminal: int) -> bool | None:
    """Return whether a process of the session reads `terminal` (a device number); `None` when the kernel does not tell."""
    calls = _CALLS.get(platform.machine())
    hidden = calls is None
    for pid in processes_of(session):
        try:
            words = Path(f"/proc/{pid}/syscall").read_text(encoding="ascii").split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError:
            hidden = True
            continue
        if calls is None or not words or not words[0].isdigit():
            continue
        number, arguments = int(words[0]), [int(word, 16) for word in words[1:4]]
        if any(_is_terminal(pid, fd, terminal) for fd in _awaited(pid, calls, number, arguments)):
            return True
    return None if hidden else False


def _awaited(pid: int, calls: _Calls, number: int, arguments: list[int]) -> Iterator[int]:
    """Yield the descriptors that the process waits on for reading."""
    if number == calls.read:
        yield arguments[0]
    elif number in calls.select:
        size = min(arguments[0], 1024)
        bits = int.from_bytes(_memory(pid, arguments[1], (size + 7) // 8), "little")
        yield from (fd for fd in range(size) if bits >> fd & 1)
    elif number in calls.poll:
        count = min(arguments[1], 64)
        for fd, events, _ in struct.iter_unpack("ihh", _memory(pid, arguments[0], 8 * count)):
            if events & 1:
                yield fd


def _memory(pid: int, address: int, size: int) -> bytes:
    """Return `size` bytes of a process's memory, or nothing when it may not be seen."""
    with contextlib.suppress(OSError, OverflowError, ValueError), Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(address)
        data = memory.read(size)
        if len(data) == size:
            return data
    return b""


def _is_terminal(pid: int, descriptor: int, terminal: int) -> bool:
    try:
        found = Path(f"/proc/{pid}/fd/{descriptor}").stat().st_rdev
    except OSError:
        return False
    return found in (terminal, _TTY)
