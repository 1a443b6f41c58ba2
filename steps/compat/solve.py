"""The judgement of answers, the recommendation, and what forbids a wish."""

from __future__ import annotations

from collections.abc import Iterator

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import line, number
from steps.compat import candidates
from steps.compat.case import Case, installed_driver
from steps.compat.groups import about_driver, about_frameworks, about_toolkit, everything, forbidden
from steps.compat.repairs import repaired
from steps.compat.wheels import cuda_of, jax_extra, pythons_of
from steps.compat.wishes import Wish, neighbours, parse
from steps.model.base import Record, Words
from steps.model.finding import Finding, Patch
from steps.model.machine import Machine, judged
from steps.model.profile import EnvironmentAnswers, Profile, ToolkitAnswers, answered

Found = tuple[Finding, ...]
CONTEXT = 6
"""How many facts a conflict names besides the wishes."""
REACH = 10
"""How many neighbouring versions are tried for the nearest wish that can be met."""


class Recommendation(Record):
    """The complete choices with their findings; without choices the smallest conflict, and the nearest that can be met."""

    choices: Profile | None
    findings: Found = ()
    conflict: tuple[Words, ...] = ()
    nearest: Profile | None = None


def judge_driver(machine: Machine, profile: Profile) -> Found:
    """Return what is to be said about the driver."""
    case = Case(machine, profile)
    return repaired(case, about_driver(case))


def judge_toolkit(machine: Machine, profile: Profile) -> Found:
    """Return what is to be said about CUDA, cuDNN and NCCL."""
    case = Case(machine, profile)
    return repaired(case, about_toolkit(case))


def judge_frameworks(machine: Machine, profile: Profile) -> Found:
    """Return what is to be said about the frameworks and their environment."""
    case = Case(machine, profile)
    return repaired(case, about_frameworks(case))


def judge(machine: Machine, profile: Profile) -> Found:
    """Return everything that is to be said about the stack that the profile comes to."""
    case = Case(machine, profile)
    return repaired(case, everything(case))


_last: list[tuple[Machine, Recommendation]] = []
"""The recommendation without wishes of the machine asked for last: every step asks for it at every key."""


def recommend(machine: Machine, wishes: tuple[str, ...] = ()) -> Recommendation:
    """Return the best complete set of choices that meets the wishes, or what forbids it.

    Raises `InputError` for a wish that is malformed or names something that we do not know.
    """
    if not wishes and _last and _last[0][0] is machine:
        return _last[0][1]
    parsed = tuple(parse(text) for text in wishes)
    choices = _solve(machine, parsed)
    answer = Recommendation(choices=choices, findings=judge(machine, choices)) if choices else _explain(machine, parsed)
    if not wishes:
        _last[:] = [(machine, answer)]
    return answer


def _solve(machine: Machine, wishes: tuple[Wish, ...]) -> Profile | None:
    """Return the first complete set of choices without an error, in the order of preference."""
    wanted = {wish.name: wish for wish in wishes}
    found = _search(machine, wanted)
    if found is None and judged(machine) and "variant" not in wanted and not any(wish.version for wish in wishes):
        # No build is left for these cards: the processor still computes.
        found = _search(machine, {**wanted, "variant": Wish(text="cpu", name="variant", version="cpu")})
    return found


def _search(machine: Machine, wanted: dict[str, Wish]) -> Profile | None:
    """Return the first complete set of choices without an error."""
    for drivers in _drivers(machine, wanted.get("driver")):
        for profile in _with_frameworks(machine, drivers, wanted):
            complete = _with_toolkit(machine, profile, wanted)
            if complete is not None and not forbidden(everything(Case(machine, complete))):
                return complete
    return None


def _drivers(machine: Machine, wish: Wish | None) -> Iterator[Profile]:
    """Yield the answers up to the driver, best first; where no driver can serve all cards, some are left out."""
    branch = line(wish.version, 1) if wish and wish.version else None
    base = Profile(toolkit=ToolkitAnswers(cuda="none", cudnn="none", nccl="none"), environment=EnvironmentAnswers(manager="uv", name="dl"))
    found = candidates.driver_candidates(machine, base, branch)
    if not found and branch is None and Case(machine, base).gpus:
        base = _without_some(machine, base)
        found = candidates.driver_candidates(machine, base, branch)
    if not found and branch is None:
        found = (candidates.KEEP if installed_driver(machine)[1] else candidates.NO_DRIVER,)
    for patch in found:
        yield answered(base, patch)


def _without_some(machine: Machine, base: Profile) -> Profile:
    """Return the answers without the cards that no common driver serves."""
    for finding in about_driver(Case(machine, base)):
        if finding.code == "gpus-need-different-drivers" and finding.fix:
            return answered(base, finding.fix)
    return base


