"""What a run did and has not taken back: read from its plan, its journal and its backup, without a runner."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steps.engine import journal
from steps.engine.folder import RunFolder
from steps.engine.moments import NEVER, Moment, dated
from steps.engine.return_points import bytes_below
from steps.errors import BringupError, PreflightError
from steps.model.action import AnyAction, Keep, Manual, Packages, RemovePath, Run, Write, leaves_something
from steps.model.base import Record
from steps.model.plan import Plan
from steps.model.run import Entry


class PathsBefore(Record):
    """Which of the paths that undo would remove were there already."""

    existed: tuple[str, ...] = ()
    real: Mapping[str, str] = {}
    """Where a path lay that was a link into nothing: what was made there goes, and the link stays."""
    mounts: Mapping[str, str] = {}
    """The mount point of a path that lies on another disk than the system."""
    made: tuple[str, ...] = ()
    """The folders above them that were not there."""


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


def goes_back(folder: RunFolder, plan: Plan) -> int:
    """Return how many actions an undo takes back: of those that changed something, the ones that have a way back."""
    done = order(plan, journal.read(folder.journal)[0])
    return sum(bool(action.undo) if isinstance(action, Run) else not isinstance(action, Manual) for action in done)


def in_vain(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the actions whose last try failed, an undo that failed not counted."""
    last = {entry.action: entry for entry in entries if entry.kind in ("action-started", "action-finished") and entry.action is not None}
    return frozenset(id for id, entry in last.items() if entry.status == "failed")


def paths_of(action: AnyAction) -> tuple[str, ...]:
    """Return the paths that an undo of the action puts back or removes."""
    match action:
        case Write(path=path) | Keep(path=path):
            return (path,)
        case Run(undo=steps):
            return tuple(step.path for step in steps if isinstance(step, RemovePath))
        case _:
            return ()


def disks(folder: RunFolder, plan: Plan, entries: Iterable[Entry], action: AnyAction) -> tuple[str, ...]:
    """Return the mount points of the disks that an action works on, as far as tries of it, or what comes before it, wrote them down.

    Before it come the actions that it names, and those of its lane: a package that comes into an environment names no path of its own.
    """
    before = plan.actions[: plan.actions.index(action)]
    own = {action.id, *action.needs, *(one.id for one in before if one.lane == action.lane)}
    stands = (_plain(folder.kept(one.id) / "undo.json") for one in order(plan, entries) if one.id in own and not isinstance(one, Packages))
    found = (mount for known in stands for mount in (known.get("mount"), *dict(known.get("mounts") or {}).values()))
    return tuple(dict.fromkeys(mount for mount in found if isinstance(mount, str)))


def folders_that_go(folder: RunFolder, plan: Plan) -> tuple[str, ...]:
    """Return the folders that an undo removes with everything in them, as the target spells them."""
    gone: dict[str, None] = {}
    for action in order(plan, journal.read(folder.journal)[0]):
        if isinstance(action, Run) and action.undo:
            before = _before(folder, action)
            paths = (before.real.get(path, path) for path in paths_of(action) if path not in before.existed)
            gone |= dict.fromkeys(path for path in paths if Path(plan.target.root, path.lstrip("/")).is_dir())
    return tuple(gone)


def kept_beside(folder: RunFolder, plan: Plan) -> dict[str, int]:
    """Return what the run keeps beside its originals, as this machine spells it, with the bytes that it takes."""
    found: dict[str, int] = {}
    for action in order(plan, journal.read(folder.journal)[0]):
        if isinstance(action, Keep):
            known = _plain(folder.kept(action.id) / "undo.json")
            path = Path(plan.target.root, str(known.get("kept", "")).lstrip("/"))
            if known and os.path.lexists(path):
                # An environment has a hundred thousand files: they were counted when it was copied.
                found[str(path)] = known["bytes"] if isinstance(known.get("bytes"), int) else bytes_below(path)
    return found


def _before(folder: RunFolder, action: Run) -> PathsBefore:
    """Return what was there before; nothing when that cannot be read: then it is the undo that says so."""
    try:
        return msgspec.json.decode((folder.kept(action.id) / "undo.json").read_bytes(), type=PathsBefore)
    except (OSError, msgspec.MsgspecError):
        return PathsBefore(existed=paths_of(action))


def held_too(folder: RunFolder, plan: Plan, others: Iterable[RunFolder]) -> tuple[str, str] | None:
    """Return the id of the first of `others` that changed what an undo of this run would take away, and the path or package; or `None`."""
    mine = _changed(folder, plan.target.root)
    for other in others:
        theirs = _changed(other, plan.target.root)
        held = _held_by(mine, theirs)
        # Where each holds something of the other's, the one that began later goes back first.
        if held is not None and (other.began_after(folder) or _held_by(theirs, mine) is None):
            return other.id, held
    return None


def _held_by(mine: _Changed, theirs: _Changed) -> str | None:
    """Return the first path or package in which the other run worked after this one did, whichever of the two began earlier."""
    for tree, kept in mine.trees.items():
        before_theirs = kept < theirs.trees.get(tree, NEVER) < mine.worked_at(tree)
        if theirs.worked_at(tree) > kept and not before_theirs:
            return tree
    for path, at in theirs.paths.items():
        if path not in theirs.trees and any(_holds(own, path) and before < at for own, before in mine.paths.items()):
            return path
    for tree, kept in theirs.trees.items():
        # Kept as a whole, and brought back as a whole: with what this run put into it until then.
        if any(_holds(tree, own) or _holds(own, tree) for own in mine.paths) and mine.worked_at(tree) <= kept:
            return tree
    if theirs.repairs == mine.run:
        # What a run repaired goes back with it, and its repair knows.
        return None
    return min((name for name, at in theirs.packages.items() if mine.packages.get(name, at) < at), default=None)


