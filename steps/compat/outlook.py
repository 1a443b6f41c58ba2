"""What is still possible: whether a consistent completion exists for an option, and if not the smallest set that forbids it.

An answer is a topic: the driver, a toolkit part, Python, PyTorch's variant, one framework. Some are *fixed*, the others free:
a free driver, variant, toolkit or Python may be anything that can be had, a free framework may be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from steps.catalog import stack
from steps.catalog.versions import number
from steps.compat import candidates
from steps.compat.case import Case
from steps.compat.groups import about_driver, about_frameworks, about_toolkit, everything, forbidden
from steps.compat.memory import once
from steps.compat.wheels import LINES, pythons_of
from steps.model.base import Record, Words
from steps.model.finding import Finding, Patch
from steps.model.machine import Machine
from steps.model.profile import Profile, answered

BEFORE = {"driver": (), "cuda": ("driver",), "cudnn": ("driver", "cuda"), "nccl": ("driver", "cuda", "cudnn")}
"""Which answers stand before a question in the wizard; frameworks come after all of these, then the variant, then Python."""


class Outlook(Record):
    """Whether an option can still be part of something that works.

    If not: the fewest answers that forbid it (none: the machine alone does), and what the rules say about it with these.
    """

    possible: bool
    conflict: tuple[str, ...] = ()
    facts: tuple[Words, ...] = ()
    findings: tuple[Finding, ...] = ()


def topic(key: str) -> str:
    """Return the topic of a profile key."""
    table, _, name = key.partition(".")
    return "driver" if table == "driver" else name


def topics(answers: Profile) -> tuple[str, ...]:
    """Return the topics that are answered, in the order of the wizard."""
    found = ["driver"] if answers.driver.branch or answers.driver.source == "keep" else []
    found += [name for name in ("cuda", "cudnn", "nccl") if getattr(answers.toolkit, name) not in (None, "none")]
    found += answers.frameworks
    return (*found, "python") if answers.environment.python else tuple(found)


def before(answers: Profile, question: str) -> tuple[str, ...]:
    """Return the answered topics that stand before a question: what is said later can still follow it."""
    answered_ones = topics(answers)
    if question in BEFORE:
        return tuple(one for one in answered_ones if one in BEFORE[question])
    late = ("variant", "python")
    behind = late[: late.index(question)] if question in late else ()
    return tuple(one for one in answered_ones if one != question and (one not in late or one in behind))


def outlook(machine: Machine, answers: Profile, patch: Patch, fixed: Iterable[str] | None = None) -> Outlook:
    """Return the outlook of an option; without `fixed`, the answers before the option's question bind."""
    own = {topic(key) for key in patch}
    taken = answered(answers, patch)
    question = next((one for one in own if one not in ("variant", "python")), next(iter(own), "driver"))
    binding = [one for one in (before(answers, question) if fixed is None else fixed) if one not in own]
    if exists(machine, taken, own | set(binding)):
        return Outlook(possible=True)
    conflict = _smallest(machine, taken, own, binding)
    kept = own | set(conflict)
    left = _with_driver(machine, freed(taken, kept), kept) or freed(taken, kept)
    found = _errors(Case(machine, left)) or _errors(Case(machine, _with_python(machine, left, own)))
    facts = {str(word): word for finding in found for word in finding.because}
    return Outlook(possible=False, conflict=conflict, facts=tuple(facts.values()), findings=found)


def _smallest(machine: Machine, taken: Profile, own: set[str], binding: list[str]) -> tuple[str, ...]:
    """Return the fewest of the binding topics that leave the option no completion."""
    for count in range(len(binding) + 1):
        for some in combinations(binding, count):
            if not exists(machine, taken, own | set(some)):
                return some
    return tuple(binding)


def freed(answers: Profile, kept: set[str]) -> Profile:
    """Return the answers of the kept topics only."""
    patch: dict[str, str | None] = {}
    if "driver" not in kept:
        patch |= dict.fromkeys(("driver.branch", "driver.flavor", "driver.source", "driver.server"))
    patch |= {f"toolkit.{name}": "none" for name in ("cuda", "cudnn", "nccl") if name not in kept}
    patch |= {f"frameworks.{name}": None for name in answers.frameworks if name not in kept}
    return answered(answers, patch if "python" in kept else {**patch, "environment.python": None})


