"""A host with a time by which all of its probes together have answered, or are not waited for any more."""

from __future__ import annotations

import time

from steps.host.base import Host, Result
from steps.host.local import NO_ANSWER


class Hurried:
    """Passes every question on; a probe that has no answer when the time is up counts as one that hangs. See `Host` for the questions."""

    def __init__(self, inner: Host, seconds: float) -> None:
        self.name = inner.name
        self.root = inner.root
        self.rehearsal = inner.rehearsal
        self.read = inner.read
        self.read_bytes = inner.read_bytes
        self.exists = inner.exists
        self.listdir = inner.listdir
        self.readlink = inner.readlink
        self.glob = inner.glob
        self.recorded = inner.recorded
        self.command = inner.command
        self.free_bytes = inner.free_bytes
        self._inner = inner
        self._until = time.monotonic() + seconds

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what the probe prints in the time that is left."""
        left = self._until - time.monotonic()
        return self._inner.run(argv, timeout=min(timeout, left)) if left > 0 else Result(stderr=f"{NO_ANSWER}\n")
