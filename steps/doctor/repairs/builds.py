"""Which build of a framework runs on this machine: the solver's answer for its cards, its driver and the Python of an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from steps.catalog.frameworks import TorchRelease, variant_of
from steps.catalog.stack import architecture_of
from steps.catalog.versions import line, number
from steps.compat.candidates import KEEP, NO_DRIVER, torch_candidates
from steps.compat.case import Case, installed_driver
from steps.compat.groups import about_frameworks, forbidden
from steps.compat.search import BARE
from steps.compat.wheels import cuda_of, driver_floor, has_kernels, jax_extra, pythons_for
from steps.detect.environments import environments
from steps.detect.machine import detect
from steps.doctor.events.builds import Wheel
from steps.doctor.events.python import CardUnfit
from steps.doctor.evidence import Evidence
from steps.doctor.together import all_cards
from steps.model.base import Record
from steps.model.hardware import Accelerator
from steps.model.machine import Machine, judged
from steps.model.profile import answered
from steps.model.software import Driver


class Build(Record):
    """A release of PyTorch in a variant that runs here; `driver` is what it was held against, `None` where none is known."""

    version: str
    variant: str
    driver: str | None = None
    least: str | None = None
    """The oldest driver that runs it."""
    beside: Mapping[str, str] = {}
    """What is here and made for one release of PyTorch each, in the release for this one."""


def machine_of(seen: Evidence) -> Machine:
    """Return the machine; cards that only a program named are among its cards where the bus was not seen."""
    machine = detect(seen.host.host)
    return machine if judged(machine) else msgspec.structs.replace(machine, accelerators=(*machine.accelerators, *_named(seen)))


def _named(seen: Evidence) -> Iterator[Accelerator]:
    """Yield the NVIDIA cards that messages name, with what the tables or the message tell of them."""
    for card in all_cards(seen):
        row = card.row
        yield Accelerator(
            vendor="nvidia",
            address=card.address,
            pci_id=card.pci_id,
            name=card.name,
            chip=row.chip if row else None,
            architecture=row.architecture if row else None,
            compute_capability=row.compute_capability if row else None,
        )
    for unfit in seen.all(CardUnfit):
        if unfit.capability is not None:
            yield Accelerator(vendor="nvidia", name=unfit.card, compute_capability=".".join(map(str, unfit.capability)))


def with_refused(seen: Evidence, machine: Machine) -> Machine:
    """Return the machine with the cards that a build said it has no code for, where none of such a capability was seen here.

    A log may speak of a card that is no longer in, or of another machine: the build has to have code for it all the same.
    """
    here = {card.compute_capability for card in judged(machine)}
    spelt = {unfit: ".".join(map(str, unfit.capability)) for unfit in seen.all(CardUnfit) if unfit.capability is not None}
    refused = {
        own: Accelerator(vendor="nvidia", name=unfit.card, compute_capability=own) for unfit, own in spelt.items() if own not in here
    }
    return msgspec.structs.replace(machine, accelerators=(*machine.accelerators, *refused.values()))


def least_driver(seen: Evidence, machine: Machine, path: str | None) -> str | None:
    """Return the oldest driver for these cards and a build with code for them, whatever the driver here; `None` where no build is known."""
    build = torch_build(seen, machine, path, same=False) or torch_build(
        seen, msgspec.structs.replace(machine, driver=Driver()), path, same=False
    )
    floors = [one for one in (build.least if build else None, first_branch(machine)) if one]
    return max(floors, key=number) if build and floors else None


def first_branch(machine: Machine) -> str | None:
    """Return the first branch of the driver that knows all cards of NVIDIA's; `None` where that is not known of any."""
    rows = [architecture_of(None, card.compute_capability, None) for card in judged(machine) if card.vendor == "nvidia"]
    return max((row.first_branch for row in rows if row and row.first_branch), key=number, default=None)


def cardless(seen: Evidence, machine: Machine) -> bool:
    """Return whether the bus was seen and holds no card that choices are made for."""
    return not judged(machine) and seen.cards.bus_seen


