"""What forbids wishes: the fewest that cannot be met together, the facts behind it, and the nearest that can be met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice, product

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import belongs, line
from steps.compat import candidates
from steps.compat.case import Case
from steps.compat.groups import everything
from steps.compat.repairs import repaired
from steps.compat.search import (
    BARE,
    BESIDE,
    Wanted,
    bears_most,
    common_pythons,
    drivers,
    packages,
    releases,
    solve,
    steps,
    without_frameworks,
    without_some,
)
from steps.compat.wheels import pythons_of
from steps.compat.wishes import Wish, neighbours
from steps.model.base import Record, Words, phrase
from steps.model.finding import Finding, Patch
from steps.model.machine import Machine
from steps.model.profile import Profile, answered

Found = tuple[Finding, ...]
CONTEXT = 6
"""How many facts a conflict names besides the wishes."""
MISSES = 240
"""How many sets of choices that meet the wishes are looked at."""
OBSTACLES = 3
"""How many findings a conflict is explained with."""


class Conflict(Record):
    """The fewest wishes and facts that exclude each other, what the rules find, and the nearest choices that can be had."""

    words: tuple[Words, ...]
    findings: Found = ()
    nearest: Profile | None = None


def conflict(machine: Machine, wishes: tuple[Wish, ...]) -> Conflict:
    """Return what forbids wishes that cannot be met."""
    core = smallest(machine, wishes)
    wanted = {wish.name: wish for wish in core}
    missed, found = _obstacles(machine, wanted)
    facts = {_plain(word): word for one in found for word in one.because}
    # That older releases are no better is a fact too, where any release would have done.
    tried = tuple(_none_better(name) for name in packages(wanted) if wanted[name].version is None and len(releases(name)) > 1)
    nowhere = (_nowhere(machine, wanted["driver"]),) if "driver" in wanted and not found else ()
    words = (*(wish.text for wish in core), *islice(facts.values(), CONTEXT), *nowhere, *tried)
    return Conflict(words=words, findings=repaired(Case(machine, missed), found), nearest=nearest(machine, wishes, core))


def smallest(machine: Machine, wishes: tuple[Wish, ...]) -> tuple[Wish, ...]:
    """Return wishes of these that cannot be met together, and could if any one of them were given up; none: nothing can be had at all."""
    core = wishes
    for wish in wishes:
        rest = tuple(one for one in core if one is not wish)
        # PyTorch, which nobody wished for, is no part of a conflict between wishes.
        if solve(machine, rest) is None and without_frameworks(machine, {one.name: one for one in rest}) is None:
            core = rest
    return core


def _nowhere(machine: Machine, wish: Wish) -> Words:
    """Return that nothing we know of offers a driver branch here."""
    return phrase("driver.because.nowhere", branch=line(wish.version or "", 1), system=Case(machine, BARE).system)


def _none_better(name: str) -> Words:
    """Return that none of the releases that are known does better."""
    return phrase("frameworks.because.none-better", name=name, count=len(releases(name)))


def _plain(word: Words) -> object:
    """Return words as something to be compared by."""
    return word if isinstance(word, str) else (word.key, tuple(sorted(word.params.items())))


# --- the facts --------------------------------------------------------------------------------------


def _obstacles(machine: Machine, wanted: Wanted) -> tuple[Profile, Found]:
    """Return the fewest findings such that every set of choices that meets the wishes has one of them, and the choices they are said of.

    They are taken one by one, each the one that forbids most of what is left, and said of the choices that break the fewest rules.
    """
    judged = [(profile, _errors(machine, profile)) for profile in islice(_misses(machine, wanted), MISSES)]
    left = sorted((one for one in judged if one[1]), key=lambda one: len(one[1]))
    profile, chosen = left[0][0] if left else BARE, list[Finding]()
    while left and len(chosen) < OBSTACLES:
        codes = Counter(code for _, found in left for code in {one.code for one in found})
        most = max((one for _, found in left for one in found), key=lambda one: (codes[one.code], _about(one, wanted)))
        chosen.append(most)
        left = [one for one in left if most.code not in {error.code for error in one[1]}]
    return profile, tuple(chosen)


def _about(finding: Finding, wanted: Wanted) -> bool:
    """Return whether a finding is about something wished for, and not about its companions only."""
    return not wanted.keys().isdisjoint(finding.subject.split())


def _errors(machine: Machine, profile: Profile) -> Found:
    """Return what forbids a set of choices."""
    return tuple(one for one in everything(Case(machine, profile)) if one.severity == "error")


def _misses(machine: Machine, wanted: Wanted) -> Iterator[Profile]:
    """Yield the choices that hold what is wished for and nothing else, whether they can be had or not, best first."""
    # A variant is PyTorch's, and where nothing was wished for, what forbids the recommendation forbids PyTorch.
    names = packages(wanted) or (("torch",) if "variant" in wanted or not wanted else ())
    for driver, parts in product(_driven(machine, wanted), tuple(product(*_parts(wanted)))):
        base = answered(driver, dict(chain.from_iterable(part.items() for part in parts)))
        for profile in _with_frameworks(machine, base, wanted, names):
            alone = answered(profile, {f"frameworks.{name}": None for name in BESIDE if name not in wanted})
            yield _with_some_python(machine, alone, wanted)


def _driven(machine: Machine, wanted: Wanted) -> tuple[Profile, ...]:
    """Return the answers with the wished branch, with each kind of modules from each source; else with the driver that bears most."""
    wish = wanted.get("driver")
    if wish is None or wish.version is None:
        return (bears_most(machine, tuple(drivers(machine, None))),)
    base = without_some(machine, BARE)
    case = Case(machine, base)
    branch = line(wish.version, 1)
    offered = [*candidates.archive_drivers(case.distribution, case.data_center), *candidates.repository_drivers(case)]
    known = [patch for patch in offered if patch["driver.branch"] == branch]
    if not known:
        source = "nvidia-repo" if case.repository else "distro"
        known = [candidates.driver_patch(branch, flavor, source) for flavor in ("proprietary", "open")]
    return tuple(answered(base, patch) for patch in known)


def _parts(wanted: Wanted) -> Iterator[tuple[Patch, ...]]:
    """Yield the values that each wished part of the toolkit and a wished variant may have."""
    for name, lines in (
        ("cuda", tuple(stack.cudas())[::-1]),
        ("cudnn", tuple(dict.fromkeys(row.version for row in reversed(stack.cudnns())))),
        ("nccl", tuple(dict.fromkeys(line(row.version) for row in reversed(stack.nccls())))),
    ):
        if name in wanted or (name == "cuda" and ("cudnn" in wanted or "nccl" in wanted)):
            version = wanted[name].version if name in wanted else None
            wished = line(version) if version and name == "cuda" else version
            yield tuple({f"toolkit.{name}": one} for one in ((wished,) if wished else lines))


def _with_frameworks(machine: Machine, base: Profile, wanted: Wanted, names: tuple[str, ...]) -> Iterator[Profile]:
    """Yield the answers with each release of what is wished for; PyTorch in each of its builds, whatever the cards are."""
    found: tuple[Profile, ...] = (base,)
    for step in steps(wanted, names):
        grown = [answered(profile, patch) for profile in found for patch in islice(step(Case(machine, profile)), MISSES)]
        found = tuple(grown[:MISSES])
    some = found or tuple(_literal(machine, base, wanted, names))
    yield from some
    if (
        "variant" not in wanted
        and some
        and "torch" in some[0].frameworks
        and not any(wanted[name].version for name in names if name in wanted)
    ):
        # The processor would do too, so what forbids only the cards is not all.
        yield answered(some[0], {"frameworks.variant": "cpu"})


def _literal(machine: Machine, base: Profile, wanted: Wanted, names: tuple[str, ...]) -> Iterator[Profile]:
    """Yield what no card here could start: the wished PyTorch, or its newest, in each build for the wished CUDA or any."""
    asked = wanted["variant"].version if "variant" in wanted else None
    version = wanted["torch"].version if "torch" in wanted else None
    others: Patch = {f"frameworks.{name}": wanted[name].version or releases(name)[0] for name in names if name in wanted and releases(name)}
    for release in catalog.torch_releases():
        if version is None or belongs(release.version, version):
            built = tuple(row.name for row in release.variant if row.name != "cpu" and not row.name.startswith(("rocm", "xpu")))
            for variant in (asked,) if asked else built:
                yield answered(base, {**others, "frameworks.torch": release.version, "frameworks.variant": variant})
    if "torch" not in names:
        yield answered(base, others)


def _with_some_python(machine: Machine, profile: Profile, wanted: Wanted) -> Profile:
    """Return the answers with the wished Python, else with one that all bear, else with one that the first framework bears."""
    wish = wanted.get("python")
    if wish and wish.version:
        return answered(profile, {"environment.python": line(wish.version)})
    case = Case(machine, profile)
    common = common_pythons(case)
    if common:
        return answered(profile, {"environment.python": (*candidates.python_candidates(case, common), common[-1])[0]})
    known = (found[0][-1] for name in profile.frameworks if name != "variant" and (found := pythons_of(case, name)) and found[0])
    return answered(profile, {"environment.python": next(known, None)})


# --- the nearest ------------------------------------------------------------------------------------


def nearest(machine: Machine, wishes: tuple[Wish, ...], core: tuple[Wish, ...]) -> Profile | None:
    """Return the choices when one wish that is in the way moves as little as it can, else is given up; `None` when nothing helps.

    A version moves over its neighbours, nearest first; of two wishes that move equally far the one said later does.
    """
    ways = [(wish, _moves(wish)) for wish in reversed(core)]
    for distance in range(max((len(moves) for _, moves in ways), default=0)):
        for wish, moves in ways:
            if distance < len(moves) and (found := solve(machine, _with(wishes, wish, moves[distance]))):
                return found
    for wish, _ in ways:
        rest = tuple(one for one in wishes if one is not wish)
        if rest and (found := solve(machine, rest)):
            return found
    return None


def _with(wishes: tuple[Wish, ...], old: Wish, new: Wish) -> tuple[Wish, ...]:
    """Return the wishes with one of them replaced."""
    return tuple(new if one is old else one for one in wishes)


def _moves(wish: Wish) -> tuple[Wish, ...]:
    """Return what a wish can become, nearest first: another version, or what a withdrawn name was replaced by."""
    row = catalog.discontinued().get(wish.name)
    if row is not None:
        instead = Wish(text=row.instead, name=row.instead, version=wish.version and line(wish.version)) if row.instead else None
        if instead is None:
            return ()
        near = (instead, *(instead.at(version) for version in neighbours(instead))) if wish.version else ()
        return (*near, instead.bare)
    return tuple(wish.at(version) for version in neighbours(wish))
