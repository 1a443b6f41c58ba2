"""All that a screen needs of the engine: start a run, find one, and hold it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from steps.engine import journal
from steps.engine.carried import carried_environment, digest_of
from steps.engine.folder import AHEAD, Order, RunFolder, all_folders, invoking_owner, state_unusable
from steps.engine.handle import RunHandle, Sudo, launch
from steps.engine.lock import FAREWELL, born_of, busy, holder, is_held, target_lock
from steps.engine.moments import last_moment
from steps.engine.runner import UNATTENDED
from steps.engine.spool import Spool
from steps.errors import BringupError, InputError
from steps.language import Language
from steps.model.plan import Ahead, Plan, digest
from steps.model.run import RunSummary

__all__ = [
    "RunHandle",
    "Spool",
    "Sudo",
    "find",
    "find_at_work",
    "find_repair",
    "find_repaired",
    "find_resumable",
    "find_undoable",
    "invoking_owner",
    "ourselves",
    "runs",
    "start",
    "stop_ahead",
]


def start(plan: Plan, *, sudo: Sudo | None, attended: bool = True, language: Language = "en") -> RunHandle:
    """Start a run and return its handle; where it is not `attended`, a question that nothing answers ends it.

    `language` is what our own commands in it speak, as the proof does.
    Raises `Busy` while another run changes the same machine, `PrivilegeError` without root and sudo.
    """
    owner = invoking_owner()
    needs_root = plan.needs_root and not plan.target.rehearsal
    if not plan.target.rehearsal:
        stop_ahead()
        for root in (True, False):
            _refuse_held(target_lock(plan.target.root, root=root, owner=owner))
    environment = {**carried_environment(plan), "BRINGUP_LANG": language}
    name = _order_file(Order(plan=plan, environment=environment))
    try:
        manner = () if attended else (UNATTENDED,)
        id = launch((name, "--digest", digest(plan), "--carried", digest_of(environment), *manner), needs_root=needs_root, sudo=sudo)
    finally:
        Path(name).unlink(missing_ok=True)
    wanted = digest(plan)
    if plan.ahead is not None:
        handle = next((one for one in _ahead() if id in (one.id, None) and digest(one.plan) == wanted), None)
        if handle is None:
            raise InputError("run-unknown", run=id or "")
        return handle
    if id is not None:
        return find(id)
    for handle in _readable():
        if digest(handle.plan) == wanted:
            return handle
    raise InputError("run-unknown", run="")


def _refuse_held(lock: Path) -> None:
    """Raise `Busy` while a run holds the machine; one that has written down its end is on its way out, and is waited for."""
    deadline = time.monotonic() + FAREWELL
    while (held := holder(lock)) is not None:
        if time.monotonic() > deadline or not _has_ended(held.run):
            raise busy(held)
        time.sleep(0.02)


def _has_ended(run_id: str) -> bool:
    with contextlib.suppress(BringupError):
        return journal.is_over(find(run_id).state())
    return False


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
        # Where no temporary folder can be written in, asking for one fails a second time.
        error.filename = error.filename or tempfile.tempdir or "/tmp"  # noqa: S108 - a name in a message
        raise state_unusable(error) from error
    return name


def runs() -> tuple[RunSummary, ...]:
    """Return all runs of this machine that this person may see, newest first."""
    found: list[RunSummary] = []
    for folder in _begun():
        try:
            found.append(RunHandle(folder).summary())
        except BringupError as error:
            # Of another person, or damaged: it is there, and that is all that can be said.
            damaged = error.code != "run-not-yours"
            found.append(RunSummary(id=folder.id, folder=str(folder.path), alive=is_held(folder.lock), readable=False, damaged=damaged))
    return tuple(found)


def _begun() -> Iterator[RunFolder]:
    """Yield the runs that a runner was ever at work on, newest first."""
    folders = (folder for folder in reversed(all_folders(invoking_owner())) if not folder.id.startswith(AHEAD))
    return (folder for folder in folders if folder.began())


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
    """Return the run that last did something which can be taken back; raises `InputError("nothing-to-undo")`.

    That is the newest one, or the one that it repaired where that has gone on since: it rests on the repair.
    """
    for handle in _readable():
        if not handle.plan.target.rehearsal and handle.state().status != "undone" and handle.is_ours():
            while (later := _gone_on_since(handle)) is not None:
                handle = later  # noqa: PLW2901 - from a repair to what it repaired, which may have been one too
            return handle
    raise InputError("nothing-to-undo")


# --- a run and the run that repaired it --------------------------------------------------------------


def find_repair(run_id: str) -> RunHandle | None:
    """Return the newest run that did its whole repair of run `run_id`, and stands; `None` when there is none."""
    found = (handle for handle in _readable() if handle.plan.repairs == run_id)
    return next((handle for handle in found if handle.state().status == "done"), None)


def find_repaired(run_id: str) -> RunHandle | None:
    """Return the stopped run that a repair was made for, while it can be gone on with; `None` when it cannot."""
    with contextlib.suppress(BringupError):
        handle = find(run_id)
        if handle.state().status in ("failed", "cancelled") and not handle.alive():
            return handle
    return None


def find_resumable() -> RunHandle:
    """Return the run to go on with: the newest, or the one that the newest was to repair. Raises what `find` raises."""
    newest = find(None)
    return next((one for one in _repaired_before(newest) if find_repaired(one.id) is not None), newest)


def _repaired_before(repair: RunHandle) -> Iterator[RunHandle]:
    """Yield the run that `repair` was for, and what that one was for, as long as there is nothing to go on with in the repairs."""
    while repair.plan.repairs is not None and repair.state().status in ("done", "undone"):
        try:
            repair = find(repair.plan.repairs)
            repair.state()
        except BringupError:
            return
        yield repair


def _gone_on_since(repair: RunHandle) -> RunHandle | None:
    """Return the run that `repair` repaired when it ended after it and is not taken back; else `None`."""
    with contextlib.suppress(BringupError):
        if repair.plan.repairs is None:
            return None
        handle = find(repair.plan.repairs)
        state = handle.state()
        later = last_moment(RunFolder(Path(handle.folder))) > last_moment(RunFolder(Path(repair.folder)))
        if state.status != "undone" and state.ended is not None and later:
            return handle
    return None


# --- fetching ahead ----------------------------------------------------------------------------------

_RELEASE = 20.0
"""Seconds in which a fetch that was told to stop has to be gone: apt ends at the first signal, a hung one is killed."""


def ourselves() -> Ahead:
    """Return what a plan that fetches ahead for this program is marked with: it ends with us."""
    return Ahead(pid=os.getpid(), born=born_of(os.getpid()) or "")


def _ahead() -> Iterator[RunHandle]:
    """Yield the fetches that can be read, newest first."""
    for folder in reversed(all_folders(invoking_owner())):
        if folder.id.startswith(AHEAD) and folder.began():
            with contextlib.suppress(BringupError):
                yield RunHandle(folder)


def stop_ahead() -> None:
    """Stop every fetch of this person, and return once the locks of the package manager are free of it.

    One of another person, or one that does not end, is met by the run itself: it waits for its lock by name.
    """
    stopping = [handle for handle in _ahead() if handle.alive()]
    for handle in stopping:
        with contextlib.suppress(BringupError):
            handle.cancel()
    deadline = time.monotonic() + _RELEASE
    while any(handle.alive() for handle in stopping) and time.monotonic() < deadline:
        time.sleep(0.05)
