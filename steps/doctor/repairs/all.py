"""The repair of every diagnosis."""

from __future__ import annotations

from functools import cache

import msgspec

from steps.catalog.diagnoses import DiagnosisRow
from steps.doctor.diagnosis import Repair, Step
from steps.doctor.evidence import Evidence
from steps.doctor.repairs import cards, daemons, driver, environments, keys, kinds, modules, packages, paths, sources, specs
from steps.doctor.repairs.base import Build, person, repairers_of
from steps.doctor.repairs.table import planned, row_of
from steps.doctor.rules.base import Candidate
from steps.model.base import phrase


@cache
def repairers() -> dict[str, Build]:
    """Return the builders of all modules."""
    return repairers_of(cards, daemons, driver, environments, keys, kinds, modules, packages, paths, sources, specs)


def repair_of(seen: Evidence, row: DiagnosisRow, candidate: Candidate) -> Repair:
    """Return the repair of a diagnosis: built where something is to be decided, else the table's; with the advice to leave alone."""
    avoid = tuple(phrase(f"doctor.avoid.{key}") for key in row.avoid)
    own, told = repairers().get(row.id), row_of(row.id, candidate.variant)
    if own is not None:
        plan = own(seen, candidate)
    elif told is not None:
        plan = planned(seen, told, candidate)
    else:
        return Repair(avoid=avoid)
    steps = _on_host(plan.steps) if seen.system.container is not None and row.category in _OF_THE_HOST else plan.steps
    return Repair(steps=steps, avoid=avoid, verify=plan.verify)


_OF_THE_HOST = frozenset(("driver-mismatch", "kernel", "dkms", "nouveau", "secure-boot", "pcie-firmware", "xid", "power-thermal"))
"""Categories whose causes lie in the kernel and the cards: a container has neither of its own."""


def _on_host(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps as a person's, who does them outside of the container."""
    return (person("on-host"), *(msgspec.structs.replace(step, actions=(), undo=None) for step in steps))
