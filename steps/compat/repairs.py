"""The repair of a finding: the change of answers that removes it without a new error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice

import msgspec

from steps.catalog import frameworks as catalog
from steps.compat import candidates, library_rules
from steps.compat.case import Case
from steps.compat.groups import about_driver, about_frameworks, about_toolkit, errors, everything, forbidden
from steps.compat.memory import once
from steps.compat.wheels import LINES, pythons_for, pythons_of
from steps.model.finding import Finding, Patch
from steps.model.profile import Profile, answered

Found = tuple[Finding, ...]
TRIES = 32
"""How many changes a repair looks at before it gives up: hints must follow the cursor."""
BUILDS = 3
"""How many builds of PyTorch, or lines of a library, are held ready for repairs."""
ROUNDS = 3
"""How often what a change breaks is mended in turn."""
NONE: Patch = {"toolkit.cuda": "none", "toolkit.cudnn": "none", "toolkit.nccl": "none"}
PAIR = ("torchvision", "torchaudio")


def repaired(case: Case, found: Found) -> Found:
    """Return the findings, each with its repair where answers can remove it."""
    return tuple(_with(case, finding) if finding.severity in ("error", "warning") else finding for finding in found)


def _with(case: Case, finding: Finding) -> Finding:
    """Return a finding with a repair that holds, or with none."""
    ways = _WAYS.get(finding.code)
    if ways is None and finding.fix is None:
        return finding
    if finding.step != "driver" and finding.fix is None and forbidden(about_driver(case)):
        # What would suit a driver that cannot be had suits nobody: its own repair comes first.
        return finding
    key = ("repair", finding.code, finding.subject, *_key(case.answers))
    fix = once(case.machine, key, lambda: _repair(case, finding, ways))
    return msgspec.structs.replace(finding, fix=fix) if fix != finding.fix else finding


def _key(answers: Profile) -> tuple[object, ...]:
    """Return the answers that the stack depends on, as something to be looked up by."""
    return (answers.driver, answers.toolkit, answers.environment, tuple(answers.frameworks.items()))


def _repair(case: Case, finding: Finding, ways: Callable[[Case, Finding], Iterator[Patch]] | None) -> Patch | None:
    """Return the first change that removes a finding and raises no error, mending what it breaks if it must."""
    own: tuple[Patch, ...] = (finding.fix,) if finding.fix is not None else ()
    tried: list[Patch] = []
    for patch in islice(chain(own, ways(case, finding) if ways else ()), TRIES):
        tried.append(patch)
        if _holds(case, finding, patch):
            return patch
    # A catch is not worth other answers; what cannot work is.
    for patch in tried[:ROUNDS] if finding.severity == "error" else ():
        mended = _mended(case, patch)
        if mended is not None and _holds(case, finding, mended):
            return mended
    return None


def _holds(case: Case, finding: Finding, patch: Patch) -> bool:
    """Return whether a change removes the finding and raises no error that was not there."""
    group = _GROUPS[finding.step]
    changed = Case(case.machine, answered(case.answers, patch))
    # Its own group first: most changes that do not help fail there, and what the others found before is rarely asked for.
    own, before = group(changed), errors(group(case))
    if any(one.code == finding.code and one.severity in ("error", finding.severity) for one in own):
        return False
    after = errors(everything(changed))
    return after <= before or after <= errors(everything(case))


_GROUPS: dict[str, Callable[[Case], Found]] = {"driver": about_driver, "toolkit": about_toolkit, "frameworks": about_frameworks}


def _mended(case: Case, patch: Patch) -> Patch | None:
    """Return a change together with what repairs the errors it raises; `None` when one has no repair."""
    whole, before = dict(patch), errors(everything(case))
    for _ in range(ROUNDS):
        changed = Case(case.machine, answered(case.answers, whole))
        broken = next((one for one in everything(changed) if one.severity == "error" and one.code not in before), None)
        if broken is None:
            return whole
        ways = _WAYS.get(broken.code)
        steps = islice(ways(changed, broken), TRIES) if ways else iter(())
        mend = next((step for step in steps if _holds(changed, broken, step)), broken.fix)
        if mend is None:
            return None
        whole |= mend
    return None


# --- ways -----------------------------------------------------------------------------------------


def best_driver(case: Case) -> Patch | None:
    """Return the driver that would be recommended for these cards, or `None` when there is none."""
    return next(iter(_ranked(case)), None)


def _ranked(case: Case) -> tuple[Patch, ...]:
    """Return the drivers that can be had for these cards, best first."""
    driver = case.answers.driver
    return once(case.machine, ("drivers", driver.ignore, driver.console), lambda: candidates.driver_candidates(case.machine, case.answers))


def _drivers(case: Case, _: Finding) -> Iterator[Patch]:
    """Yield the drivers that can be had, best first."""
    yield from _ranked(case)


def _supported(case: Case, _: Finding) -> Iterator[Patch]:
    """Yield the drivers that can be had and still get fixes, best first; none for cards whose last branch has ended."""

    def fresh(patch: Patch) -> bool:
        changed = Case(case.machine, answered(case.answers, patch))
        return not any(finding.code == "driver-end-of-life" for finding in about_driver(changed))

    yield from once(
        case.machine, ("supported", case.answers.driver.ignore, case.answers.driver.console), lambda: tuple(filter(fresh, _ranked(case)))
    )


def _cudas(case: Case, _: Finding) -> Iterator[Patch]:
    """Yield the toolkit lines without a catch, best first, with libraries that fit; at last no toolkit at all."""
    wanted = case.answers.toolkit
    clean = once(case.machine, ("lines", case.answers.driver), lambda: _clean_lines(case))
    for version in (one for one in candidates.cuda_candidates(case) if one in clean):
        patch: dict[str, str | None] = {"toolkit.cuda": version}
        changed = Case(case.machine, answered(case.answers, patch))
        for name, lines in (("cudnn", candidates.cudnn_candidates), ("nccl", candidates.nccl_candidates)):
            if getattr(wanted, name) not in (None, "none") and errors(about_toolkit(changed)):
                patch[f"toolkit.{name}"] = next(iter(lines(changed)), "none")
        yield patch
    yield NONE


def _clean_lines(case: Case) -> frozenset[str]:
    """Return the toolkit lines without a catch for this driver."""
    alone = [
        (line, Case(case.machine, answered(case.answers, {**NONE, "toolkit.cuda": line}))) for line in candidates.cuda_candidates(case)
    ]
    return frozenset(line for line, one in alone if not any(finding.severity in ("error", "warning") for finding in about_toolkit(one)))


def _cudnns(case: Case, _: Finding) -> Iterator[Patch]:
    """Yield the cuDNN lines, newest first; at last none."""
    yield from _libraries(case, "cudnn", candidates.cudnn_candidates(case))


def _nccls(case: Case, _: Finding) -> Iterator[Patch]:
    """Yield the NCCL lines, newest first; at last none."""
    yield from _libraries(case, "nccl", candidates.nccl_candidates(case))


def _libraries(case: Case, name: str, lines: tuple[str, ...]) -> tuple[Patch, ...]:
    """Return the lines of a library that bear the CUDA and the cards of the case; at last none."""

    def fits(version: str) -> bool:
        return library_rules.fits(Case(case.machine, answered(case.answers, {f"toolkit.{name}": version})), name)

    key = (name, case.cuda_major, case.answers.driver)
    clean = once(case.machine, key, lambda: tuple(islice(filter(fits, lines), BUILDS)))
    return (*({f"toolkit.{name}": version} for version in clean), {f"toolkit.{name}": "none"})


def _wheels(case: Case, finding: Finding) -> Iterator[Patch]:
    """Yield what can be done about one wheel: another build or release of it; at last leaving it out."""
    name = str(finding.params.get("wheel", finding.subject)).partition(" ")[0].partition("[")[0]
    if name == "torch":
        yield from _torches(case)
        yield {f"frameworks.{one}": None for one in ("torch", "variant", *PAIR) if one in case.answers.frameworks}
    else:
        if name == "jax" and "torch" not in case.answers.frameworks and "variant" in case.answers.frameworks:
            yield {"frameworks.variant": None}
        key = ("releases", name, case.answers.driver, case.answers.environment.python)
        yield from once(case.machine, key, lambda: _clean_releases(case, name))
    if name != "torch" and name in case.answers.frameworks:
        yield {f"frameworks.{name}": None}


def _clean_releases(case: Case, name: str) -> tuple[Patch, ...]:
    """Return a few releases of a package that nothing forbids when it is wanted alone, newest first."""
    versions = {
        "tensorflow": [row.version for row in catalog.tensorflow_releases()],
        "jax": [row.version for row in catalog.jax_releases()],
    }
    others = [row.version for row in catalog.others() if row.package == name]
    bare = answered(case.answers, {f"frameworks.{one}": None for one in case.answers.frameworks})
    patches = ({f"frameworks.{name}": version} for version in versions.get(name, others))
    return tuple(islice((one for one in patches if not forbidden(about_frameworks(Case(case.machine, answered(bare, one))))), BUILDS))


def _torches(case: Case) -> Iterator[Patch]:
    """Yield the PyTorch builds without a catch: the wanted release in another variant first, then the best of all."""
    wanted = case.answers.frameworks.get("torch")
    pair = tuple(name for name in PAIR if name in case.answers.frameworks)
    key = ("builds", case.answers.driver, case.answers.environment.python, pair)
    if wanted:
        yield from once(case.machine, (*key, wanted), lambda: _clean_builds(case, wanted))
    yield from once(case.machine, key, lambda: _clean_builds(case, None))


def _clean_builds(case: Case, version: str | None) -> tuple[Patch, ...]:
    """Return a few builds of PyTorch that nothing is said against when no other framework is wanted, best first."""
    found: list[Patch] = []
    alone = answered(
        case.answers, {f"frameworks.{name}": None for name in case.answers.frameworks if name not in ("torch", "variant", *PAIR)}
    )
    python = case.answers.environment.python
    offered = candidates.torch_candidates(Case(case.machine, alone), version)
    # Most releases miss an old or a new Python, which costs little to see.
    having = (one for one in offered if python is None or python in pythons_for(case, one[0]))
    for release, variant in islice(having, TRIES):
        patch: dict[str, str | None] = {"frameworks.torch": release.version, "frameworks.variant": variant}
        for name, fitting in (("torchvision", release.torchvision), ("torchaudio", release.torchaudio)):
            if name in alone.frameworks:
                patch[f"frameworks.{name}"] = fitting[-1] if fitting else None
        changed = Case(case.machine, answered(alone, patch))
        if not any(one.severity == "error" or one.code == "wheel-lacks-gpu-kernels" for one in about_frameworks(changed)):
            found.append(patch)
        if len(found) == BUILDS:
            break
    return tuple(found)


def _pythons(case: Case, _: Finding) -> Iterator[Patch]:
    """Yield the Pythons that all wanted frameworks have wheels for."""
    known = [pythons[0] for name in case.answers.frameworks if name != "variant" and (pythons := pythons_of(case, name)) and pythons[0]]
    common = tuple(one for one in LINES if all(one in lines for lines in known))
    yield from ({"environment.python": one} for one in candidates.python_candidates(case, common))
    yield from ({"environment.python": one} for one in common if one not in candidates.PYTHONS)


def _apart(case: Case, finding: Finding) -> Iterator[Patch]:
    """Yield what parts two frameworks: the second in another release, then without it."""
    other = str(finding.params.get("other"))
    if other not in ("torch", "None"):
        yield {f"frameworks.{other}": None}


def _instead(case: Case, finding: Finding) -> Iterator[Patch]:
    """Yield what replaces a withdrawn name: its successor in the newest release that fits; at last nothing."""
    name = str(finding.params.get("name"))
    gone: Patch = {f"frameworks.{name}": None}
    row = catalog.discontinued().get(name)
    if row and row.instead == "tensorflow" and "tensorflow" not in case.answers.frameworks:
        yield from ({**gone, "frameworks.tensorflow": release.version} for release in catalog.tensorflow_releases())
    yield gone


def _any_numpy(case: Case, _: Finding) -> Iterator[Patch]:
    """Yield that the frameworks choose their NumPy."""
    yield {"frameworks.numpy": None}


_WAYS: dict[str, Callable[[Case, Finding], Iterator[Patch]]] = {
    "driver-end-of-life": _supported,
    **dict.fromkeys(("gpu-needs-open-module", "gpu-lacks-open-module", "gpu-unsupported-by-driver", "gpu-too-new-for-driver"), _drivers),
    **dict.fromkeys(("driver-not-offered", "kernel-too-new-for-driver", "driver-absent", "secure-boot-nobody-there"), _drivers),
    **dict.fromkeys(("gpu-unsupported-by-cuda", "gpu-too-new-for-cuda", "driver-too-old-for-cuda", "cuda-not-for-distro"), _cudas),
    **dict.fromkeys(("host-compiler-too-new", "host-glibc-too-new", "minor-version-compatibility", "cuda-forward-compat-only"), _cudas),
    **dict.fromkeys(("cudnn-cuda-mismatch", "gpu-unsupported-by-cudnn"), _cudnns),
    **dict.fromkeys(("nccl-cuda-mismatch", "gpu-unsupported-by-nccl"), _nccls),
    **dict.fromkeys(("wheel-lacks-gpu-kernels", "driver-too-old-for-wheel", "no-such-variant", "glibc-too-old"), _wheels),
    "no-wheel-for-platform": _wheels,
    "no-wheel-for-python": _pythons,
    "frameworks-conflict": _apart,
    "framework-discontinued": _instead,
    "numpy-too-new": _any_numpy,
    "numpy-too-old": _any_numpy,
}
"""What can be tried against a finding, by its code."""
