"""One run as a screen holds it: looked at without a runner, talked to while one is at work, and gone on with."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec

from steps import resources
from steps.engine import journal, ledger
from steps.engine.estimate import left
from steps.engine.folder import Refusal, Refused, RunFolder, all_folders, invoking_owner, state_folder
from steps.engine.lock import is_held
from steps.engine.progress import Work, wheels_of, work_of
from steps.engine.return_points import bytes_below, return_points
from steps.engine.runner import UNATTENDED
from steps.engine.server import RUN_OVER, Request, Response, ask, is_line
from steps.engine.spool import Spool
from steps.errors import BringupError, InputError, PrivilegeError
from steps.model.plan import names
from steps.model.run import RunState, RunSummary, is_taken_back
from steps.model.verdict import Rung, from_document

Sudo = Callable[[tuple[str, ...]], int]
"""Runs an argv as root in the person's terminal and returns its exit code."""


def launch(words: tuple[str, ...], *, needs_root: bool, sudo: Sudo | None) -> str | None:
    """Run the launcher; return the id it prints, or `None` when it printed it to the person's terminal."""
    argv = (*resources.runner_command(), "--launch", *words)
    if needs_root and os.geteuid() != 0:
        if sudo is None:
            raise PrivilegeError("needs-root")
        code = sudo(argv)
        if code:
            raise _refused(code)
        return None
    ended = subprocess.run((*argv, "--json"), capture_output=True, stdin=subprocess.DEVNULL, start_new_session=True, check=False)
    if ended.returncode == 0:
        return ended.stdout.decode().strip()
    try:
        raise Refused(msgspec.json.decode(ended.stderr, type=Refusal))
    except msgspec.MsgspecError:
        raise RuntimeError(ended.stderr.decode(errors="replace")) from None


def _refused(code: int) -> BringupError:
    """Return the error behind the exit code of a launcher whose words went to the person's terminal."""
    if code in (1, 4, 126, 127):
        return PrivilegeError("sudo-refused")
    return Refused(Refusal(code="launch-refused", params={"exit": code}, exit=code))


