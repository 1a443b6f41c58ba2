"""Repairs of CDI specifications: each is written anew where it lies."""

from __future__ import annotations

import re

from steps.doctor import numbers
from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.facts.cdi import USUAL, specs
from steps.doctor.repairs.base import Plan, keeping, proof, repairs, run
from steps.doctor.rules.base import Candidate
from steps.model.action import RemovePath


@repairs("cdi-spec-stale")
def stale(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the specification anew; engines list the devices of a stale one too, so its files are looked at afterwards."""
    return Plan(steps=_all_anew(seen, str(candidate.params.get("old", ""))), verify=proof("cdi-files"))


@repairs("cdi-spec-not-usable")
def not_usable(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the specification anew, in a form that this machine's engine reads."""
    return Plan(steps=_all_anew(seen, ""), verify=proof("cdi"))


def _all_anew(seen: Evidence, old: str) -> tuple[Step, ...]:
    """Return the specification anew: in every file that names another driver, else in the one that counts most, else in the usual one."""
    here = specs(seen.host)
    stale = dict.fromkeys(spec.path for spec in here if spec.missing or (old and numbers.agree(spec.version, old)))
    paths = tuple(stale) or tuple(spec.path for spec in here[-1:])
    whole = tuple(path for path in paths if re.fullmatch(r"(?:/etc|/var/run|/run)/cdi/[\w.-]+", path)) or (USUAL,)
    return tuple(_anew(seen, path) for path in whole)


def _anew(seen: Evidence, path: str) -> Step:
    """Return one specification anew; undo puts the old one back, or takes the new one away where there was none."""
    there = seen.host.exists(path) is True
    gone = () if there else (RemovePath(path=path),)
    step = run("make-cdi", "nvidia-ctk", "cdi", "generate", f"--output={path}", undo=gone, live=True)
    return keeping(step, path) if there else step
