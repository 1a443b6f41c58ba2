"""From answers to a plan: every step's actions in order, and the proof at the end."""

from __future__ import annotations

import msgspec

from steps import nccl, resources
from steps.compat.candidates import python_candidates
from steps.compat.case import Case
from steps.compat.search import common_pythons
from steps.model.action import AnyAction, Manual, Reboot, Run
from steps.model.base import phrase
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.plan import Plan, Target, distinct
from steps.model.profile import Profile, answered
from steps.registry import SETUP, steps_of

PROOF = "verify"
"""The id of the plan's last action."""
NEXT_BOOT = "next-boot"


def findings(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what every step finds for these answers, in the order of the steps, each finding once."""
    found = (finding for step in steps_of(SETUP, machine) for finding in step.check(machine, answers))
    return tuple({(one.code, one.step, one.subject): one for one in found}.values())


def make_plan(machine: Machine, answers: Profile, target: Target, made: float) -> Plan:
    """Return the plan that makes the answers true on the target; without anything to do it has no actions.

    `made` is the time of making, in seconds since the epoch.
    """
    answers = _with_python(machine, answers, target)
    actions = _reboot_last(tuple(action for step in steps_of(SETUP, machine) for action in step.actions(machine, answers, target)))
    actions = _look_before_reboot(actions, target)
    if any(not isinstance(action, Manual) for action in actions):
        actions += (_proof(actions, target),)
    return distinct(Plan(made=made, target=target, profile=answers, actions=actions))


def _with_python(machine: Machine, answers: Profile, target: Target) -> Profile:
    """Return the answers with the Python that fits their frameworks best, where they name none and none is known to be installed.

    What is installed decides else; a recorded machine has no interpreters that could be asked.
    """
    if not answers.frameworks or answers.environment.python or target.installer.pythons:
        return answers
    case = Case(machine, answers)
    fitting = python_candidates(case, common_pythons(case))
    return answered(answers, {"environment.python": fitting[0]}) if fitting else answers


def _reboot_last(actions: tuple[AnyAction, ...]) -> tuple[AnyAction, ...]:
    """Return the actions with reboots behind everything else: nothing that could go on is made to wait for one."""
    reboots = [action for action in actions if isinstance(action, Reboot)]
    others = tuple(action for action in actions if not isinstance(action, Reboot))
    needs = tuple(action.id for action in others)
    return (*others, *(msgspec.structs.replace(reboot, needs=needs) for reboot in reboots[:1]))


def _look_before_reboot(actions: tuple[AnyAction, ...], target: Target) -> tuple[AnyAction, ...]:
    """Return the actions with the next boot looked at before the reboot into a new driver: nobody is sent into one without it."""
    reboot = next((at for at, action in enumerate(actions) if isinstance(action, Reboot)), None)
    if reboot is None or target.root != "/" or not any(action.id == "driver.install" for action in actions):
        return actions
    look = Run(
        id=NEXT_BOOT,
        title=phrase("verify.action.next-boot"),
        why=phrase("verify.action.next-boot-why"),
        lane="proof",
        needs=tuple(action.id for action in actions[:reboot]),
        argv=(*resources.self_command(), "verify", "--next-boot"),
        outside=True,
        seconds=15.0,
    )
    after = msgspec.structs.replace(actions[reboot], needs=(*actions[reboot].needs, NEXT_BOOT))
    return (*actions[:reboot], look, after, *actions[reboot + 1 :])


def _proof(actions: tuple[AnyAction, ...], target: Target) -> Run:
    """Return the last action: `bringup verify`, which reads the run's own profile and leaves its document as the last line."""
    argv = (*resources.self_command(), "verify", "--of-run", *target.options)
    return Run(
        id=PROOF,
        title=phrase("verify.action.proof"),
        why=phrase("verify.action.why"),
        lane="proof",
        by="user" if target.root == "/" else "root",
        needs=tuple(action.id for action in actions),
        argv=argv,
        outside=True,
        seconds=60.0,
    )


def without_root(plan: Plan, machine: Machine) -> Plan:
    """Return the part of the plan that a person without root can run: their own actions whose needs are theirs too.

    What goes into the system's NCCL file goes into their own.
    """
    kept: dict[str, AnyAction] = {}
    own = {action.id: action for action in nccl.own_actions(machine, plan.profile, plan.target)}
    for planned in plan.actions:
        action = own.get(planned.id, planned)
        if action.by == "user" and action.id != PROOF and all(need in kept for need in action.needs):
            kept[action.id] = action
    actions = tuple(kept.values())
    return Plan(
        made=plan.made, target=plan.target, profile=plan.profile, actions=(*actions, _proof(actions, plan.target)) if actions else ()
    )