def _with_frameworks(machine: Machine, base: Profile, wanted: dict[str, Wish]) -> Iterator[Profile]:
    """Yield the answers with frameworks: what is wished for, else PyTorch with torchvision."""
    packages = [name for name in wanted if name not in ("driver", "cuda", "cudnn", "nccl", "python", "variant")]
    names = packages or ["torch"]
    torch = [name for name in names if name in ("torch", "torchvision", "torchaudio")]
    asked = wanted["variant"].version if "variant" in wanted else None
    case = Case(machine, base)
    if not torch:
        # The second makes JAX take the CUDA that TensorFlow brings.
        variants: tuple[str | None, ...] = (asked,) if asked else (None, "cu126") if case.gpus else ("cpu",)
        for variant in variants:
            yield from _with_python(machine, _others(case, base, variant, names, wanted), wanted)
        return
    version = wanted["torch"].version if "torch" in wanted else None
    for release, variant in candidates.torch_candidates(case, version, asked):
        patch: dict[str, str] = {"frameworks.torch": release.version, "frameworks.variant": variant}
        for name, fitting in (("torchvision", release.torchvision), ("torchaudio", release.torchaudio)):
            version_wish = wanted[name].version if name in wanted else None
            if version_wish:
                patch[f"frameworks.{name}"] = next(
                    (one for one in reversed(fitting) if number(one)[: len(number(version_wish))] == number(version_wish)), version_wish
                )
            elif fitting and (name in names or (name == "torchvision" and not packages) or (name == "torchvision" and "torch" in names)):
                patch[f"frameworks.{name}"] = fitting[-1]
        yield from _with_python(machine, _others(case, answered(base, patch), variant, names, wanted), wanted)


def _others(case: Case, base: Profile, variant: str | None, names: list[str], wanted: dict[str, Wish]) -> Profile:
    """Return the answers with the frameworks that are not PyTorch's."""
    patch: dict[str, str] = {"frameworks.variant": variant} if variant else {}
    for name in names:
        if name not in ("torch", "torchvision", "torchaudio"):
            version = wanted[name].version if name in wanted else None
            patch[f"frameworks.{name}"] = _newest(case, base, name, version)
    return answered(base, patch)


def _newest(case: Case, base: Profile, name: str, wished: str | None) -> str:
    """Return the newest release of a framework that this system can take, of the wished line if there is one."""
    releases: list[tuple[str, str | None]]
    if name == "tensorflow":
        releases = [(row.version, row.glibc) for row in catalog.tensorflow_releases()]
    elif name == "jax":
        extra = jax_extra(Case(case.machine, base))
        releases = [(row.version, row.glibc) for row in catalog.jax_releases() if extra != "cuda13" or row.cuda13]
    else:
        releases = [(row.version, row.glibc) for row in catalog.others() if row.package == name]
    fitting = [
        (version, glibc) for version, glibc in releases if wished is None or number(version)[: len(number(wished))] == number(wished)
    ]
    usable = [version for version, glibc in fitting if glibc is None or candidates.old_enough(case, glibc)]
    return next(iter(usable), None) or next((version for version, _ in fitting), None) or wished or "0"


def _with_python(machine: Machine, base: Profile, wanted: dict[str, Wish]) -> Iterator[Profile]:
    """Yield the answers with the one Python that suits all frameworks best."""
    case = Case(machine, base)
    if "python" in wanted and wanted["python"].version:
        yield answered(base, {"environment.python": wanted["python"].version})
        return
    known = [pythons[0] for name in base.frameworks if name != "variant" and (pythons := pythons_of(case, name)) and pythons[0]]
    common = tuple(one for one in candidates.PYTHONS if all(one in lines for lines in known))
    found = candidates.python_candidates(case, common)
    if found:
        yield answered(base, {"environment.python": found[0]})


def _with_toolkit(machine: Machine, base: Profile, wanted: dict[str, Wish]) -> Profile | None:
    """Return the answers with the wished parts of the toolkit; `None` when one cannot be had."""
    if not any(name in wanted for name in ("cuda", "cudnn", "nccl")):
        return base
    profile = base
    if "cuda" in wanted or not Case(machine, base).machine.toolkits:
        line_wish = wanted["cuda"].version if "cuda" in wanted else None
        found = _first(
            machine, profile, "toolkit.cuda", [line(line_wish)] if line_wish else list(candidates.cuda_candidates(Case(machine, profile)))
        )
        if found is None:
            return None
        profile = found
    for name, offered in (("cudnn", candidates.cudnn_candidates), ("nccl", candidates.nccl_candidates)):
        if name in wanted:
            version = wanted[name].version
            case = Case(machine, profile) if profile.toolkit.cuda != "none" else Case(machine, answered(profile, {"toolkit.cuda": None}))
            found = _first(machine, case.answers, f"toolkit.{name}", [version] if version else list(offered(case)))
            if found is None:
                return None
            profile = found
    return profile


