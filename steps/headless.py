"""The verbs of the command line without a screen: each returns its exit code and writes through a `Console`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import msgspec

from steps import documents, lines, planning, profiles
from steps.compat import solve
from steps.detect.machine import detect as detect_machine
from steps.detect.summary import headline
from steps.engine import client
from steps.engine.client import RunHandle
from steps.errors import InputError, PreflightError, PrivilegeError
from steps.host.base import Host
from steps.host.local import LocalHost
from steps.host.opening import open_host
from steps.managers import installer
from steps.model.base import Record, phrase
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.plan import Plan, Target
from steps.model.profile import Profile
from steps.text import Language, say

Write = Callable[[str], None]
Sudo = Callable[[tuple[str, ...]], int]
DONE, FINDINGS, USAGE, PROOF_FAILED = 0, 1, 2, 20


class Asked(Record):
    """What the command line asked for, common to all verbs."""

    machine: str | None = None
    root: str | None = None
    profile: str | None = None
    json: bool = False
    language: Language = "en"
    yes: bool = False
    verbose: bool = False


class Loaded(Record):
    """A machine that was looked at, and what its actions would change."""

    machine: Machine
    target: Target


class Console:
    """Where a verb writes: facts to `out`, messages to `err`."""

    def __init__(self, asked: Asked, out: Write, err: Write) -> None:
        self.asked = asked
        self.out = out
        self.err = err

    def document(self, shape: documents.Document) -> None:
        """Write one JSON document."""
        self.out(documents.encode(shape))

    def lines(self, written: lines.Lines) -> None:
        """Write readable lines."""
        for line in written:
            self.out(line)


def host_of(asked: Asked) -> Host:
    """Return the door to the machine that was asked for."""
    return open_host(asked.machine, asked.root)


def load(asked: Asked, environ: Mapping[str, str]) -> Loaded:
    """Look at the machine and return its facts and the target of actions."""
    host = host_of(asked)
    machine = detect_machine(host)
    return Loaded(machine=machine, target=target_of(asked, host, machine, environ))


def target_of(asked: Asked, host: Host, machine: Machine, environ: Mapping[str, str]) -> Target:
    """Return what the actions would change, and how Python packages are fetched for it."""
    owner = client.invoking_owner()
    return Target(
        root=host.root,
        rehearsal=host.rehearsal,
        machine=asked.machine,
        name=host.name,
        summary=headline(machine),
        kernel=machine.os.kernel,
        installer=installer.settings(host, environ, home=owner.home, user=owner.name, uid=owner.uid),
    )


def read_profile(path: str) -> Profile:
    """Return the profile in a file; raises `InputError` when there is none or it is wrong."""
    text = LocalHost().read(path)
    if text is None:
        raise InputError("profile-missing", file=path)
    return profiles.parse(text, path)


def answers_of(asked: Asked, machine: Machine) -> Profile:
    """Return the profile that was asked for, else the recommendation; raises `PreflightError` where none exists."""
    if asked.profile:
        return read_profile(asked.profile)
    advice = solve.recommend(machine)
    if advice.choices is None:
        raise PreflightError("no-recommendation")
    return advice.choices


def worst(found: tuple[Finding, ...]) -> int:
    """Return 1 when a finding is an error, else 0."""
    return FINDINGS if any(one.severity == "error" for one in found) else DONE


def detect(console: Console) -> int:
    """Print the facts."""
    machine = detect_machine(host_of(console.asked))
    if console.asked.json:
        console.document(documents.machine(machine, console.asked.language))
    else:
        console.lines(lines.facts(machine, console.asked.language))
    return DONE


def check(console: Console) -> int:
    """Print every finding; without a profile what is installed is judged."""
    machine = detect_machine(host_of(console.asked))
    answers = read_profile(console.asked.profile) if console.asked.profile else Profile()
    found = planning.findings(machine, answers)
    if console.asked.json:
        console.document(documents.findings(found, console.asked.language))
    else:
        console.lines(lines.findings(found, console.asked.language))
    return worst(found)


def recommend(console: Console, wishes: tuple[str, ...]) -> int:
    """Print the recommended choices, or the conflict that forbids the wishes."""
    language = console.asked.language
    advice = solve.recommend(detect_machine(host_of(console.asked)), wishes)
    if console.asked.json:
        console.document(documents.advice(advice, language))
    else:
        console.lines(lines.advice(advice, language))
    return DONE if advice.choices is not None else FINDINGS


def made_plan(asked: Asked, environ: Mapping[str, str]) -> tuple[Plan, tuple[Finding, ...]]:
    """Return the plan for the asked profile or the recommendation, and its findings."""
    loaded = load(asked, environ)
    answers = answers_of(asked, loaded.machine)
    plan = planning.make_plan(loaded.machine, answers, loaded.target, made=time.time())
    return plan, planning.findings(loaded.machine, answers)


def plan(console: Console, environ: Mapping[str, str], shape: str) -> int:
    """Print the ordered actions; nothing is changed."""
    if shape not in ("text", "json"):
        raise InputError("format-not-yet", format=shape)
    made, found = made_plan(console.asked, environ)
    if console.asked.json or shape == "json":
        console.document(documents.plan(made, found, console.asked.language))
    else:
        console.lines(lines.plan(made, found, console.asked.language))
    return worst(found)


def prepare(console: Console, environ: Mapping[str, str], *, root_possible: bool, without_root: bool = False) -> Plan:
    """Return the plan that `apply` starts; raises for error findings, and where root is needed and cannot be had."""
    made, found = made_plan(console.asked, environ)
    _say_made_for(console, made.target)
    errors = [one for one in found if one.severity == "error"]
    if errors:
        for line in lines.findings(tuple(errors), console.asked.language):
            console.err(line)
        raise PreflightError("plan-has-errors", count=len(errors))
    if without_root:
        made = planning.without_root(made)
    if made.needs_root and not made.target.rehearsal and not root_possible:
        for line in lines.request(made, console.asked.language):
            console.err(line)
        raise PrivilegeError("needs-root")
    return made


def _say_made_for(console: Console, target: Target) -> None:
    """Say when the profile was written on another machine; choices that do not fit are findings, nothing is taken silently."""
    path = console.asked.profile
    made_for = profiles.made_for_line(LocalHost().read(path) or "") if path else None
    if made_for and made_for != target.summary:
        console.err(say(console.asked.language, phrase("cli.made-for", there=made_for, here=target.summary)))


def start(plan_made: Plan, sudo: Sudo | None) -> RunHandle:
    """Start the detached run of a plan."""
    return client.start(plan_made, sudo=sudo)


def runs(console: Console) -> int:
    """Print the runs of this machine and how each ended."""
    found = client.runs()
    if console.asked.json:
        console.document(documents.document("runs", {"runs": [documents.summary(one) for one in found]}))
    else:
        console.lines(lines.runs(found, console.asked.language))
    return DONE


def verify(console: Console, environ: Mapping[str, str]) -> int:
    """Prove the result and print the rungs; 20 when one failed."""
    from steps import verify as ladder

    asked = console.asked
    host = host_of(asked)
    machine = detect_machine(host)
    answers = _verified_profile(asked, environ)
    rungs = ladder.prove(host, machine, answers, target_of(asked, host, machine, environ))
    found = planning.findings(machine, answers)
    if asked.json:
        console.document(documents.verdict(rungs, found, asked.language))
    else:
        console.lines(lines.verdict(rungs, asked.language))
    return PROOF_FAILED if any(one.state == "failed" for one in rungs) else DONE


def _verified_profile(asked: Asked, environ: Mapping[str, str]) -> Profile:
    """Return the profile to prove: asked for, of the run this is part of, of the newest run, else what is installed."""
    if asked.profile:
        return read_profile(asked.profile)
    if folder := environ.get("BRINGUP_RUN"):
        return client.at(folder).plan.profile
    if client.runs():
        return client.find(None).plan.profile
    return Profile()


def capture(console: Console, path: str) -> int:
    """Record this machine into a capture file, redacted."""
    from steps.detect.capture import record

    host = host_of(console.asked)
    data = record(host)
    LocalHost().write_bytes(path, data, 0o644)
    console.err(say(console.asked.language, phrase("cli.captured", file=path, kilobytes=len(data) // 1024)))
    return DONE


def knowledge(console: Console) -> int:
    """Print what is known, how old, from where."""
    from steps.catalog import tables

    known = tables.all_tables()
    if console.asked.json:
        console.document(documents.document("knowledge", {"tables": [msgspec.to_builtins(one) for one in known]}))
    else:
        console.lines(lines.knowledge(known, console.asked.language))
    return DONE
