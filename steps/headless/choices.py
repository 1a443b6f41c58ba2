"""The verbs that choose: `check`, `recommend`, `plan`."""

from __future__ import annotations

import difflib
import time
from collections.abc import Mapping

import msgspec

from steps import documents, lines, planning, profiles
from steps.compat import package_sets, solve
from steps.errors import InputError, PreflightError
from steps.headless import knowing, offering
from steps.headless.console import DONE, FINDINGS, Asked, Console
from steps.headless.facts import host_of, load
from steps.host.local import LocalHost
from steps.knowledge import confirm
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.plan import Plan
from steps.model.profile import Profile


def read_profile(path: str) -> Profile:
    """Return the profile in a file; raises `InputError` when there is none, it may not be read or it is wrong."""
    here = LocalHost()
    text = here.read(path)
    if text is None and here.exists(path) is False:
        near = difflib.get_close_matches(path, package_sets.names(), n=1)
        raise InputError("profile-missing-near", file=path, near=near[0]) if near else InputError("profile-missing", file=path)
    if text is None:
        raise InputError("profile-unreadable", file=path)
    try:
        # Some editors begin a file with a byte order mark, which TOML does not know.
        return profiles.parse(text.removeprefix("\ufeff"), path)
    except RecursionError:
        raise InputError("profile-syntax", file=path, detail="nested too deeply") from None


def look_up(path: str) -> None:
    """Raise `InputError` where a profile is named that there is not, or that is wrong; needs no machine."""
    if package_sets.named(path) is None or LocalHost().exists(path) is not False:
        read_profile(path)


def chosen(path: str, machine: Machine) -> Profile:
    """Return the profile in a file, or of a set of packages by its name where there is no such file.

    Raises `InputError` as `read_profile` does, `PreflightError` for a set that cannot be had on this machine.
    """
    row = package_sets.named(path)
    if row is None or LocalHost().exists(path) is not False:
        return read_profile(path)
    advice = package_sets.advised(machine, row)
    if advice.choices is None:
        raise PreflightError("set-conflict", set=row.name, wishes=" ".join(f"--want {name}" for name in row.packages))
    return advice.choices


def answers_of(asked: Asked, machine: Machine) -> Profile:
    """Return the profile that was asked for, else the recommendation; raises `PreflightError` where none exists."""
    if asked.profile:
        return chosen(asked.profile, machine)
    advice = solve.recommend(machine)
    if advice.choices is None:
        raise PreflightError("no-recommendation")
    return advice.choices


def worst(found: tuple[Finding, ...]) -> int:
    """Return 1 when a finding is an error, else 0."""
    return FINDINGS if any(one.severity == "error" for one in found) else DONE


def check(console: Console, environ: Mapping[str, str]) -> int:
    """Print every finding; without a profile what is installed is judged."""
    known = knowing.lay(environ)
    machine = load(console.asked, environ).machine
    answers = chosen(console.asked.profile, machine) if console.asked.profile else Profile()
    found = planning.findings(machine, answers) + knowing.notices(known)
    if console.asked.json:
        console.document(documents.findings(found, console.asked.language))
    else:
        console.lines(lines.findings(found, console.asked.language))
    return worst(found)


def recommend(console: Console, environ: Mapping[str, str], wishes: tuple[str, ...]) -> int:
    """Print the recommended choices, or the conflict that forbids the wishes."""
    language = console.asked.language
    machine = load(console.asked, environ).machine
    advice = solve.recommend(machine, wishes)
    if advice.choices is not None:
        # The same that `check` and `plan` say of these choices, the hardware's shortcomings included.
        advice = msgspec.structs.replace(advice, findings=planning.findings(machine, advice.choices) + advice.notes)
    if console.asked.json:
        console.document(documents.advice(advice, language))
    else:
        console.lines(lines.advice(advice, language))
    return DONE if advice.choices is not None else FINDINGS


def made_plan(asked: Asked, environ: Mapping[str, str]) -> tuple[Plan, tuple[Finding, ...], Machine]:
    """Return the plan for the asked profile or the recommendation, its findings (also what nobody could confirm), and the machine."""
    known = knowing.lay(environ)
    loaded = load(asked, environ)
    host = host_of(asked)
    machine = offering.asked(loaded.machine, host, loaded.target.installer, environ, network=not asked.offline)
    answers = answers_of(asked, machine)
    plan = planning.make_plan(machine, answers, loaded.target, made=time.time())
    found = planning.findings(machine, answers) + confirm.confirmed(machine, plan, host, network=not asked.offline) + knowing.notices(known)
    return plan, found, machine


def plan(console: Console, environ: Mapping[str, str], shape: str) -> int:
    """Print the ordered actions; nothing is changed."""
    if shape not in ("text", "json"):
        raise InputError("format-not-yet", format=shape)
    made, found, _ = made_plan(console.asked, environ)
    if console.asked.json or shape == "json":
        console.document(documents.plan(made, found, console.asked.language))
    else:
        console.lines(lines.plan(made, found, console.asked.language, scripts=console.asked.verbose))
    return worst(found)
