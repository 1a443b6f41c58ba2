"""Which action waits for which: what each names, the one before it in its lane, everything before a proof or a reboot."""

from __future__ import annotations

from collections.abc import Mapping

from steps.model.action import AnyAction, Lane, Reboot


def needs_of(actions: tuple[AnyAction, ...]) -> Mapping[str, tuple[str, ...]]:
    """Return for every action the ids that come before it: those it names, the one before it in its lane.

    The proof and a reboot come after all that stands before them: they concern the whole machine.
    """
    needs: dict[str, tuple[str, ...]] = {}
    last: dict[Lane, str] = {}
    barrier: tuple[str, ...] = ()
    for position, action in enumerate(actions):
        everything = isinstance(action, Reboot) or action.lane == "proof"
        own = tuple(other.id for other in actions[:position]) if everything else action.needs
        needs[action.id] = tuple(dict.fromkeys((*own, *((last[action.lane],) if action.lane in last else ()), *barrier)))
        last[action.lane] = action.id
        if isinstance(action, Reboot):
            barrier = (action.id,)
    return needs


def without(actions: tuple[AnyAction, ...], id: str) -> tuple[str, ...]:
    """Return the ids of the actions that can do nothing once this one is left out: those that name it in their needs, and theirs.

    The proof and a reboot are none of them: they concern the whole machine.
    """
    gone = [id]
    for action in actions:
        if action.lane != "proof" and not isinstance(action, Reboot) and any(need in gone for need in action.needs):
            gone.append(action.id)
    return tuple(gone[1:])
