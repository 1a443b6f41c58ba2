"""Mirrors and folders that a profile names: a local index that has the build, the wrong one, none, or gives no answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steps.catalog import frameworks as catalog
from steps.compat import framework_plan
from steps.compat.case import Case
from steps.errors import InputError, PreflightError
from steps.host.local import LocalHost
from steps.knowledge import mirrors
from steps.managers.fetching import address, fetching
from steps.model.action import Run
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.plan import Installer, Plan, Target
from steps.model.profile import EnvironmentAnswers, NetworkAnswers, Profile
from steps.model.software import Os
from steps.profiles import parse
from tests.index_server import Index, serving

HERE = Machine(os=Os(arch="x86_64"))
FETCH = Target(installer=Installer(uv="/u/uv", pythons={"3.12": "/usr/bin/python3.12"}, home="/home/ada"))
TAG = "cp312-cp312-manylinux_2_28_x86_64.whl"
CUDA = ('nvidia-cudnn-cu13==9.20.0; platform_system == "Linux"', "numpy")


@pytest.fixture
def index() -> Iterator[Index]:
    held = Index()
    with serving(held):
        yield held


def looked(frameworks: dict[str, str], **network: Any) -> tuple[Finding, ...]:
    profile = Profile(
        environment=EnvironmentAnswers(manager="uv", name="dl", python="3.12"),
        frameworks=frameworks,
        network=NetworkAnswers(**network),
    )
    actions = framework_plan.plan(Case(HERE, profile), FETCH)
    install = next(action for action in actions if isinstance(action, Run) and action.id == "environment.install")
    plan = Plan(made=0.0, target=FETCH, profile=profile, actions=actions)
    return mirrors.looked_at(HERE, plan, install, LocalHost(), seconds=5.0)


def test_a_mirror_with_the_wanted_build_is_said_nothing_of(index: Index) -> None:
    index.add(f"torch-2.14.1+cu126-{TAG}", CUDA)
    assert looked({"torch": "2.14.1", "variant": "cu126"}, torch_index=f"{index.address}/simple", pypi=f"{index.address}/simple") == ()


def test_a_mirror_that_would_answer_with_the_build_for_the_processor_is_an_error_that_says_what_it_has(index: Index) -> None:
    index.add(f"torch-2.14.1+cpu-{TAG}")
    (found,) = looked({"torch": "2.14.1", "variant": "cu126"}, torch_index=f"{index.address}/simple", pypi=f"{index.address}/simple")
    assert (found.code, found.severity, found.subject) == ("mirror-lacks-build", "error", "torch 2.14.1+cu126")
    assert "2.14.1+cpu" in str(found.because)


@pytest.mark.parametrize(("requires", "codes"), [(CUDA, []), (("numpy",), ["mirror-other-build"])])
def test_a_wheel_that_names_no_build_is_told_by_its_metadata(index: Index, requires: tuple[str, ...], codes: list[str]) -> None:
    index.add(f"torch-2.14.1-{TAG}", requires)
    found = looked({"torch": "2.14.1", "variant": "cu130"}, pypi=f"{index.address}/simple")
    assert [one.code for one in found] == codes
    assert not any(path.endswith(".whl") for path, _ in index.asked), "no wheel is fetched to know it"


def test_a_build_for_another_python_is_not_the_wanted_one(index: Index) -> None:
    index.add("torch-2.14.1+cu126-cp311-cp311-manylinux_2_28_x86_64.whl", CUDA)
    (found,) = looked({"torch": "2.14.1", "variant": "cu126"}, torch_index=f"{index.address}/simple", pypi=f"{index.address}/simple")
    assert found.code == "mirror-lacks-build"


def test_a_mirror_that_does_not_answer_is_named_and_no_build_is_said_to_be_missing(index: Index) -> None:
    found = looked({"torch": "2.14.1", "variant": "cu130"}, pypi="http://127.0.0.1:9/simple")
    assert [(one.code, one.severity, one.subject) for one in found] == [("mirror-unreachable", "warning", "127.0.0.1")]


@pytest.mark.parametrize(("file", "codes"), [(f"torch-2.14.1+cu126-{TAG}", []), (f"torch-2.14.1+cpu-{TAG}", ["mirror-lacks-build"])])
def test_a_folder_of_wheels_is_looked_into(index: Index, tmp_path: Path, file: str, codes: list[str]) -> None:
    (tmp_path / file).touch()
    network = {"find_links": str(tmp_path), "torch_index": f"{index.address}/simple", "pypi": f"{index.address}/simple"}
    assert [one.code for one in looked({"torch": "2.14.1", "variant": "cu126"}, **network)] == codes


def test_without_a_named_mirror_nobody_is_asked(index: Index) -> None:
    assert looked({"torch": "2.14.1", "variant": "cu126"}) == ()
    assert index.asked == []


def test_every_preset_is_an_address_over_tls_with_its_source() -> None:
    rows = catalog.indexes()
    assert {"tuna", "ustc", "aliyun", "sjtu"} <= {row.name for row in rows if row.kind == "pypi"}
    assert all(row.url.startswith("https://") and row.source for row in rows)
    assert all(("{variant}" in row.url) is (row.kind == "torch") for row in rows)


def test_a_preset_stands_for_its_address_and_a_bare_word_that_is_none_is_refused() -> None:
    assert address("pypi", "tuna") == "https://pypi.tuna.tsinghua.edu.cn/simple"
    chosen = fetching(Profile(network=NetworkAnswers(pypi="ustc", conda="tuna")), Installer(), ())
    assert chosen.options == ("--index-url", "https://mirrors.ustc.edu.cn/pypi/simple")
    assert chosen.channel.endswith("/anaconda/cloud/conda-forge")
    with pytest.raises(PreflightError) as caught:
        address("pypi", "tuma")
    assert caught.value.code == "mirror-unknown"


def test_a_mirror_for_apt_is_refused_rather_than_ignored() -> None:
    with pytest.raises(InputError) as caught:
        parse("schema = 1\n[network]\napt = 'tuna'\n", "lab.toml")
    assert (caught.value.code, caught.value.params["line"]) == ("profile-apt-mirror", 3)
