"""All that a screen needs of the engine: start a run, find one, and hold it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from steps.engine.carried import carried_environment
from steps.engine.folder import Order, RunFolder, all_folders, invoking_owner, state_unusable
from steps.engine.handle import RunHandle, Sudo, launch
from steps.engine.lock import busy, holder, is_held, target_lock
from steps.engine.runner import UNATTENDED
from steps.engine.spool import Spool
from steps.errors import BringupError, InputError
from steps.model.plan import Plan, digest
from steps.model.run import RunSummary

__all__ = ["RunHandle", "Spool", "Sudo", "find", "find_at_work", "find_undoable", "invoking_owner", "runs", "start"]


def start(plan: Plan, *, sudo: Sudo | None, attended: bool = True) -> RunHandle:
    """Start a run and return its handle; where it is not `attended`, a question that nothing answers ends it.

    Raises `Busy` while another run changes the same machine, `PrivilegeError` without root and sudo.
    """
    owner = invoking_owner()
    needs_root = plan.needs_root and not plan.target.rehearsal
    if not plan.target.rehearsal:
        for root in (True, False):
            held = holder(target_lock(plan.target.root, root=root, owner=owner))
            if held is not None:
                raise busy(held)
    name = _order_file(Order(plan=plan, environment=carried_environment(plan)))
    try:
        manner = () if attended else (UNATTENDED,)
        id = launch((name, "--digest", digest(plan), *manner), needs_root=needs_root, sudo=sudo)
    finally:
        Path(name).unlink(missing_ok=True)
    if id is not None:
        return find(id)
    wanted = digest(plan)
    for handle in _readable():
        if digest(handle.plan) == wanted:
            return handle
    raise InputError("run-unknown", run="")


def _order_file(order: Order) -> str:
    """Return the name of a file with the order in it; raises `PreflightError` where there is no room for one."""
    try:
        descriptor, name = tempfile.mkstemp(prefix="bringup-plan-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(order))
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        error.filename = error.filename or tempfile.gettempdir()
        raise state_unusable(error) from error
    return name


def runs() -> tuple[RunSummary, ...]:
    """Return all runs of this machine that this person may see, newest first."""
    found: list[RunSummary] = []
    for folder in _begun():
        try:
            found.append(RunHandle(folder).summary())
        except BringupError:
            # Of another person, or damaged: it is there, and that is all that can be said.
            found.append(RunSummary(id=folder.id, folder=str(folder.path), alive=is_held(folder.lock), readable=False))
    return tuple(found)


def _begun() -> Iterator[RunFolder]:
    """Yield the runs that a runner was ever at work on, newest first."""
    return (folder for folder in reversed(all_folders(invoking_owner())) if folder.began())


def _readable() -> Iterator[RunHandle]:
    """Yield the runs that can be read, newest first: one that is damaged must not stand before all others."""
    for folder in _begun():
        with contextlib.suppress(BringupError):
            handle = RunHandle(folder)
            handle.state()
            yield handle


def find(run_id: str | None) -> RunHandle:
    """Return the run called `run_id`; when `None` the newest, before which a rehearsal never comes.

    Raises `InputError`: "run-unknown", or "no-runs" when none was named and there is none.
    """
    if run_id is not None:
        for folder in _begun():
            if folder.id == run_id:
                return RunHandle(folder)
        raise InputError("run-unknown", run=run_id)
    rehearsed: RunHandle | None = None
    for handle in _readable():
        if not handle.plan.target.rehearsal:
            return handle
        rehearsed = rehearsed or handle
    if rehearsed is None:
        raise InputError("no-runs")
    return rehearsed


def find_at_work() -> RunHandle:
    """Return the newest run that a runner is at work on, else what `find(None)` returns."""
    return next((handle for handle in _readable() if handle.alive()), None) or find(None)


def find_undoable() -> RunHandle:
    """Return the newest run that did something which can be taken back; raises `InputError("nothing-to-undo")`."""
    for handle in _readable():
        if not handle.plan.target.rehearsal and handle.state().status != "undone" and handle.is_ours():
            return handle
    raise InputError("nothing-to-undo")
