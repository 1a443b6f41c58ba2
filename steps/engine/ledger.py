"""What a run did and has not taken back: read from its plan, its journal and its backup, without a runner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from steps.engine import journal
from steps.engine.folder import RunFolder
from steps.errors import BringupError
from steps.model.action import AnyAction, RemovePath, Run, Write, leaves_something
from steps.model.base import Record
from steps.model.plan import Plan
from steps.model.run import Entry


class PathsBefore(Record):
    """Which of the paths that undo would remove were there already."""

    existed: tuple[str, ...] = ()
    real: Mapping[str, str] = {}
    """Where a path lay that was a link into nothing: what was made there goes, and the link stays."""


def order(plan: Plan, entries: Iterable[Entry]) -> tuple[AnyAction, ...]:
    """Return the actions that changed something and were not taken back yet, the last to be registered first.

    What was done and has no way back is among them: it is said to be kept.
    """
    by_id = {action.id: action for action in plan.actions if leaves_something(action) and not plan.target.rehearsal}
    open_ids: dict[str, None] = {}
    for entry in entries:
        if entry.action is None or entry.action not in by_id:
            continue
        done = entry.kind == "action-finished" and entry.status == "done"
        if (done or entry.kind == "registered") and entry.action not in open_ids:
            open_ids[entry.action] = None
        elif entry.kind == "action-undone" and entry.status != "failed":
            open_ids.pop(entry.action, None)
    return tuple(by_id[id] for id in reversed(open_ids))


def in_vain(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the actions whose last try failed, an undo that failed not counted."""
    last = {entry.action: entry for entry in entries if entry.kind in ("action-started", "action-finished") and entry.action is not None}
    return frozenset(id for id, entry in last.items() if entry.status == "failed")


def paths_of(action: AnyAction) -> tuple[str, ...]:
    """Return the paths that an undo of the action puts back or removes."""
    match action:
        case Write(path=path):
            return (path,)
        case Run(undo=steps):
            return tuple(step.path for step in steps if isinstance(step, RemovePath))
        case _:
            return ()


def folders_that_go(folder: RunFolder, plan: Plan) -> tuple[str, ...]:
    """Return the folders that an undo removes with everything in them, as the target spells them."""
    gone: dict[str, None] = {}
    for action in order(plan, journal.read(folder.journal)[0]):
        if isinstance(action, Run) and action.undo:
            before = _before(folder, action)
            paths = (before.real.get(path, path) for path in paths_of(action) if path not in before.existed)
            gone |= dict.fromkeys(path for path in paths if Path(plan.target.root, path.lstrip("/")).is_dir())
    return tuple(gone)


def _before(folder: RunFolder, action: Run) -> PathsBefore:
    """Return what was there before; nothing when that cannot be read: then it is the undo that says so."""
    try:
        return msgspec.json.decode((folder.kept(action.id) / "undo.json").read_bytes(), type=PathsBefore)
    except (OSError, msgspec.MsgspecError):
        return PathsBefore(existed=paths_of(action))


def held_too(folder: RunFolder, plan: Plan, others: Iterable[RunFolder]) -> tuple[str, str] | None:
    """Return the id of the newest of `others` that changed what an undo of this run would take away, and the path; or `None`."""
    paths = [path for action in order(plan, journal.read(folder.journal)[0]) for path in paths_of(action)]
    for other in others:
        for path in _changed(other, plan.target.root):
            if any(path == mine or path.startswith(f"{mine}/") for mine in paths):
                return other.id, path
    return None


def _changed(folder: RunFolder, root: str) -> tuple[str, ...]:
    """Return the paths below `root` that a run changed; none of a run that cannot be read."""
    try:
        plan = folder.read_plan()
        entries = journal.read(folder.journal)[0]
    except BringupError:
        return ()
    return tuple(path for action in order(plan, entries) for path in paths_of(action)) if plan.target.root == root else ()
