"""One turn of work on a run's folder: everything checked and locked, then to the end, to a failure, to a reboot, or back."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence

import msgspec

from steps import text
from steps.catalog.prompts import UNKNOWN, prompt_row
from steps.engine import carried, ledger, settings, undo
from steps.engine.awake import awake
from steps.engine.context import Context, Outcome, failed
from steps.engine.durable import open_new
from steps.engine.executor import PROOF_FAILED, perform
from steps.engine.folder import RunFolder, all_folders, boot_id, socket_folder
from steps.engine.groups import gained, groups_of
from steps.engine.hold import take_system
from steps.engine.journal import Journal, Unwritten, fold, is_over
from steps.engine.lanes import FINE, Lanes
from steps.engine.lock import born_of, try_take
from steps.engine.moments import next_turn
from steps.engine.orphans import left_at_work, wait_for
from steps.engine.packages import repair
from steps.engine.reboot import disarm
from steps.engine.runner import UNATTENDED
from steps.engine.same_system import expect_same, mark_of
from steps.engine.server import RUN_OVER, Request, Server
from steps.engine.signals import hear
from steps.errors import Busy, InputError
from steps.host.base import WritableHost
from steps.host.local import LocalHost
from steps.host.rooted import RootedHost
from steps.managers.base import manager
from steps.managers.preflight import protected
from steps.model.action import AnyAction, ManagerName, Packages, PackagesAre, Reboot, Run
from steps.model.plan import Ahead, Plan
from steps.model.run import LOG_IN_AGAIN, Entry, RunState, is_taken_back, left_out

_LOOK = 0.5
"""Seconds between two looks whether the program is there that a fetch belongs to."""
_LAST = 19
"""The lowest priority that there is."""
CANCELLED, REBOOT, ROLLED_BACK, NOT_ROLLED_BACK = 5, 10, 21, 22


def hold_and_work(folder: RunFolder, words: list[str]) -> int:
    """Check and lock everything, then work."""
    plan, origin = folder.read_plan(), folder.read_origin()
    detach_output(folder, origin.owner.gid)
    if folder.plan_digest() != origin.digest:
        raise InputError("plan-changed", run=folder.id, file=str(folder.plan))
    # Whoever starts us waits for a word of ours, but for the unit that goes on after a boot.
    by_itself = after(words, "--token") is None
    mine = try_take(folder.lock)
    if mine is None:
        raise Busy("run-active", run=folder.id, user=origin.owner.name, since=time.strftime("%H:%M"))
    if plan.ahead is not None:
        # It changes nothing that a run could meet: a run that begins need not wait for this lock, and everybody else comes first.
        os.setpriority(os.PRIO_PROCESS, 0, _LAST)
    elif not plan.target.rehearsal:
        take_system(folder, plan, origin, patient=by_itself)
    journal = Journal(folder.journal, origin.owner.gid)
    if after(words, "--turn") not in (None, str(sum(entry.kind == "run-started" for entry in journal.entries))):
        # Somebody else went on with it after whoever sent us had looked.
        raise Busy("run-active", run=folder.id, user=origin.owner.name, since=time.strftime("%H:%M"))
    state = fold(journal.entries)
    _agree(folder, plan, state, words)
    if by_itself and is_over(state) and state.status != "reboot":
        # A person went on with it before the unit came to it.
        raise InputError(RUN_OVER, run=folder.id)
    if "--undo" in words:
        # Here, where no other run can begin any more: one may have, since whoever sent us had looked.
        ledger.refuse_held(folder, plan, all_folders(origin.owner))
    _have_at_hand(plan)
    outside = LocalHost()
    host: WritableHost = outside if plan.target.root == "/" else RootedHost(plan.target.root, outside)
    expect_same(journal.entries, host, folder.id)
    secret = carried.hidden(folder.id, origin.owner)
    origin = msgspec.structs.replace(origin, environment=carried.honoured({**origin.environment, **secret}))
    attended = UNATTENDED not in words
    context = Context(folder, plan=plan, origin=origin, host=host, outside=outside, journal=journal, attended=attended)
    # Only a real run: a fetch can begin again, and a rehearsal is over soon.
    with awake(folder.id) if plan.ahead is None and not plan.target.rehearsal else contextlib.nullcontext():
        return Runner(context).work(words)


def _have_at_hand(plan: Plan) -> None:
    """Load what is otherwise loaded when it is needed: an upgrade of this program in the middle of the run must not mix two versions."""
    names: set[ManagerName] = {probe.manager for action in plan.actions for probe in action.done_when if isinstance(probe, PackagesAre)}
    names |= {action.manager for action in plan.actions if isinstance(action, Packages)}
    for name in names:
        manager(name)
    if any(isinstance(action, Reboot) for action in plan.actions):
        for module in ("steps.detect.boot", "steps.host.boot_menu"):
            importlib.import_module(module)
    # The tables behind them are read at their first use and remembered.
    protected("", None)
    settings.patterns()
    prompt_row(UNKNOWN)
    text.lookup("en", "manager.plan-only")


def _agree(folder: RunFolder, plan: Plan, state: RunState, words: list[str]) -> None:
    """Raise `InputError` when what is asked for does not fit the run as it stands."""
    if is_taken_back(state) and "--undo" not in words:
        raise InputError("run-taken-back" if state.status == "undone" else "run-undone", run=folder.id)
    skipped = after(words, "--skip")
    if skipped is None:
        return
    if skipped not in {action.id for action in plan.actions}:
        raise InputError("action-unknown", run=folder.id, action=skipped)
    action = state.actions.get(skipped)
    if action is None or action.status not in ("failed", "running", "asks"):
        raise InputError("action-not-failed", run=folder.id, action=skipped)


class Runner:
    """One turn of work on a folder: to the end, to a failure, to a reboot, or back."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._journal = context.journal
        self._before = fold(self._journal.entries)
        self._undoing = False
        self._lanes = Lanes(context, lambda action: perform(action, context), self._take_back, self._before)

    def work(self, words: list[str]) -> int:
        """Say that we are here, do what `words` ask, and write down the end."""
        context = self._context
        path = socket_folder(root=os.geteuid() == 0, owner=context.owner) / f"{context.folder.id}.sock"
        server = Server(path, context.owner, self._handle)
        hear(signal.SIGTERM, self._told_to_end)
        try:
            self._journal.append(
                "run-started",
                digest=context.origin.digest,
                pid=os.getpid(),
                boot_id=boot_id(),
                user=context.owner.name,
                socket=str(path),
                groups=",".join(groups_of(context.owner)),
                system=mark_of(context.host),
                turn=next_turn(all_folders(context.owner)),
                token=after(words, "--token"),
            )
            if "--undo" in words:
                return self._undo()
            skipped = after(words, "--skip")
            if skipped is not None:
                # A retry needs no such word, for what failed is tried again anyway.
                self._lanes.leave_out(skipped)
            self._mend()
            if self._context.plan.ahead is not None:
                threading.Thread(target=self._watch_over, args=(self._context.plan.ahead,), daemon=True).start()
            self._lanes.run()
            if self._context.plan.ahead is not None:
                self._leave_nothing()
            if self._lanes.unwritten is not None:
                # No end is written either: the run was cut off, and can be gone on with when there is room.
                raise self._lanes.unwritten
            return self._finish()
        finally:
            server.close()

    def _watch_over(self, whose: Ahead) -> None:
        """Stop once the program that a person chooses in is gone, however it went."""
        while born_of(whose.pid) == whose.born:
            time.sleep(_LOOK)
        self._stop()

    def _leave_nothing(self) -> None:
        """Take away what a fetch wrote beside the caches; what cannot go is of no consequence."""
        for action in ledger.order(self._context.plan, self._journal.entries):
            undo.take_back(action, self._context)

    def _take_back(self, action: AnyAction) -> Outcome:
        """Return an action that failed as skipped, once the packages that it left half done are as they were before.

        The package manager would not do anything else before it has finished these, and fail at them again.
        """
        if not isinstance(action, Packages) or self._context.plan.target.rehearsal:
            return Outcome(status="skipped")
        back = undo.take_back(action, self._context)
        self._write_undone(action, back)
        return back if back.status == "failed" else Outcome(status="skipped")

    def _cut_off(self) -> Iterator[AnyAction]:
        """Yield the actions that were at work when the last runner ended, once nothing of them is at work any more."""
        for action in self._context.plan.actions:
            state = self._before.actions.get(action.id)
            if state is not None and state.status in ("running", "asks") and not self._context.plan.target.rehearsal:
                if not self._undoing and left_at_work(self._context.folder, action.id):
                    # It runs, for everybody who looks: a build may go on for long yet.
                    self._journal.append("action-started", action.id)
                wait_for(self._context, action.id)
                yield action

    def _mend(self) -> None:
        """After a crash the package manager finishes what was cut off before anything else is tried."""
        for action in self._cut_off():
            # A cancelled wait ends early: what is left at work mends itself.
            if isinstance(action, Packages) and not self._context.switches.cancelled.is_set():
                repair(action, self._context)

    def _finish(self) -> int:
        outcomes = self._lanes.outcomes
        actions = self._context.plan.actions
        required = [outcomes.get(action.id) for action in actions if not (action.optional and outcomes.get(action.id) is not None)]
        if self._context.switches.cancelled.is_set():
            status, code = "cancelled", CANCELLED
        elif all(outcome is not None and outcome.status in FINE for outcome in required):
            left = left_out(actions, fold(self._journal.entries))
            status, code = "done", LOG_IN_AGAIN if self._in_new_groups() else 0
            if left:
                code = PROOF_FAILED if any(one.lane == "proof" for one in left) else 1
        elif any(outcome is not None and outcome.status == "failed" for outcome in required):
            codes = [outcome.code for outcome in required if outcome is not None and outcome.code is not None]
            status, code = "failed", codes[0] if codes else 1
        elif any(outcome is not None and outcome.status == "reboot" for outcome in required):
            status, code = "reboot", REBOOT
        else:
            self._tell_stuck()
            status, code = "failed", 1
        if status != "reboot":
            disarm(self._context)
        self._journal.append("run-finished", None, status, exit=code)
        if status == "done":
            carried.forget(self._context.folder.id, self._context.owner)
        return code

    def _tell_stuck(self) -> None:
        """Write down which action never began although nothing failed before it: a plan whose actions wait for each other."""
        left = next((action for action in self._context.plan.actions if action.id not in self._lanes.outcomes), None)
        if left is not None:
            self._journal.append("action-finished", left.id, "failed", error="engine.failed.stuck")

    def _in_new_groups(self) -> bool:
        """Return whether the person has to log in again before all of it counts; a rehearsal and a mounted system change nobody here."""
        target = self._context.plan.target
        here = target.root == "/" and not target.rehearsal
        return here and bool(gained(self._journal.entries, groups_of(self._context.owner)))

    def _undo(self) -> int:
        self._undoing = True
        self._journal.append("undo-started")
        # At once: what is being taken back must not go on by itself after a boot.
        disarm(self._context)
        before = _before_undo(self._journal.entries)
        went_wrong = False
        vain = ledger.in_vain(self._journal.entries)
        for action in self._cut_off():
            self._context.spool_line(action.id, "[bringup: was cut off]")
        for action in ledger.order(self._context.plan, self._journal.entries):
            outcome = self._taken_back(action)
            if outcome.status == "failed" and isinstance(action, Run) and action.id in vain:
                # It never did what its undo would take back; what stands before it still has to go.
                outcome = msgspec.structs.replace(outcome, status="kept")
            self._write_undone(action, outcome)
            if outcome.status == "failed":
                # What came before it may rest on it: to go on would take away the ground.
                went_wrong = True
                break
        if went_wrong:
            self._journal.append("undo-finished", None, "undo-failed", exit=NOT_ROLLED_BACK)
            return NOT_ROLLED_BACK
        code = ROLLED_BACK if before.status == "failed" else 0
        self._journal.append("undo-finished", None, "undone", exit=code)
        # Nobody goes on with it any more.
        undo.forget_kept(self._context)
        carried.forget(self._context.folder.id, self._context.owner)
        return code

    def _taken_back(self, action: AnyAction) -> Outcome:
        """Take back one action of an undo; a fault of ours is written down before it ends us, for the run must not seem cut off."""
        if self._before.undoing_since is not None:
            # What an undo that was killed had begun goes on without it, and two at once would break what they do. Before the first undo
            # only what was cut off is waited for: a server that an action which was done has left running may never end.
            wait_for(self._context, action.id)
        try:
            return undo.take_back(action, self._context)
        except Unwritten:
            raise
        except Exception:
            self._write_undone(action, failed("engine.failed.bug"))
            self._journal.append("undo-finished", None, "undo-failed", exit=NOT_ROLLED_BACK)
            raise

    def _write_undone(self, action: AnyAction, outcome: Outcome) -> None:
        data = dict(outcome.params)
        if outcome.error is not None:
            data["error"] = outcome.error
        if outcome.exit is not None:
            data["exit"] = outcome.exit
        self._journal.append("action-undone", action.id, outcome.status, **data)

    def _told_to_end(self) -> None:
        # Half an undo helps nobody: it is finished, as a package manager at work is.
        if not self._undoing:
            self._cancel()

    def _cancel(self) -> None:
        switches = self._context.switches
        switches.cancelled.set()
        switches.going.set()

    def _handle(self, request: Request) -> str | None:
        """Do what a screen asks; return an error code when that cannot be."""
        if self._undoing and request.word in ("cancel", "pause", "continue", "retry", "skip"):
            return "undo-runs"
        match request.word:
            case "answer":
                return self._context.desk.answer(request.seq, request.text)
            case "keys":
                return self._context.desk.type(request.seq, request.data)
            case "cancel":
                return self._stop()
            case "pause" | "continue":
                self._let_go(on=request.word == "continue")
                return None
            case "retry":
                return self._lanes.again(request.action)
            case "skip":
                return self._lanes.skip(request.action)
            case "hello":
                return None

    def _stop(self) -> str | None:
        if not self._context.switches.cancelled.is_set():
            self._cancel()
            self._lanes.wake()
            # Where no entry finds room any more, it is stopped all the same.
            with contextlib.suppress(Unwritten):
                self._journal.append("cancelled")
        return None

    def _let_go(self, *, on: bool) -> None:
        going = self._context.switches.going
        if on is going.is_set():
            return
        self._journal.append("continued" if on else "paused")
        if on:
            going.set()
        else:
            going.clear()
        self._lanes.wake()


def _before_undo(entries: Sequence[Entry]) -> RunState:
    """Return the state of the run before the turn that began to take it back, the first one where several tried."""
    turn = 0
    for at, entry in enumerate(entries):
        if entry.kind == "run-started":
            turn = at
        elif entry.kind == "undo-started":
            return fold(entries[:turn])
    return fold(entries)


def after(words: list[str], option: str) -> str | None:
    """Return the word that follows `option`, or `None` when it was not given."""
    return words[words.index(option) + 1] if option in words else None


def detach_output(folder: RunFolder, gid: int) -> None:
    """Send what the runner itself says (a traceback) to a file of the run; no terminal is left."""
    descriptor = open_new(folder.errors, gid=gid)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
