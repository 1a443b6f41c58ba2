"""The recommendation: for every captured machine, for wishes, and the repair of every finding."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

from steps import planning
from steps.compat.solve import judge, recommend
from steps.compat.wishes import parse
from steps.detect.machine import detect
from steps.errors import InputError
from steps.host.opening import open_host
from steps.model.base import Words
from steps.model.hardware import Accelerator
from steps.model.machine import Machine
from steps.model.profile import Profile, answered
from steps.model.software import Os
from steps.text import say
from tests.test_compat_cases import CARDS, machine

FOLDER = Path(__file__).parent / "machines"
CAPTURES = sorted(path.stem for path in FOLDER.glob("*.json"))

ADVISED: dict[str, tuple[str | None, str | None, str | None, str, str]] = {
    # name: branch (or None), flavor, source, torch, variant
    "2080ti-dkms-missing": ("470", "proprietary", "distro", "2.6.0", "cu118"),
    "a5000-nouveau-bound": ("580", "open", "distro", "2.14.1", "cu130"),
    "article-rtx3090-5900x-u2004": ("535", "proprietary", "distro", "2.14.1", "cu126"),
    "azure-vgpu-a10-slice": (None, None, None, "2.14.1", "cu126"),
    "dgx-a100": ("580", "open", "distro", "2.14.1", "cu130"),
    "dgx-spark-gb10": (None, None, "keep", "2.14.1", "cu130"),
    "gcp-t4x2": ("620", "open", "nvidia-repo", "2.14.1", "cu130"),
    "gh200-qct": ("580", "open", "distro", "2.14.1", "cu130"),
    # Its own 515 lies over apt's: no state to keep, although the release that Ubuntu 18.04 has instead is older.
    "gt1030x2-run-over-apt": ("470", "proprietary", "distro", "2.6.0", "cu118"),
    "k80x2-board-legacy470": (None, None, "keep", "2.3.1", "cu118"),
    "laptop-katana-4070-secureboot": ("580", "open", "distro", "2.14.1", "cu130"),
    "nogpu-dell-r6515": (None, None, None, "2.14.1", "cpu"),
    "p40-3090-mixed": (None, None, "keep", "2.14.1", "cu126"),
    "rtx3060-prebuilt-open580": (None, None, "keep", "2.14.1", "cu130"),
    "rtx4090x4-epyc": ("580", "open", "distro", "2.14.1", "cu130"),
    "rtx5090-3090ti-mixed": (None, None, "keep", "2.14.1", "cu130"),
    "rtx5090-proprietary-refused": ("580", "open", "distro", "2.14.1", "cu130"),
    "vm-p100-passthrough": ("580", "proprietary", "distro", "2.14.1", "cu126"),
    "wsl2-rtx3060": (None, None, None, "2.14.1", "cu126"),
    "xe9680-h100x8": ("580", "open", "distro", "2.14.1", "cu130"),
    "xe9680-mi300x": (None, None, None, "2.9.1", "rocm6.3"),
}


@cache
def captured(name: str) -> Machine:
    """Return the machine of a capture."""
    return detect(open_host(str(FOLDER / f"{name}.json"), None))


@pytest.mark.parametrize("name", CAPTURES)
def test_no_step_finds_an_error_in_what_is_recommended(name: str) -> None:
    answer = recommend(captured(name))
    assert answer.choices is not None
    assert [one for one in planning.findings(captured(name), answer.choices) if one.severity == "error"] == []


def test_a_module_that_secure_boot_refuses_is_said_until_a_signed_one_is_planned() -> None:
    def codes(source: str) -> set[str]:
        patch: dict[str, Any] = {"driver.branch": "580", "driver.flavor": "proprietary", "driver.source": source}
        found = planning.findings(captured("vm-a6000-3090-secureboot"), answered(Profile(), patch))
        return {one.code for one in found if one.severity == "error"}

    assert "secure-boot-unsigned-module" not in codes("distro")
    assert "secure-boot-unsigned-module" in codes("nvidia-repo")


@pytest.mark.parametrize("name", CAPTURES)
def test_what_is_recommended_can_be_had(name: str) -> None:
    answer = recommend(captured(name))

    assert answer.choices is not None
    assert [finding for finding in answer.findings if finding.severity == "error"] == []
    assert (answer.choices.toolkit.cuda, answer.choices.toolkit.cudnn, answer.choices.toolkit.nccl) == ("none", "none", "none")


@pytest.mark.parametrize("name", sorted(ADVISED))
def test_the_recommendation_of_a_captured_machine(name: str) -> None:
    choices = recommend(captured(name)).choices

    assert choices is not None
    driver, frameworks = choices.driver, choices.frameworks
    assert (driver.branch, driver.flavor, driver.source, frameworks["torch"], frameworks["variant"]) == ADVISED[name]


@pytest.mark.parametrize("name", CAPTURES)
def test_every_repair_removes_its_finding_and_raises_no_error(name: str) -> None:
    here = captured(name)
    base = recommend(here).choices
    assert base is not None
    wrong = (
        {"driver.branch": "570", "driver.flavor": "proprietary", "driver.source": "nvidia-repo"},
        {"frameworks.variant": "cu118"},
        {"toolkit.cuda": "11.8"},
    )
    for patch in wrong:
        answers = answered(base, patch)
        for finding in judge(here, answers):
            if finding.severity == "error" and finding.fix:
                after = judge(here, answered(answers, finding.fix))
                assert finding.code not in {one.code for one in after if one.severity == "error"}


def test_cards_of_no_common_driver_leave_the_older_ones_out() -> None:
    choices = recommend(machine("5090", "p40")).choices

    assert choices is not None
    assert (choices.driver.ignore, choices.driver.flavor) == (("0000:02:00.0",), "open")


@pytest.mark.parametrize(
    ("vendor", "chip", "capability", "gfx"),
    [
        ("nvidia", "GK104", "3.0", None),
        ("nvidia", None, None, None),
        ("amd", None, None, "gfx803"),
        ("amd", None, None, None),
        ("habana", None, None, None),
    ],
)
def test_cards_that_no_build_is_left_for_are_said_and_the_processor_computes(
    vendor: Literal["nvidia", "amd", "habana"], chip: str | None, capability: str | None, gfx: str | None
) -> None:
    card = Accelerator(address="0000:01:00.0", vendor=vendor, pci_id="10de:3f01", chip=chip, compute_capability=capability, gfx=gfx)
    answer = recommend(Machine(os=Os(id="ubuntu", version="22.04", arch="x86_64", container="none"), accelerators=(card,)))

    assert answer.choices is not None
    assert answer.choices.frameworks["variant"] == "cpu"
    assert not [finding for finding in answer.findings if finding.severity == "error"]


def test_a_machine_without_cards_computes_on_the_processor() -> None:
    choices = recommend(Machine(os=Os(id="ubuntu", version="24.04", arch="x86_64", container="none"))).choices

    assert choices is not None
    assert choices.frameworks["variant"] == "cpu"
    assert choices.driver.branch is None


@pytest.mark.parametrize("card", sorted(CARDS))
@pytest.mark.parametrize(
    "system", ["ubuntu 18.04", "ubuntu 22.04", "ubuntu 24.04", "ubuntu 26.04", "debian 12", "debian 13", "rocky 9", "fedora 44"]
)
def test_the_recommendation_holds_for_every_card_and_system(card: str, system: str) -> None:
    arch = "aarch64" if card in ("gh200", "gb10") else "x86_64"
    here = machine(card, system=system, arch=arch)
    answer = recommend(here)

    assert answer.choices is not None
    assert [finding.code for finding in answer.findings if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        (("torch==2.7.*",), {"frameworks.torch": "2.7.1", "frameworks.variant": "cu126", "frameworks.torchvision": "0.22.1"}),
        (("cuda==12.8",), {"toolkit.cuda": "12.8", "toolkit.cudnn": "none"}),
        (("driver==570",), {"driver.branch": "570", "driver.flavor": "proprietary", "driver.source": "distro"}),
        (("python==3.11",), {"environment.python": "3.11"}),
        (("tensorflow",), {"frameworks.tensorflow": "2.21.0"}),
        (("jax",), {"frameworks.jax": "0.12.0.1", "environment.python": "3.12"}),
        (("torch", "jax"), {"frameworks.torch": "2.14.1", "frameworks.jax": "0.12.0.1"}),
        (("cuda==12.8", "cudnn", "nccl"), {"toolkit.cuda": "12.8", "toolkit.cudnn": "9.28", "toolkit.nccl": "2.32"}),
        (("variant==cu126",), {"frameworks.variant": "cu126"}),
        (("cudnn==9.10",), {"toolkit.cuda": "12.9", "toolkit.cudnn": "9.10"}),
        (("nccl==2.26",), {"toolkit.cuda": "12.9", "toolkit.nccl": "2.26"}),
    ],
)
def test_wishes_are_met(wishes: tuple[str, ...], expected: dict[str, str]) -> None:
    choices = recommend(machine("4090"), wishes).choices

    assert choices is not None
    tables = {"driver": choices.driver, "toolkit": choices.toolkit, "environment": choices.environment}
    for key, value in expected.items():
        table, _, name = key.partition(".")
        have = choices.frameworks[name] if table == "frameworks" else getattr(tables[table], name)
        assert have == value


def test_an_impossible_wish_names_the_smallest_conflict_and_the_nearest() -> None:
    answer = recommend(machine("4090"), ("torch==2.14.*", "driver==535", "variant==cu130", "python==3.12"))

    assert answer.choices is None
    wishes = [word for word in answer.conflict if isinstance(word, str)]
    assert wishes == ["driver==535", "variant==cu130"]
    assert any(not isinstance(word, str) for word in answer.conflict)
    assert answer.nearest is not None
    assert not [finding for finding in judge(machine("4090"), answer.nearest) if finding.severity == "error"]


def said(words: tuple[Words, ...]) -> list[str]:
    """Return what a conflict says, in English."""
    return [say("en", word) for word in words]


@pytest.mark.parametrize(
    ("cards", "wishes", "expected", "left"),
    [
        (("4090",), ("jax", "python==3.10"), {"jax": "0.6.2"}, "jax 0.12.0.1 has wheels for Python 3.12, 3.13, 3.14, 3.15"),
        (("4090",), ("tensorflow", "python==3.9"), {"tensorflow": "2.20.0"}, "tensorflow 2.21.0 has wheels for Python"),
        (("4090",), ("vllm", "python==3.10"), {"vllm": "0.31.0", "torch": "2.13.0"}, "vllm 0.33.0 has wheels for Python"),
        (("v100",), ("vllm",), {"vllm": "0.19.1", "torch": "2.10.0"}, "vllm 0.33.0 is made for compute capability 7.5 and newer"),
        (("4090",), ("vllm", "driver==535"), {"vllm": "0.19.1"}, "vllm 0.33.0 needs driver 580 or newer"),
        (("4090",), ("torch", "python==3.9"), {"torch": "2.8.0"}, "torch 2.15.0 has wheels for Python"),
        (("k80",), ("torch",), {"torch": "2.3.1", "variant": "cu118"}, "torch 2.15.0+cu130 holds code for ≥ sm_75"),
        (("4090",), ("jax", "tensorflow", "torch"), {"torch": "2.14.1", "variant": "cu126"}, ""),
    ],
)
def test_the_newest_release_that_fits_is_taken_and_it_is_said_why_not_the_newest(
    cards: tuple[str, ...], wishes: tuple[str, ...], expected: dict[str, str], left: str
) -> None:
    answer = recommend(machine(*cards), wishes)

    assert answer.choices is not None
    assert {name: answer.choices.frameworks.get(name) for name in expected} == expected
    older = {word for note in answer.notes if note.code == "older-release" for word in said(note.because)}
    assert any(word.startswith(left) for word in older)


def test_cards_that_compute_nothing_are_said_with_the_reason() -> None:
    answer = recommend(machine("k80"), ("jax",))

    assert answer.choices is not None
    assert answer.choices.frameworks["variant"] == "cpu"
    assert [note.code for note in answer.notes] == ["gpus-idle"]


@pytest.mark.parametrize(
    ("wishes", "conflict"),
    [
        (("driver==470",), ["driver==470", "GPU 0 is RTX 4090", "RTX 4090: chip AD102", "525 is the first branch"]),
        (("driver==550", "cuda==13.0"), ["driver==550", "cuda==13.0", "The driver is 550", "CUDA 13.0 needs driver 580.65.06"]),
        (("python==3.9", "vllm"), ["python==3.9", "vllm", "vllm 0.33.0 has wheels for", "None of the 6 releases of vllm"]),
        (("torch==2.15.0", "tensorflow"), ["torch==2.15.0", "tensorflow", "torch brings", "tensorflow brings", "Both write", "None of"]),
        (("vllm==0.33.0", "torch==2.15.0", "jax"), ["vllm==0.33.0", "torch==2.15.0", "vllm 0.33.0 wants torch==2.14.0"]),
        (("torch==2.7.*", "torchaudio==2.6.0"), ["torch==2.7.*", "torchaudio==2.6.0", "torch 2.7.1 goes with torchaudio 2.7.1"]),
        (("variant==cu118", "torch==2.14.1"), ["variant==cu118", "torch==2.14.1", "torch 2.14.1 exists as"]),
    ],
)
def test_a_conflict_holds_this_persons_wishes_and_the_facts_about_them(wishes: tuple[str, ...], conflict: list[str]) -> None:
    found = said(recommend(machine("4090"), wishes).conflict)

    assert len(found) == len(conflict)
    assert all(have.startswith(want) for have, want in zip(found, conflict, strict=True)), found


def test_what_no_card_here_can_start_is_one_fact_and_not_two() -> None:
    found = said(recommend(machine("k80"), ("torch==2.14.1",)).conflict)

    assert [word.partition(" ")[0] for word in found] == ["torch==2.14.1", "GPU", "Tesla", "torch"]


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        (("torch==2.14.1", "python==3.9"), {"torch": "2.14.1", "python": "3.10"}),
        (("tensorflow-gpu==2.12.0",), {"tensorflow": "2.12.1"}),
        (("torch==2.15.0", "tensorflow"), {"torch": "2.14.1", "variant": "cu126", "tensorflow": "2.21.0"}),
        (("vllm", "torch==2.15.0"), {"torch": "2.14.0", "vllm": "0.33.0"}),
        (("torch==2.14.1", "variant==cu118"), {"torch": "2.14.1", "variant": "cu126"}),
        (("driver==550", "cuda==13.0"), {"cuda": "12.9", "driver": "550"}),
    ],
)
def test_the_nearest_moves_one_wish_as_little_as_it_can(wishes: tuple[str, ...], expected: dict[str, str]) -> None:
    near = recommend(machine("4090"), wishes).nearest

    assert near is not None
    have = {**near.frameworks, "python": near.environment.python, "cuda": near.toolkit.cuda, "driver": near.driver.branch}
    assert {name: have.get(name) for name in expected} == expected
    assert not [finding for finding in judge(machine("4090"), near) if finding.severity == "error"]


def test_where_no_framework_can_be_had_a_wish_for_something_else_is_met_without_one() -> None:
    answer = recommend(machine("4090", arch="riscv64"), ("python==3.12",))

    assert answer.choices is not None
    assert (answer.choices.environment.python, dict(answer.choices.frameworks)) == ("3.12", {})
    assert said(recommend(machine("4090", arch="riscv64"), ("torch",)).conflict)[0] == "torch"


@pytest.mark.parametrize(
    "wishes", [("driver==580", "driver==570"), ("torch==2.9.*", "torch", "torch==2.13.0"), ("variant==cu126", "variant==cpu")]
)
def test_two_versions_of_one_thing_are_a_conflict_and_not_the_last_one(wishes: tuple[str, ...]) -> None:
    advice = recommend(captured("rtx4090x4-epyc"), wishes)
    assert advice.choices is None
    assert [str(words) for words in advice.conflict] == [wishes[0], wishes[-1]]
    assert advice.nearest is not None


def test_a_line_and_a_release_of_it_are_one_wish() -> None:
    advised = recommend(captured("rtx4090x4-epyc"), ("torch==2.9.*", "torch==2.9.1")).choices
    assert advised is not None
    assert advised.frameworks["torch"] == "2.9.1"


def test_frameworks_that_clash_are_a_conflict() -> None:
    answer = recommend(machine("4090"), ("torch==2.15.0", "tensorflow"))

    assert answer.choices is None
    assert answer.conflict[:2] == ("torch==2.15.0", "tensorflow")


def test_a_withdrawn_framework_is_a_conflict_of_its_own() -> None:
    answer = recommend(machine("4090"), ("tensorflow-gpu==2.12.0",))

    assert answer.choices is None
    assert answer.conflict[0] == "tensorflow-gpu==2.12.0"


@pytest.mark.parametrize("text", ["driver==999", "cuda==14", "python==3.99", "torch==99", "==", "torch>=2", "no-such-thing", "", "torch=="])
def test_a_wish_that_cannot_be_read_or_is_not_known_is_a_usage_error(text: str) -> None:
    with pytest.raises(InputError):
        parse(text)


def test_nothing_installed_is_judged_without_a_profile() -> None:
    codes = {finding.code for finding in judge(captured("rtx5090-proprietary-refused"), Profile())}

    assert "gpu-needs-open-module" in codes


def test_the_same_machine_is_not_solved_twice() -> None:
    here = machine("4090")

    assert recommend(here) is recommend(here)
    assert recommend(machine("k80")).choices != recommend(here).choices


def test_where_the_driver_is_not_known_the_build_is_the_one_that_asks_for_the_oldest() -> None:
    here = captured("azure-vgpu-a10-slice")
    best = recommend(here).choices
    assert best is not None
    assert best.driver.branch is None
    assert best.frameworks["variant"] == "cu126"


def test_what_is_said_of_an_amd_card_is_what_is_recommended_for_it() -> None:
    here = captured("xe9680-mi300x")
    best = recommend(here).choices
    assert best is not None
    assert best.frameworks["variant"].startswith("rocm")
    assert "vendors-own-stack" not in {finding.code for finding in judge(here, Profile())}
