"""Whether the system below a run's root is still the one that the run began on: another disk may be mounted there, or none."""

from __future__ import annotations

from collections.abc import Iterable

from steps.errors import PreflightError
from steps.host.base import Host
from steps.model.run import Entry

_NAMELESS = "system"
"""The mark of a system without an id of its own, as an image has none before its first boot."""
_ID_LETTERS = 32


def mark_of(host: Host) -> str:
    """Return what tells a mounted system from others: its machine id, or that there is one; "" for this machine, or for no system."""
    if host.root == "/":
        return ""
    id = (host.read("/etc/machine-id") or "").strip()
    if len(id) == _ID_LETTERS:
        return id
    return _NAMELESS if any(host.exists(path) for path in ("/etc", "/usr")) else ""


def expect_same(entries: Iterable[Entry], host: Host, run: str) -> None:
    """Raise `PreflightError` where nothing, or another system, lies at the root that the run began on."""
    marks = [mark for entry in entries if entry.kind == "run-started" and isinstance(mark := entry.data.get("system"), str) and mark]
    if not marks:
        return
    now = mark_of(host)
    if not now:
        raise PreflightError("root-gone", run=run, path=host.root)
    # The run itself may have given it an id, which the first turn did not know.
    ids = [mark for mark in marks if mark != _NAMELESS]
    if ids and now not in (_NAMELESS, ids[-1]):
        raise PreflightError("root-other", run=run, path=host.root.rstrip("/"), id=ids[-1])
