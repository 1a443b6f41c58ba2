"""A real environment from the real index: PyTorch for the processor made as planned, proven, removed, and rebuilt from its lock."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from steps import proof
from steps.compat import framework_plan
from steps.compat.case import Case
from steps.host.local import LocalHost
from steps.managers import python
from steps.model.action import Run, Succeeds, Write
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.model.profile import EnvironmentAnswers, Profile
from steps.model.software import Os
from tests.test_training import fetching

pytestmark = pytest.mark.net
HERE = Machine(os=Os(arch="x86_64"))
FRAMEWORKS = {"torch": "2.13.0", "variant": "cpu"}


def carried_out(profile: Profile) -> tuple[Run, ...]:
    """Carry out the plan of a profile as far as it runs commands, and return these."""
    here = msgspec.structs.replace(fetching(), index_url=None)
    actions = framework_plan.plan(Case(HERE, profile), Target(installer=here))
    commands = tuple(action for action in actions if isinstance(action, Run))
    for action in commands:
        ended = subprocess.run(action.argv, env={**os.environ, **action.env}, capture_output=True, text=True, check=False, timeout=300)
        assert ended.returncode == 0, f"{action.id}: {ended.stderr[-600:]}"
    assert all(action.by == "user" for action in actions)
    assert any(isinstance(action, Write) for action in actions)
    return commands


def distributions(folder: Path) -> dict[str, str]:
    """Return what an environment holds, by the metadata and its text."""
    found = folder.glob("lib/python*/site-packages/*.dist-info/METADATA")
    return {path.parent.name: path.read_text(encoding="utf-8") for path in found}


def test_pytorch_for_the_processor_is_made_proven_removed_and_rebuilt_from_its_lock_to_the_identical_set(tmp_path: Path) -> None:
    here = fetching()
    if here.uv is None or "3.11" not in here.pythons or not here.find_links:
        pytest.skip("needs uv, Python 3.11 and a folder with PyTorch's wheel for the processor")
    folder = tmp_path / "envs" / "dl"
    answers = EnvironmentAnswers(manager="uv", path=str(folder), python="3.11")
    carried_out(Profile(environment=answers, frameworks=FRAMEWORKS))
    (rung,) = proof.imports(LocalHost(), f"{folder}/bin/python", {"torch": "2.13.0"}, gpus=False)
    assert rung.state == "passed"
    before, lock = distributions(folder), tmp_path / "kept-lock.txt"
    shutil.copy(folder / python.LOCK_FILE, lock)
    # Of every one a hash, of the wheel that lies in a folder too.
    assert lock.read_text(encoding="utf-8").count("==") == len(before)
    assert all("--hash=sha256:" in part for part in lock.read_text(encoding="utf-8").split("==")[1:])
    shutil.rmtree(folder)

    again = carried_out(Profile(environment=msgspec.structs.replace(answers, lock=str(lock)), frameworks=FRAMEWORKS))
    assert distributions(folder) == before
    install = next(action for action in again if action.id == "environment.install")
    (probe,) = install.done_when
    assert isinstance(probe, Succeeds)
    assert subprocess.run(probe.argv, check=False).returncode == 0
    assert (folder / python.LOCK_FILE).read_text(encoding="utf-8") == lock.read_text(encoding="utf-8")
