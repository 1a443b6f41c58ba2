"""The journal of a run: appended durably, read from an offset, folded to the state that screens draw."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from steps.engine.durable import open_new, read_regular
from steps.engine.folder import missing
from steps.errors import InputError, PreflightError
from steps.model.base import Param, Phrase, Words
from steps.model.run import ActionState, ActionStatus, Entry, EntryKind, Prompt, RunState, RunStatus, is_moment

_ACTION_STATUSES = frozenset(get_args(ActionStatus))
_OVER: frozenset[RunStatus] = frozenset(("done", "failed", "cancelled", "reboot", "undone", "undo-failed"))


class Unwritten(PreflightError):
    """An entry could not be written: what it announces must not begin."""


class Journal:
    """The one writer of a journal; entries are on disk when `append` returns."""

    def __init__(self, path: Path, gid: int | None = None) -> None:
        self._descriptor = open_new(path, gid=gid)
        self._lock = threading.Lock()
        kept = _whole_part(os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0))
        # A line without its end was being written when the power went: nobody acted on it.
        os.ftruncate(self._descriptor, kept)
        self._path, self._size = path, kept
        self.entries: list[Entry] = list(_decoded(os.pread(self._descriptor, kept, 0), path))
        self._next = self.entries[-1].seq + 1 if self.entries else 1

    def append(self, kind: EntryKind, action: str | None = None, status: str | None = None, /, **data: Param | bool | None) -> Entry:
        """Write one entry and return it; raises `Unwritten`, and leaves no half of it, when the disk does not take it."""
        with self._lock:
            entry = Entry(seq=self._next, at=time.time(), kind=kind, action=action, status=status, data=data)
            line = msgspec.json.encode(entry) + b"\n"
            try:
                self._write(line)
            except OSError as error:
                raise Unwritten("state-unusable", folder=str(self._path), reason=error.strerror or str(error)) from error
            self._size += len(line)
            self._next += 1
            self.entries.append(entry)
            return entry

    def _write(self, line: bytes) -> None:
        rest = line
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fdatasync(self._descriptor)
        except OSError:
            # The next entry may find room again, and must not be glued to the half of this one.
            os.ftruncate(self._descriptor, self._size)
            raise

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def _whole_part(data: bytes) -> int:
    """Return how many bytes of `data` are whole lines."""
    return data.rfind(b"\n") + 1


def _decoded(data: bytes, path: Path) -> Iterable[Entry]:
    for number, line in enumerate(data.splitlines(), 1):
        try:
            entry = msgspec.json.decode(line, type=Entry)
            if not is_moment(entry.at):
                raise InputError("journal-damaged", file=str(path), line=number)
            if entry.kind == "prompt":
                # What the fold could not take must come to light here, where the line is known.
                _prompt(entry)
            yield entry
        except msgspec.MsgspecError:
            raise InputError("journal-damaged", file=str(path), line=number) from None


def read(path: Path, offset: int = 0) -> tuple[tuple[Entry, ...], int]:
    """Return the whole entries after `offset` and where the next ones will begin; raises `InputError` when the run is gone."""
    try:
        data = read_regular(path, offset)
    except FileNotFoundError:
        raise missing(path) from None
    except PermissionError:
        raise InputError("run-not-yours", run=path.parent.name, folder=str(path.parent)) from None
    except OSError:
        raise InputError("journal-damaged", file=str(path), line=1) from None
    whole = _whole_part(data)
    return tuple(_decoded(data[:whole], path)), offset + whole


# --- the fold -----------------------------------------------------------------------------------


def fold(entries: Iterable[Entry], state: RunState | None = None) -> RunState:
    """Return the state after `entries`, going on from `state`."""
    for entry in entries:
        state = _step(state or RunState(), entry)
    return state or RunState()


def _step(state: RunState, entry: Entry) -> RunState:
    changes: dict[str, Any] = {"last_seq": entry.seq, **_run_changes(state, entry)}
    if entry.action is not None:
        before = state.actions.get(entry.action) or ActionState(id=entry.action)
        changes["actions"] = {**state.actions, entry.action: _action(before, entry)}
    elif entry.kind == "answered" and state.prompt is not None and entry.data.get("to") == state.prompt.seq:
        asked = state.actions.get(state.prompt.action) or ActionState(id=state.prompt.action)
        if asked.status == "asks":
            waited = asked.waited + (entry.at - asked.asked if asked.asked is not None else 0.0)
            heard = msgspec.structs.replace(asked, status="running", asked=None, waited=waited)
            changes["actions"] = {**state.actions, asked.id: heard}
    return msgspec.structs.replace(state, **changes)


def _run_changes(state: RunState, entry: Entry) -> Mapping[str, Any]:
    match entry.kind:
        case "run-started":
            user = entry.data.get("user")
            return {
                "status": "running",
                "started": state.started or entry.at,
                "ended": None,
                "exit": None,
                "prompt": None,
                "held": False,
                "owner": user if isinstance(user, str) else state.owner,
                "actions": {id: _cut_off(action) for id, action in state.actions.items()},
            }
        case "prompt":
            return {"status": "asks", "prompt": _prompt(entry)}
        case "answered" if state.prompt is not None and entry.data.get("to") == state.prompt.seq:
            return _unasked(state)
        case "action-finished" if state.prompt is not None and state.prompt.action == entry.action:
            return _unasked(state)
        case "completed":
            return {"completed": True}
        case "paused":
            return {"status": "paused", "held": True}
        case "continued":
            return {"status": "asks" if state.prompt else "running", "held": False}
        case "reboot-needed":
            unit = entry.data.get("unit")
            return {"unit": unit if isinstance(unit, str) else None}
        case "undo-started":
            return {"status": "undoing", "ended": None, "exit": None, "undoing_since": entry.at}
        case "run-finished" | "undo-finished":
            return {"status": _over(entry), "ended": entry.at, "exit": _whole(entry.data.get("exit")), "prompt": None}
        case _:
            return {}


def _unasked(state: RunState) -> Mapping[str, Any]:
    """Return what changes when no question is open any more: a pause outlasts it, and an undo is one still."""
    at_work = "running" if state.undoing_since is None else "undoing"
    return {"status": "paused" if state.held else at_work, "prompt": None}


def _cut_off(action: ActionState) -> ActionState:
    """Return an action as a new runner finds it: what was at work when the last one ended has to be looked at again."""
    return ActionState(id=action.id) if action.status in ("running", "asks") else action


def _action(before: ActionState, entry: Entry) -> ActionState:
    match entry.kind:
        case "action-started":
            return ActionState(id=before.id, status="running", started=entry.at)
        case "prompt":
            return msgspec.structs.replace(before, status="asks", asked=entry.at)
        case "reboot-needed":
            return msgspec.structs.replace(before, status="waiting")
        case "action-finished" | "action-undone":
            status = entry.status if entry.status in _ACTION_STATUSES else "failed"
            undone = entry.kind == "action-undone"
            return msgspec.structs.replace(
                before,
                status=status,
                started=before.started or entry.at,
                # How long it took stays true when it is taken back, days later maybe.
                ended=before.ended if undone and before.ended is not None else entry.at,
                undone=entry.at if undone else None,
                asked=None,
                waited=before.waited + (entry.at - before.asked if before.asked is not None else 0.0),
                exit=_whole(entry.data.get("exit")),
                error=_error(entry.data),
            )
        case _:
            return before


def _prompt(entry: Entry) -> Prompt:
    said = {key: str(entry.data[key]) for key in ("id", "kind", "excerpt") if key in entry.data}
    return msgspec.convert({"seq": entry.seq, "action": entry.action or "", **said}, Prompt)


def _error(data: Mapping[str, Param | bool | None]) -> Words | None:
    """Return why it failed: a key of the words with the rest of `data` to fill it, or text as it is."""
    error = data.get("error")
    if not isinstance(error, str):
        return None
    if " " in error or "." not in error:
        return error
    params = {key: value for key, value in data.items() if key != "error" and isinstance(value, (str, int, float))}
    return Phrase(key=error, params=params)


def _over(entry: Entry) -> RunStatus:
    found: list[RunStatus] = [status for status in _OVER if status == entry.status]
    return found[0] if found else "failed"


def _whole(value: Param | bool | None) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def is_over(state: RunState) -> bool:
    """Return whether the run came to an end that it wrote down."""
    return state.status in _OVER
