"""Sets of packages: a name in place of a profile, rows of the frameworks screen, and versions that the solver chooses."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from steps import frameworks, text
from steps.catalog import frameworks as catalog
from steps.compat import package_sets, solve
from steps.errors import InputError, PreflightError
from steps.headless import choices
from steps.model.choice import Option
from steps.model.machine import Machine
from steps.model.profile import EnvironmentAnswers, Profile, answered
from steps.model.software import Environment
from tests.test_compat_cases import machine
from tests.test_steps_stack import LANGUAGES, captured

SETS = catalog.package_sets()


@pytest.mark.parametrize("row", SETS, ids=package_sets.names())
@pytest.mark.parametrize("name", ["xe9680-h100x8", "rtx5090-3090ti-mixed", "gh200-qct", "2080ti-dkms-missing"])
def test_every_set_is_whole_and_without_an_error_on_real_machines(name: str, row: catalog.PackageSet) -> None:
    here = captured(name)
    best = package_sets.advised(here, row).choices
    assert best is not None
    assert set(row.packages) <= set(best.frameworks)
    assert best.environment.name == row.name
    assert [one.code for one in solve.judge_frameworks(here, best) if one.severity == "error"] == []


def test_an_older_pytorch_brings_the_transformers_that_its_extra_still_takes() -> None:
    server = next(row for row in SETS if row.name == "server")
    best = package_sets.advised(captured("k80x2-board-legacy470"), server).choices
    assert best is not None
    assert (best.frameworks["torch"], best.frameworks["transformers"]) == ("2.3.1", "5.0.0")
    asked = answered(best, {"frameworks.transformers": "5.24.0"})
    (found,) = (one for one in solve.judge_frameworks(captured("k80x2-board-legacy470"), asked) if one.severity == "error")
    assert any("torch>=2.6" in text.say("en", one) for one in found.because)


def test_beside_an_older_driver_that_is_kept_every_row_is_taken_in_the_build_that_goes_with_it() -> None:
    here = captured("rtx4090x4-epyc")
    keeping = answered(Profile(), {"driver.source": "keep"})
    shown = {choice.key: choice for choice in frameworks.choices(here, keeping)}
    rows = (*shown["frameworks"].options, *shown["frameworks.sets"].options)
    assert [row.value for row in rows if row.mark != "good"] == []
    for row in rows:
        taken = answered(keeping, row.patch)
        assert [one.code for one in solve.judge_frameworks(here, taken) if one.severity == "error"] == []
    assert answered(keeping, shown["frameworks"].options[0].patch).frameworks["variant"] == "cu126"


def test_what_is_compiled_here_brings_the_nvcc_of_pytorchs_own_cuda_only_for_cards_that_can_run_it() -> None:
    llm = next(row for row in SETS if row.build)
    ampere, turing = (package_sets.advised(machine(card), llm).choices for card in ("3090", "t4"))
    assert ampere is not None
    assert turing is not None
    assert (ampere.frameworks["variant"], ampere.toolkit.cuda) == ("cu130", "13.0")
    assert "ninja" in ampere.frameworks
    assert turing.toolkit.cuda == "none"
    assert "ninja" not in turing.frameworks


def test_a_set_is_a_profile_by_its_name_unless_a_file_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = captured("xe9680-h100x8")
    assert choices.chosen("student", here).frameworks["jupyterlab"]
    Path("student").write_text("schema = 1\n[frameworks]\ntorch = '2.13.0'\n")
    assert choices.chosen("student", here).frameworks == {"torch": "2.13.0"}
    with pytest.raises(InputError) as caught:
        choices.chosen("students", here)
    assert caught.value.code == "profile-missing-near"


def test_a_set_that_cannot_be_had_is_refused_with_what_says_why() -> None:
    here = machine("3090", glibc="2.17")
    with pytest.raises(PreflightError) as caught:
        choices.chosen("student", here)
    assert caught.value.code == "set-conflict"
    assert "--want pandas" in str(caught.value.params["wishes"])


def row_of(here: Machine, answers: Profile, name: str) -> Option:
    group = next(group for group in frameworks.choices(here, answers) if group.key == "frameworks.sets")
    return next(option for option in group.options if option.value == name)


def test_a_row_takes_the_set_beside_what_is_chosen_and_gives_it_back() -> None:
    here = captured("xe9680-h100x8")
    best = solve.recommend(here).choices
    assert best is not None
    taken = answered(best, row_of(here, best, "vision").patch or {})
    assert {"timm", "opencv-python-headless"} <= set(taken.frameworks)
    assert taken.frameworks["torch"] == best.frameworks["torch"]
    both = answered(taken, row_of(here, taken, "student").patch or {})
    back = answered(both, row_of(here, both, "vision").patch or {})
    assert "timm" not in back.frameworks
    assert {"matplotlib", "jupyterlab", "torch", "torchvision"} <= set(back.frameworks)


def test_a_set_that_does_not_go_says_on_its_row_what_forbids_it() -> None:
    here = machine("3090")
    answers = Profile(frameworks={"torch": "2.2.2", "variant": "cu121"})
    row = row_of(here, answers, "student")
    assert row.mark in ("bad", "catch")
    assert row.findings


@pytest.mark.parametrize(
    ("path", "python", "code"),
    [
        ("/home/ada/envs/student", "3.12.4", "environment-exists"),
        ("/home/ada/envs/student", "3.10.1", "environment-other-python"),
        ("/home/ada/other/student", "3.12.4", None),
    ],
)
def test_an_environment_of_that_name_is_announced_before_it_is_added_to(path: str, python: str, code: str | None) -> None:
    there = Environment(manager="uv", name="student", path=path, python=python, frameworks={"torch": "2.9.0"})
    here = msgspec.structs.replace(machine("3090"), environments=(there,))
    answers = Profile(environment=EnvironmentAnswers(name="student", python="3.12"), frameworks={"torch": "2.14.1", "variant": "cu126"})
    found = [one for one in frameworks.check(here, answers) if one.code.startswith("environment-")]
    assert [one.code for one in found] == ([code] if code else [])
    assert all(one.fix == {"environment.name": "student-2"} for one in found)


@pytest.mark.parametrize("name", sorted({name for row in SETS for name in (*row.packages, *(row.build.tools if row.build else ()))}))
def test_every_package_of_a_set_is_called_by_a_name_in_the_proof(name: str) -> None:
    assert all(text.lookup(language, f"verify.rung.{name}") for language in LANGUAGES)
