"""Why a chosen framework is not its newest release."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from steps.catalog import frameworks as catalog
from steps.compat.case import Case
from steps.compat.findings import framework_finding
from steps.compat.groups import about_frameworks
from steps.compat.search import BESIDE, releases
from steps.compat.wishes import Wish
from steps.model.base import phrase
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.profile import Profile, answered

Found = tuple[Finding, ...]


def older_releases(machine: Machine, choices: Profile, wishes: tuple[Wish, ...]) -> Found:
    """Return what is to be said of the frameworks that nobody wished for in a version and that are not the newest we know."""
    wished = {wish.name for wish in wishes if wish.version}
    chosen = (name for name in choices.frameworks if name not in wished and releases(name) and name not in BESIDE)
    case = Case(machine, choices)
    return (*(found for name in chosen for found in _older(case, name)), *(() if "variant" in wished else _idle(case)))


def _idle(case: Case) -> Iterator[Finding]:
    """Yield why the frameworks compute on the processor although there are cards."""
    if case.answers.frameworks.get("variant") != "cpu" or not case.gpus:
        return
    bare = Case(case.machine, answered(case.answers, {"frameworks.variant": None}))
    others = chain.from_iterable(_built(case, row.version, "cu") for row in catalog.torch_releases()) if case.torch else iter((bare,))
    reason = next((one for other in others for one in about_frameworks(other) if one.severity == "error"), None)
    if reason is not None:
        name = case.gpus[0].name
        yield framework_finding("gpus-idle", "warning", reason.because, reason.source, name, name=name)


def _older(case: Case, name: str) -> Iterator[Finding]:
    """Yield why the newest release of a framework was left."""
    have, newest = case.answers.frameworks[name], releases(name)[0]
    if have == newest:
        return
    wheel = f"{name} {have}"
    instead = tuple(_in_its_place(case, name, newest))
    forbidding = (one for other in instead for one in about_frameworks(other) if one.severity == "error")
    reason = min(forbidding, key=lambda one: one.code == "no-such-variant", default=None)
    release = catalog.torch_release(newest) if name == "torch" else None
    if reason is not None:
        because, source = reason.because, reason.source
    elif release is not None and release.confidence == "low":
        because, source = (phrase("frameworks.because.inferred", wheel=f"{name} {newest}"),), release.source
    else:
        because, source = (phrase("frameworks.because.newer-first", wheel=f"{name} {newest}"),), None
    yield framework_finding("older-release", "info", because, source, wheel, wheel=wheel, newest=newest)


def _in_its_place(case: Case, name: str, newest: str) -> Iterator[Case]:
    """Yield the choices with the newest release instead, PyTorch in each of its builds for a vendor's cards."""
    if name != "torch":
        yield Case(case.machine, answered(case.answers, {f"frameworks.{name}": newest}))
        return
    yield from _built(case, newest, (case.variant or "")[:2])


def _built(case: Case, version: str, kind: str) -> Iterator[Case]:
    """Yield the choices with a release of PyTorch in each of its builds of one kind; its pairs follow it, so they are left out."""
    row = catalog.torch_release(version)
    gone = {f"frameworks.{pair}": None for pair in BESIDE if pair in case.answers.frameworks}
    for variant in row.variant if row else ():
        if variant.name.startswith(kind) and variant.name != "cpu":
            yield Case(case.machine, answered(case.answers, {**gone, "frameworks.torch": version, "frameworks.variant": variant.name}))
