"""A file that an action writes: put there as whoever it belongs to, and put back as it was."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from steps.engine.command import judge, run_command
from steps.engine.context import Context, Outcome
from steps.engine.durable import make_folder, open_new, write_at_once, write_whole
from steps.engine.mounts import expect_mounted, mount_above
from steps.errors import PreflightError
from steps.host.base import Host
from steps.host.files import MOST_BYTES
from steps.model.action import Action, Write
from steps.model.base import Record
from steps.model.plan import sha256

_MOST_LINKS = 40
_SYNC_SECONDS = 300.0


class FileBefore(Record):
    """A file as it was: `backup/<action>/before` holds its bytes when it existed."""

    path: str
    """Where it lies, the links of the action's path followed."""
    existed: bool
    made: tuple[str, ...] = ()
    """The folders that the action makes, outermost first."""
    mode: int | None = None
    owner: str | None = None
    """"uid:gid"."""
    written: str = ""
    """The SHA-256 of what the action writes: a file that is something else now was changed by somebody."""
    mount: str | None = None
    """The mount point that it lies on; `None` for the system's own disk."""


# --- there and back ---------------------------------------------------------------------------------


def write(action: Write, data: bytes, context: Context) -> Outcome:
    """Write the file; raises `PreflightError`, and writes nothing, when what is there cannot be kept whole."""
    state = _register(action, data, context)
    return _put(action, context, state.path, data, action.mode if state.mode is None else state.mode)


def put_back(action: Write, context: Context) -> Outcome:
    """Put the file back as it was; what somebody changed since is kept beside the backup."""
    folder = context.folder.kept(action.id)
    state = msgspec.json.decode((folder / "undo.json").read_bytes(), type=FileBefore)
    expect_mounted(state.mount)
    now = _content(action, state.path, context)
    was = (folder / "before").read_bytes() if state.existed else None
    # As it was before is nobody's change: an undo that was cut off had put it back, or a person has.
    changed = _set_aside(action, context, now) if now is not None and now != was and _digest(now) != state.written else None
    params = {} if changed is None else {"changed": changed}
    if was is None:
        context.spool_line(action.id, f"remove {state.path}")
        take_away(action, state.path, context)
        take_away_emptied(action, state.made, context)
        return Outcome(status="undone", params=params)
    context.spool_line(action.id, f"restore {state.path}")
    mode = action.mode if state.mode is None else state.mode
    outcome = _put(action, context, state.path, was, mode)
    if outcome.status != "done":
        return outcome
    _put_marks_back(action, context, state)
    return Outcome(status="undone", params=params)


def write_out(paths: Iterable[str], host: Host) -> None:
    """Have on disk what was written in the file systems of these paths, or in the root's; what takes long the kernel writes later."""
    # A folder cannot be what a file can, a device that acts when it is opened.
    folders = dict.fromkeys(f"{posixpath.dirname(path)}/." for path in paths)
    host.run(("sync", "--file-system", "--", *(folders or ("/",))), timeout=_SYNC_SECONDS)


def take_away_emptied(action: Action, made: tuple[str, ...], context: Context) -> None:
    """Remove the folders that were made for what is gone now, the deepest first; only what is empty: others may use them since."""
    for folder in sorted(made, key=len, reverse=True):
        if context.host.listdir(folder) != ():
            continue
        context.spool_line(action.id, f"remove {folder}")
        if _as_person(action, context):
            run_command(context, action, ("rmdir", "--", folder))
        else:
            context.host.remove_empty(folder)


def take_away(action: Action, path: str, context: Context) -> None:
    """Remove what is at `path`, as whoever the action belongs to."""
    if _as_person(action, context):
        run_command(context, action, ("rm", "-r", "-f", "--one-file-system", "--", path))
    else:
        context.host.remove(path)


# --- before the change ------------------------------------------------------------------------------


def _register(action: Write, data: bytes, context: Context) -> FileBefore:
    """Write down what undo will need; a second try keeps what the first one found."""
    folder = context.folder.kept(action.id)
    known = folder / "undo.json"
    path = real_path(action.path, context.host)
    now = _content(action, path, context)
    if known.exists():
        first = msgspec.json.decode(known.read_bytes(), type=FileBefore)
        if now is not None and _digest(now) != first.written and not (first.existed and now == (folder / "before").read_bytes()):
            _set_aside(action, context, now)
        state = msgspec.structs.replace(first, written=_digest(data))
    else:
        if not folder.exists():
            make_folder(folder, gid=context.owner.gid)
        if now is not None:
            write_whole(folder / "before", now, 0o600)
        mode, owner = _marks(path, context.host)
        made = missing_folders(path, context.host)
        mount = mount_above(path, context.host.root)
        state = FileBefore(path=path, existed=now is not None, made=made, mode=mode, owner=owner, written=_digest(data), mount=mount)
    write_whole(known, msgspec.json.encode(state), gid=context.owner.gid)
    context.journal.append("registered", action.id)
    return state


