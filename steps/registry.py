"""The flows of the wizard: which steps, in which order."""

from __future__ import annotations

from typing import cast

from steps import driver, firmware, frameworks, hardware, monitoring, nccl, toolkit
from steps.model.machine import Machine
from steps.model.step import Step

SETUP: tuple[Step, ...] = cast(
    "tuple[Step, ...]",
    (hardware, firmware, driver, toolkit, nccl, frameworks, monitoring),
)
"""From bare metal to a proven stack; review, run and proof follow for every flow."""


def steps_of(flow: tuple[Step, ...], machine: Machine) -> tuple[Step, ...]:
    """Return the steps of a flow that have something to ask or to show on this machine."""
    return tuple(step for step in flow if step.applies(machine))
