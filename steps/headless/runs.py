"""The verbs that change or prove: what `apply` starts, `runs`, `verify`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steps import boot_proof, documents, lines, planning, profiles
from steps import verify as ladder
from steps.detect import summary
from steps.detect.machine import detect as detect_machine
from steps.engine import client
from steps.engine.client import RunHandle
from steps.errors import InputError, PreflightError, PrivilegeError
from steps.headless import knowing
from steps.headless.choices import chosen, made_plan
from steps.headless.console import DONE, PROOF_FAILED, Asked, Console
from steps.headless.facts import host_of, target_of
from steps.host.local import LocalHost
from steps.model.base import phrase
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.plan import Plan, Target
from steps.model.profile import Profile
from steps.model.verdict import reach
from steps.text import Language, say

Sudo = Callable[[tuple[str, ...]], int]


def prepare(
    console: Console, environ: Mapping[str, str], *, root_possible: bool, without_root: bool = False
) -> tuple[Plan, tuple[Finding, ...]]:
    """Return the plan that `apply` starts and its findings; raises what `allowed` raises."""
    made, found, machine = made_plan(console.asked, environ)
    _say_made_for(console, made.target)
    if without_root:
        _hand_on(console, made)
        made = planning.without_root(made, machine)
    return allowed(console, made, found, root_possible=root_possible), found


def _hand_on(console: Console, made: Plan) -> None:
    """Write what the administrator is to do, and what the person can do alone."""
    for line in lines.request(made, console.asked.language):
        console.err(line)


def allowed(console: Console, made: Plan, found: tuple[Finding, ...], *, root_possible: bool) -> Plan:
    """Return the plan when it may be started.

    Raises `PreflightError` for error findings and `PrivilegeError` where root is needed and cannot be had; what forbids it,
    and what to hand to the administrator, is written first, and with --json the findings as the document of a run that never was.
    """
    errors = tuple(one for one in found if one.severity == "error")
    if errors:
        for line in lines.findings(errors, console.asked.language):
            console.err(line)
        if console.asked.json:
            console.document(documents.refused(found, console.asked.language))
        raise PreflightError("plan-has-errors", count=len(errors))
    if made.needs_root and not made.target.rehearsal and not root_possible:
        _hand_on(console, made)
        raise PrivilegeError("needs-root")
    return made


def _say_made_for(console: Console, target: Target) -> None:
    """Say when the profile was written on another machine; choices that do not fit are findings, nothing is taken silently."""
    path = console.asked.profile
    made_for = profiles.made_for_line(LocalHost().read(path) or "") if path else None
    if made_for and made_for != target.summary:
        console.err(say(console.asked.language, phrase("cli.made-for", there=made_for, here=target.summary)))


def start(plan_made: Plan, sudo: Sudo | None, *, attended: bool = True, language: Language = "en") -> RunHandle:
    """Start the detached run of a plan, whose proof speaks `language`."""
    return client.start(plan_made, sudo=sudo, attended=attended, language=language)


def runs(console: Console) -> int:
    """Print the runs of this machine and how each ended."""
    found = client.runs()
    if console.asked.json:
        console.document(documents.document("runs", {"runs": [documents.summary(one, console.asked.language) for one in found]}))
    else:
        console.lines(lines.runs(found, console.asked.language))
    return DONE


def next_boot(console: Console) -> int:
    """Print what the next boot will start; 20 when the kernel that starts by itself would come up without the driver.

    The run asks this before it says "reboot".
    """
    asked = console.asked
    host = host_of(asked)
    found = boot_proof.findings(host, detect_machine(host)) or ()
    console.lines(lines.findings(found, asked.language))
    return PROOF_FAILED if any(one.severity == "error" for one in found) else DONE


def verify(console: Console, environ: Mapping[str, str], *, of_run: bool = False, burn: int = 0) -> int:
    """Prove the result and print the rungs; 20 when one failed. What could not be tried is said, and is no failure.

    As a run's last step (`of_run`) its profile is the run's, and after the readable lines the document follows in one line.
    `burn` is for how many seconds every GPU is put under full load at the end.
    """
    asked = console.asked
    # The run may have installed what only the person's own tables know.
    knowing.lay(environ)
    host = host_of(asked)
    machine = detect_machine(host)
    mark = environ.get("BRINGUP_RUN") if of_run else None
    answers = verified_profile(asked, machine, mark)
    boot = None if host.rehearsal else boot_proof.findings(host, machine)
    rungs = ladder.prove(
        host, machine, answers, target_of(asked, host, machine, environ), burn=burn, boot=boot, planned=_planned(asked, machine, mark)
    )
    found = (*planning.findings(machine, answers), *(boot or ()))
    if asked.json:
        console.document(documents.verdict(rungs, found, asked.language))
    else:
        console.lines(lines.verdict(rungs, asked.language))
        if of_run:
            console.whole(documents.encode(documents.verdict(rungs, found, asked.language), indent=-1))
    return PROOF_FAILED if reach(rungs) == "failed" else DONE


def verified_profile(asked: Asked, machine: Machine, mark: str | None) -> Profile:
    """Return the profile to prove: asked for, of the run this is part of, of the newest run, else what is installed."""
    if asked.profile:
        return chosen(asked.profile, machine)
    plan = _plan_of(mark)
    return plan.profile if plan is not None else Profile()


def _plan_of(mark: str | None) -> Plan | None:
    """Return the plan of the run that `mark` names, without one of the newest run; `None` where nothing was ever run."""
    # The engine marks the commands of a run with its id and the action's.
    if mark:
        return client.find(mark.partition("/")[0]).plan
    try:
        return client.find(None).plan
    except InputError as error:
        if error.code != "no-runs":
            raise
        return None


def _planned(asked: Asked, machine: Machine, mark: str | None) -> int | None:
    """Return how many cards were there when the plan was made; `None` where that is not known, or was on another machine."""
    if asked.profile:
        # Another machine's count is nothing to hold this one to; that it had none says for what the profile was written.
        told = profiles.made_for_line(LocalHost().read(asked.profile) or "")
        return 0 if told is not None and summary.cards_of(told, machine) == 0 else None
    plan = _plan_of(mark)
    if plan is None:
        return None
    # A rehearsed plan promises nothing of this machine.
    return 0 if plan.target.rehearsal else summary.cards_of(plan.target.summary, machine)
