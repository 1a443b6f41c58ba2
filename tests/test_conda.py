"""Environments by conda and its kin: a stand-in that asks as they do, met by the engine, filled by the real uv from a local index."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steps.engine import client
from steps.errors import PreflightError
from steps.managers import installer, python
from steps.model.action import Run
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import EnvironmentAnswers, EnvironmentManager, NetworkAnswers, Profile
from tests.engine_kit import BIN, ended, output, plan_of, statuses, wait_until
from tests.index_server import Index, serving
from tests.test_managers_python import Files

LINE = f"{sys.version_info.major}.{sys.version_info.minor}"
KIN: tuple[EnvironmentManager, ...] = ("conda", "mamba", "micromamba", "pixi")
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bringup-test-") as folder:
        monkeypatch.setenv("BRINGUP_STATE", folder)
        yield Path(folder)


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """Return the stand-in under each name that it plays."""
    text = f"#!{sys.executable} -I\n{(BIN / 'conda').read_text(encoding='utf-8')}"
    found: dict[str, str] = {}
    for name in KIN:
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        found[name] = str(program)
    return found


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    held = Index()
    held.add("small-1.0-py3-none-any.whl")
    held.add("small-2.0-py3-none-any.whl")
    with serving(held) as address:
        yield address


def planned(tmp_path: Path, tools: dict[str, str], manager: EnvironmentManager, *wanted: str, **network: Any) -> tuple[Run, ...]:
    profile = Profile(environment=EnvironmentAnswers(manager=manager, name="dl", python=LINE), network=NetworkAnswers(**network))
    fetch = Installer(uv=UV, managers=tools, own_python=sys.executable, home=str(tmp_path), environments=str(tmp_path / "envs"))
    actions = python.environment(Machine(), profile, wanted, Target(installer=fetch))
    return tuple(action for action in actions if isinstance(action, Run))


@pytest.mark.parametrize("manager", KIN)
def test_conda_and_its_kin_make_the_environment_uv_fills_it_and_undo_takes_it_away(
    tmp_path: Path, tools: dict[str, str], index: str, manager: EnvironmentManager
) -> None:
    if UV is None:
        pytest.skip("uv is not installed here")
    handle = client.start(plan_of(*planned(tmp_path, tools, manager, "small==1.0", pypi=index)), sudo=None)
    assert ended(handle).status == "done", statuses(handle.state())
    folder = tmp_path / "envs" / "dl"
    assert list(folder.glob("**/site-packages/small-1.0.dist-info"))
    assert "small==1.0" in (folder / python.LOCK_FILE).read_text(encoding="utf-8")
    assert list(folder.glob("**/conda-meta/history"))
    handle.undo()
    ended(handle)
    assert not folder.exists()


@pytest.mark.parametrize("manager", ["conda", "mamba"])
def test_only_conda_forge_is_asked_and_the_plan_answers_no_other_question(
    tmp_path: Path, tools: dict[str, str], manager: EnvironmentManager
) -> None:
    create = next(action for action in planned(tmp_path, tools, manager) if action.id == "environment.create")
    assert create.argv[create.argv.index("--channel") :][:3] == ("--channel", "conda-forge", "--override-channels")
    assert "--yes" not in create.argv
    assert [reply.prompt for reply in create.replies] == [f"{manager}-proceed"]
    assert create.env["CONDA_PLUGINS_AUTO_ACCEPT_TOS"] == "false"


def test_a_mirror_of_the_channel_is_taken_by_its_preset_name(tmp_path: Path, tools: dict[str, str]) -> None:
    create = planned(tmp_path, tools, "conda", conda="https://mirror.example/conda-forge")[-1]
    assert "https://mirror.example/conda-forge" in create.argv


def test_the_terms_of_anacondas_own_channels_are_a_persons_to_accept(tmp_path: Path, tools: dict[str, str]) -> None:
    handle = client.start(plan_of(*planned(tmp_path, tools, "conda", conda="defaults")), sudo=None)
    prompt = wait_until(handle, lambda state: state.prompt is not None).prompt
    assert prompt is not None
    assert prompt.id == "conda-terms"
    handle.answer(prompt.seq, "reject")
    assert ended(handle).status == "failed"
    assert "CondaToSRejectedError" in output(handle, "environment.create")
    assert not (tmp_path / "envs" / "dl").exists()


def test_an_environment_that_is_there_is_not_removed_unless_a_person_says_so(tmp_path: Path, tools: dict[str, str]) -> None:
    mine = tmp_path / "envs" / "dl" / "conda-meta" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("years of work\n")
    handle = client.start(plan_of(*planned(tmp_path, tools, "conda")), sudo=None, attended=False)
    assert ended(handle).status == "failed"
    assert "[bringup: conda-remove: no]" in output(handle, "environment.create")
    assert mine.read_text() == "years of work\n"
    handle.undo()
    ended(handle)
    assert mine.exists()


def test_a_manager_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreflightError) as caught:
        planned(tmp_path, {}, "micromamba", "small==1.0")
    assert (caught.value.code, caught.value.params) == ("environment-tool", {"manager": "micromamba"})


def test_conda_is_found_on_the_path_by_its_own_variable_and_where_its_installers_put_it() -> None:
    home = "/home/ada"
    here = {"/srv/conda/bin/conda": "", f"{home}/miniforge3/bin/mamba": "", f"{home}/.pixi/bin/pixi": "", "/srv/bin/micromamba": ""}
    environ = {"CONDA_EXE": "/srv/conda/bin/conda", "PATH": "/usr/bin:/srv/bin"}
    found = installer.settings(Files(here), environ, home=home, user="ada", uid=1000).managers
    assert found == {
        "conda": "/srv/conda/bin/conda",
        "mamba": f"{home}/miniforge3/bin/mamba",
        "micromamba": "/srv/bin/micromamba",
        "pixi": f"{home}/.pixi/bin/pixi",
    }
