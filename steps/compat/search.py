"""The search for a complete set of choices that meets wishes: drivers, then frameworks one by one, then Python and the toolkit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from steps.catalog import frameworks as catalog
from steps.catalog.load import remembered
from steps.catalog.versions import belongs, line, number
from steps.compat import candidates
from steps.compat.builds import builds_need_a_toolkit, line_needed
from steps.compat.case import Case, installed_driver
from steps.compat.groups import about_driver, about_frameworks, about_toolkit, everything, forbidden
from steps.compat.memory import once
from steps.compat.wheels import LINES, pythons_of
from steps.compat.wishes import STACK, Wish
from steps.managers.python import DEFAULT_NAME
from steps.model.finding import Patch
from steps.model.machine import Machine, judged
from steps.model.profile import EnvironmentAnswers, Profile, ToolkitAnswers, answered

Wanted = dict[str, Wish]
Step = Callable[[Case], Iterator[Patch]]
"""What one framework can become beside those that are chosen already, best first."""
BESIDE = ("torchvision", "torchaudio")
"""What is made for one PyTorch each, and chosen with it."""
BARE = Profile(
    toolkit=ToolkitAnswers(cuda="none", cudnn="none", nccl="none"), environment=EnvironmentAnswers(manager="uv", name=DEFAULT_NAME)
)
"""The answers that every search begins with."""


def solve(machine: Machine, wishes: tuple[Wish, ...]) -> Profile | None:
    """Return the first complete set of choices without an error, in the order of preference."""
    wanted = {wish.name: wish for wish in wishes}
    return once(machine, ("solved", *sorted((wish.name, wish.version or "") for wish in wishes)), lambda: _solved(machine, wanted))


def _solved(machine: Machine, wanted: Wanted) -> Profile | None:
    """Return the choices; where no build is left for these cards the processor computes, and what nobody wished for may be missing."""
    names = packages(wanted)
    found = _search(machine, wanted, names or ("torch",))
    if found is None and judged(machine) and "variant" not in wanted and not any(wanted[name].version for name in names):
        found = _search(machine, {**wanted, "variant": Wish(text="cpu", name="variant", version="cpu")}, names or ("torch",))
    if found is None and wanted and not names:
        found = without_frameworks(machine, wanted)
    return found


def without_frameworks(machine: Machine, wanted: Wanted) -> Profile | None:
    """Return the choices without any framework, where none is wished for and nothing else is in the way."""
    return None if packages(wanted) or "variant" in wanted else _search(machine, wanted, ())


def packages(wanted: Wanted) -> tuple[str, ...]:
    """Return the frameworks that are wished for, in the order in which they were."""
    return tuple(name for name in wanted if name not in STACK)


def _search(machine: Machine, wanted: Wanted, names: tuple[str, ...]) -> Profile | None:
    """Return the first complete set of choices without an error."""
    offered = tuple(drivers(machine, wanted.get("driver")))
    # A newer driver runs all that an older one runs: what does not stand on the newest stands on none.
    if len(offered) > 1 and next(_completions(machine, bears_most(machine, offered), wanted, names), None) is None:
        return None
    return next((found for base in offered for found in _completions(machine, base, wanted, names)), None)


def _completions(machine: Machine, base: Profile, wanted: Wanted, names: tuple[str, ...]) -> Iterator[Profile]:
    """Yield the complete sets of choices on one driver that nothing forbids, best first."""
    if _with_toolkit(machine, base, wanted) is None:
        return
    for profile in _grown(machine, _with_wished_python(base, wanted), steps(wanted, names)):
        complete = _with_toolkit(machine, profile, wanted)
        if complete is not None and not forbidden(everything(Case(machine, complete))):
            yield complete


# --- the driver -------------------------------------------------------------------------------------


def drivers(machine: Machine, wish: Wish | None) -> Iterator[Profile]:
    """Yield the answers up to the driver, best first; where no driver can serve all cards, some are left out."""
    branch = line(wish.version, 1) if wish and wish.version else None
    base = BARE
    found = candidates.driver_candidates(machine, base, branch)
    if not found and Case(machine, base).gpus:
        base = without_some(machine, base)
        found = candidates.driver_candidates(machine, base, branch)
    if not found and branch is None:
        found = (candidates.KEEP if installed_driver(machine)[1] else candidates.NO_DRIVER,)
    for patch in found:
        yield answered(base, patch)


def without_some(machine: Machine, base: Profile) -> Profile:
    """Return the answers without the cards that no common driver serves."""
    for finding in about_driver(Case(machine, base)):
        if finding.code == "gpus-need-different-drivers" and finding.fix:
            return answered(base, finding.fix)
    return base


def bears_most(machine: Machine, offered: tuple[Profile, ...]) -> Profile:
    """Return the answers with the newest of some drivers."""
    return max(offered, key=lambda profile: number(Case(machine, profile).driver.version or ""))


# --- frameworks -------------------------------------------------------------------------------------


def steps(wanted: Wanted, names: tuple[str, ...]) -> tuple[Step, ...]:
    """Return what is to be chosen one after the other: PyTorch first, since most others follow it, or else a variant."""
    version = {name: wanted[name].version if name in wanted else None for name in (*names, *STACK)}
    others = tuple(name for name in names if name not in ("torch", *BESIDE))
    if not names:
        return ()
    if len(others) < len(names) or any(map(_needs_torch, others)):
        with_it = {name: version.get(name) for name in BESIDE if name in names}
        if "torch" in names:
            with_it.setdefault("torchvision", None)
        first = partial(_torches, wished=version.get("torch"), asked=version["variant"], beside=with_it, also=set(names) & set(BESIDE))
    else:
        first = partial(_variants, asked=version["variant"])
    return (first, *(partial(_releases, name=name, wished=version[name]) for name in others))


@remembered
def _needs_torch(name: str) -> bool:
    """Return whether a package cannot be had without PyTorch: then its release and build are chosen with it."""
    rows = tuple(row for row in catalog.others() if row.package == name)
    return "torch" in catalog.companions(name) or any(re.match(r"torch(?![\w.-])", spec) for row in rows for spec in row.requires)


def _torches(case: Case, *, wished: str | None, asked: str | None, beside: dict[str, str | None], also: set[str]) -> Iterator[Patch]:
    """Yield releases of PyTorch in a variant with the packages made for them; `also` are those that must not be missing."""
    for release, variant in candidates.torch_candidates(case, wished, asked):
        patch: dict[str, str | None] = {"frameworks.torch": release.version, "frameworks.variant": variant}
        for name, version in beside.items():
            made = tuple(one for one in getattr(release, name) if version is None or belongs(one, version))
            if made:
                patch[f"frameworks.{name}"] = made[-1]
        if all(f"frameworks.{name}" in patch for name in also):
            yield patch


def _variants(case: Case, *, asked: str | None) -> Iterator[Patch]:
    """Yield variants where no PyTorch is wanted: the second makes JAX take the CUDA that TensorFlow brings."""
    names: tuple[str | None, ...] = (asked,) if asked else (None, "cu126") if case.gpus else ("cpu",)
    yield from ({"frameworks.variant": name} for name in names)


def _releases(case: Case, *, name: str, wished: str | None) -> Iterator[Patch]:
    """Yield the releases of a framework of the wished line, newest first; a withdrawn one as it was wished for.

    Where cards are to compute, a TensorFlow that brings no CUDA is there only when asked for.
    """
    versions = [one for one in releases(name) if wished is None or belongs(one, wished)]
    if name == "tensorflow" and wished is None and case.gpus and case.variant != "cpu":
        bringing = {row.version for row in catalog.tensorflow_releases() if row.cuda_major}
        versions = [one for one in versions if one in bringing]
    yield from ({f"frameworks.{name}": version} for version in versions or ((wished or "0",) if name in catalog.discontinued() else ()))


@remembered
def releases(name: str) -> tuple[str, ...]:
    """Return the releases of a framework that the tables hold, newest first."""
    found = {
        "torch": [row.version for row in catalog.torch_releases()],
        "tensorflow": [row.version for row in catalog.tensorflow_releases()],
        "jax": [row.version for row in catalog.jax_releases()],
    }.get(name) or [row.version for row in catalog.others() if row.package == name]
    return tuple(sorted(found, key=number, reverse=True))


def _grown(machine: Machine, profile: Profile, left: tuple[Step, ...]) -> Iterator[Profile]:
    """Yield the answers with everything that is left to choose; what is forbidden already is not gone on with."""
    if not left:
        yield from _with_python(machine, profile)
        return
    for patch in left[0](Case(machine, profile)):
        grown = answered(profile, patch)
        case = Case(machine, grown)
        if not forbidden(about_frameworks(case)) and (grown.environment.python or common_pythons(case)):
            yield from _grown(machine, grown, left[1:])


# --- Python and the toolkit -------------------------------------------------------------------------


def _with_wished_python(base: Profile, wanted: Wanted) -> Profile:
    """Return the answers with the wished Python, if one is."""
    wish = wanted.get("python")
    return answered(base, {"environment.python": line(wish.version)}) if wish and wish.version else base


def common_pythons(case: Case) -> tuple[str, ...]:
    """Return the Python lines that all wanted frameworks have wheels for, as far as it is known, oldest first."""
    known = [found[0] for name in case.answers.frameworks if name != "variant" and (found := pythons_of(case, name)) and found[0]]
    return tuple(one for one in LINES if all(one in lines for lines in known))


def _with_python(machine: Machine, base: Profile) -> Iterator[Profile]:
    """Yield the answers with the Pythons that suit all frameworks, the best first."""
    if base.environment.python:
        yield base
        return
    case = Case(machine, base)
    common = common_pythons(case)
    found = candidates.python_candidates(case, common)
    yield from (answered(base, {"environment.python": one}) for one in (*found, *reversed([one for one in common if one not in found])))


def _with_toolkit(machine: Machine, base: Profile, wanted: Wanted) -> Profile | None:
    """Return the answers with the wished parts of the toolkit; `None` when one cannot be had.

    Where no CUDA is named, its lines are tried until the libraries fit one; what has to be compiled names PyTorch's own.
    """
    libraries = tuple(name for name in ("cudnn", "nccl") if name in wanted)
    compiler = line_needed(Case(machine, base))
    if compiler is not None and "cuda" not in wanted:
        there = answered(base, {"toolkit.cuda": None})
        if not builds_need_a_toolkit(Case(machine, there)):
            return _with_libraries(machine, there, wanted, libraries)
        wanted = {**wanted, "cuda": Wish(text=f"cuda=={compiler}", name="cuda", version=compiler)}
    if "cuda" not in wanted and not libraries:
        return base
    if "cuda" not in wanted and machine.toolkits:
        # The toolkit that is installed will do, if it does.
        kept = _with_libraries(machine, answered(base, {"toolkit.cuda": None}), wanted, libraries)
        if kept is not None:
            return kept
    wish = wanted["cuda"].version if "cuda" in wanted else None
    lines = (line(wish),) if wish else candidates.cuda_candidates(Case(machine, base))
    for one in lines:
        profile = answered(base, {"toolkit.cuda": one})
        if not forbidden(about_toolkit(Case(machine, profile))):
            complete = _with_libraries(machine, profile, wanted, libraries)
            if complete is not None:
                return complete
    return None


def _with_libraries(machine: Machine, base: Profile, wanted: Wanted, libraries: tuple[str, ...]) -> Profile | None:
    """Return the answers with the wished libraries for the toolkit that is chosen; `None` when one has no build that fits."""
    profile: Profile | None = base
    for name in libraries:
        version = wanted[name].version
        if profile is not None:
            offered = (candidates.cudnn_candidates if name == "cudnn" else candidates.nccl_candidates)(Case(machine, profile))
            profile = _first(machine, profile, f"toolkit.{name}", (version,) if version else offered)
    return profile


def _first(machine: Machine, base: Profile, key: str, values: tuple[str, ...]) -> Profile | None:
    """Return the answers with the first value that no rule of the toolkit forbids."""
    changed = (answered(base, {key: value}) for value in values)
    return next((one for one in changed if not forbidden(about_toolkit(Case(machine, one)))), None)