def real_path(path: str, host: Host) -> str:
    """Return where a file called `path` lies: a link is written through, and taken back behind it, not replaced."""
    for _ in range(_MOST_LINKS):
        link = host.readlink(path)
        if link is None:
            return path
        path = posixpath.join(posixpath.dirname(path), link)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _content(action: Write, path: str, context: Context) -> bytes | None:
    """Return the whole file, or `None` when there is none; raises `PreflightError` when it cannot be had whole."""
    data = _of_person(path, context) if _as_person(action, context) else context.host.read_bytes(path)
    if (data is None and context.host.exists(path) is not False) or (data is not None and len(data) >= MOST_BYTES):
        raise PreflightError("file-not-kept", path=path)
    return data


def _of_person(path: str, context: Context) -> bytes | None:
    """Return a file that is the person's own: a link of theirs must not make root read, and keep, somebody else's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != context.owner.uid:
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MOST_BYTES)


def missing_folders(path: str, host: Host) -> tuple[str, ...]:
    """Return the folders above `path` that are not there yet, outermost first."""
    missing: list[str] = []
    folder = posixpath.dirname(path)
    while folder != "/" and host.exists(folder) is False:
        missing.append(folder)
        folder = posixpath.dirname(folder)
    return tuple(reversed(missing))


def _marks(path: str, host: Host) -> tuple[int | None, str | None]:
    """Return mode and owner of what is at `path`; `None` when there is nothing, or when it is not known."""
    words = host.run(("stat", "-c", "%a %u:%g", "--", path)).stdout.split()
    return (int(words[0], 8), words[1]) if len(words) == 2 else (None, None)


def _digest(data: bytes) -> str:
    return sha256(data)


# --- the change -------------------------------------------------------------------------------------


def _as_person(action: Action, context: Context) -> bool:
    """Return whether files are changed by a command of the person's: root follows no link that a home folder may hold."""
    return context.as_other(action) and context.host.root == "/"


def _put(action: Write, context: Context, path: str, data: bytes, mode: int) -> Outcome:
    """Make the file at `path` hold `data`."""
    if _as_person(action, context):
        source = context.folder.kept(action.id) / "new"
        source.unlink(missing_ok=True)
        write_at_once(open_new(source, gid=context.owner.gid), data)
        return judge(run_command(context, action, ("install", "-D", "-T", f"--mode={mode:o}", "--", str(source), path)))
    theirs = context.as_other(action)
    folders = missing_folders(path, context.host)
    if theirs:
        _refuse_others(folders[0] if folders else path, context)
    context.spool_line(action.id, f"write {path} ({len(data)} bytes)")
    context.host.mkdir(posixpath.dirname(path))
    context.host.write_bytes(path, data, mode)
    if theirs:
        # In a mounted system root writes, and the person shall have it.
        owner = f"{context.owner.uid}:{context.owner.gid}"
        return judge(run_command(context, action, ("chown", "--no-dereference", owner, "--", *folders, path), as_root=True))
    return Outcome(status="done")


def _refuse_others(path: str, context: Context) -> None:
    """Raise when a file of the person's would come to lie with somebody else, led there by a link."""
    at = path if context.host.exists(path) else posixpath.dirname(path)
    _, owner = _marks(at, context.host)
    if owner is None or owner.partition(":")[0] != str(context.owner.uid):
        raise PreflightError("file-not-theirs", path=path, user=context.owner.name)


def _put_marks_back(action: Write, context: Context, state: FileBefore) -> None:
    """Give the file its mode and owner again, where they are others now."""
    mode, owner = _marks(state.path, context.host)
    if state.owner is not None and owner != state.owner:
        run_command(context, action, ("chown", "--no-dereference", state.owner, "--", state.path))
    if state.mode is not None and mode != state.mode:
        run_command(context, action, ("chmod", f"{state.mode:o}", "--", state.path))


def _set_aside(action: Write, context: Context, data: bytes) -> str:
    """Keep what somebody made of the file, say where, and return that."""
    folder = context.folder.kept(action.id)
    numbers = (Path(folder, f"changed-{number}") for number in range(1, 1000))
    kept = next(path for path in numbers if not path.exists())
    write_whole(kept, data, 0o640 if _as_person(action, context) else 0o600, context.owner.gid)
    context.spool_line(action.id, f"[bringup: {action.path} was changed since; what it held is in {kept}]")
    return str(kept)