class RunHandle:
    """One run, looked at and talked to; it needs no runner for looking."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self.id = folder.id
        self.folder = str(folder.path)
        self.plan = folder.read_plan()
        self._state = RunState()
        self._offset = 0
        self._turns = 0
        self._socket: Path | None = None
        self._spools: dict[str, Spool] = {}

    # --- looking -----------------------------------------------------------------------------------

    def state(self) -> RunState:
        """Return the state now; only what is new in the journal is read. Raises `InputError` when it is gone or damaged."""
        entries, self._offset = journal.read(self._folder.journal, self._offset)
        if self._offset == 0 and self._folder.began():
            raise InputError("journal-empty", run=self.id, file=str(self._folder.journal))
        for entry in entries:
            if entry.kind == "run-started":
                self._socket = Path(str(entry.data.get("socket", "")))
                self._turns += 1
        self._state = journal.fold(entries, self._state)
        return self._state

    def summary(self) -> RunSummary:
        """Return the run's line in `bringup runs`."""
        state, named = self.state(), " · ".join(names(self.plan))
        kept = return_points(self.plan.target.root, invoking_owner())
        beside = ledger.kept_beside(self._folder, self.plan)
        return RunSummary(
            id=self.id,
            folder=self.folder,
            owner=state.owner,
            started=state.started,
            ended=state.ended,
            status=state.status,
            exit=state.exit,
            alive=self.alive(),
            rehearsal=self.plan.target.rehearsal,
            title=named,
            first=self.plan.actions[0].title if self.plan.actions and not named else "",
            kept_in=str(kept),
            kept_bytes=0 if self.plan.target.rehearsal else bytes_below(kept / self.id) + sum(beside.values()),
            kept_beside=beside,
        )

    def is_ours(self) -> bool:
        """Return whether it lies where the launcher looks for it: there might be another run of this name."""
        root = os.geteuid() == 0 or (self.plan.needs_root and not self.plan.target.rehearsal)
        return self._folder.path.parent == state_folder(root=root, owner=invoking_owner()) / "runs"

    def alive(self) -> bool:
        """Return whether a runner is at work on it; a run that is neither alive nor over was cut off and can be resumed."""
        return is_held(self._folder.lock)

    def spool(self, action_id: str) -> Spool:
        """Return the output of an action."""
        if action_id not in self._spools:
            self._spools[action_id] = Spool(self._folder.output(action_id))
        return self._spools[action_id]

    def work(self, action_id: str) -> Work | None:
        """Return how far the package manager is with an action; `None` when it is no such action, or has not begun."""
        state, output = self._state.actions.get(action_id), self._folder.output(action_id)
        status = output.with_suffix(".status")
        if not status.exists():
            fetches = next((one.lane == "python" for one in self.plan.actions if one.id == action_id), False)
            return wheels_of(output) if fetches else None
        return work_of(status, self.plan.target.root, None if state is None else state.started, output)

    def left(self, now: float) -> float | None:
        """Return for how many seconds the run will probably go on; `None` when that cannot be said."""
        at_work = (id for id, one in self._state.actions.items() if one.status == "running")
        works = {id: work for id in at_work if (work := self.work(id)) is not None}
        return left(self.plan, self._state, now, works)

    def verdict(self) -> tuple[Rung, ...] | None:
        """Return the rungs that the plan's proof printed; `None` while there are none."""
        proof = next((action for action in reversed(self.plan.actions) if action.lane == "proof"), None)
        if proof is None:
            return None
        spool = self.spool(proof.id)
        for line in reversed(spool.read(max(0, spool.size() - (1 << 20)), 1 << 20).splitlines()):
            if line.startswith(b"{") and b'"bringup/verify"' in line[:80]:
                try:
                    return from_document(msgspec.json.decode(line))
                except msgspec.MsgspecError:
                    return None
        return None

    # --- talking to a runner that is at work ---------------------------------------------------------

    def answer(self, seq: int, text: str) -> None:
        """Answer prompt `seq`: a line, or the id of one of its row's answers.

        Raises `InputError`: "answer-late" when it is not open, "answer-no-line" for what cannot be typed as one line.
        """
        if not is_line(text):
            # Before it is sent: a long one would not even arrive.
            raise InputError("answer-no-line", run=self.id)
        self._say(Request(word="answer", seq=seq, text=text))

    def keys(self, seq: int, data: bytes) -> None:
        """Type into the full-screen dialog of prompt `seq`."""
        self._say(Request(word="keys", seq=seq, data=data))

    def cancel(self) -> None:
        """Stop the run; a package manager that has begun to unpack is left to finish first."""
        self._say(Request(word="cancel"))

    def pause(self) -> None:
        """Let no further action begin."""
        self._say(Request(word="pause"))

    def proceed(self) -> None:
        """Take back a pause."""
        self._say(Request(word="continue"))

    def _say(self, request: Request) -> None:
        response = self._response(request)
        if response is None:
            # One that is stopped, or overrun with callers, is at work all the same.
            raise InputError("run-silent" if self.alive() else "run-not-active", run=self.id)
        if response.error is not None:
            raise InputError(response.error, run=self.id)

    def _response(self, request: Request) -> Response | None:
        self.state()
        return None if self._socket is None else ask(self._socket, request)

    # --- going on with one that has stopped ----------------------------------------------------------

    def retry(self, action: str, *, sudo: Sudo | None = None) -> None:
        """Try a failed action again, and then go on."""
        response = self._response(Request(word="retry", action=action))
        if response is None or response.error == RUN_OVER:
            self._go_on((), sudo)
        elif response.error is not None:
            raise InputError(response.error, run=self.id)

    def skip(self, action: str, *, sudo: Sudo | None = None) -> None:
        """Pass over a failed action, and then go on."""
        response = self._response(Request(word="skip", action=action))
        if response is None or response.error == RUN_OVER:
            self._go_on(("--skip", action), sudo)
        elif response.error is not None:
            raise InputError(response.error, run=self.id)

    def resume(self, *, sudo: Sudo | None = None, attended: bool = True) -> None:
        """Go on after a crash, a reboot or a failure; what is done already is not done again.

        Where it is not `attended`, a question that nothing answers ends it.

        Raises `InputError`: "run-undone" once its undo was begun, "run-taken-back" once that was done.
        """
        self._go_on(() if attended else (UNATTENDED,), sudo)

    def undo(self, *, sudo: Sudo | None = None) -> None:
        """Take the run back, newest action first.

        Raises `InputError("undo-rehearsal")` for a rehearsal, `PreflightError("undo-later-first")` while another run holds what
        would be taken away, by what it did later.
        """
        if self.plan.target.rehearsal:
            raise InputError("undo-rehearsal", run=self.id)
        ledger.refuse_held(self._folder, self.plan, all_folders(invoking_owner()))
        self._go_on(("--undo",), sudo)

    def goes_back(self) -> int:
        """Return how many actions an undo takes back."""
        return ledger.goes_back(self._folder, self.plan)

    def goes_with_undo(self) -> tuple[str, ...]:
        """Return the folders that an undo removes with everything in them, also what others put there since."""
        return ledger.folders_that_go(self._folder, self.plan)

    def _go_on(self, words: tuple[str, ...], sudo: Sudo | None) -> None:
        if not self._folder.exists():
            raise InputError("run-vanished", run=self.id, folder=self.folder)
        state = self.state()
        if "--undo" not in words and is_taken_back(state):
            raise InputError("run-taken-back" if state.status == "undone" else "run-undone", run=self.id)
        if not self.is_ours():
            raise PrivilegeError("run-of-another", run=self.id)
        needs_root = self.plan.needs_root and not self.plan.target.rehearsal
        launch(("--run", self.id, "--turn", str(self._turns), *words), needs_root=needs_root, sudo=sudo)
