"""What a person has said of a run's packages since it changed them: that one is to stay, or that none may touch it."""

from __future__ import annotations

from steps.engine.context import Context
from steps.engine.packages import PackagesBefore, changed, read_after
from steps.errors import PreflightError
from steps.managers.base import Snapshot
from steps.model.action import Packages


def asked_for_since(context: Context, action: Packages, state: PackagesBefore, now: Snapshot | None) -> frozenset[str]:
    """Return what only came along with the run and a person has asked for by name since: it stays.

    Empty where the run was cut off before it could look at what it had left.
    """
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
    held = sorted(name for name in ours if now.packages[name].held and not after.packages[name].held)
    if held:
        raise PreflightError("undo-held", packages=" ".join(held))
