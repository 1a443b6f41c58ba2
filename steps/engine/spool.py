"""What an action printed, as a screen reads it."""

from __future__ import annotations

import os
from pathlib import Path


class Spool:
    """The output of one action, read by offset while it grows."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._path = path
        self._descriptor: int | None = None

    def _opened(self) -> int | None:
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
        return self._descriptor

    def size(self) -> int:
        """Return how many bytes there are; 0 before the action has begun."""
        descriptor = self._opened()
        return 0 if descriptor is None else os.fstat(descriptor).st_size

    def read(self, offset: int, count: int) -> bytes:
        """Return at most `count` bytes from `offset`."""
        descriptor = self._opened()
        return b"" if descriptor is None else os.pread(descriptor, count, offset)

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
