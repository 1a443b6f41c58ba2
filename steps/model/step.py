"""What a step of the wizard is: pure functions of a machine and of the answers so far."""

from __future__ import annotations

from typing import Protocol

from steps.model.action import AnyAction
from steps.model.base import Words
from steps.model.choice import Choice
from steps.model.finding import Finding, StepKey
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.model.profile import Profile


class Step(Protocol):
    """One step; each step is a module with these names. Titles are `<key>.title`, the short name `<key>.name`."""

    @property
    def KEY(self) -> StepKey:
        """The step's key."""
        ...

    def applies(self, machine: Machine) -> bool:
        """Whether the step has anything to ask or to show on this machine."""
        ...

    def intro(self, machine: Machine, answers: Profile) -> Words:
        """Return the one sentence of context under the title (at most 76 cells)."""
        ...

    def choices(self, machine: Machine, answers: Profile) -> tuple[Choice, ...]:
        """Return the questions, each option with its findings."""
        ...

    def check(self, machine: Machine, answers: Profile) -> tuple[Finding, ...]:
        """Return every finding of this step for these answers, `ok` ones included."""
        ...

    def actions(self, machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
        """Return what makes the answers true; empty when nothing is to be done."""
        ...
