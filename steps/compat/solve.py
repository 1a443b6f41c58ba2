"""The judgement of answers, the recommendation, and what forbids a wish."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from steps.compat import conflict
from steps.compat.builds import builds_need_a_toolkit
from steps.compat.case import Case
from steps.compat.groups import about_driver, about_frameworks, about_toolkit, everything, forbidden
from steps.compat.memory import once
from steps.compat.newest import older_releases
from steps.compat.repairs import repaired
from steps.compat.search import solve
from steps.compat.wishes import opposed, parse
from steps.errors import InputError
from steps.model.base import Record, Words
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.profile import Profile

Found = tuple[Finding, ...]
Said = Callable[[Finding], bool]


class Recommendation(Record):
    """The complete choices with their findings; without choices the smallest conflict, and the nearest that can be met.

    `notes` say of what is not the newest release why it is not.
    """

    choices: Profile | None
    findings: Found = ()
    notes: Found = ()
    conflict: tuple[Words, ...] = ()
    nearest: Profile | None = None


def always(_: Finding) -> bool:
    """Return that a finding is wanted."""
    return True


def judge_driver(machine: Machine, profile: Profile) -> Found:
    """Return what is to be said about the driver."""
    case = Case(machine, profile)
    return repaired(case, about_driver(case))


def judge_toolkit(machine: Machine, profile: Profile, only: Said = always) -> Found:
    """Return what is to be said about CUDA, cuDNN and NCCL; `only` picks what a repair is looked for."""
    case = Case(machine, profile)
    return repaired(case, tuple(filter(only, about_toolkit(case))))


def judge_frameworks(machine: Machine, profile: Profile, only: Said = always) -> Found:
    """Return what is to be said about the frameworks and their environment; `only` picks what a repair is looked for."""
    case = Case(machine, profile)
    return repaired(case, tuple(filter(only, about_frameworks(case) + builds_need_a_toolkit(case))))


def judge(machine: Machine, profile: Profile) -> Found:
    """Return everything that is to be said about the stack that the profile comes to."""
    case = Case(machine, profile)
    return repaired(case, everything(case))


def recommend(machine: Machine, wishes: tuple[str, ...] = ()) -> Recommendation:
    """Return the best complete set of choices that meets the wishes, or what forbids it.

    Raises `InputError` for a wish that is malformed or names something that we do not know.
    """
    # Every step asks for what is recommended without wishes, at every key.
    return once(machine, ("recommended", *wishes), lambda: _recommended(machine, wishes))


def chosen(machine: Machine, wishes: tuple[str, ...]) -> Profile | None:
    """Return the best complete choices that meet the wishes without looking for what could be said about them; `None` where there are none.

    Raises what `recommend` raises.
    """
    return once(machine, ("chosen", *wishes), lambda: solve(machine, tuple(parse(text) for text in wishes)))


def beside_driver(case: Case) -> tuple[str, ...]:
    """Return the wish for the driver that the answers keep or name, where what is recommended does not run with it.

    Empty too where the driver's branch is not known, none of the tables', or nothing at all runs with it.
    """
    said, best, branch = case.answers.driver, recommend(case.machine).choices, case.driver.branch
    if best is None or branch is None or not (said.source or said.branch):
        return ()
    if not forbidden(about_frameworks(Case(case.machine, msgspec.structs.replace(best, driver=said)))):
        return ()
    wish = (f"driver=={branch}",)
    try:
        return wish if chosen(case.machine, wish) is not None else ()
    except InputError:
        return ()


def _recommended(machine: Machine, texts: tuple[str, ...]) -> Recommendation:
    """Return the choices for wishes as they were typed, or what forbids them."""
    wishes = tuple(parse(text) for text in texts)
    if (pair := opposed(wishes)) is not None:
        met = solve(machine, tuple(wish for wish in wishes if wish is not pair[0]))
        return Recommendation(choices=None, conflict=tuple(wish.text for wish in pair), nearest=met)
    choices = solve(machine, wishes)
    if choices is not None:
        return Recommendation(choices=choices, findings=judge(machine, choices), notes=older_releases(machine, choices, wishes))
    found = conflict.conflict(machine, wishes)
    return Recommendation(choices=None, findings=found.findings, conflict=found.words, nearest=found.nearest)
