"""Whether the frameworks of one environment bear each other."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from steps.catalog.versions import number
from steps.compat.case import Case
from steps.compat.findings import framework_finding
from steps.compat.framework_rules import TESTED
from steps.compat.wheels import cuda_of, jax_extra, major_of, torch_release, torch_variant, variant_name
from steps.model.base import Record, Words, phrase
from steps.model.finding import Finding, Patch

if TYPE_CHECKING:
    from packaging.requirements import Requirement

FIRST_PINNED = 12
"""The first CUDA major whose libraries come to PyTorch as packages of their own; before it they lie inside the wheel."""
FIRST_PLAIN = 13
"""The first CUDA major whose runtime package does not name it."""
_LAST = 999_999
"""A patch release past any that exists."""


class Claim(Record):
    """What a framework brings of NVIDIA's libraries: for which CUDA major, and what is known of the releases it asks for."""

    major: int
    needs: tuple[str, ...]
    source: str


def _claims(case: Case) -> dict[str, Claim]:
    """Return what each framework claims; one that holds its libraries inside, or computes on the processor, claims nothing."""
    found: dict[str, Claim] = {}
    wanted = case.answers.frameworks
    release, cuda = torch_release(case), cuda_of(variant_name(case))
    if release and cuda and number(cuda)[0] >= FIRST_PINNED:
        row = torch_variant(case)
        found["torch"] = Claim(major=number(cuda)[0], needs=torch_needs(case), source=(row and row.source) or release.source)
    flow = case.tensorflow
    if flow and flow.cuda_major and wanted.get("variant") != "cpu":
        found["tensorflow"] = Claim(major=flow.cuda_major, needs=flow.pins, source=flow.source)
    extra = jax_extra(case) if "jax" in wanted else None
    if extra:
        major = int(extra.removeprefix("cuda"))
        needs = (case.jax.needs_cuda13 if major >= FIRST_PLAIN else case.jax.needs_cuda12) if case.jax else ()
        found["jax"] = Claim(major=major, needs=needs, source=case.jax.source if case.jax else TESTED)
    return found


def torch_needs(case: Case) -> tuple[str, ...]:
    """Return what the wanted PyTorch asks for of NVIDIA's libraries, as far as it is known of this build.

    The package index's own build says it itself. Of another one it is known by its name which CUDA runtime it brings; builds
    of one release for one CUDA major pin one NCCL.
    """
    release, row, cuda = torch_release(case), torch_variant(case), cuda_of(variant_name(case))
    if release is None or cuda is None:
        return ()
    major = number(cuda)[0]
    known = release.pins if variant_name(case) == release.default_variant else row.pins if row else ()
    if not _of(known, "nccl"):
        known += tuple(pin for pin in release.pins if pin.startswith(f"nvidia-nccl-cu{major}="))
    if not _of(known, "cudnn") and row and row.cudnn:
        known += (f"nvidia-cudnn-cu{major}=={row.cudnn}.*",)
    return (*known, f"nvidia-cuda-runtime{f'-cu{major}' if major < FIRST_PLAIN else ''}=={cuda}.*")


def _of(needs: tuple[str, ...], library: str) -> bool:
    """Return whether something is known about one library."""
    return any(need.startswith(f"nvidia-{library}-") for need in needs)


def frameworks_conflict(case: Case) -> tuple[Finding, ...]:
    """Two frameworks bring different CUDA libraries into the same folders, or ask for releases that exclude each other."""
    claims = _claims(case)
    found: list[Finding] = []
    for one, other in combinations(claims, 2):
        left, right = claims[one], claims[other]
        if left.major != right.major:
            because = tuple(
                phrase("frameworks.because.brings", name=name, library=f"cudnn-cu{claim.major}, nccl-cu{claim.major}")
                for name, claim in ((one, left), (other, right))
            )
            found.append(_conflict(case, one, other, (*because, phrase("frameworks.because.folder")), TESTED))
        elif clash := _excluded(left.needs, right.needs):
            because = tuple(
                phrase("frameworks.because.brings", name=name, library=library) for name, library in zip((one, other), clash, strict=True)
            )
            found.append(_conflict(case, one, other, because, f"{left.source}; {right.source}"))
        else:
            found += _unproven(case, one, other, left, right)
    return (*found, *_exact_torch(case), *_other_cuda(case))


def _unproven(case: Case, one: str, other: str, left: Claim, right: Claim) -> tuple[Finding, ...]:
    """Return that two frameworks of one CUDA major may bear each other or not, where the pins of one are not known."""
    missing = tuple(
        phrase("frameworks.because.pins-unknown", name=_wheel(case, name), library=library)
        for name, claim, against in ((one, left, right), (other, right, left))
        for library in ("cudnn", "nccl")
        if not _of(claim.needs, library) and _of(against.needs, library)
    )
    if not missing:
        return ()
    subject = f"{_wheel(case, one)} × {_wheel(case, other)}"
    return (framework_finding("frameworks-unproven", "info", missing, f"{left.source}; {right.source}", subject, one=one, other=other),)


def _wheel(case: Case, name: str) -> str:
    """Return a wanted framework with its version, PyTorch with its build."""
    version = case.answers.frameworks.get(name, "")
    return f"{name} {version}+{variant_name(case)}" if name == "torch" and variant_name(case) else f"{name} {version}"


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
    """Return whether a release can meet both: a pin, or a pinned line, must lie in the other's range; ranges are taken to overlap."""
    for pin, span in ((one, other), (other, one)):
        for spec in pin.specifier:
            if spec.operator == "==":
                line = spec.version.removesuffix(".*")
                ends = (line,) if line == spec.version else (f"{line}.0", f"{line}.{_LAST}", *(bound.version for bound in span.specifier))
                return any(
                    spec.contains(end, prereleases=True) and span.specifier.contains(end, prereleases=True)
                    for end in ends
                    if not end.endswith("*")
                )
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
        need = next((spec for spec in map(_parsed, (*row.requires, *row.beside)) if spec and spec.name == "torch"), None)
        if need and not _contains(need, torch):
            because = (phrase("frameworks.because.wants", name=f"{row.package} {row.version}", spec=str(need)),)
            found.append(_conflict(case, "torch", row.package, because, row.source))
    return tuple(found)


def _other_cuda(case: Case) -> tuple[Finding, ...]:
    """A package compiled against one PyTorch of the package index, beside a build of it for another CUDA major, or for ROCm."""
    name, found = variant_name(case) or "", list[Finding]()
    cuda = cuda_of(name)
    if case.torch is None or not (cuda or name.startswith("rocm")):
        return ()
    for row in case.others:
        need = next((spec for spec in map(_parsed, row.requires) if spec and spec.name == "torch"), None)
        major = major_of(row.driver) if need and any(spec.operator == "==" for spec in need.specifier) else None
        if major is not None and (cuda is None or major != number(cuda)[0]):
            ours = f"torch {case.torch.version}+{name}"
            because = (
                phrase("frameworks.because.built-for", wheel=f"{row.package} {row.version}", platform=f"CUDA {major}"),
                phrase("frameworks.because.built-for", wheel=ours, platform=f"CUDA {number(cuda)[0]}" if cuda else "ROCm"),
            )
            found.append(_conflict(case, "torch", row.package, because, row.source))
    return tuple(found)


def _contains(need: Requirement, version: str) -> bool:
    """Return whether a version meets a requirement; one that cannot be read does."""
    from packaging.version import InvalidVersion, Version

    try:
        return need.specifier.contains(Version(version.partition("+")[0]), prereleases=True)
    except InvalidVersion:
        return True
