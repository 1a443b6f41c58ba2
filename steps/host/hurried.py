"""A host with a time by which all of its probes together have answered, or are not waited for any more."""

from __future__ import annotations

import time

from steps.host.base import Host, Result

_GRACE = 0.5
"""Seconds for each probe that begins after the time is up."""


class Hurried:
    """Passes every question on; once the time is up a probe has half a second, which is enough for one that is well.

    See `Host` for the questions.
    """

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
        left = max(self._until - time.monotonic(), _GRACE)
        return self._inner.run(argv, timeout=min(timeout, left))
