"""The repair of every diagnosis."""

from __future__ import annotations

from functools import cache

from steps.catalog.diagnoses import DiagnosisRow
from steps.doctor.diagnosis import Repair
from steps.doctor.evidence import Evidence
from steps.doctor.repairs import driver
from steps.doctor.repairs.base import Build, repairers_of
from steps.doctor.repairs.general import shared
from steps.doctor.rules.base import Candidate
from steps.model.base import phrase


@cache
def repairers() -> dict[str, Build]:
    """Return the builders of all modules."""
    return repairers_of(driver)


def repair_of(seen: Evidence, row: DiagnosisRow, candidate: Candidate) -> Repair:
    """Return the repair of a diagnosis: its own, else that of its kind; with the advice to leave alone."""
    own = repairers().get(row.id)
    plan = own(seen, candidate) if own else shared(seen, row.fix_class)
    verify = plan.verify or shared(seen, row.fix_class).verify
    return Repair(steps=plan.steps, avoid=tuple(phrase(f"doctor.avoid.{key}") for key in row.avoid), verify=verify)
