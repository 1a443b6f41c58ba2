"""The wizard as lines on this terminal, for terminals that show no screens and for people who listen to them."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from steps import planning
from steps.advised import completed
from steps.engine.client import RunHandle
from steps.headless import choices, facts, knowing, offering, runs
from steps.headless.console import Console
from steps.knowledge import confirm
from steps.model.base import phrase
from steps.model.machine import Machine
from steps.plain import PlainWizard, Quit
from steps.registry import SETUP, steps_of
from steps.text import say
from tui import privilege


def plain_wizard(console: Console, environ: Mapping[str, str]) -> RunHandle | None:
    """Walk the steps, show the plan, start it; `None` when the person left before that."""
    asked = console.asked
    loaded, known, host = facts.load(asked, environ), knowing.lay(environ), facts.host_of(asked)
    machine = offering.asked(loaded.machine, host, loaded.target.installer, environ, network=not asked.offline)
    answers = choices.answers_of(asked, machine)
    # The same defaults as on the screens; a profile is taken as it is.
    answers = answers if asked.profile else completed(steps_of(SETUP, machine), machine, answers)
    dialogue = PlainWizard(machine, answers, asked.language, ask, console.out)
    try:
        _say_broken(console, machine)
        answers = dialogue.walk()
        plan = planning.make_plan(machine, answers, loaded.target, made=time.time())
        found = (
            planning.findings(machine, answers) + confirm.confirmed(machine, plan, host, network=not asked.offline) + knowing.notices(known)
        )
        plan = runs.allowed(console, plan, found, root_possible=privilege.can_be_root())
        if plan.actions and dialogue.confirm(plan, found):
            return runs.start(plan, privilege.sudo(), language=asked.language)
    except Quit:
        pass
    console.out(say(asked.language, phrase("cli.plain.left")))
    return None


_BROKEN = ("not-loaded", "mismatch", "blocked", "failing")
"""States of a driver that is installed and does not work."""


def _say_broken(console: Console, machine: Machine) -> None:
    """Say that the driver does not work, and lead to the doctor; raises `Quit`. Nothing where it works, or there is none."""
    if machine.driver.state not in _BROKEN:
        return
    language = console.asked.language
    state = say(language, phrase(f"ui.driver-state.{machine.driver.state}"))
    prompt = say(language, phrase("cli.plain.broken", state=state[:1].upper() + state[1:]))
    while (typed := ask(prompt)) is not None and typed.strip() != "q":
        if typed.strip() == "d":
            from steps.headless.doctor import doctor

            doctor(console, ())
        elif not typed.strip():
            return
    raise Quit


def agreed(prompt: str, *words: str) -> bool:
    """Return whether one of `words` is typed at `prompt`; the end of input agrees to nothing."""
    return (ask(prompt) or "").strip().lower() in words


def ask(prompt: str) -> str | None:
    """Return the line typed, or `None` at the end of input."""
    try:
        return input(prompt)
    except EOFError:
        sys.stdout.write("\n")
        return None
