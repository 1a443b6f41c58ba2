"""What is written down of a packages action for its undo: the packages before and after it, and what a repair found on the way."""

from __future__ import annotations

import msgspec

from steps.engine.context import Context
from steps.engine.durable import make_folder, write_whole
from steps.managers.base import Kept, Snapshot
from steps.model.action import Packages
from steps.model.base import Record

_BEFORE, _AFTER, _UNREPAIRED = "undo.json", "after.json", "undo-unrepaired.json"


class PackagesBefore(Record):
    """What undo needs of a packages action; on disk before the first package changes."""

    before: Snapshot
    kept: Kept
    folder: str
    """Where the kept packages lie, as the target spells it."""
    names: tuple[str, ...]
    """The packages that the tries meant to change: what else differs since is not ours to take back."""
    modules: tuple[str, ...] = ()
    """The files of the driver's kernel modules as they were, for every kernel: an undo has to bring them back too."""


def _write(context: Context, action: Packages, name: str, value: Record) -> None:
    """Write a note of an action down, whole or not at all."""
    folder = context.folder.kept(action.id)
    if not folder.exists():
        make_folder(folder, gid=context.owner.gid)
    write_whole(folder / name, msgspec.json.encode(value), gid=context.owner.gid)


def write_before(context: Context, action: Packages, state: PackagesBefore) -> None:
    """Write down what undo needs."""
    _write(context, action, _BEFORE, state)


def write_after(context: Context, action: Packages, after: Snapshot) -> None:
    """Write down the packages as the tries until now have left them."""
    _write(context, action, _AFTER, after)


def forget_after(context: Context, action: Packages) -> None:
    """Let what the action leaves be unknown until it has looked: all that it meant to change counts as changed."""
    (context.folder.kept(action.id) / _AFTER).unlink(missing_ok=True)


def read_before(context: Context, action: Packages) -> PackagesBefore | None:
    """Return what was registered for the action, or `None` when nothing was."""
    try:
        return msgspec.json.decode((context.folder.kept(action.id) / _BEFORE).read_bytes(), type=PackagesBefore)
    except FileNotFoundError:
        return None


def read_after(context: Context, action: Packages) -> Snapshot | None:
    """Return the packages as the action left them; `None` when it was cut off before it could look."""
    try:
        return msgspec.json.decode((context.folder.kept(action.id) / _AFTER).read_bytes(), type=Snapshot)
    except FileNotFoundError:
        return None


def changed(state: PackagesBefore, after: Snapshot | None) -> frozenset[str]:
    """Return which packages the action changed; all that it meant to when it was cut off before it could look."""
    if after is None:
        return frozenset(state.names)
    return frozenset(name for name in state.names if state.before.packages.get(name) != after.packages.get(name))


def claim(action: Packages, context: Context, known: PackagesBefore, now: Snapshot) -> None:
    """Let all that changes from now on be the run's doing, as a repair's is: what others changed since the last try is theirs.

    Before the repair and not after it: a runner that is killed in it could not say any more what the repair has brought.
    """
    after = read_after(context, action)
    if after is None:
        return
    ours = changed(known, after)
    first = {name: package for name, package in known.before.packages.items() if name in ours}
    others = {name: package for name, package in now.packages.items() if name not in ours}
    before = msgspec.structs.replace(known.before, packages=others | first)
    write_before(context, action, msgspec.structs.replace(known, before=before))
    forget_after(context, action)


def note_unrepaired(action: Packages, context: Context, known: PackagesBefore, now: Snapshot) -> None:
    """Write down, before the repair of a first undo, how the packages are that the run meant to change and did not."""
    path = context.folder.kept(action.id) / _UNREPAIRED
    if not path.exists():
        _write(context, action, _UNREPAIRED, now.only(frozenset(known.names) - changed(known, read_after(context, action))))


def forget_unrepaired(action: Packages, context: Context) -> None:
    """Let the next undo look for itself: this one changed nothing."""
    (context.folder.kept(action.id) / _UNREPAIRED).unlink(missing_ok=True)


def with_repaired(action: Packages, context: Context, state: PackagesBefore, now: Snapshot) -> tuple[PackagesBefore, frozenset[str]]:
    """Return the state to go back to, and the packages that change for it: those of the run, and what an undo's repair brought."""
    ours = changed(state, read_after(context, action))
    try:
        found = msgspec.json.decode((context.folder.kept(action.id) / _UNREPAIRED).read_bytes(), type=Snapshot).packages
    except FileNotFoundError:
        return state, ours
    brought = frozenset(name for name in state.names if name not in ours and found.get(name) != now.packages.get(name))
    packages = {name: package for name, package in state.before.packages.items() if name not in brought}
    packages |= {name: package for name, package in found.items() if name in brought}
    return msgspec.structs.replace(state, before=msgspec.structs.replace(state.before, packages=packages)), ours | brought
