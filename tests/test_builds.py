"""Packages that are compiled where they are used: the toolkit that they bring, and the step that compiles them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from steps import planning
from steps.compat import solve
from steps.managers.building import Building, build
from steps.managers.fetching import Fetching
from steps.managers.makers import Interpreter, Place
from steps.model.action import Run
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import Profile, answered
from steps.model.software import Toolkit
from tests import scoring
from tests.test_conda import UV

MACHINE = scoring.machine("rtx4090x4-epyc")
HERE = Target(
    installer=Installer(uv="/usr/bin/uv", pythons={"3.12": "/usr/bin/python3.12"}, own_python="/usr/bin/python3.12", home="/root")
)


def advised(*wishes: str, machine: Machine = MACHINE) -> Profile:
    found = solve.recommend(machine, wishes).choices
    assert found is not None
    return found


def refusal(answers: Profile, machine: Machine = MACHINE) -> dict[str, object] | None:
    """Return the repair of the finding; `None` without the finding."""
    found = [one for one in planning.findings(machine, answers) if one.code == "build-needs-toolkit"]
    return dict(found[0].fix or {}) if found else None


def test_a_wish_for_what_is_compiled_brings_the_toolkit_of_pytorchs_own_cuda() -> None:
    choices = advised("flash-attn")
    assert (choices.toolkit.cuda, choices.frameworks["variant"]) == ("13.0", "cu130")
    assert not {"build-needs-toolkit", "toolkit-not-needed"} & {one.code for one in planning.findings(MACHINE, choices)}
    assert advised("torch").toolkit.cuda == "none"


@pytest.mark.parametrize("cuda", ["none", "12.8"])
def test_without_a_toolkit_of_that_major_it_cannot_be_compiled(cuda: str) -> None:
    assert refusal(answered(advised("flash-attn"), {"toolkit.cuda": cuda})) == {"toolkit.cuda": "13.0"}


def test_a_toolkit_that_is_installed_will_do() -> None:
    there = msgspec.structs.replace(MACHINE, toolkits=(Toolkit(version="13.0", path="/opt/cuda", source="runfile"),))
    choices = advised("flash-attn", machine=there)
    assert choices.toolkit.cuda is None
    assert refusal(choices, there) is None
    assert built(choices, there).env["CUDA_HOME"] == "/opt/cuda"


def built(answers: Profile, machine: Machine = MACHINE) -> Run:
    actions = {action.id: action for action in planning.make_plan(machine, answers, HERE, 0.0).actions}
    found = actions["environment.build"]
    assert isinstance(found, Run)
    assert set(found.needs) <= set(actions)
    return found


@pytest.mark.parametrize("manager", ["uv", "venv"])
def test_it_is_compiled_in_a_step_of_its_own_that_sees_pytorch_and_leaves_it_alone(manager: str) -> None:
    answers = answered(advised("flash-attn"), {"environment.manager": manager})
    plan = planning.make_plan(MACHINE, answers, HERE, 0.0)
    install = next(action for action in plan.actions if action.id == "environment.install")
    assert isinstance(install, Run)
    assert not any(word.startswith("flash-attn") for word in install.argv)
    assert {"ninja", "packaging", "psutil", "setuptools", "einops"} <= set(install.argv)
    build = built(answers)
    assert build.needs == ("environment.install", "toolkit.cuda")
    assert build.argv[-1] == "flash-attn==2.8.3.post2"
    assert "--no-build-isolation" in build.argv
    assert not {"--reinstall", "--force-reinstall"} & set(build.argv)
    assert build.env["CUDA_HOME"] == "/usr/local/cuda-13.0"
    assert build.env["PATH"].split(":")[1] == "/usr/local/cuda-13.0/bin"


@pytest.mark.parametrize(("gigabytes", "cores", "jobs"), [(16, 8, "1"), (64, 64, "7"), (512, 16, "8")])
def test_memory_and_cores_bound_how_many_files_are_compiled_at_once(gigabytes: int, cores: int, jobs: str) -> None:
    memory = msgspec.structs.replace(MACHINE.memory, total_bytes=gigabytes << 30)
    machine = msgspec.structs.replace(MACHINE, memory=memory, cpu=msgspec.structs.replace(MACHINE.cpu, cores=cores))
    assert built(advised("flash-attn"), machine).env["MAX_JOBS"] == jobs


@pytest.mark.net
def test_what_is_compiled_sees_the_packages_of_the_environment(tmp_path: Path) -> None:
    if UV is None:
        pytest.skip("uv is not installed here")
    environ = {**os.environ, "UV_NATIVE_TLS": "1", "UV_NO_PROGRESS": "1"}
    subprocess.run((UV, "venv", "--no-project", "--python", sys.executable, tmp_path / "env"), check=True, capture_output=True, env=environ)
    where = Place(manager="uv", path=f"{tmp_path}/env", interpreter=Interpreter(line="3.11"))
    tools = subprocess.run((UV, "pip", "install", "--python", where.python, "setuptools", "wheel"), capture_output=True, env=environ)
    if tools.returncode:
        pytest.skip("setuptools cannot be had here")
    (next(Path(where.path).glob("lib/python*/site-packages")) / "torch.py").write_text("CUDA = '13.0'\n")
    source = tmp_path / "source"
    source.mkdir()
    called = "setuptools.setup(name='on-torch', version=torch.CUDA + '.' + os.environ['MAX_JOBS'])"
    (source / "setup.py").write_text(f"import os, torch, setuptools\n{called}\n")
    run = build(where, UV, Fetching(options=(), proxy=None, certificates=None), Building(requirements=(str(source),), jobs=3))
    done = subprocess.run(run.argv, capture_output=True, text=True, env={**environ, **run.env}, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "on-torch==13.0.3" in done.stderr
