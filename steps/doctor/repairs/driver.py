"""Repairs of the driver's two halves."""

from __future__ import annotations

from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import REBOOT, SMI, Plan, repairs
from steps.doctor.rules.base import Candidate


@repairs("reboot-pending-after-driver-update")
def reboot(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the reboot that loads the new module: everything on disk is right already."""
    return Plan(steps=(REBOOT,), verify=SMI)
