"""The solver against generated machines and answers: what it recommends, what it repairs, and what it calls possible."""

from __future__ import annotations

from itertools import combinations, product

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from steps import nccl
from steps.catalog import stack
from steps.compat import candidates, effects
from steps.compat.case import Case
from steps.compat.groups import everything
from steps.compat.outlook import before, exists, freed, outlook, topic
from steps.compat.solve import judge, recommend
from steps.compat.wheels import LINES
from steps.model.finding import Finding, Patch
from steps.model.machine import Machine
from steps.model.profile import Profile, answered
from tests.scoring import machine as captured
from tests.test_compat_cases import CARDS, machine

SYSTEMS = (
    "ubuntu 18.04",
    "ubuntu 20.04",
    "ubuntu 22.04",
    "ubuntu 24.04",
    "ubuntu 26.04",
    "debian 11",
    "debian 12",
    "debian 13",
    "rocky 8",
    "rocky 9",
    "rhel 10",
    "fedora 44",
    "opensuse-leap 15.6",
    "arch rolling",
    "alpine 3.22",
    "plan9 4",
)
KERNELS = {"ubuntu 18.04": "4.15.0-213-generic", "rocky 8": "4.18.0-553.el8.x86_64", "debian 13": "6.12.48+deb13-amd64"}
DRIVERS = (None, "390.157", "470.256.02", "515.105.01", "535.183.01", "550.163.01", "570.86.10", "580.95.05", "595.104.02", "620.70.06")
PYTHONS = (None, "3.8.10", "3.10.12", "3.12.3", "3.14.0")
ARM = ("gh200", "gb10")
UNSHRUNK = (Phase.explicit, Phase.generate)
"""Trying everything takes long enough once: a failure is shown as it was found."""
PATCHES: tuple[Patch, ...] = (
    *({"driver.branch": branch, "driver.flavor": "open", "driver.source": "nvidia-repo"} for branch in ("470", "550", "580", "595", "620")),
    *({"driver.branch": branch, "driver.flavor": "proprietary", "driver.source": "distro"} for branch in ("470", "535", "570", "580")),
    *({"toolkit.cuda": line} for line in ("11.8", "12.4", "12.8", "13.0", "13.5")),
    {"toolkit.cuda": "12.8", "toolkit.cudnn": "9.11", "toolkit.nccl": "2.29"},
    {"toolkit.cuda": "none", "toolkit.cudnn": "9.10"},
    *({"frameworks.variant": variant} for variant in ("cu118", "cu124", "cu126", "cu130", "cpu")),
    *({"frameworks.torch": version} for version in ("1.13.1", "2.1.0", "2.6.0", "2.10.0", "2.15.0")),
    {"frameworks.tensorflow": "2.21.0"},
    {"frameworks.tensorflow": "2.15.1"},
    {"frameworks.tensorflow-gpu": "2.12.0"},
    {"frameworks.jax": "0.12.0.1"},
    {"frameworks.jax": "0.4.30"},
    {"frameworks.vllm": "0.33.0"},
    {"frameworks.bitsandbytes": "0.50.2"},
    {"frameworks.numpy": "2.0.2"},
    {"frameworks.numpy": "1.26.4"},
    {"frameworks.torchaudio": "2.6.0"},
    {"environment.manager": "conda"},
    *({"environment.python": line} for line in ("3.9", "3.10", "3.12", "3.14")),
)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Return a machine: one or two cards, a system, a processor, perhaps a driver that is there and a Python."""
    first = draw(st.sampled_from(sorted(CARDS)))
    cards = [first] if first in ARM or draw(st.booleans()) else [first, draw(st.sampled_from(sorted(set(CARDS) - set(ARM))))]
    system = draw(st.sampled_from(SYSTEMS))
    arch = "aarch64" if first in ARM else draw(st.sampled_from(("x86_64", "x86_64", "x86_64", "aarch64")))
    driver = draw(st.sampled_from(DRIVERS))
    found = machine(
        *cards,
        system=system,
        arch=arch,
        driver=driver,
        secure_boot=draw(st.booleans()),
        wsl=draw(st.integers(0, 9)) == 0,
        container="docker" if draw(st.integers(0, 9)) == 0 else "none",
        kernel=KERNELS.get(system, "6.8.0-50-generic"),
    )
    python = draw(st.sampled_from(PYTHONS))
    return msgspec.structs.replace(found, tools={"python3": python}) if python else found


def errors(found: tuple[Finding, ...]) -> set[str]:
    """Return the codes of the errors."""
    return {finding.code for finding in found if finding.severity == "error"}


def _recommends(here: Machine) -> None:
    """What is recommended works; where nothing can, it is said what of the machine forbids it."""
    answer = recommend(here)
    if answer.choices is None:
        assert errors(answer.findings) & {"no-wheel-for-platform", "gpu-too-new-for-driver", "gpu-unsupported-by-driver"}
        assert answer.conflict
        return
    assert errors(answer.findings) == set()


def _repairs(here: Machine, patches: list[Patch]) -> None:
    """Every repair removes its finding and raises no error that was not there."""
    answers = recommend(here).choices or Profile()
    for patch in patches:
        answers = answered(answers, patch)
    found = judge(here, answers)
    for finding in found:
        if finding.fix is not None:
            after = judge(here, answered(answers, finding.fix))
            assert (finding.code, finding.severity) not in {(one.code, one.severity) for one in after if one.subject == finding.subject}
            assert errors(after) <= errors(found)


@given(machines())
@settings(max_examples=150)
def test_what_is_recommended_for_a_generated_machine_has_no_error(here: Machine) -> None:
    _recommends(here)


@given(machines(), st.lists(st.sampled_from(PATCHES), min_size=1, max_size=4))
@settings(max_examples=150)
def test_every_repair_holds_for_generated_answers(here: Machine, patches: list[Patch]) -> None:
    _repairs(here, patches)


@pytest.mark.long
@given(machines(), st.lists(st.sampled_from(PATCHES), min_size=1, max_size=5))
@settings(max_examples=4000)
def test_recommendations_and_repairs_hold_for_many_generated_machines(here: Machine, patches: list[Patch]) -> None:
    _recommends(here)
    _repairs(here, patches)


# --- what is possible, against trying everything --------------------------------------------------


def tried(here: Machine, answers: Profile, fixed: set[str]) -> bool:
    """Return whether any assignment of the free answers has no error: every driver, CUDA, variant and Python is tried."""
    base = freed(answers, fixed)
    some = candidates.every_driver(here, base)
    drivers: tuple[Patch, ...] = ({},) if "driver" in fixed or not some else some[:3] + some[-3:] + _newest(here, base, some)
    free_cuda = "cuda" not in fixed and bool(fixed & {"cudnn", "nccl"})
    cudas: tuple[Patch, ...] = tuple({"toolkit.cuda": line} for line in stack.cudas()) if free_cuda else ({},)
    release = Case(here, base).torch
    names = tuple(row.name for row in release.variant) if release else ("cu126", "cu130", "cpu")
    free_variant = "variant" not in fixed and bool(base.frameworks)
    variants: tuple[Patch, ...] = tuple({"frameworks.variant": name} for name in (None, *names)) if free_variant else ({},)
    free_python = "python" not in fixed and bool(base.frameworks)
    pythons: tuple[Patch, ...] = tuple({"environment.python": one} for one in LINES) if free_python else ({},)
    return any(
        not errors(everything(Case(here, answered(base, {**driver, **cuda, **variant, **python}))))
        for driver, cuda, variant, python in product(drivers, cudas, variants, pythons)
    )


def _newest(here: Machine, base: Profile, some: tuple[Patch, ...]) -> tuple[Patch, ...]:
    """Return a few drivers of the newest branches, so that a reduced table still has what bears most."""
    return tuple(sorted(some, key=lambda patch: Case(here, answered(base, patch)).driver.version or "")[-2:])


def _possible(here: Machine, patches: list[Patch], option: Patch) -> None:
    """What the solver calls possible is what trying everything finds, and its conflict is the smallest there is."""
    answers = Profile()
    for patch in patches:
        answers = answered(answers, patch)
    found = outlook(here, answers, option)
    taken, own = answered(answers, option), {topic(key) for key in option}
    question = next((one for one in own if one not in ("variant", "python")), next(iter(own), "driver"))
    binding = [one for one in before(answers, question) if one not in own]
    assert found.possible is tried(here, taken, own | set(binding))
    if found.possible:
        return
    assert not tried(here, taken, own | set(found.conflict))
    assert found.findings
    for fewer in combinations(binding, len(found.conflict) - 1) if found.conflict else ():
        assert tried(here, taken, own | set(fewer))


@given(machines(), st.lists(st.sampled_from(PATCHES), max_size=3), st.sampled_from(PATCHES))
@settings(max_examples=60, phases=UNSHRUNK)
def test_what_is_possible_is_what_trying_everything_finds(here: Machine, patches: list[Patch], option: Patch) -> None:
    _possible(here, patches, option)


@pytest.mark.long
@given(machines(), st.lists(st.sampled_from(PATCHES), max_size=4), st.sampled_from(PATCHES))
@settings(max_examples=1500, phases=UNSHRUNK)
def test_what_is_possible_is_what_trying_everything_finds_many_times(here: Machine, patches: list[Patch], option: Patch) -> None:
    _possible(here, patches, option)


def test_a_free_driver_is_no_obstacle_and_a_fixed_one_is() -> None:
    here = machine("4090", driver="535.183.01")
    wheel = answered(Profile(), {"frameworks.torch": "2.14.1", "frameworks.variant": "cu130"})
    kept = answered(wheel, {"driver.source": "keep"})

    assert exists(here, kept, {"torch", "variant"})
    assert not exists(here, kept, {"torch", "variant", "driver"})
    assert outlook(here, kept, {"frameworks.variant": "cu130"}).conflict == ("driver", "torch")


def test_what_the_machine_alone_forbids_names_no_answer() -> None:
    found = outlook(machine("4090"), answered(Profile(), {"frameworks.torch": "2.14.1"}), {"toolkit.cuda": "12.4"})

    assert (found.possible, found.conflict) == (False, ())
    assert [finding.code for finding in found.findings] == ["cuda-not-for-distro"]
    assert found.facts


def test_a_fact_that_forbids_alone_names_no_answer_beside_it() -> None:
    here = captured("xe9680-h100x8")
    best = recommend(here).choices
    assert best is not None
    rows = next(choice for choice in nccl.choices(here, best) if choice.key == "nccl.interface").options
    down = next(row for row in rows if row.mark == "bad")
    reasons = effects.reasons(here, best, down.patch, down.label, down.findings)
    assert [reason.kind for reason in reasons] == ["fact", "option"]
    assert all(
        not way.changes or {change.topic for change in way.changes} == {"interface"}
        for way in effects.ways(here, best, down.patch, down.findings, None)
    )
