"""The packages as a try or an undo found them, before the manager finished what was cut off: what it brings by that is the run's doing."""

from __future__ import annotations

import msgspec

from steps.engine.context import Context
from steps.engine.durable import write_whole
from steps.managers.base import Snapshot
from steps.model.action import Packages

_FOUND = "found.json"


def first_found(context: Context, action: Packages, now: Snapshot | None) -> Snapshot | None:
    """Return the packages as they were when this began, in an earlier process perhaps that was cut off; `None` when nobody could look."""
    path = context.folder.kept(action.id) / _FOUND
    try:
        return msgspec.json.decode(path.read_bytes(), type=Snapshot)
    except FileNotFoundError:
        if now is not None:
            write_whole(path, msgspec.json.encode(now), gid=context.owner.gid)
        return now


def forget_found(context: Context, action: Packages) -> None:
    """Let the next one look for itself: what this one brought is written down elsewhere, or it brought nothing."""
    (context.folder.kept(action.id) / _FOUND).unlink(missing_ok=True)


def brought(found: Snapshot | None, now: Snapshot, names: tuple[str, ...]) -> frozenset[str]:
    """Return which of the packages are not as they were found; none where that is not known."""
    if found is None:
        return frozenset()
    return frozenset(name for name in names if found.packages.get(name) != now.packages.get(name))
