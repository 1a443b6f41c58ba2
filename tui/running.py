"""Runs from the command line: start one, come back to one, and follow it to its end."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from steps import documents, lines, medical, tuning
from steps.compat.framework_plan import tries_of
from steps.doctor.diagnosis import Diagnosis
from steps.engine import client
from steps.engine.client import RunHandle
from steps.errors import BringupError, Cancelled, InputError, PreflightError
from steps.headless import ahead, choices, doctor, runs
from steps.headless.console import FINDINGS, Console
from steps.managers.makers import activation
from steps.managers.python import place
from steps.model.action import KEY
from steps.model.base import phrase
from steps.model.finding import Finding
from steps.model.plan import Plan
from steps.model.run import LOG_IN_AGAIN, is_taken_back, left_out
from steps.model.verdict import gpus_in
from steps.text import say
from tui import dialogue, privilege, terminal
from tui.follow import follow

CANCELLED = 5


def apply(asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Start the plan and follow it to its end; return the exit code."""
    language = console.asked.language
    if console.asked.profile:
        # What is wrong with it is wrong with --yes too.
        choices.look_up(console.asked.profile)
    if not console.asked.yes and (console.asked.json or not _on_terminal()):
        raise InputError("needs-yes")
    without_root = bool(asked.get("without_root"))
    plan, found = runs.prepare(console, environ, root_possible=privilege.can_be_root(), without_root=without_root)
    if not plan.actions:
        if console.asked.json:
            console.document(documents.document("apply", {"run": None, "state": "done", "exit": 0, "actions": [], "findings": []}))
        else:
            console.out(say(language, phrase("cli.nothing-to-do")))
        return 0
    if not console.asked.yes:
        console.lines(lines.plan(plan, found, language, scripts=console.asked.verbose))
        word = tuning.word_of(plan)
        prompt = phrase("cli.plain.word", word=word) if word else phrase("cli.plain.start")
        with _fetching_ahead(plan, console):
            agreed = dialogue.agreed(say(language, prompt), *((word,) if word else ("y", "yes")))
        if not agreed:
            raise Cancelled("cancelled")
    attended = _on_terminal() and not console.asked.json
    if not attended and _enrols(plan):
        raise PreflightError("key-needs-person")
    handle = runs.start(plan, privilege.sudo(), attended=attended, language=language)
    if not asked.get("detach"):
        return follow_to_end(handle, console, "apply", found=found)
    if console.asked.json:
        console.document(documents.run(handle.id, handle.plan.actions, handle.state(), found, language, "apply"))
    else:
        console.out(say(language, phrase("cli.detached", run=handle.id)))
    return 0


def _enrols(plan: Plan) -> bool:
    """Whether a person has to be there for a key: a rehearsal asks for no password and shows no console."""
    return not plan.target.rehearsal and any(action.id == KEY for action in plan.actions)


@contextlib.contextmanager
def _fetching_ahead(plan: Plan, console: Console) -> Iterator[None]:
    """Fetch while a question stands, where the profile says so: what root has to fetch only as root, for nobody is asked for it."""
    wanted = ahead.plan_of(plan, root=privilege.is_root()) if plan.profile.network.download_ahead and not plan.target.rehearsal else None
    if wanted is None or not wanted.actions:
        yield
        return
    # A machine on which another run works, or a place that is full, is said by the run itself.
    with contextlib.suppress(BringupError):
        client.start(wanted, sudo=None)
        console.err(say(console.asked.language, phrase("cli.ahead")))
    try:
        yield
    finally:
        client.stop_ahead()


