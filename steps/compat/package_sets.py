"""Packages that people want together, as complete answers: the versions are the solver's."""

from __future__ import annotations

import msgspec

from steps.catalog import frameworks as catalog
from steps.catalog.load import remembered
from steps.compat import solve
from steps.compat.case import Case
from steps.compat.groups import about_frameworks, forbidden
from steps.compat.solve import Recommendation
from steps.compat.wheels import cuda_of, variant_name
from steps.model.finding import Patch
from steps.model.machine import Machine
from steps.model.profile import Profile, answered


@remembered
def names() -> tuple[str, ...]:
    """Return the names of the sets."""
    return tuple(row.name for row in catalog.package_sets())


def named(name: str) -> catalog.PackageSet | None:
    """Return the set of a name, or `None` when there is none such."""
    return next((row for row in catalog.package_sets() if row.name == name), None)


def advised(machine: Machine, chosen: catalog.PackageSet) -> Recommendation:
    """Return the complete choices with this set in an environment of its name, or what forbids it.

    Where the set has a package to build and a card that runs it, the toolkit of PyTorch's own CUDA and the tools belong to it.
    """
    plain = solve.recommend(machine, chosen.packages)
    if plain.choices is None:
        return plain
    found = plain
    cuda = _nvcc(Case(machine, plain.choices), chosen)
    if cuda is not None and chosen.build is not None:
        built = solve.recommend(machine, (*chosen.packages, *chosen.build.tools, f"cuda=={cuda}"))
        found = built if built.choices is not None else plain
    # Its own name: what is there already, for other work, is not added to.
    return msgspec.structs.replace(found, choices=answered(found.choices or plain.choices, {"environment.name": chosen.name}))


def _nvcc(case: Case, chosen: catalog.PackageSet) -> str | None:
    """Return the CUDA line whose nvcc the set's package is built with; `None` where nothing is to be built."""
    build = chosen.build
    able = tuple(gpu.capability for gpu in case.gpus)
    if build is None or not able or any(one is None for one in able):
        return None
    least = float(build.compute_capability or 0)
    return cuda_of(variant_name(case)) if all(float(one or 0) >= least for one in able) else None


def taking(machine: Machine, answers: Profile, chosen: catalog.PackageSet) -> Patch:
    """Return what adds a set to answers: what is chosen already stays as it is."""
    case = Case(machine, answers)
    beside = solve.beside_driver(case)
    best = _beside(case, chosen, beside) if beside else advised(machine, chosen).choices
    if best is None:
        return {}
    patch = {f"frameworks.{name}": version for name, version in best.frameworks.items() if name not in answers.frameworks}
    if "torch" in answers.frameworks:
        patch.pop("frameworks.variant", None)
    if best.toolkit.cuda not in (None, "none") and answers.toolkit.cuda in (None, "none"):
        patch["toolkit.cuda"] = best.toolkit.cuda
    return patch


_OF_TORCH = ("torch", "variant", "torchvision", "torchaudio")


def _beside(case: Case, chosen: catalog.PackageSet, wishes: tuple[str, ...]) -> Profile | None:
    """Return the complete choices with this set beside the wish for a driver, `None` where there are none; of what is built see `advised`.

    Mostly it is the set as it is recommended, with PyTorch in the build that goes with the driver: that is tried before all is solved anew.
    """
    machine = case.machine
    plain, fitting = advised(machine, chosen).choices, solve.chosen(machine, wishes)
    if plain is None or fitting is None:
        return solve.chosen(machine, (*chosen.packages, *wishes))
    swapped = {name: fitting.frameworks[name] for name in _OF_TORCH if name in plain.frameworks and name in fitting.frameworks}
    found = msgspec.structs.replace(plain, driver=case.answers.driver, frameworks={**plain.frameworks, **swapped})
    cuda = _nvcc(Case(machine, found), chosen) if plain.toolkit.cuda not in (None, "none") else None
    found = answered(found, {"toolkit.cuda": cuda or "none"})
    if not forbidden(about_frameworks(Case(machine, found))):
        return found
    return solve.chosen(machine, (*chosen.packages, *wishes))


def leaving(answers: Profile, chosen: catalog.PackageSet) -> Patch:
    """Return what takes a set out of answers: the frameworks stay, and what another whole set needs too."""
    others = {name for row in catalog.package_sets() if row.name != chosen.name and is_taken(answers, row) for name in row.packages}
    tools = chosen.build.tools if chosen.build else ()
    kept = {"torch", "torchvision", *others}
    return {f"frameworks.{name}": None for name in (*chosen.packages, *tools) if name in answers.frameworks and name not in kept}


def is_taken(answers: Profile, chosen: catalog.PackageSet) -> bool:
    """Return whether the answers hold every package of a set."""
    return all(name in answers.frameworks for name in chosen.packages)
