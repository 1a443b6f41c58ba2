"""A repair as a plan of the engine: simulated, journaled, undoable, and proven by the doctor's second look."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from steps import resources
from steps.doctor.diagnosis import Diagnosis, Step
from steps.model.action import KEY, AnyAction, Manual, Reboot, Run
from steps.model.base import phrase
from steps.model.plan import Plan, Target
from steps.model.profile import Profile

PROOF = "repair.proof"
"""The id of the last action: the doctor looks again."""
_ALONE = Profile(prompts={"manual": "skip"})
"""Where nobody is there who could do what a run cannot, that is left out, and the proof says whether it was missed."""


def repair_plan(cause: Diagnosis, target: Target, made: float, *, of_run: str | None = None) -> Plan:
    """Return the plan that repairs a cause on the target; without anything that a run can do it has no actions.

    `made` is the time of making, in seconds since the epoch; `of_run` names the run that failed for this cause.
    """
    if not any(step.actions for step in _for(cause, target)):
        return Plan(made=made, target=target, profile=Profile(), actions=(), repairs=of_run)
    actions = _chained(_named(_for(cause, target)))
    proof = _proof(cause, actions, target, made)
    return Plan(made=made, target=target, profile=_ALONE, actions=(*actions, proof), repairs=of_run)


def _for(cause: Diagnosis, target: Target) -> tuple[Step, ...]:
    """Return the steps that the target can have: in a mounted system no kernel, service or card runs, and nobody is asked to type."""
    steps = cause.repair.steps
    return tuple(step for step in steps if step.actions and not step.live) if target.root != "/" else steps


def _named(steps: tuple[Step, ...]) -> Iterator[AnyAction]:
    """Yield the actions with ids that are unique in the plan."""
    seen: dict[str, int] = {}
    for step in steps:
        for action in step.actions or (_by_hand(step),):
            if action.id == KEY:
                # Who signs a key is known by this name: it wants a person.
                yield action
                continue
            name = f"repair.{action.id.removeprefix('repository.')}"
            seen[name] = seen.get(name, 0) + 1
            yield msgspec.structs.replace(action, id=name if seen[name] == 1 else f"{name}-{seen[name]}")


def _by_hand(step: Step) -> Manual:
    """Return the step as something that the run asks a person to do."""
    typed = shlex.join(step.command) if step.command else ""
    return Manual(id=step.says.key.rpartition(".")[2], title=step.says, lane="packages", text=typed or step.says)


def _chained(actions: Iterator[AnyAction]) -> tuple[AnyAction, ...]:
    """Return the actions in one line: each rests on the one before."""
    found: list[AnyAction] = []
    for action in actions:
        needs = (found[-1].id,) if found else ()
        found.append(msgspec.structs.replace(action, lane="packages", needs=needs))
    return tuple(found)


def _proof(cause: Diagnosis, actions: tuple[AnyAction, ...], target: Target, made: float) -> Run:
    """Return the last action: the doctor looks again, at what is and was said since, finds the cause no more, and runs its proof."""
    proof = ("--proof", shlex.join(cause.repair.verify.command)) if cause.repair.verify is not None else ()
    argv = (*resources.self_command(), "doctor", "--gone", cause.id, "--since", f"{made:.0f}", *proof, *target.options)
    return Run(
        id=PROOF,
        title=phrase("repair.flow.proof"),
        why=phrase("repair.flow.proof-why"),
        lane="proof",
        needs=tuple(action.id for action in actions),
        argv=argv,
        outside=True,
        seconds=5.0,
    )


def reboots(plan: Plan) -> bool:
    """Return whether the repair needs a reboot."""
    return any(isinstance(action, Reboot) for action in plan.actions)
