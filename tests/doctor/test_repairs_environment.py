"""An environment that a log names is worked on only where it is one, and only as whoever it belongs to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

import pytest

from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.environments import environment_of, pip
from steps.doctor.repairs.own_python import IMPORTS, shown_as
from steps.doctor.repairs.paths import own_libraries
from steps.doctor.rules.base import Candidate
from steps.doctor.told import fact
from steps.host.local import LocalHost
from steps.model.action import Keep, Run

ROOT = os.geteuid() == 0
UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))


def naming(path: Path | str) -> Candidate:
    """Return a cause whose evidence is a line of a log with a file of an environment."""
    text = f'  File "{path}/lib/python3.11/site-packages/torch/cuda/__init__.py", line 1'
    return Candidate(strength=0.9, facts=(fact("torch", "log", text),))


def steps(path: Path | str, *words: str) -> tuple[Step, ...]:
    seen = Evidence(LocalHost())
    try:
        return pip(seen, naming(path), "torch", "cuda-build", *words)
    finally:
        seen.close()


def found(path: Path | str) -> str | None:
    seen = Evidence(LocalHost())
    try:
        return environment_of(seen, naming(path), "torch")
    finally:
        seen.close()


def owned(path: Path, uid: int) -> None:
    """Give a folder and all in it to somebody."""
    for one in (path, *path.rglob("*")):
        os.chown(one, uid, uid, follow_symlinks=False)


@pytest.fixture
def env(tmp_path: Path) -> Path:
    """Return an environment with pip in it, of the person who runs the tests."""
    at = tmp_path / "env"
    venv.create(at, symlinks=True)
    made = next(at.glob("lib/python3*/site-packages")) / "pip"
    made.mkdir()
    (made / "__init__.py").touch()
    return at


def test_a_folder_that_is_no_environment_is_not_taken_out_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    assert [found(path) for path in ("/etc", tmp_path, f"{tmp_path}/../env", "/nowhere/env")] == [None] * 4
    assert [step.actions for step in steps("/etc", "x")] == [()]


def test_the_base_of_conda_is_not_worked_on_and_an_environment_of_it_is(tmp_path: Path) -> None:
    base, one = tmp_path / "miniforge3", tmp_path / "miniforge3" / "envs" / "dl"
    for at in (base, one):
        (at / "conda-meta").mkdir(parents=True)
    (base / "conda-meta" / "conda-25.1.1-py312.json").touch()
    assert (found(base), found(one)) == (None, str(one))
    (one / "condabin").mkdir()
    assert found(one) is None


def test_an_environment_is_copied_and_changed_by_whom_it_belongs_to(env: Path) -> None:
    keep, change = (step.actions[0] for step in steps(env, "torch"))
    assert (type(keep), type(change)) == (Keep, Run)
    assert isinstance(change, Run)
    assert change.argv[:4] == (f"{env}/bin/python", "-I", "-m", "pip")
    assert {keep.by, change.by} == {"root" if ROOT else "user"}


@pytest.mark.skipif(not ROOT, reason="only root gives folders away")
@pytest.mark.parametrize(("sudo", "by"), [(None, None), ("65534", "user"), ("1", None)])
def test_root_starts_nothing_that_somebody_else_has_put_there(
    env: Path, monkeypatch: pytest.MonkeyPatch, sudo: str | None, by: str | None
) -> None:
    owned(env, 65534)
    monkeypatch.delenv("SUDO_UID", raising=False)
    if sudo is not None:
        monkeypatch.setenv("SUDO_UID", sudo)
    actions = [action for step in steps(env, "torch") for action in step.actions]
    assert [action.by for action in actions] == ([by, by] if by else [])


@pytest.mark.skipif(not ROOT, reason="only root gives folders away")
def test_an_interpreter_of_somebody_elses_behind_a_link_is_not_roots_to_start(env: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "python"
    theirs.write_text("#!/bin/sh\nid -un\n")
    theirs.chmod(0o755)
    os.chown(theirs, 65534, 65534)
    (env / "bin" / "python").unlink()
    (env / "bin" / "python").symlink_to(theirs)
    assert [step.actions for step in steps(env, "torch")] == [()]


@pytest.mark.skipif(UV is None, reason="uv is not here")
def test_an_environment_of_uvs_is_filled_by_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert UV is not None
    env, wheels = tmp_path / "env", tmp_path / "wheels"
    subprocess.run((UV, "venv", "--quiet", "--no-project", "--python", sys.executable, str(env)), check=True)
    monkeypatch.setenv("PATH", f"{Path(UV).parent}:{os.environ['PATH']}")
    wheels.mkdir()
    wheel(wheels)
    (change,) = (
        action
        for step in steps(env, "--no-index", "--find-links", str(wheels), "tiny")
        for action in step.actions
        if isinstance(action, Run)
    )
    assert change.argv[1:5] == ("pip", "install", "--python", f"{env}/bin/python")
    subprocess.run(change.argv, check=True, env={**os.environ, **change.env}, capture_output=True)
    assert subprocess.run((f"{env}/bin/python", "-c", "import tiny"), check=False).returncode == 0


def wheel(folder: Path) -> None:
    """Write the smallest package that can be installed."""
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as file:
        file.writestr("tiny.py", "")
        file.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\n")


def test_an_environment_with_neither_pip_nor_uv_is_left_to_its_person(env: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.rmtree(next(env.glob("lib/python3*/site-packages/pip")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("steps.doctor.repairs.environments.person_home", lambda: str(tmp_path))
    (step,) = steps(env, "torch")
    assert step.actions == ()
    assert step.command == ("uv", "pip", "install", "--python", f"{env}/bin/python", "torch")


def test_a_copy_that_a_repair_kept_is_not_taken_for_another_environment(env: Path) -> None:
    kept = Path(Keep(id="a", title="t", path=str(env)).kept("1130-a"))
    env.rename(kept)
    assert LocalHost().glob(f"{env.parent}/*/pyvenv.cfg") == ()


class Setting(LocalHost):
    """The machine itself, but that its bash reads another file before it asks for a command."""

    def __init__(self, script: str) -> None:
        super().__init__()
        self._script = script

    def read(self, path: str) -> str | None:
        return self._script if path == "/etc/bash.bashrc" else super().read(path)


@pytest.mark.skipif(not ROOT, reason="makes an environment of root's")
@pytest.mark.parametrize(("more", "by_its_own"), [("", True), ("; export OTHER=1", False)])
def test_a_search_path_that_a_person_has_to_change_is_not_proven_gone_by_a_login_that_never_read_it(more: str, by_its_own: bool) -> None:
    with tempfile.TemporaryDirectory(dir="/root") as folder:
        path = Path(folder, "env")
        venv.create(path)
        seen = Evidence(Setting(f"export LD_LIBRARY_PATH=/usr/local/cuda/lib64{more}\n"))
        try:
            plan = own_libraries.build(seen, naming(path))
        finally:
            seen.close()
        assert plan.verify is not None
        assert (plan.verify.command == shown_as(str(path), IMPORTS)) is by_its_own
