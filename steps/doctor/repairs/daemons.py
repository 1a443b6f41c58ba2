"""Repairs of NVIDIA's daemons: the fabric manager, and the one that keeps the driver awake."""

from __future__ import annotations

import re

import msgspec

from steps.catalog import guide, package_sources
from steps.compat import persistence_plan
from steps.doctor import numbers
from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import Plan, install, made_of, manager_of, person, proof, repairs, run, service
from steps.doctor.rules.base import Candidate
from steps.model.base import phrase


@repairs("fabricmanager-not-running")
def fabric_runs(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the start of the service, after its package where that is not here; of one that runs, its restart."""
    if candidate.variant == "active":
        return Plan(steps=(run("restart-fabric", "systemctl", "restart", "nvidia-fabricmanager", live=True),), verify=proof("fabric"))
    start = service("fabric-start", "nvidia-fabricmanager.service")
    if seen.packages.named(_FABRIC):
        return Plan(steps=(start,), verify=proof("fabric"))
    return Plan(steps=(_fabric(seen, candidate), start), verify=proof("fabric"))


@repairs("fabricmanager-version-mismatch")
def fabric_fits(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the fabric manager of exactly the driver's version, and its restart."""
    restart = run("restart-fabric", "systemctl", "restart", "nvidia-fabricmanager", live=True)
    return Plan(steps=(_fabric(seen, candidate), restart), verify=proof("fabric"))


_FABRIC = r"(?:cuda-drivers-fabricmanager|nvidia-fabric-?manager)(?:-\d{3})?"


def _fabric(seen: Evidence, candidate: Candidate) -> Step:
    """Return the fabric manager of the driver's version, by the name that is installed, else by apt's; a person's where it is not known."""
    told = next((one.value for one in (*seen.versions.loaded, *seen.versions.user)), str(candidate.params.get("driver", "")))
    manager = manager_of(seen)
    here = next((row.name for row in seen.packages.named(_FABRIC)), None)
    branch = numbers.branch(told) if re.fullmatch(r"\d{3}(\.\d+)+", told) else None
    usual = package_sources.fabric_package(manager or "", branch) if branch else None
    if branch is None or manager == "pacman" or (here is None and usual is None and manager != "apt"):
        return person("fabric", version=told or "?")
    name = usual or (re.sub(r"-\d{3}$", f"-{branch}", here) if here else f"nvidia-fabricmanager-{branch}")
    # One branch's takes the place of another's.
    gone = (here,) if here and here != name else ()
    exact = f"{name}={told}-*" if manager == "apt" else f"{name}={told}"
    # Where an upgrade brought the newer one, the fitting version is a step back.
    return install("fabric", manager, exact, may_remove=gone, may_downgrade=(name,), version=told)


@repairs("persistence-off-slow-gpu-init")
def awake(seen: Evidence, candidate: Candidate) -> Plan:
    """Return what keeps the driver awake: the daemon's unit, or on Ubuntu a drop-in, for its unit leaves the mode off."""
    row = guide.idle_unit()
    off = seen.system.id in row.os and any(row.is_with(package.name) for package in seen.packages.rows if package.installed)
    actions = persistence_plan.actions("persistence", phrase("repair.step.persistence"), off=off, runs=True, optional=False)
    # The driver runs, and what turns it on is a restart of its daemon.
    return Plan(steps=(msgspec.structs.replace(made_of("persistence", actions), live=True),), verify=proof("list"))
