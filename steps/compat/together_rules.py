"""Whether the frameworks of one environment bear each other."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.load import remembered
from steps.catalog.versions import number
from steps.compat.case import Case
from steps.compat.framework_rules import TESTED
from steps.compat.wheels import cuda_of, jax_extra, torch_release, variant_name
from steps.model.base import Words, phrase
from steps.model.finding import Finding, Patch

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Claims = dict[str, tuple[str, ...]]
"""Requirements by framework: what each brings of NVIDIA's libraries."""


def _claims(case: Case) -> tuple[dict[str, int], Claims]:
    """Return the CUDA major that each framework brings, and its pins of NVIDIA's libraries where they are known."""
    majors: dict[str, int] = {}
    pins: Claims = {}
    wanted = case.answers.frameworks
    release, cuda = torch_release(case), cuda_of(variant_name(case))
    if release and cuda and number(cuda)[0] >= 12:
        majors["torch"] = number(cuda)[0]
        pins["torch"] = release.pins if variant_name(case) == release.default_variant else ()
    flow = next((row for row in catalog.tensorflow_releases() if row.version == wanted.get("tensorflow")), None)
    if flow and flow.cuda_major and wanted.get("variant") != "cpu":
        majors["tensorflow"], pins["tensorflow"] = flow.cuda_major, flow.pins
    extra = jax_extra(case)
    if "jax" in wanted and extra:
        majors["jax"] = int(extra.removeprefix("cuda"))
    return majors, pins


def frameworks_conflict(case: Case) -> tuple[Finding, ...]:
    """Two frameworks bring different CUDA libraries into the same folders, or ask for releases that exclude each other."""
    majors, pins = _claims(case)
    found: list[Finding] = []
    for one, other in combinations(majors, 2):
        because: tuple[Words, ...] = ()
        if majors[one] != majors[other]:
            because = tuple(
                phrase("frameworks.because.brings", name=name, library=f"cudnn-cu{majors[name]}, nccl-cu{majors[name]}")
                for name in (one, other)
            )
            because += (phrase("frameworks.because.folder"),)
        elif clash := _excluded(pins.get(one, ()), pins.get(other, ())):
            because = tuple(
                phrase("frameworks.because.brings", name=name, library=library) for name, library in zip((one, other), clash, strict=True)
            )
        if because:
            found.append(_conflict(case, one, other, because, TESTED))
    return (*found, *_exact_torch(case), *_other_cuda(case))


def _conflict(case: Case, one: str, other: str, because: tuple[Words, ...], source: str) -> Finding:
    """Return the finding; the fix leaves the second one out."""
    wanted = case.answers.frameworks
    fix: Patch = {f"frameworks.{other}": None}
    return Finding(
        code="frameworks-conflict",
        severity="error",
        step="frameworks",
        subject=f"{one} {wanted.get(one, '')} × {other} {wanted.get(other, '')}",
        params={"one": one, "other": other},
        because=because,
        source=source,
        fix=fix,
    )


def _excluded(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the first two requirements of one library that no release meets together."""
    for left in map(_parsed, one):
        for right in map(_parsed, other):
            if left and right and left.name == right.name and not _together(left, right):
                return str(left), str(right)
    return None


@cache
def _parsed(text: str) -> Requirement | None:
    """Return a requirement, or `None` when it is malformed."""
    from packaging.requirements import InvalidRequirement, Requirement  # 20 ms, needed only where two frameworks meet

    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _together(one: Requirement, other: Requirement) -> bool:
    """Return whether an exact pin of one lies inside the other's range; ranges are taken to overlap."""
    for pin, span in ((one, other), (other, one)):
        for spec in pin.specifier:
            if spec.operator == "==" and not spec.version.endswith("*"):
                return span.specifier.contains(spec.version, prereleases=True)
    return True


def _exact_torch(case: Case) -> tuple[Finding, ...]:
    """A package that wants one PyTorch exactly, or one that ours is too old for."""
    wanted = case.answers.frameworks
    torch = wanted.get("torch")
    if torch is None or not re.match(r"\d", torch):
        return ()
    found: list[Finding] = []
    for row in case.others:
        if row.package in ("torchvision", "torchaudio"):
            continue
        need = next((spec for spec in map(_parsed, row.requires) if spec and spec.name == "torch"), None)
        if need and not _contains(need, torch):
            because = (phrase("frameworks.because.wants", name=f"{row.package} {row.version}", spec=str(need)),)
            found.append(_conflict(case, "torch", row.package, because, row.source))
    return tuple(found)


def _other_cuda(case: Case) -> tuple[Finding, ...]:
    """A package compiled against one PyTorch of the package index, beside a build of it for another CUDA major: nothing links."""
    cuda, found = cuda_of(variant_name(case)), list[Finding]()
    if case.torch is None or cuda is None:
        return ()
    for row in case.others:
        need = next((spec for spec in map(_parsed, row.requires) if spec and spec.name == "torch"), None)
        major = _major_of(row.driver) if need and any(spec.operator == "==" for spec in need.specifier) else None
        if major is not None and major != number(cuda)[0]:
            because = (
                phrase("frameworks.because.built-for", wheel=f"{row.package} {row.version}", major=major),
                phrase("frameworks.because.built-for", wheel=f"torch {case.torch.version}+{variant_name(case)}", major=number(cuda)[0]),
            )
            found.append(_conflict(case, "torch", row.package, because, row.source))
    return tuple(found)


@remembered
def _major_of(driver: str | None) -> int | None:
    """Return the CUDA major whose oldest driver branch this is: a package that asks for it was built for that major."""
    floors = {number(row.minor_driver)[0]: number(row.version)[0] for row in stack.cudas().values()}
    return floors.get(number(driver or "")[0] if number(driver or "") else 0)


def _contains(need: Requirement, version: str) -> bool:
    """Return whether a version meets a requirement; one that cannot be read does."""
    from packaging.version import InvalidVersion, Version

    try:
        return need.specifier.contains(Version(version.partition("+")[0]), prereleases=True)
    except InvalidVersion:
        return True