def _first(machine: Machine, base: Profile, key: str, values: list[str]) -> Profile | None:
    """Return the answers with the first value that no rule of the toolkit forbids."""
    for value in values:
        profile = answered(base, {key: value})
        if not forbidden(about_toolkit(Case(machine, profile))):
            return profile
    return None


def _explain(machine: Machine, wishes: tuple[Wish, ...]) -> Recommendation:
    """Return the smallest set of wishes that cannot be met together, the facts behind it, and the nearest that can."""
    core = list(wishes)
    for wish in wishes:
        rest = tuple(one for one in core if one is not wish)
        if _solve(machine, rest) is None:
            core = list(rest)
    nearest = next((near for wish in reversed(core) if (near := _nearest(machine, wishes, wish))), None)
    facts, found = _facts(machine, tuple(core))
    return Recommendation(choices=None, findings=found, conflict=(*(wish.text for wish in core), *facts), nearest=nearest)


def _nearest(machine: Machine, wishes: tuple[Wish, ...], wish: Wish) -> Profile | None:
    """Return the choices when one wish is moved to the nearest version that can be had, else to any, else given up."""
    others = tuple(one for one in wishes if one is not wish)
    for version in neighbours(wish)[:REACH]:
        moved = Wish(text=f"{wish.name}=={version}", name=wish.name, version=version)
        if found := _solve(machine, (*others, moved)):
            return found
    return (_solve(machine, (*others, wish.bare)) if wish.version else None) or _solve(machine, others)


def _facts(machine: Machine, core: tuple[Wish, ...]) -> tuple[tuple[Words, ...], Found]:
    """Return the facts that forbid the wishes: those of the literal wish on this machine."""
    # Without a wish the machine forbids what is recommended unasked: PyTorch.
    wanted = {wish.name: wish for wish in core or (Wish(text="torch", name="torch"),)}
    patch: dict[str, str | None] = {}
    for name, wish in wanted.items():
        key = {
            "driver": "driver.branch",
            "cuda": "toolkit.cuda",
            "cudnn": "toolkit.cudnn",
            "nccl": "toolkit.nccl",
            "python": "environment.python",
        }.get(name, f"frameworks.{name}")
        if wish.version:
            patch[key] = _exact(name, wish.version)
        elif key.startswith("frameworks.") and name not in ("variant", "torchvision", "torchaudio"):
            patch[key] = (
                _newest(Case(machine, Profile()), Profile(), name, None) if name != "torch" else catalog.torch_releases()[0].version
            )
    if "driver" in wanted and wanted["driver"].version:
        row = stack.branches().get(line(wanted["driver"].version, 1))
        never = any(gpu.row and gpu.row.open_modules == "unsupported" for gpu in Case(machine, Profile()).gpus)
        patch["driver.flavor"] = "proprietary" if never or row is None or row.open_modules == "none" else "open"
    if "torch" in wanted:
        patch |= _literal_torch(patch.get("frameworks.torch"), wanted)
    case = Case(machine, answered(_least(machine, wanted), patch))
    found = tuple(finding for finding in everything(case) if finding.severity == "error")
    facts = tuple(
        dict.fromkeys(
            (word.key, tuple(sorted(word.params.items()))) if not isinstance(word, str) else word for one in found for word in one.because
        )
    )
    words = {
        ((word.key, tuple(sorted(word.params.items()))) if not isinstance(word, str) else word): word
        for one in found
        for word in one.because
    }
    return tuple(words[fact] for fact in facts)[:CONTEXT], repaired(case, found)


def _literal_torch(version: str | None, wanted: dict[str, Wish]) -> dict[str, str | None]:
    """Return what stands beside a wished PyTorch: its build for the newest CUDA, and no packages of another release."""
    release = catalog.torch_release(version) if version else None
    patch: dict[str, str | None] = {f"frameworks.{name}": None for name in ("torchvision", "torchaudio") if name not in wanted}
    if release and "variant" not in wanted:
        builds = sorted((row.name for row in release.variant if cuda_of(row.name)), key=lambda name: number(cuda_of(name) or ""))
        patch["frameworks.variant"] = builds[-1] if builds else release.default_variant
    return patch


def _least(machine: Machine, wanted: dict[str, Wish]) -> Profile:
    """Return the answers that the conflict is looked at from: the recommendation, without what the wishes replace."""
    base = _solve(machine, ()) or Profile()
    patch: Patch = {}
    if "driver" in wanted:
        patch = candidates.NO_DRIVER
    return answered(base, patch)


def _exact(name: str, version: str) -> str:
    """Return the newest release of a wished line, the way a profile writes it."""
    if name in ("driver", "cuda", "python"):
        return line(version, 1 if name == "driver" else 2)
    if name == "torch":
        return next(
            (row.version for row in catalog.torch_releases() if number(row.version)[: len(number(version))] == number(version)), version
        )
    return version
