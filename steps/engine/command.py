"""Running one command of an action to its end, with its prompts, its time limit and the person's cancel."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from steps.catalog.prompts import UNKNOWN, prompt_row
from steps.engine.context import Context, Outcome, failed
from steps.engine.orphans import Mark, sweep
from steps.engine.prompts import Manners, PromptWatch
from steps.engine.session import Ended, NotStarted, Session
from steps.errors import BringupError
from steps.model.action import Action, Run
from steps.model.base import Phrase, phrase

TICK = 0.1
Stop = Literal["cancel", "timeout", "unanswered"]
_GRACE: tuple[tuple[float, signal.Signals | bytes], ...] = ((0.0, signal.SIGINT), (5.0, signal.SIGTERM), (10.0, signal.SIGKILL))
"""A stopped command is asked, then told, then ended: seconds after the stop, and the signal."""
_NO_ANSWER: tuple[tuple[float, signal.Signals | bytes], ...] = ((0.0, b"\x04"), (3.0, b"\x03"), *((at + 10.0, how) for at, how in _GRACE))
"""Who asks where nobody is gets an end of input, then an interrupt at the terminal: programs know how to end at those."""
_NO_PROGRAM = 127
MISSING_ANSWER = 2
"""The exit code of the contract for what should have been said beforehand."""


class Ending(Ended):
    """How a command of an action ended, and why it was stopped when it was."""

    def __init__(self, ended: Ended, stopped: Stop | None, output: str, unanswered: str | None = None) -> None:
        super().__init__(ended.status, ended.killed_by)
        self.stopped = stopped
        self.output = output
        self.unanswered = unanswered
        """The prompt that nobody was there to answer."""


class Missing(Exception):
    """There is no such program."""


def failed_by(error: BringupError | Missing | msgspec.MsgspecError | OSError, kept: Path) -> Outcome:
    """Return what an error makes of an action, whose backup lies in `kept`: it failed, and why."""
    match error:
        case BringupError():
            return failed(phrase(f"error.{error.code}.sentence", **error.params), code=error.exit_code)
        case Missing():
            return failed(phrase("engine.failed.missing", program=str(error)), exit=_NO_PROGRAM)
        case msgspec.MsgspecError():
            return failed(phrase("engine.failed.backup-damaged", path=str(kept)))
        case OSError():
            return failed(phrase("engine.failed.system", reason=error.strerror or str(error), path=str(error.filename or "")))


def at_any_time() -> bool:
    """Return `True`: a command that may be stopped whenever the person wants."""
    return True


def never() -> bool:
    """Return `False`: a command that has to end by itself, since half of what it does is worse than none of it."""
    return False


def run_command(
    context: Context,
    action: Action,
    argv: tuple[str, ...],
    *,
    environment: Mapping[str, str] | None = None,
    outside: bool = False,
    may_stop: Callable[[], bool] = at_any_time,
    handed: int | None = None,
    as_root: bool = False,
) -> Ending:
    """Return how `argv` ended; its output is in the action's spool. Raises `Missing` when there is no such program."""
    spool = context.folder.output(action.id)
    context.spool_command(action.id, argv)
    start = spool.stat().st_size
    other = context.as_other(action) and not as_root
    if context.host.root != "/" and not outside:
        argv, other = context.host.command((*context.person_prefix(), *argv) if other else argv), False
    session = _started(context, action, argv, environment or {}, as_person=other, handed=handed)
    own = {reply.prompt: reply.answer for reply in action.replies} if isinstance(action, Run) else {}
    manners = Manners(replies={**context.plan.profile.prompts, **own}, word=context.word, attended=context.attended)
    watch = PromptWatch(session, action.id, manners, context.desk, lambda row: _note(context, action.id, row))
    limit = action.timeout if isinstance(action, Run) else None
    try:
        stopped = _follow(context, session, watch, limit, may_stop)
    except BaseException:
        # A bug of ours must not cut a package manager off: it ends first, or by the person's word.
        _follow(context, session, None, limit, may_stop)
        raise
    if stopped is not None and (stopped != "unanswered" or may_stop()):
        sweep(context, action.id)
    ended = session.ended or Ended(None, signal.SIGKILL)
    with spool.open("rb") as file:
        file.seek(max(start, spool.stat().st_size - 65536))
        return Ending(ended, stopped, file.read().decode("utf-8", errors="replace"), watch.unanswered)