def torch_build(seen: Evidence, machine: Machine, path: str | None, *, same: bool) -> Build | None:
    """Return the build of PyTorch for this machine, or `None` when none is known to run.

    `path` is the environment, whose Python counts. With `same` it is the release that is here, if any build of that runs; the newest else.
    Where the driver is not known it is the build that asks for the oldest one.
    """
    if not judged(machine):
        return None
    case = Case(machine, answered(BARE, KEEP if installed_driver(machine)[0] else NO_DRIVER))
    wheel = seen.first(Wheel, lambda event: event.name == "torch") if same else None
    asked = re.match(r"\d+\.\d+\.\d+", wheel.version) if wheel else None
    python = python_of(seen, path)
    found = _fitting(case, asked[0] if asked else None, python) or (_fitting(case, None, python) if asked else [])
    if not found:
        return None
    if case.vendor == "nvidia" and case.driver.version is None:
        found.sort(key=lambda one: number(_floor(one[1]) or "9999"))
    release, variant = found[0]
    here = {*_inside(seen, path), *(event.name for event in seen.all(Wheel))}
    made = {"torchvision": release.torchvision, "torchaudio": release.torchaudio}
    beside = {name: versions[-1] for name, versions in made.items() if name in here and versions}
    return Build(version=release.version, variant=variant, driver=case.driver.version, least=_floor(variant), beside=beside)


def _inside(seen: Evidence, path: str | None) -> Mapping[str, str]:
    """Return what an environment holds; nothing where it is not known."""
    return next((one.frameworks for one in environments(seen.host) if path and one.path == path), {})


def _floor(variant: str) -> str | None:
    cuda = cuda_of(variant)
    return driver_floor(cuda) if cuda else None


def _fitting(case: Case, version: str | None, python: str | None) -> list[tuple[TorchRelease, str]]:
    """Return the builds of one release that nothing forbids, best first: of the first release with code for every card.

    Where none is known to have it, of the first that is not known to lack it.
    """
    for sure in (True, False):
        found: list[tuple[TorchRelease, str]] = []
        for release, variant in torch_candidates(case, version):
            if found and release.version != found[0][0].version:
                break
            if variant != "cpu" and _has_code(case, release, variant, sure=sure) and _may_be(case, release, variant, python):
                found.append((release, variant))
        if found:
            return found
    return []


def _has_code(case: Case, release: TorchRelease, variant: str, *, sure: bool) -> bool:
    """Return whether a build has code for every card; unless `sure`, whether it is not known to lack it."""
    row = variant_of(release, variant)
    if case.vendor != "nvidia" or row is None:
        return True
    said = [has_kernels(row, case.machine.os.arch, gpu) for gpu in case.kinds]
    return all(said) if sure else False not in said


def _may_be(case: Case, release: TorchRelease, variant: str, python: str | None) -> bool:
    """Return whether nothing forbids a build: the driver, the C library, the environment's Python."""
    if python and python not in pythons_for(case, release):
        return False
    whole = answered(case.answers, {"frameworks.torch": release.version, "frameworks.variant": variant, "environment.python": python})
    return not forbidden(about_frameworks(Case(case.machine, whole)))


def jax_of(machine: Machine) -> str | None:
    """Return the extra that JAX is installed with here, or `None` without a card of NVIDIA's.

    Where the driver is not known it is the one that asks for the older driver.
    """
    case = Case(machine, answered(BARE, {**KEEP, "frameworks.jax": "0"}))
    if not case.gpus:
        return None
    return "cuda12" if case.driver.version is None else jax_extra(case)


def python_of(seen: Evidence, path: str | None) -> str | None:
    """Return the Python line of an environment, or `None` when it is not known."""
    found = next((one.python for one in environments(seen.host) if path and one.path == path), None)
    return line(found) if found else None


def cuda_major(seen: Evidence, path: str | None) -> int | None:
    """Return the CUDA major of an environment's libraries, by PyTorch's build or by NVIDIA's wheels there; `None`: not known.

    What the driver could run says nothing about it.
    """
    inside = _inside(seen, path)
    versions = [inside.get("torch", ""), *(event.version for event in seen.all(Wheel) if event.name == "torch")]
    for version in versions:
        built = re.search(r"\+cu(\d{2})\d", version)
        if built:
            return int(built[1])
    names = (*inside, *(event.name for event in seen.all(Wheel)))
    majors = {int(found[1]) for name in names if (found := re.fullmatch(r"nvidia-\w+-cu(\d{2})", name))}
    return majors.pop() if len(majors) == 1 else None