def refuse_held(folder: RunFolder, plan: Plan, all_runs: tuple[RunFolder, ...]) -> None:
    """Raise `PreflightError("undo-later-first")` while another of `all_runs` (oldest first) holds what an undo would take away."""
    held = held_too(folder, plan, [other for other in reversed(all_runs) if other.id != folder.id])
    if held is not None:
        raise PreflightError("undo-later-first", run=folder.id, later=held[0], path=held[1])


def is_of_past(folder: RunFolder, plan: Plan, path: str, others: Iterable[RunFolder]) -> bool:
    """Return whether what the run keeps of `path` is the work of a run that was taken back since: it is not to come back."""
    kept = _changed(folder, plan.target.root).trees.get(path, NEVER)
    for other in others:
        try:
            theirs, entries = other.read_plan(), journal.read(other.journal)[0]
        except BringupError:
            continue
        if other.id == folder.id or theirs.target.root != plan.target.root or journal.fold(entries).status != "undone":
            continue
        done = [action for action in theirs.actions if any(_holds(own, path) for own in _taken(other, action))]
        ids = {action.id for action in done}
        moments = tuple(dated(entries))
        began = min((moment for one, moment in moments if one.action in ids and one.kind == "registered"), default=kept)
        if began < kept < max(moment for _, moment in moments):
            return True
    return False


def _taken(folder: RunFolder, action: AnyAction) -> tuple[str, ...]:
    """Return the paths whose undo leaves nothing of what the action put there."""
    if isinstance(action, Keep):
        return (action.path, _lay(folder, action))
    if not isinstance(action, Run) or not action.undo:
        return ()
    before = _before(folder, action)
    return tuple(before.real.get(path, path) for path in paths_of(action) if path not in before.existed)


def _holds(folder: str, path: str) -> bool:
    """Return whether a path is a folder, or lies in it."""
    return path == folder or path.startswith(f"{folder}/")


def gone_with(plan: Plan, folders: Iterable[RunFolder]) -> frozenset[str]:
    """Return the packages that went back with the run which this plan repaired: what the repair found of them is not to come back."""
    folder = next((one for one in folders if one.id == plan.repairs), None)
    if folder is None or journal.fold(journal.read(folder.journal)[0]).status != "undone":
        return frozenset()
    actions = (action for action in folder.read_plan().actions if isinstance(action, Packages))
    return frozenset(name for action in actions for name in _packages(folder, action))


class _Changed(NamedTuple):
    """What a run changed and has not taken back."""

    run: str = ""
    paths: Mapping[str, Moment] = {}
    packages: Mapping[str, Moment] = {}
    """Each with the moment at which the action was done that changed it."""
    trees: Mapping[str, Moment] = {}
    """What it keeps as a whole, with the moment at which that was kept."""
    repairs: str | None = None
    work: tuple[tuple[AnyAction, Moment], ...] = ()
    """What stands, with the moment at which it was done."""

    def worked_at(self, tree: str) -> Moment:
        """Return when it worked there last; `NEVER` when it never did.

        What follows in a lane belongs to it: a package that comes into an environment names no path of its own.
        """
        lanes = {one.lane for one, _ in self.work if any(_holds(tree, path) or _holds(path, tree) for path in paths_of(one))}
        return max((at for one, at in self.work if one.lane in lanes), default=NEVER)


def _changed(folder: RunFolder, root: str) -> _Changed:
    """Return what a run changed below `root`; nothing of a run that cannot be read."""
    try:
        plan = folder.read_plan()
        entries = journal.read(folder.journal)[0]
    except BringupError:
        return _Changed()
    if plan.target.root != root:
        return _Changed()
    stands = order(plan, entries)
    told = ((entry, at) for entry, at in dated(entries) if entry.kind in ("registered", "action-finished") and entry.status != "failed")
    ends = {entry.action: at for entry, at in told}
    # The first to be done comes first: of what two actions changed the last one counts.
    work = tuple(sorted(((action, ends.get(action.id, NEVER)) for action in stands), key=lambda one: one[1]))
    packages = {name: at for action, at in work if isinstance(action, Packages) for name in _packages(folder, action)}
    trees = {path: at for action, at in work if isinstance(action, Keep) for path in (action.path, _lay(folder, action))}
    paths = {path: at for action, at in work for path in paths_of(action)} | trees
    return _Changed(folder.id, paths, packages, trees, plan.repairs, work)


def _lay(folder: RunFolder, action: Keep) -> str:
    """Return where the thing that was kept lies, the links of its path followed."""
    return str(_plain(folder.kept(action.id) / "undo.json").get("path", action.path))


def _packages(folder: RunFolder, action: Packages) -> Iterator[str]:
    """Yield the packages that an action changed; of one that was cut off, those that it meant to."""
    # As plain values: this is asked by a viewer, which has no other use for the records of the package managers.
    before = _plain(folder.kept(action.id) / "undo.json")
    after = _plain(folder.kept(action.id) / "after.json").get("packages")
    was = before.get("before", {}).get("packages", {})
    yield from (name for name in before.get("names", ()) if after is None or was.get(name) != after.get(name))


def _plain(file: Path) -> dict[str, Any]:
    """Return what a file of ours holds; nothing when it cannot be read."""
    try:
        return dict(msgspec.json.decode(file.read_bytes()))
    except (OSError, msgspec.MsgspecError):
        return {}
