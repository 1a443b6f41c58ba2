"""The wizard as lines on this terminal, for terminals that show no screens and for people who listen to them."""

from __future__ import annotations

import time
from collections.abc import Mapping

from steps import planning
from steps.engine.client import RunHandle
from steps.headless import choices, facts, runs
from steps.headless.console import Console
from steps.model.base import phrase
from steps.plain import PlainWizard, Quit
from steps.text import say
from tui import privilege


def plain_wizard(console: Console, environ: Mapping[str, str]) -> RunHandle | None:
    """Walk the steps, show the plan, start it; `None` when the person left before that."""
    asked = console.asked
    loaded = facts.load(asked, environ)
    dialogue = PlainWizard(loaded.machine, choices.answers_of(asked, loaded.machine), asked.language, ask, console.out)
    try:
        answers = dialogue.walk()
        plan = planning.make_plan(loaded.machine, answers, loaded.target, made=time.time())
        if plan.actions and dialogue.confirm(plan, planning.findings(loaded.machine, answers)):
            return runs.start(plan, privilege.sudo())
    except Quit:
        pass
    console.out(say(asked.language, phrase("cli.plain.left")))
    return None


def ask(prompt: str) -> str | None:
    """Return the line typed, or `None` at the end of input."""
    try:
        return input(prompt)
    except EOFError:
        return None
