"""What a run keeps as a whole beside the original, as a copy or moved away, and how it is brought back."""

from __future__ import annotations

import msgspec

from steps.engine.command import judge, run_command
from steps.engine.context import Context, Outcome, failed
from steps.engine.durable import make_folder, write_whole
from steps.engine.files import real_path, take_away
from steps.engine.mounts import expect_mounted, mount_above
from steps.errors import PreflightError
from steps.model.action import Keep
from steps.model.base import Record, phrase

_LOOK_SECONDS = 600.0
"""An environment of frameworks has a hundred thousand files; on a slow disk they are counted in minutes."""
_SPARE = 256 << 20
"""Bytes that a copy leaves free: a file system without any room stops others."""


class Kept(Record):
    """Where the thing lies, the links of a copied path followed, and where the run keeps it."""

    path: str
    kept: str
    bytes: int | None = None
    """How much the original took before it was copied; `None` where that was not counted."""
    mount: str | None = None
    """The mount point that it lies on; `None` for the system's own disk."""

    @property
    def partial(self) -> str:
        """The name of a copy that is not whole."""
        return f"{self.kept}.partial"

    def replaced(self, *, moves: bool) -> str:
        """Return the name of what lay at `path` when the kept one was brought back."""
        return f"{self.kept.removesuffix('.disabled')}.undone.disabled" if moves else f"{self.kept}.undone"


# --- there ------------------------------------------------------------------------------------------


def keep(action: Keep, context: Context) -> Outcome:
    """Keep it; raises `PreflightError`, and changes nothing, where the name is taken, there is no room or nothing to keep."""
    state = _known(action, context)
    if state is None:
        path = action.path if action.moves else real_path(action.path, context.host)
        # Beside the thing itself, not beside a link to it: a rename needs one file system.
        beside = msgspec.structs.replace(action, path=path).kept(context.folder.id)
        size = None if action.moves else _size(path, context)
        state = Kept(path=path, kept=beside, bytes=size, mount=mount_above(path, context.host.root))
        if not _is_there(state.path, context):
            raise PreflightError("keep-nothing", path=state.path)
        if _is_there(state.kept, context):
            raise PreflightError("keep-taken", path=state.kept)
        _register(action, state, context)
    if _is_there(state.kept, context):
        # A runner that was killed had done it and could not say so any more.
        return Outcome(status="done")
    return _move(action, state.path, state.kept, context) if action.moves else _copy(action, state, context)


def _copy(action: Keep, state: Kept, context: Context) -> Outcome:
    """Copy under another name, and give it its own once all of it is on disk."""
    if _is_there(state.partial, context):
        take_away(action, state.partial, context)
    needed, free = state.bytes, context.host.free_bytes(state.kept)
    roomy = needed is None or free is None or needed + _SPARE <= free
    # What shares its blocks with the original needs no room; whether a file system can do that only a try tells.
    share = f"--reflink={'auto' if roomy else 'always'}"
    copied = run_command(context, action, ("cp", "--archive", share, "--no-target-directory", "--", state.path, state.partial))
    if copied.code:
        take_away(action, state.partial, context)
        if roomy or copied.stopped is not None:
            return judge(copied)
        raise PreflightError("keep-no-room", path=state.path, needed=f"{(needed or 0) / 1e9:.1f}", free=f"{(free or 0) / 1e9:.1f}")
    synced = judge(run_command(context, action, ("sync", "--file-system", "--", state.partial)))
    return _move(action, state.partial, state.kept, context) if synced.status == "done" else synced


def _size(path: str, context: Context) -> int | None:
    """Return the bytes that a folder takes on disk; `None` where they could not be counted."""
    words = context.host.run(("du", "--summarize", "--block-size=1", "--", path), timeout=_LOOK_SECONDS).stdout.split()
    return int(words[0]) if words and words[0].isdigit() else None


def _move(action: Keep, path: str, to: str, context: Context) -> Outcome:
    """Rename within a folder, over nothing; some releases of mv end well where a name was taken."""
    outcome = judge(run_command(context, action, ("mv", "--no-target-directory", "--no-clobber", "--", path, to)))
    if outcome.status == "done" and _is_there(path, context):
        raise PreflightError("keep-taken", path=to)
    return outcome


# --- and back ---------------------------------------------------------------------------------------


def bring_back(action: Keep, context: Context) -> Outcome:
    """Bring back what was kept, if all of it is there; what took its place goes after that, and not before.

    A file that was moved away gives its place to nobody's but the run's: what lies there by then is kept, and that is said.
    """
    state = _known(action, context)
    if state is None:
        return Outcome(status="kept")
    expect_mounted(state.mount)
    if _is_there(state.partial, context):
        take_away(action, state.partial, context)
    replaced, begun = state.replaced(moves=action.moves), context.folder.kept(action.id) / "begun"
    if not _is_there(state.kept, context):
        if begun.exists() and _is_there(state.path, context):
            return _cleared(action, replaced, context)
        if _was_done(action, context):
            return failed(phrase("engine.failed.no-backup"))
        return Outcome(status="kept")
    write_whole(begun, b"", gid=context.owner.gid)
    if _is_there(state.path, context):
        away = _move(action, state.path, replaced, context)
        if away.status != "done":
            return away
    back = _move(action, state.kept, state.path, context)
    return _cleared(action, replaced, context) if back.status == "done" else back


def let_go(action: Keep, context: Context) -> Outcome:
    """Remove what was kept, and touch nothing else: it is the work of a run that was taken back meanwhile."""
    state = _known(action, context)
    if state is None:
        return Outcome(status="kept")
    expect_mounted(state.mount)
    for path in (state.partial, state.kept):
        if _is_there(path, context):
            take_away(action, path, context)
    return Outcome(status="undone")


def _cleared(action: Keep, replaced: str, context: Context) -> Outcome:
    """Return the end of a way back: the changed copy is gone; a file that somebody put in the place of a moved one stays."""
    if not action.moves:
        take_away(action, replaced, context)
        return Outcome(status="undone")
    return Outcome(status="undone", params={"changed": replaced} if _is_there(replaced, context) else {})


def _was_done(action: Keep, context: Context) -> bool:
    return any(one.kind == "action-finished" and one.action == action.id and one.status == "done" for one in context.journal.entries)


def _is_there(path: str, context: Context) -> bool:
    """Return whether anything has this name, a link into nothing too."""
    return context.host.exists(path) is not False or context.host.readlink(path) is not None


def _known(action: Keep, context: Context) -> Kept | None:
    """Return what was written down before the first try; `None` where that never came so far."""
    file = context.folder.kept(action.id) / "undo.json"
    return msgspec.json.decode(file.read_bytes(), type=Kept) if file.exists() else None


def _register(action: Keep, state: Kept, context: Context) -> None:
    folder = context.folder.kept(action.id)
    if not folder.exists():
        make_folder(folder, gid=context.owner.gid)
    write_whole(folder / "undo.json", msgspec.json.encode(state), gid=context.owner.gid)
    context.journal.append("registered", action.id)
