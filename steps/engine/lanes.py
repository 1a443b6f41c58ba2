"""Which action comes when: each lane in its order, lanes side by side, everything after what it needs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from steps.engine.context import Context, Outcome
from steps.engine.journal import Unwritten
from steps.engine.needs import needs_of, without
from steps.engine.server import RUN_OVER
from steps.model.action import AnyAction, Lane
from steps.model.run import RunState

Perform = Callable[[AnyAction], Outcome]
FINE = frozenset(("done", "already", "skipped"))


class Lanes:
    """All lanes of a run; `run` returns when nothing can go on any more."""

    def __init__(self, context: Context, perform: Perform, take_back: Perform, before: RunState) -> None:
        """`take_back` makes a failed action undone, so that the run can go on without it; its outcome is "skipped" then."""
        self._context = context
        self._perform = perform
        self._take_back = take_back
        self._leaving: set[str] = set()
        self._actions = context.plan.actions
        self._needs = needs_of(self._actions)
        self._optional = {action.id for action in self._actions if action.optional}
        self._change = threading.Condition()
        self._running: set[str] = set()
        self._over = False
        self.outcomes: dict[str, Outcome] = {}
        self.unwritten: Unwritten | None = None
        """Why nothing could be written down any more, when that is so."""
        for id, state in before.actions.items():
            if state.status in FINE:
                self.outcomes[id] = Outcome(status=state.status)

    def run(self) -> None:
        """Work until every action is done, or what is left waits for one that failed."""
        lanes = dict.fromkeys(action.lane for action in self._actions)
        threads = [threading.Thread(target=self._work, args=(lane,), name=lane) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, lane: Lane) -> None:
        while (action := self._next(lane)) is not None:
            try:
                self._one(action)
            except Unwritten as error:
                # Nothing may begin that cannot be written down; what other lanes have at work comes to its end.
                self._settle(action.id, Outcome(status="failed"))
                with self._change:
                    self.unwritten = error
                    self._change.notify_all()

    def _one(self, action: AnyAction) -> None:
        """Do one action, told in the journal before and after."""
        journal = self._context.journal
        journal.append("action-started", action.id)
        try:
            leaving = action.id in self._leaving
            outcome = (self._take_back if leaving else self._perform)(action)
        except Unwritten:
            raise
        except BaseException:
            # A bug: the entry must not stay open; the traceback goes to runner.err.
            self._settle(action.id, Outcome(status="failed"))
            journal.append("action-finished", action.id, "failed", error="engine.failed.bug")
            raise
        with self._change:
            # At once: whoever reads of the failure may ask for another try before the next line is run.
            self._leaving.discard(action.id)
            self._write(action, outcome)
            self._settle(action.id, outcome)
            if leaving and outcome.status == "skipped":
                self._leave_dependents(action.id)

    def _leave_dependents(self, id: str) -> None:
        """Pass over what can do nothing without an action that was left out."""
        for other in without(self._actions, id):
            if other not in self.outcomes or self.outcomes[other].status not in FINE:
                self._context.journal.append("action-finished", other, "skipped")
                self.outcomes[other] = Outcome(status="skipped")

    def _write(self, action: AnyAction, outcome: Outcome) -> None:
        if outcome.status == "reboot":
            return
        status = "failed" if outcome.status == "cancelled" else outcome.status
        error = "engine.failed.cancelled" if outcome.status == "cancelled" else outcome.error
        data = dict(outcome.params)
        if error is not None:
            data["error"] = error
        if outcome.exit is not None:
            data["exit"] = outcome.exit
        self._context.journal.append("action-finished", action.id, status, **data)

    def _settle(self, id: str, outcome: Outcome) -> None:
        with self._change:
            self._running.discard(id)
            self.outcomes[id] = outcome
            self._change.notify_all()

    def _next(self, lane: Lane) -> AnyAction | None:
        """Return the lane's next action once it may start; `None` when none ever will."""
        switches = self._context.switches
        with self._change:
            while not switches.cancelled.is_set() and self.unwritten is None:
                waiting = [action for action in self._actions if action.lane == lane and action.id not in self.outcomes]
                ready = switches.going.is_set() and waiting and all(self._fine(id) for id in self._needs[waiting[0].id])
                if ready:
                    self._running.add(waiting[0].id)
                    return waiting[0]
                if switches.going.is_set() and not self._running and not self._any_ready():
                    # A failed action of this lane may be tried again while another lane works; now nothing works any more.
                    self._over = True
                    self._change.notify_all()
                    return None
                self._change.wait(0.5)
        return None

    def _any_ready(self) -> bool:
        waiting = (action.id for action in self._actions if action.id not in self.outcomes)
        return any(all(self._fine(needed) for needed in self._needs[id]) for id in waiting)

    def _fine(self, id: str) -> bool:
        outcome = self.outcomes.get(id)
        return outcome is not None and (outcome.status in FINE or (id in self._optional and outcome.status == "failed"))

    def again(self, id: str) -> str | None:
        """Let a failed action be tried again; an error code when it has not failed, or when no lane is left to do it."""
        with self._change:
            if self._over:
                return RUN_OVER
            if id not in self.outcomes or self.outcomes[id].status in FINE:
                return "action-not-failed"
            del self.outcomes[id]
            self._change.notify_all()
            return None

    def skip(self, id: str) -> str | None:
        """Pass over a failed action; an error code when it has not failed, or when no lane is left to go on."""
        with self._change:
            if self._over:
                return RUN_OVER
            if id not in self.outcomes or self.outcomes[id].status in FINE:
                return "action-not-failed"
            self.leave_out(id)
            return None

    def leave_out(self, id: str) -> None:
        """Let the action's lane take it back in its turn, and go on without it and without all that needs it."""
        with self._change:
            self._leaving.add(id)
            self.outcomes.pop(id, None)
            self._change.notify_all()

    def wake(self) -> None:
        """Let waiting lanes look at the switches."""
        with self._change:
            self._change.notify_all()
