"""What a rule is: a function from evidence to a candidate, one for each diagnosis of the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import NamedTuple

from steps.doctor.evidence import Evidence
from steps.doctor.told import Told
from steps.model.base import Param, Record

CERTAIN, STRONG, LIKELY, POSSIBLE, WEAK = 0.95, 0.85, 0.7, 0.5, 0.3
"""How sure the facts make it: they allow nothing else · one exotic thing else · it is the usual reading · it is one of two or three ·
only the symptom is known, and this is its most common cause."""


class Candidate(Record):
    """A cause that the evidence speaks for; `facts` decide, the weightiest first."""

    strength: float
    facts: tuple[Told, ...] = ()
    params: dict[str, Param] = {}
    """What fills the braces of the diagnosis's sentences."""
    variant: str = ""
    """Which of several sentences and repairs of the same cause: the words are `because-<variant>`."""


class Out(Record):
    """A cause that certain facts rule out; said only of look-alikes of the real one."""

    facts: tuple[Told, ...]


Answer = Candidate | Out | None
"""`None`: nothing speaks for it."""
Decide = Callable[[Evidence], Answer]


class Rule(NamedTuple):
    """The function that decides on one diagnosis."""

    id: str
    decide: Decide


def rule(id: str) -> Callable[[Decide], Rule]:
    """Make a function the rule for a diagnosis."""

    def made(decide: Decide) -> Rule:
        return Rule(id, decide)

    return made


def rules_of(*modules: ModuleType) -> tuple[Rule, ...]:
    """Return the rules that the modules define."""
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Rule))


def found(strength: float, *facts: Told | None, variant: str = "", **params: Param) -> Candidate:
    """Return a candidate; facts that are not there are left out, and a fact that is named twice counts once."""
    return Candidate(strength=strength, facts=tuple(_distinct(facts)), params=params, variant=variant)


def out(*facts: Told | None) -> Out:
    """Return that these facts speak against it."""
    return Out(facts=tuple(_distinct(facts)))


def _distinct(facts: Iterable[Told | None]) -> Iterable[Told]:
    seen: set[tuple[str, str]] = set()
    for one in facts:
        if one is not None and (one.place.source, one.place.text) not in seen:
            seen.add((one.place.source, one.place.text))
            yield one