def repair(asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Name what is broken, or what stopped a run, and run its repair; one that fails goes back, after a question where one can be asked."""
    language = console.asked.language
    if not console.asked.yes and (console.asked.json or not _on_terminal()):
        raise InputError("repair-needs-yes")
    stopped = client.find(asked["run"]) if asked.get("run") else None
    verdict = doctor.behind_run(stopped) if stopped is not None else doctor.examined(console.asked, tuple(asked["log"]))
    console_lines = console.err if console.asked.json else console.out
    for line in medical.lines(verdict, language):
        console_lines(line)
    if verdict.healthy:
        return 0
    made = doctor.repair_of_run(stopped.plan.target, verdict, stopped.id) if stopped else doctor.repair(console.asked, environ, verdict)
    plan = runs.allowed(console, made, (), root_possible=privilege.can_be_root())
    if not plan.actions:
        console.err(say(language, phrase("repair.flow.by-hand")))
        return FINDINGS
    code = _repaired(plan, verdict.cause, console)
    return _gone_on(stopped, console) if stopped is not None and code in (0, LOG_IN_AGAIN) else code


def _repaired(plan: Plan, cause: Diagnosis | None, console: Console) -> int:
    """Run the plan of a repair to its end, or back; return the exit code. Raises `Cancelled` where a person says no."""
    language = console.asked.language
    attended = _on_terminal() and not console.asked.json
    if not attended and _enrols(plan):
        raise PreflightError("key-needs-person")
    if not console.asked.yes:
        console.lines(("", *lines.plan(plan, None, language, scripts=console.asked.verbose)))
        if not dialogue.agreed(say(language, phrase("repair.flow.start")), "y", "yes"):
            raise Cancelled("cancelled")
    handle = runs.start(plan, privilege.sudo(), attended=attended, language=language)
    code = follow_to_end(handle, console, "apply", last=False)
    stays = code == _UNPROVEN and cause is not None and not _here(console, cause.id, plan.made)
    if code not in _ENDED and not stays and _goes_back(console):
        handle.undo(sudo=privilege.sudo())
        return follow_to_end(handle, console, "undo")
    if console.asked.json:
        console.document(documents.run(handle.id, handle.plan.actions, handle.state(), (), language, "apply"))
    return code


def _gone_on(stopped: RunHandle, console: Console) -> int:
    """Offer to go on with the run that was repaired; a yes that was given beforehand was given to the repair alone."""
    language = console.asked.language
    wanted = not console.asked.yes and dialogue.agreed(say(language, phrase("repair.flow.resume", run=stopped.id)), "y", "yes")
    if not wanted:
        console.err(say(language, phrase("repair.flow.go-on", run=stopped.id)))
        return 0
    stopped.resume(sudo=privilege.sudo())
    return follow_to_end(stopped, console, "resume")


_UNPROVEN = 20
_ENDED = (0, 5, 10, 11, 130)
"""Exit codes after which nothing is to be taken back: done, stopped by the person, waiting for a reboot or a log-in."""


def _here(console: Console, id: str, since: float) -> bool:
    """Return whether a cause is still found; a repair whose success nobody can see from here is not taken back for that."""
    return doctor.looked_again(console.asked, id, since)[0].state == "here"


def _goes_back(console: Console) -> bool:
    """Return whether a failed repair is taken back: without a question where none was wanted."""
    return console.asked.yes or dialogue.agreed(say(console.asked.language, phrase("repair.flow.undo")), "y", "yes")


def again(verb: str, asked: Mapping[str, Any], environ: Mapping[str, str], console: Console) -> int:
    """Attach to, resume or undo a run; return its exit code."""
    handle = _meant(verb, asked.get("run"))
    if verb == "undo" and not console.asked.yes and (console.asked.json or not _on_terminal()):
        raise InputError("needs-yes")
    if verb == "resume":
        handle.resume(sudo=privilege.sudo(), attended=_on_terminal() and not console.asked.json)
    elif verb == "undo" and handle.plan.target.rehearsal:
        raise InputError("undo-rehearsal", run=handle.id)
    elif verb == "undo":
        write = console.err if console.asked.json else console.out
        for path in handle.goes_with_undo():
            write(say(console.asked.language, phrase("run.ask.undo.gone", path=path)))
        if not console.asked.yes and not _confirmed_undo(handle, console):
            raise Cancelled("cancelled")
        handle.undo(sudo=privilege.sudo())
    if not asked.get("plain") and not console.asked.json and terminal.shows_screens(environ):
        from tui.app import watch

        return watch(handle, console.asked.language, no_color=bool(asked.get("no_color")), low_bandwidth=bool(asked.get("low_bandwidth")))
    return follow_to_end(handle, console, verb)


def _meant(verb: str, run_id: str | None) -> RunHandle:
    """Return the run of that name, or the one that the verb means when none was named."""
    if run_id:
        return client.find(run_id)
    return {"undo": client.find_undoable, "attach": client.find_at_work, "resume": client.find_resumable}[verb]()


def plain_wizard(console: Console, environ: Mapping[str, str]) -> int:
    """Walk the wizard as lines, and follow the run that it started; return the exit code."""
    handle = dialogue.plain_wizard(console, environ)
    return CANCELLED if handle is None else follow_to_end(handle, console, "apply")


def follow_to_end(handle: RunHandle, console: Console, verb: str, *, last: bool = True, found: tuple[Finding, ...] = ()) -> int:
    """Follow the run as lines and return its exit code; with --json one document at the end, where it is the `last` that happens.

    `found` is what was found when its plan was made, for that document.
    """
    asked = console.asked
    person = dialogue.ask if _on_terminal() and not asked.json else None
    write = console.err if asked.json else console.out
    try:
        with terminal.told_to_end():
            news = verb in ("resume", "undo")
            code = follow(handle, asked.language, write, json=asked.json, verbose=asked.verbose, news_only=news, ask=person)
    except (KeyboardInterrupt, SystemExit):
        console.err(say(asked.language, phrase("run.leaving")))
        raise
    if asked.json:
        if last:
            console.document(documents.run(handle.id, handle.plan.actions, handle.state(), found, asked.language, verb))
    elif verb != "undo":
        _say_what_came_of_it(handle, console)
        if handle.state().status == "failed" and handle.plan.repairs is None:
            _say_cause(handle, console)
    elif handle.plan.repairs is not None and handle.state().status == "undone":
        console.out(say(asked.language, phrase("repair.flow.stands", run=handle.plan.repairs)))
    return code


def _say_cause(handle: RunHandle, console: Console) -> None:
    """Write the cause of a failure in one sentence, and the command of its repair; nothing where the doctor knows of nothing."""
    language = console.asked.language
    try:
        verdict = doctor.behind_run(handle)
    except BringupError:
        # Not known, or the machine cannot be looked at: the exit code and the lines of the output stand above.
        return
    if verdict.cause is not None:
        console.out(say(language, verdict.cause.title))
        key = "runs" if doctor.repair_of_run(handle.plan.target, verdict, handle.id).actions else "types"
        console.out(say(language, phrase(f"repair.flow.{key}", run=handle.id)))


def _say_what_came_of_it(handle: RunHandle, console: Console) -> None:
    """Write the proof's rungs and how the new environment is used; of a run that was taken back nothing holds any more."""
    rungs, state = handle.verdict(), handle.state()
    if rungs is None or is_taken_back(state):
        return
    without = tuple(one.title for one in left_out(handle.plan.actions, state))
    console.lines(lines.verdict(rungs, console.asked.language, tried=True, without=without))
    environment = next((one for one in rungs if one.id == "environment" and one.state == "passed"), None)
    if environment is not None:
        line, _ = activation(place(handle.plan.profile, handle.plan.target))
        console.out(say(console.asked.language, phrase("run.plain.activate", line=line)))
        for sample in tries_of(handle.plan, gpus_in(rungs))[:1]:
            console.out(say(console.asked.language, phrase("run.plain.try", line=sample)))


def _on_terminal() -> bool:
    """Return whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _confirmed_undo(handle: RunHandle, console: Console) -> bool:
    """Ask for the typed word; nothing that cannot be taken back starts on Enter."""
    prompt = say(console.asked.language, phrase("cli.plain.undo", count=handle.goes_back(), run=handle.id))
    return dialogue.agreed(prompt, "undo")
