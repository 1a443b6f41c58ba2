"""What a repair is made of: builders by diagnosis, the kinds of repair that many share, and the proof."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from steps.doctor.diagnosis import Proof, Step
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import Candidate
from steps.model.base import Param, Record, Words, phrase


class Plan(Record):
    """The steps of a repair, the smallest change first, and its proof; a builder leaves the proof out where the usual one will do."""

    steps: tuple[Step, ...] = ()
    verify: Proof | None = None


Build = Callable[[Evidence, Candidate], Plan]


class Repairer(NamedTuple):
    """Builds the repair of certain diagnoses."""

    ids: tuple[str, ...]
    build: Build


def repairs(*ids: str) -> Callable[[Build], Repairer]:
    """Make a function the builder for these diagnoses."""

    def made(build: Build) -> Repairer:
        return Repairer(ids, build)

    return made


def repairers_of(*modules: ModuleType) -> dict[str, Build]:
    """Return the builders that the modules define, by diagnosis."""
    found = (value for module in modules for value in vars(module).values() if isinstance(value, Repairer))
    return {id: repairer.build for repairer in found for id in repairer.ids}


def step(key: str, *command: str, reboot: bool = False, undo: Words | None = None, **params: Param) -> Step:
    """Return a step that is worded `doctor.step.<key>`; without a command a person does it."""
    return Step(says=phrase(f"doctor.step.{key}", **params), command=command or None, reboot=reboot, undo=undo)


def proof(key: str, *command: str, **params: Param) -> Proof:
    """Return a proof that is worded `doctor.expect.<key>`."""
    return Proof(command=command, expect=phrase(f"doctor.expect.{key}", **params))


SMI = proof("smi", "nvidia-smi")
"""The usual proof: the driver answers."""
REBOOT = step("reboot", "systemctl", "reboot", reboot=True)
