"""What is fetched while a person still chooses: a plan of its own, which ends with this program."""

from __future__ import annotations

import msgspec

from steps.engine import client
from steps.managers.ahead import fetching
from steps.model.plan import Plan


def plan_of(plan: Plan, *, root: bool) -> Plan:
    """Return what of `plan` can be fetched before it starts; without `root` only the wheels, without actions where nothing can be."""
    return msgspec.structs.replace(plan, actions=fetching(plan, root=root), ahead=client.ourselves())


def without_root(plan: Plan) -> Plan:
    """Return the part of a fetch that needs no root."""
    return msgspec.structs.replace(plan, actions=tuple(action for action in plan.actions if action.by == "user"))
