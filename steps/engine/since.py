"""What a person has said of a run's packages since it changed them: that one is to stay, or that none may touch it."""

from __future__ import annotations

import msgspec

from steps.engine.context import Context
from steps.engine.durable import write_whole
from steps.engine.package_notes import PackagesBefore, changed, read_after
from steps.errors import PreflightError
from steps.managers.base import Snapshot
from steps.model.action import Packages

_ASKED = "undo-asked.json"


def asked_for_since(context: Context, action: Packages, state: PackagesBefore, now: Snapshot | None) -> frozenset[str]:
    """Return what only came along with the run and a person has asked for by name since: it stays.

    As the first undo found it, when that was cut off: apt, killed while it removes packages, has lost their automatic marks.
    Empty where the run was cut off before it could look at what it had left.
    """
    path = context.folder.kept(action.id) / _ASKED
    try:
        found: frozenset[str] = msgspec.json.decode(path.read_bytes(), type=frozenset[str])
    except FileNotFoundError:
        found = _asked_for(context, action, state, now)
        write_whole(path, msgspec.json.encode(sorted(found)), gid=context.owner.gid)
    return found


def forget_asked(context: Context, action: Packages) -> None:
    """Let the next undo look for itself: this one changed nothing."""
    (context.folder.kept(action.id) / _ASKED).unlink(missing_ok=True)


def _asked_for(context: Context, action: Packages, state: PackagesBefore, now: Snapshot | None) -> frozenset[str]:
    after = read_after(context, action)
    if after is None or now is None:
        return frozenset()
    came = (name for name in changed(state, after) if not state.before.has(name) and after.has(name) and now.has(name))
    return frozenset(name for name in came if after.packages[name].automatic and not now.packages[name].automatic)


def refuse_held_since(action: Packages, context: Context, state: PackagesBefore, now: Snapshot | None) -> None:
    """Raise `PreflightError("undo-held")` where a person has held back since what an undo would change."""
    after = read_after(context, action)
    if after is None or now is None:
        return
    ours = (name for name in changed(state, after) if name in now.packages and name in after.packages)
    # One that was held before the run is held again by an undo that was cut off behind it.
    known = state.before.packages
    held = sorted(
        name for name in ours if now.packages[name].held and not after.packages[name].held and not (name in known and known[name].held)
    )
    if held:
        raise PreflightError("undo-held", packages=" ".join(held))
