"""`verify --nodes`: the look between machines that are reached by ssh."""

from __future__ import annotations

import time
from collections.abc import Mapping

from steps import documents, lines, nodes
from steps.detect.machine import detect as detect_machine
from steps.errors import InputError, PreflightError
from steps.headless.console import DONE, PROOF_FAILED, Console
from steps.headless.facts import host_of, target_of
from steps.headless.runs import verified_profile
from steps.managers import python
from steps.model.machine import judged
from steps.model.plan import Target
from steps.model.profile import Profile


def look_between(console: Console, environ: Mapping[str, str], names: tuple[str, ...]) -> int:
    """Print the rungs between machines and how a job over all of them is started; 20 when one failed.

    Raises `InputError` for a capture or a mounted system: nothing can be reached from there.
    """
    asked = console.asked
    host = host_of(asked)
    if host.rehearsal or host.root != "/":
        raise InputError("nodes-not-here")
    machine = detect_machine(host)
    answers = verified_profile(asked, machine, None)
    where = _environment_python(answers, target_of(asked, host, machine, environ))
    interface = answers.nccl.interface if answers.nccl.interface != "auto" else None
    rungs, meeting = nodes.look(host, names, interface, where, time.time())
    failed = any(one.state == "failed" for one in rungs)
    if asked.json:
        console.document(documents.verdict(rungs, (), asked.language))
        return PROOF_FAILED if failed else DONE
    console.lines(lines.verdict(rungs, asked.language))
    if meeting is not None and not failed:
        console.lines(lines.launch(names, meeting, max(1, len(judged(machine))), asked.language))
    return PROOF_FAILED if failed else DONE


def _environment_python(answers: Profile, target: Target) -> str | None:
    """Return the interpreter of the environment; `None` when none was asked for or none can be had."""
    if not answers.frameworks and answers.environment.path is None:
        return None
    try:
        return python.place(answers, target).python
    except PreflightError:
        return None