def exists(machine: Machine, answers: Profile, fixed: set[str]) -> bool:
    """Return whether the fixed topics can stand together on this machine, whatever the free ones become."""
    base = _with_driver(machine, freed(answers, fixed), fixed)
    return base is not None and _toolkit_stands(machine, base, fixed) and _frameworks_stand(machine, base, fixed)


def _with_driver(machine: Machine, base: Profile, fixed: set[str]) -> Profile | None:
    """Return the answers with the driver that bears most; `None` when a fixed one is forbidden.

    A newer driver runs all that an older one runs, so the newest that can be had stands for all.
    """
    key = ("newest driver", base.driver.ignore, base.driver.console)
    patch: Patch = {} if "driver" in fixed else once(machine, key, lambda: _newest_driver(machine, base))
    # Where no driver can be had, what is there stays, and must stand.
    return answered(base, patch) if patch or not forbidden(about_driver(Case(machine, base))) else None


def _newest_driver(machine: Machine, base: Profile) -> Patch:
    """Return the newest driver that can be had; nothing to answer where there is none."""
    found = candidates.every_driver(machine, base)
    return max(found, key=lambda patch: number(Case(machine, answered(base, patch)).driver.version or ""), default={})


def _toolkit_stands(machine: Machine, base: Profile, fixed: set[str]) -> bool:
    """Return whether the fixed parts of the toolkit can be had, with any CUDA where that one is free."""
    if not fixed & {"cuda", "cudnn", "nccl"}:
        return True
    lines = (base.toolkit.cuda,) if "cuda" in fixed else tuple(stack.cudas())
    return any(not forbidden(about_toolkit(Case(machine, answered(base, {"toolkit.cuda": one})))) for one in lines)


def _frameworks_stand(machine: Machine, base: Profile, fixed: set[str]) -> bool:
    """Return whether the fixed frameworks bear each other, in any variant and with any Python where these are free."""
    if not base.frameworks:
        return True
    for profile in _variants(machine, base, fixed):
        for python in (profile.environment.python,) if "python" in fixed else _pythons(Case(machine, profile)):
            changed = Case(machine, answered(profile, {"environment.python": python}))
            if not forbidden(about_frameworks(changed)):
                return True
    return False


def _pythons(case: Case) -> tuple[str, ...]:
    """Return the Python lines that all frameworks have wheels for; one stands for all unless a NumPy is chosen too."""
    known = [pythons[0] for name in case.answers.frameworks if (pythons := pythons_of(case, name)) and pythons[0]]
    common = tuple(one for one in LINES if all(one in lines for lines in known))
    return common if "numpy" in case.answers.frameworks else common[-1:]


def _variants(machine: Machine, base: Profile, fixed: set[str]) -> Iterator[Profile]:
    """Yield the answers with each variant there is; those of the wanted PyTorch, else of JAX's extras."""
    if "variant" in fixed:
        yield base
        return
    release = Case(machine, base).torch
    names: tuple[str | None, ...] = (None, *(row.name for row in release.variant)) if release else (None, "cu126", "cu130", "cpu")
    for name in names:
        yield answered(base, {"frameworks.variant": name})


def _with_python(machine: Machine, left: Profile, own: set[str]) -> Profile:
    """Return answers that no Python suits with one that suits the option: the others then say that it does not suit them."""
    case = Case(machine, left)
    names = sorted(left.frameworks, key=lambda name: name not in own)
    line = next((pythons[0][-1] for name in names if (pythons := pythons_of(case, name)) and pythons[0]), None)
    return answered(left, {"environment.python": line})


def _errors(case: Case) -> tuple[Finding, ...]:
    """Return everything that forbids these answers."""
    return tuple(finding for finding in everything(case) if finding.severity == "error")