def _note(context: Context, action: str, row: str) -> None:
    """Say in the output which prompt was met; where there is no room the command goes on all the same."""
    with contextlib.suppress(OSError):
        context.spool_line(action, f"[bringup: {row}]")


def _started(
    context: Context, action: Action, argv: tuple[str, ...], environment: Mapping[str, str], *, as_person: bool, handed: int | None
) -> Session:
    """Return the running command, its session written down; raises `Missing` for no such program, `OSError` for one that cannot run."""
    owner, mark = context.owner, Mark(context, action.id)
    try:
        session = Session(
            argv,
            context.folder.output(action.id),
            environment=context.environment(action, environment),
            interactive=isinstance(action, Run) and action.interactive,
            user=owner if as_person else None,
            gid=owner.gid,
            folder=owner.home if as_person and Path(owner.home).is_dir() else "/",
            handed=handed,
        )
        mark.set(session.pid)
    except NotStarted as error:
        context.spool_line(action.id, f"{error}: not found" if error.status == _NO_PROGRAM else f"{error}: cannot be run: {error.reason}")
        if error.status != _NO_PROGRAM:
            # It is there: what is lacking is a terminal for it, a process, or the right to run it.
            raise error.reason from error
        raise Missing(str(error)) from error
    finally:
        mark.close()
    return session


def _follow(
    context: Context, session: Session, watch: PromptWatch | None, limit: float | None, may_stop: Callable[[], bool]
) -> Stop | None:
    """Pump the session to its end; return why it was stopped, or `None` when it ended by itself.

    Without a `watch` nobody looks for questions any more.
    """
    began = time.monotonic()
    stopped: Stop | None = None
    means = list(_GRACE)
    since = 0.0
    while session.pump(TICK):
        now = time.monotonic()
        if stopped is None and context.switches.cancelled.is_set() and may_stop():
            stopped, since = "cancel", now
        elif stopped is None and limit is not None and now - began > limit:
            stopped, since = "timeout", now
        elif stopped is None and watch is not None and watch.unanswered is not None:
            stopped, since, means = "unanswered", now, list(_NO_ANSWER)
        if stopped is None:
            if watch is not None:
                watch.look()
        elif means and now - since >= means[0][0]:
            _end(session, means.pop(0)[1])
    if watch is not None:
        watch.close()
    return stopped


def _end(session: Session, means: signal.Signals | bytes) -> None:
    """Send a signal to a command, or type."""
    if isinstance(means, bytes):
        session.send(means)
    else:
        session.signal(means)


def judge(ending: Ending) -> Outcome:
    """Return the outcome that a command's end means by itself."""
    if ending.stopped == "cancel":
        return Outcome(status="cancelled", exit=ending.code)
    if ending.stopped == "unanswered":
        row = prompt_row(ending.unanswered or UNKNOWN)
        return failed(unanswered(ending.unanswered or UNKNOWN), exit=ending.code, code=MISSING_ANSWER if row is None else row.exit)
    if ending.stopped == "timeout":
        return failed(phrase("engine.failed.timeout"), exit=ending.code)
    if ending.killed_by is not None:
        return failed(phrase("engine.failed.signal", signal=ending.killed_by), exit=ending.code)
    if ending.status:
        return failed(phrase("engine.failed.exit", status=ending.status), exit=ending.code)
    return Outcome(status="done", exit=0)


def unanswered(prompt: str) -> Phrase:
    """Return what is said when nobody was there: the key of the profile that would have answered, where there is one."""
    row = prompt_row(prompt)
    answers = None if row is None else row.profile_answers
    if answers is None:
        return phrase("engine.failed.unanswered-person", prompt=prompt)
    return phrase("engine.failed.unanswered", key=f"prompts.{prompt}", answers=" | ".join(f'"{answer}"' for answer in answers) or '"…"')
