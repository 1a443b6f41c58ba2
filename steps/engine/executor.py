"""One action, from "is it done already?" to "is it done now?"."""

from __future__ import annotations

import shlex
import time

import msgspec

from steps.engine import aside, files, ledger, undo
from steps.engine.command import MISSING_ANSWER, Missing, failed_by, judge, run_command, unanswered
from steps.engine.context import Context, Outcome, failed
from steps.engine.journal import Unwritten
from steps.engine.mounts import expect_mounted
from steps.engine.packages import perform_packages
from steps.engine.probes import is_done, why_not_done
from steps.engine.prompts import manual_row
from steps.engine.reboot import perform_reboot
from steps.errors import BringupError, InTheWay
from steps.managers.apt_repository import without_armour
from steps.managers.base import manager
from steps.managers.shown import shown
from steps.model.action import NEIGHBOURS, AnyAction, FileIs, Keep, Manual, Packages, Reboot, Run, Service, Write, leaves_something
from steps.model.base import phrase

REHEARSAL_PACE = 0.4
"""So long does a rehearsed action take: long enough to be seen, short enough not to bore; seconds."""
PROOF_FAILED = 20


def perform(action: AnyAction, context: Context) -> Outcome:
    """Do one action and return how it went; what goes wrong is an outcome, never an exception but for bugs."""
    if context.plan.target.rehearsal:
        return _rehearse(action, context)
    try:
        if leaves_something(action):
            # Below a mount point without its disk an action would find nothing done, and begin again on the system's own.
            for mount in ledger.disks(context.folder, context.plan, context.journal.entries, action):
                expect_mounted(mount)
        if is_done(action, context) is True and not _may_be_half(action, context):
            return Outcome(status="already")
        outcome = _do(action, context)
        if outcome.status == "done" and action.done_when and is_done(action, context) is False:
            return failed(why_not_done(action, context), exit=outcome.exit)
        if outcome.status == "done":
            _write_out(action, context)
        return outcome
    except Unwritten:
        raise
    except (BringupError, Missing, msgspec.MsgspecError, OSError) as error:
        return failed_by(error, context.folder.kept(action.id))


def _may_be_half(action: AnyAction, context: Context) -> bool:
    """Return whether the action failed, or the power went while it was at work, and only a file's being there says that it is done.

    A full disk leaves an empty file, and so does a machine that went down. What also looks into the file, or asks a program, is believed.
    """
    if not all(isinstance(probe, FileIs) and probe.text is None for probe in action.done_when):
        return False
    boot: object = None
    tries: list[tuple[object, str | None]] = []
    for entry in context.journal.entries:
        if entry.kind == "run-started":
            boot = entry.data.get("boot_id")
        elif entry.action == action.id and entry.kind == "action-started":
            tries.append((boot, None))
        elif entry.action == action.id and entry.kind == "action-finished":
            tries.append((boot, entry.status))
    if tries[-1:] == [(boot, None)]:
        # The try that asks.
        tries.pop()
    return bool(tries) and (tries[-1][1] == "failed" or (tries[-1][1] is None and tries[-1][0] != boot))


def _write_out(action: AnyAction, context: Context) -> None:
    """Have on the disks what a command wrote, before the journal says that it is done: a power cut would leave that word alone."""
    if isinstance(action, Run) and leaves_something(action):
        seen = tuple(probe.path for probe in action.done_when if isinstance(probe, FileIs))
        files.write_out((*ledger.paths_of(action), *seen), context.outside if action.outside else context.host)


def _do(action: AnyAction, context: Context) -> Outcome:
    match action:
        case Run():
            return _run(action, context)
        case Write():
            return _write(action, context)
        case Keep():
            return aside.keep(action, context)
        case Packages():
            # One that was to be left out, could not be taken back whole and is tried again has notes of that.
            undo.forget_notes(action, context)
            return perform_packages(action, context)
        case Service():
            return _service(action, context)
        case Reboot():
            return perform_reboot(action, context)
        case Manual():
            return _manual(action, context)


