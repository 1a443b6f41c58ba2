"""Before a run: what of a plan is confirmed by the indexes and by the package manager itself, and what is only in the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from steps.managers.apt_repository import BRANCH
from steps.managers.offered import gpus_of
from steps.model.action import AnyAction, Packages, Run
from steps.model.base import Words, phrase
from steps.model.finding import Finding, StepKey
from steps.model.machine import Machine, judged
from steps.model.offers import Offers, has_wheel, place_of
from steps.model.plan import Plan

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from steps.host.base import Host

_STEPS: dict[str, StepKey] = {"driver": "driver", "toolkit": "toolkit", "nccl": "nccl", "monitoring": "monitoring"}


def confirmed(machine: Machine, plan: Plan, host: Host, *, network: bool = True) -> tuple[Finding, ...]:
    """Return what could not be confirmed, one `unverified` an action, and what the indexes contradict.

    Mirrors that the profile names are asked here, unless `network` is not to be asked.
    """
    return tuple(finding for action in plan.actions for finding in _action(machine, plan, action, host, network=network))


def _action(machine: Machine, plan: Plan, action: AnyAction, host: Host, *, network: bool) -> Iterator[Finding]:
    """Yield what is to be said about one action."""
    # The lists themselves are fetched: there is no package to confirm.
    if isinstance(action, Packages) and action.install:
        reason = _packages(machine.offers, action, host)
        if reason is not None:
            yield _unverified(action, ", ".join(action.install), reason)
        yield from _cards(machine, action, host)
    elif isinstance(action, Run) and action.id == "environment.install":
        yield from _wheels(machine, plan, action)
        if network and not host.rehearsal:
            from steps.knowledge.mirrors import looked_at  # loads TLS, which most calls do not need

            yield from looked_at(machine, plan, action, host)


def _unverified(action: AnyAction, what: str, reason: Words) -> Finding:
    """Return that an action is taken from the tables alone, and why."""
    return Finding(
        code="unverified",
        severity="info",
        step=_STEPS.get(action.id.partition(".")[0], "frameworks"),
        subject=what,
        params={"action": action.id},
        because=(reason,),
    )


# --- system packages --------------------------------------------------------------------------------


def _packages(offers: Offers | None, action: Packages, host: Host) -> Words | None:
    """Return why packages could not be confirmed; `None` when the package manager itself would install them."""
    place = place_of(offers, action.install)
    if host.rehearsal:
        return None if place == "here" else phrase("general.because.rehearsed")
    if place == "added":
        return phrase("general.because.repository-later")
    from steps.managers.base import manager

    problem = manager(action.manager).simulate(action, host).problem
    if problem is None:
        return None
    # Until the repository of an earlier action is there, or the branch that it sets, its packages cannot be tried.
    if BRANCH in action.needs:
        return phrase("general.because.branch-unset")
    return phrase("general.because.repository-unread") if action.needs else problem


def _cards(machine: Machine, action: Packages, host: Host) -> Iterator[Finding]:
    """Yield the cards that the candidate driver package does not list; only Ubuntu's packages have such a list."""
    if action.manager != "apt" or host.rehearsal:
        return
    for name in (package.partition("=")[0] for package in action.install):
        listed = gpus_of(host, name) if name.startswith("nvidia-driver-") else None
        for card in judged(machine) if listed else ():
            vendor, _, device = (card.pci_id or "").partition(":")
            if device and not any(pattern.startswith(f"pci:v0000{vendor}d0000{device}") for pattern in listed or ()):
                yield Finding(
                    code="gpu-not-in-package",
                    severity="warning",
                    step="driver",
                    subject=f"{name} × {card.name or card.pci_id}",
                    params={"package": name, "card": card.name or card.pci_id or ""},
                    because=(phrase("general.because.modaliases", package=name, pci=card.pci_id or ""),),
                    source=f"apt-cache show {name}",
                )


# --- Python packages --------------------------------------------------------------------------------


def wanted(action: Run) -> tuple[Requirement, ...]:
    """Return the exact requirements of an installing action."""
    return tuple(found for word in action.argv if "==" in word and not word.startswith("-") and (found := _parsed(word)))


def _parsed(word: str) -> Requirement | None:
    from packaging.requirements import InvalidRequirement, Requirement  # 20 ms, needed only where a plan is made

    try:
        return Requirement(word)
    except InvalidRequirement:
        return None


def _wheels(machine: Machine, plan: Plan, action: Run) -> Iterator[Finding]:
    """Yield the requirements whose exact wheel for this Python and processor nobody confirmed, or that the index does not have."""
    python, arch = plan.profile.environment.python, machine.os.arch
    unsure: list[str] = []
    for one in wanted(action):
        version = str(one.specifier).lstrip("=")
        public, _, local = version.partition("+")
        has = has_wheel(machine.offers, f"{one.name}+{local}" if local else one.name, public, python, arch)
        asked = _asked_index(plan, local)
        if has is False and asked and "--find-links" not in action.argv:
            yield Finding(
                code="wheel-not-offered",
                severity="error",
                step="frameworks",
                subject=f"{one.name} {version}",
                params={"python": python or "?", "arch": arch or "?"},
                because=(phrase("general.because.index", package=one.name, version=version, python=python or "?", arch=arch or "?"),),
            )
        elif not (has and asked):
            unsure.append(f"{one.name} {version}")
    if unsure:
        reason = phrase("general.because.rehearsed" if plan.target.rehearsal else "general.because.index-unasked")
        yield _unverified(action, ", ".join(unsure), reason)


def _asked_index(plan: Plan, local: str) -> bool:
    """Return whether the index that was asked is the one the plan installs from: a profile may name others."""
    network = plan.profile.network
    return network.torch_index is None if local else network.pypi is None
