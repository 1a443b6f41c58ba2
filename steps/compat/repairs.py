"""The repair of a finding: the change of answers that removes it without a new error."""

from __future__ import annotations

from itertools import chain

import msgspec

from steps.compat import candidates
from steps.compat.case import Case
from steps.compat.framework_rules import wheel_findings
from steps.compat.together_rules import frameworks_conflict
from steps.compat.toolkit_rules import toolkit_findings
from steps.compat.wheels import pythons_of
from steps.model.finding import Finding, Patch
from steps.model.profile import answered

_DRIVER = {
    "gpu-needs-open-module",
    "gpu-lacks-open-module",
    "gpu-unsupported-by-driver",
    "gpu-too-new-for-driver",
    "driver-not-offered",
    "driver-end-of-life",
    "kernel-too-new-for-driver",
    "driver-absent",
}
_CUDA = {
    "gpu-unsupported-by-cuda",
    "gpu-too-new-for-cuda",
    "driver-too-old-for-cuda",
    "cuda-not-for-distro",
    "host-compiler-too-new",
    "host-glibc-too-new",
    "minor-version-compatibility",
}
_TORCH = {"wheel-lacks-gpu-kernels", "driver-too-old-for-wheel", "no-such-variant", "glibc-too-old"}
TRIES = 40
"""How many candidates a repair looks at before it gives up: hints must follow the cursor."""


def repaired(case: Case, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings, each with its repair where answers can remove it."""
    return tuple(finding if finding.fix is not None else _with(case, finding) for finding in found)


def _with(case: Case, finding: Finding) -> Finding:
    """Return a finding with its repair, or as it is."""
    if finding.severity not in ("error", "warning"):
        return finding
    fix: Patch | None = None
    if finding.code in _DRIVER:
        fix = best_driver(case)
    elif finding.code in _CUDA:
        fix = _cuda(case)
    elif finding.code in ("cudnn-cuda-mismatch", "gpu-unsupported-by-cudnn"):
        fix = _library(case, "toolkit.cudnn", candidates.cudnn_candidates(case))
    elif finding.code == "nccl-cuda-mismatch":
        fix = _library(case, "toolkit.nccl", candidates.nccl_candidates(case))
    elif finding.code in _TORCH:
        fix = _torch(case)
    elif finding.code == "no-wheel-for-python":
        fix = _python(case)
    return msgspec.structs.replace(finding, fix=fix) if fix else finding


_best: list[tuple[object, object, Patch | None]] = []
"""The best driver of the machine asked for last."""


def best_driver(case: Case) -> Patch | None:
    """Return the driver that would be recommended for these cards, or `None` when there is none."""
    ignore = case.answers.driver.ignore
    if not (_best and _best[0][0] is case.machine and _best[0][1] == ignore):
        found = candidates.driver_candidates(case.machine, answered(case.answers, {"driver.ignore": ignore}))
        _best[:] = [(case.machine, ignore, found[0] if found else None)]
    return _best[0][2]


def _cuda(case: Case) -> Patch | None:
    """Return the best toolkit line that nothing forbids, else none at all."""
    for version in candidates.cuda_candidates(case):
        patch: Patch = {"toolkit.cuda": version}
        changed = Case(case.machine, answered(case.answers, patch))
        if not any(finding.severity in ("error", "warning") for finding in toolkit_findings(changed)):
            return patch
    return {"toolkit.cuda": "none", "toolkit.cudnn": "none", "toolkit.nccl": "none"}


def _library(case: Case, key: str, versions: tuple[str, ...]) -> Patch | None:
    """Return the newest line of a library that nothing forbids."""
    for version in versions:
        changed = Case(case.machine, answered(case.answers, {key: version}))
        if not any(finding.severity == "error" for finding in toolkit_findings(changed)):
            return {key: version}
    return {key: "none"}


_torches: dict[object, Patch | None] = {}
"""The repairs found for one machine: every row of a screen asks for the same few."""
_of: list[object] = []


def _torch(case: Case) -> Patch | None:
    """Return the PyTorch that fits, from those found before for the same answers beside it."""
    if not (_of and _of[0] is case.machine):
        _of[:] = [case.machine]
        _torches.clear()
    beside = tuple((name, version) for name, version in case.answers.frameworks.items() if name != "variant")
    key = (case.answers.driver, case.answers.environment, beside)
    if key not in _torches:
        _torches[key] = _search(case)
    return _torches[key]


def _search(case: Case) -> Patch | None:
    """Return the PyTorch that fits: the wanted release in another variant if there is one, else the newest."""
    wanted = case.answers.frameworks.get("torch")
    for tries, (release, variant) in enumerate(chain(candidates.torch_candidates(case, wanted), candidates.torch_candidates(case))):
        patch: dict[str, str | None] = {"frameworks.torch": release.version, "frameworks.variant": variant}
        for name, fitting in (("torchvision", release.torchvision), ("torchaudio", release.torchaudio)):
            if name in case.answers.frameworks:
                patch[f"frameworks.{name}"] = fitting[-1] if fitting else None
        changed = Case(case.machine, answered(case.answers, patch))
        if not any(finding.severity in ("error", "warning") for finding in wheel_findings(changed) + frameworks_conflict(changed)):
            return patch
        if tries > TRIES * 4:
            break
    return None


def _python(case: Case) -> Patch | None:
    """Return the Python that all wanted frameworks have wheels for."""
    known = [pythons[0] for name in case.answers.frameworks if name != "variant" and (pythons := pythons_of(case, name)) and pythons[0]]
    found = candidates.python_candidates(case, tuple(one for one in candidates.PYTHONS if all(one in lines for lines in known)))
    return {"environment.python": found[0]} if found else None
