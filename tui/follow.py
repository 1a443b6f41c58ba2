"""A run followed as plain lines, one fact a line, for pipes, logs and screen readers."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from steps.catalog.prompts import answer_words, prompt_row
from steps.errors import BringupError
from steps.model.action import AnyAction
from steps.model.base import Param, phrase
from steps.model.run import LOG_IN_AGAIN, RunState, is_taken_back, stays
from steps.text import Language, say, say_error
from tui.reasons import TAIL, deciding
from tui.watching import (
    ENDED,
    Quiet,
    Watched,
    about,
    background,
    cause,
    clock,
    focus,
    gone,
    of,
    progress,
    remaining,
    stillness,
    taken,
)
from tui.widgets.light_vt import plain

Write = Callable[[str], None]
"""Takes one whole line, without its end."""

LOOK = 0.25
"""Seconds between two looks at the journal."""
BEAT = 30.0
"""Seconds after which a silent run says that it is still running."""
_GONE_AFTER = 8
"""Looks without a runner before it counts as gone: one is starting in the first of them."""
_CHUNK = 65536
_NEEDS_A_PERSON = frozenset({"run.plain.asks", "run.plain.gone", "run.plain.gone-undo", "run.plain.failed"})
STOPPED, FAILED_CODE = 5, 1


def follow(
    handle: Watched,
    language: Language,
    write: Write,
    *,
    json: bool = False,
    verbose: bool = False,
    news_only: bool = False,
    ask: Callable[[str], str | None] | None = None,
    now: Callable[[], float] = time.time,
    wait: Callable[[float], object] | None = None,
) -> int:
    """Write what happens until the run ends, and return its exit code.

    With `json` only what needs a person is written (the document is the caller's); `verbose` adds every line of output;
    `news_only` leaves out what the run had done before.
    `ask` puts a question to the person and returns the line typed, `None` at the end of input; without it a question waits.
    """
    followed = _Followed(handle, language, write, quiet=json, verbose=verbose, now=now)
    if news_only:
        followed.pass_over()
    if handle.plan.target.rehearsal:
        followed.say("run.plain.rehearsal", id=handle.id)
    pause = wait or Event().wait
    while not followed.look():
        if ask is not None:
            followed.put_question(ask)
        pause(LOOK)
    return exit_code(handle.state(), followed.runner_gone)


def exit_code(state: RunState, runner_gone: bool = False) -> int:
    """Return the run's exit code: its own, or what its state means."""
    if state.exit is not None and state.status in ENDED:
        return state.exit
    if runner_gone:
        return FAILED_CODE
    return {"done": 0, "undone": 0, "reboot": 10, "cancelled": STOPPED, "failed": FAILED_CODE, "undo-failed": 22}.get(
        state.status, FAILED_CODE
    )


class _Followed:
    """What was already said of a run."""

    def __init__(self, handle: Watched, language: Language, write: Write, *, quiet: bool, verbose: bool, now: Callable[[], float]) -> None:
        self._handle = handle
        self._language: Language = language
        self._write = write
        self._silent = quiet
        self._verbose = verbose
        self._now = now
        self._said: dict[str, str] = {}
        self._status = ""
        self._prompt = self._answered = 0
        self._read: dict[str, int] = {}
        self._rest: dict[str, bytes] = {}
        self._quiet = Quiet()
        self._beat = now()
        self._without = 0
        self.runner_gone = False

    def say(self, key: str, /, **params: Param) -> None:
        """Write one line with the time before it."""
        at = self._now()
        self._beat = at
        if self._silent and key not in _NEEDS_A_PERSON:
            return
        self._write(f"{time.strftime('%H:%M:%S', time.localtime(at))}  {say(self._language, phrase(key, **params))}")

    def pass_over(self) -> None:
        """Count what the run has done so far as said."""
        for one in self._handle.state().actions.values():
            self._said[one.id] = one.status

    def look(self) -> bool:
        """Say what is new; return whether the run is over."""
        alive = self._handle.alive()
        state = self._handle.state()
        for number, action in enumerate(self._handle.plan.actions, 1):
            self._action(number, action, state)
        self._asked(state)
        if state.status != self._status:
            self._status = state.status
            self._run(state)
        if state.status in ENDED:
            return True
        self._without = 0 if alive else self._without + 1
        if gone(state, alive) and self._without >= _GONE_AFTER:
            self.runner_gone = True
            self.say("run.plain.gone-undo" if is_taken_back(state) else "run.plain.gone", id=self._handle.id)
            return True
        self._still(state)
        return False

    def _action(self, number: int, action: AnyAction, state: RunState) -> None:
        """Say where an action is, when that changed, and what it printed."""
        one = of(state, action.id)
        before = self._said.get(action.id, "waiting")
        names: dict[str, Param] = {
            "n": number,
            "total": len(self._handle.plan.actions),
            "title": say(self._language, action.title),
        }
        started = one.status in ("running", "asks") and before not in ("running", "asks")
        if started:
            self.say("run.plain.running", **names)
        if self._verbose and (one.status != "waiting" or before != "waiting"):
            self._output(action.id, whole=one.status not in ("running", "asks"))
        if one.status == before:
            return
        self._said[action.id] = one.status
        if one.status in ("running", "asks", "waiting"):
            return
        seconds = taken(one, self._now())
        word = "rehearsed" if one.status == "done" and self._handle.plan.target.rehearsal else one.status
        self.say(f"run.plain.{word}", **names, time=clock(seconds, self._language) if seconds is not None else "")
        if one.status == "failed":
            self._why(action, state)

    def _why(self, action: AnyAction, state: RunState) -> None:
        """Say why an action failed, and the lines of its output that decide it."""
        one = of(state, action.id)
        for words in (cause(action, one, self._language), background(one, self._language)):
            if words:
                self._write(f"          {words}")
        spool = self._handle.spool(action.id)
        tail = spool.read(max(0, spool.size() - TAIL), TAIL)
        for line in deciding(plain(raw) for raw in tail.split(b"\n")):
            self._write(f"          | {line}")

    def _output(self, action: str, *, whole: bool) -> None:
        """Write the lines that the action printed since the last look."""
        spool, at = self._handle.spool(action), self._read.get(action, 0)
        size = spool.size()
        while at < size:
            data = spool.read(at, min(_CHUNK, size - at))
            if not data:
                break
            at += len(data)
            *lines, rest = (self._rest.get(action, b"") + data).split(b"\n")
            self._rest[action] = rest[-_CHUNK:]
            for line in lines:
                self._write(f"          | {plain(line)}")
        self._read[action] = at
        if whole and (rest := self._rest.pop(action, b"")):
            self._write(f"          | {plain(rest)}")

    def _asked(self, state: RunState) -> None:
        """Say that the run waits for an answer, once for each question."""
        prompt = state.prompt
        if prompt is None or prompt.seq == self._prompt:
            return
        self._prompt = prompt.seq
        self.say("run.plain.asks", id=self._handle.id)
        for line in prompt.excerpt.splitlines()[-6:]:
            self._write(f"          | {plain(line.encode())}")

    def put_question(self, ask: Callable[[str], str | None]) -> None:
        """Put an open question to the person, once; secrets and dialogs want a screen and are left to `bringup attach`."""
        prompt = self._handle.state().prompt
        if prompt is None or prompt.seq == self._answered or prompt.kind in ("secret", "keys"):
            return
        self._answered = prompt.seq
        row = prompt_row(prompt.id)
        if row is not None:
            self._write(f"          {say(self._language, phrase(f'engine.prompt.{row.id}.explain'))}")
            for answer in row.answers:
                safe = say(self._language, phrase("run.plain.safe")) if answer.id == row.default else ""
                self._write(f"          {answer.id:8} {say(self._language, answer_words(row, answer))}{safe}")
        typed = ask(say(self._language, phrase("run.plain.answer")))
        if typed is None:
            return
        try:
            self._handle.answer(prompt.seq, typed.strip() or (row.default if row is not None and row.default else ""))
        except BringupError as error:
            self._write(f"          {say_error(self._language, error.code, error.params)}")
            self._answered = 0

    def _run(self, state: RunState) -> None:
        """Say that the run as a whole changed its state."""
        known = progress(self._handle.plan, state, self._now())
        time_gone = clock(known.gone, self._language)
        word: str = state.status
        if self._handle.plan.target.rehearsal:
            word = {"done": "rehearsed", "failed": "rehearsal-failed", "cancelled": "rehearsal-cancelled", "undone": "rehearsed"}.get(
                word, word
            )
        word = "login" if state.status == "done" and state.exit == LOG_IN_AGAIN else word
        word = "reboot-unit" if state.status == "reboot" and state.unit is not None else word
        what = stays(self._handle.plan.actions, state) if word == "undone" else ""
        if what:
            self.say("run.plain.run.undone-but", id=self._handle.id, what=say(self._language, what))
            return
        self.say(f"run.plain.run.{word}", id=self._handle.id, done=known.done, total=known.total, time=time_gone)

    def _still(self, state: RunState) -> None:
        """Say now and then that the run is still running, and whether its silence is normal."""
        at = self._now()
        actions = self._handle.plan.actions
        if not actions or state.status not in ("running", "undoing"):
            return
        index = focus(self._handle.plan, state)
        action, one = actions[index], of(state, actions[index].id)
        quiet = self._quiet.seconds(action.id, self._handle.spool(action.id).size(), one, at)
        if one.status != "running" or at - self._beat < BEAT:
            return
        names: dict[str, Param] = {"n": index + 1, "total": len(actions), "title": say(self._language, action.title)}
        names["time"] = clock(taken(one, at) or 0.0, self._language)
        names["left"] = remaining(self._handle.left(at), self._language) if state.status == "running" else ""
        if names["left"]:
            names["left"] = say(self._language, phrase("run.plain.left", left=names["left"]))
        if action.quiet_seconds is None or quiet < BEAT:
            self.say("run.plain.still", **names)
        elif stillness(quiet, self._handle.work(action.id), at) <= action.quiet_seconds:
            self.say("run.plain.still-quiet", **names, most=about(action.quiet_seconds, self._language))
        else:
            self.say(
                "run.plain.still-too-quiet", **names, quiet=clock(quiet, self._language), most=about(action.quiet_seconds, self._language)
            )
