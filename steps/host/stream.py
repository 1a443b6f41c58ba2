"""A log of any size in blocks: from a file, packed or not, or from standard input."""

from __future__ import annotations

import gzip
import os
import stat
import sys
from collections.abc import Iterator
from typing import IO, cast

from steps.errors import InputError

STDIN = "-"
_BLOCK = 1 << 20
_PACKED = b"\x1f\x8b"


def blocks(path: str) -> Iterator[bytes]:
    """Yield a log in blocks of at most 1 MiB; `-` is standard input, a file packed by gzip is unpacked.

    Raises `InputError` (`log-unreadable`, with a reason) at the first block when there is no such file, and later when it breaks off.
    """
    if path == STDIN:
        yield from _read(path, sys.stdin.buffer)
        return
    try:
        # A device or a named pipe could keep us waiting at the opening already.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        raise InputError("log-unreadable", file=path, reason=getattr(error, "strerror", None) or str(error)) from error
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        os.close(descriptor)
        raise InputError("log-unreadable", file=path, reason="not a file")
    with os.fdopen(descriptor, "rb") as file:
        os.set_blocking(descriptor, True)
        packed = stat.S_ISREG(mode) and file.peek(2)[:2] == _PACKED
        yield from _read(path, cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file)


def _read(path: str, file: IO[bytes]) -> Iterator[bytes]:
    try:
        while block := file.read(_BLOCK):
            yield block
    except (OSError, EOFError) as error:
        raise InputError("log-unreadable", file=path, reason=getattr(error, "strerror", None) or str(error)) from error