# --- the kinds ----------------------------------------------------------------------------------


def _run(action: Run, context: Context) -> Outcome:
    if action.undo:
        undo.register(action, context)
    ending = run_command(context, action, action.argv, environment=action.env, outside=action.outside)
    outcome = judge(ending)
    if ending.stopped is None and ending.killed_by is None and ending.status in action.passes:
        return Outcome(status="done", exit=ending.status)
    if action.lane == "proof" and outcome.exit == PROOF_FAILED:
        return failed(phrase("engine.failed.proof"), exit=PROOF_FAILED, code=PROOF_FAILED)
    if action.id == NEIGHBOURS and outcome.exit == InTheWay.exit_code:
        return failed(phrase("engine.failed.in-the-way"), exit=outcome.exit, code=outcome.exit)
    return outcome


def _write(action: Write, context: Context) -> Outcome:
    host = context.host
    if action.copy_of is not None:
        sources = host.glob(action.copy_of)
        data = host.read_bytes(sources[0]) if len(sources) == 1 else None
        if data is None:
            return failed(phrase("engine.failed.source", path=action.copy_of, count=len(sources)))
        if action.binary_key:
            data = without_armour(data)
    else:
        data = (action.text or "").encode()
    return files.write(action, data, context)


def _service(action: Service, context: Context) -> Outcome:
    undo.register(action, context)
    # In a mounted system nothing runs: there a unit can be enabled for its next boot only.
    now = ("--now",) if context.host.root == "/" else ()
    return judge(run_command(context, action, ("systemctl", "enable", *now, action.unit)))


_MANUAL = "manual"


def _manual(action: Manual, context: Context) -> Outcome:
    """Ask the person; their word is taken. Where nobody is there the plan's own is, and without one the action fails for want of it."""
    row = manual_row()
    if not context.attended:
        answer = context.plan.profile.prompts.get(_MANUAL)
        if answer is None:
            return failed(unanswered(_MANUAL), code=MISSING_ANSWER if row is None else row.exit)
        return Outcome(status="done" if answer == "done" else "skipped")
    seq = None
    while not context.switches.cancelled.is_set():
        if seq is None:
            seq = context.desk.ask(action.id, row, "choice", "")
        else:
            answer, _ = context.desk.taken(seq)
            if answer is not None:
                context.desk.settle(seq, "person")
                return Outcome(status="done" if answer == "done" else "skipped")
        time.sleep(0.1)
    if seq is not None:
        context.desk.settle(seq, "program")
    return Outcome(status="cancelled")


# --- rehearsal ----------------------------------------------------------------------------------


def _rehearse(action: AnyAction, context: Context) -> Outcome:
    for line in _would(action):
        context.spool_line(action.id, f"rehearsal: {line}")
    time.sleep(REHEARSAL_PACE)
    return Outcome(status="cancelled" if context.switches.cancelled.is_set() else "done")


def _would(action: AnyAction) -> tuple[str, ...]:
    """Return what the action would do, in the words of a shell."""
    match action:
        case Run(argv=argv):
            return (f"would run {shlex.join(argv)}",)
        case Write(path=path, text=text, copy_of=copy_of):
            if copy_of is not None:
                return (f"would copy {copy_of} to {path}",)
            return (f"would write {path}:", *(f"  {line}" for line in (text or "").splitlines()))
        case Keep():
            return (f"would run {shlex.join(shown(action))}",)
        case Packages():
            tool = manager(action.manager)
            refresh = (f"would run {shlex.join(tool.refresh_argv())}",) if action.refresh else ()
            return (*refresh, *((f"would run {shlex.join(tool.argv(action))}",) if action.install else ()))
        case Service(unit=unit):
            return (f"would run systemctl enable --now {unit}",)
        case Reboot():
            return ("would wait for a reboot",)
        case Manual():
            return ("would ask the person",)
