"""The recommendation completed: what the solver leaves open is answered by each step's own recommended options."""

from __future__ import annotations

from collections.abc import Iterable

from steps.model.choice import Choice, Option
from steps.model.machine import Machine
from steps.model.profile import Profile, answered
from steps.model.step import Step


def completed(steps: Iterable[Step], machine: Machine, advised: Profile) -> Profile:
    """Return the advice with the recommended options of every question that it does not answer."""
    answers = advised
    for step in steps:
        for key in [choice.key for choice in step.choices(machine, answers) if choice.kind in ("one", "many") and not choice.taken]:
            answers = _with_recommended(step, key, machine, answers)
    return answers


def _with_recommended(step: Step, key: str, machine: Machine, answers: Profile) -> Profile:
    """Return the answers with the recommended options of one question; asked again after each, since a tick changes the others."""
    for value in [option.value for option in _recommended(_question(step, key, machine, answers))]:
        question = _question(step, key, machine, answers)
        option = next((option for option in _recommended(question) if option.value == value), None)
        if option is not None and question is not None and value not in question.taken:
            answers = answered(answers, option.patch)
    return answers


def _question(step: Step, key: str, machine: Machine, answers: Profile) -> Choice | None:
    """Return one question of a step, or `None` when these answers do not raise it."""
    return next((choice for choice in step.choices(machine, answers) if choice.key == key), None)


def _recommended(question: Choice | None) -> tuple[Option, ...]:
    return tuple(option for option in question.options if option.recommended and option.takeable) if question is not None else ()
