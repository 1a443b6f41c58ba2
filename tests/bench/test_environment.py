"""The student's environment as the plan makes it with uv, against `python -m venv` and pip; both with empty caches, in turn, in one run."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from steps.compat import package_sets
from steps.compat.case import Case
from steps.compat.framework_plan import requirements
from steps.compat.solve import recommend
from steps.managers import python
from steps.model.action import Run
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.model.profile import Profile, answered
from steps.model.software import Os
from tests.test_training import fetching

pytestmark = [pytest.mark.bench, pytest.mark.net, pytest.mark.long]
MOST = 0.35
LINE = "3.11"
HERE = Machine(os=Os(id="debian", version="12", arch="x86_64", glibc="2.36"))


def student() -> tuple[Profile, tuple[str, ...]]:
    """Return the set's answers for the processor in this test's Python, and its requirements."""
    row = package_sets.named("student")
    assert row is not None
    best = recommend(HERE, (*row.packages, f"python=={LINE}", "torch==2.13.0", "variant==cpu")).choices
    assert best is not None
    return answered(best, {"environment.manager": "uv"}), requirements(Case(HERE, best))


def seconds(folder: Path, *commands: tuple[str, ...], **environ: str) -> float:
    """Return how long the commands take, one after the other."""
    bare = {"PATH": os.environ["PATH"], "HOME": str(folder), **environ}
    begin = time.monotonic()
    for argv in commands:
        subprocess.run(argv, env=bare, check=True, capture_output=True, timeout=1200)
    return time.monotonic() - begin


def test_uv_makes_the_students_environment_in_about_a_third_of_the_time_of_venv_and_pip(tmp_path: Path) -> None:
    here = fetching()
    interpreter = here.pythons.get(LINE)
    if here.uv is None or interpreter is None or not here.find_links:
        pytest.skip("needs uv, Python 3.11 and a folder with PyTorch's wheel for the processor")
    profile, wanted = student()
    profile = answered(profile, {"environment.path": str(tmp_path / "uv")})
    actions = python.environment(HERE, profile, wanted, Target(installer=here))
    ours = [action for action in actions if isinstance(action, Run) and action.id in ("environment.create", "environment.install")]
    options = [word for link in here.find_links for word in ("--find-links", link)]
    # The article's way: an environment of the standard library, and pip in it.
    pip = (str(tmp_path / "pip/bin/pip"), "install", "--no-input", *options, *wanted)
    theirs = seconds(tmp_path, (interpreter, "-m", "venv", str(tmp_path / "pip")), pip, PIP_CACHE_DIR=str(tmp_path / "pip-cache"))
    mine = sum(seconds(tmp_path, action.argv, **{**action.env, "UV_CACHE_DIR": str(tmp_path / "uv-cache")}) for action in ours)
    names = [
        {
            path.name
            for path in (tmp_path / place).glob("lib/python*/site-packages/*.dist-info")
            if not path.name.startswith(("pip-", "setup"))
        }
        for place in ("uv", "pip")
    ]
    print(f"uv {mine:.1f} s, venv and pip {theirs:.1f} s: {mine / theirs:.2f}; {len(names[0])} packages")
    assert names[0] == names[1]
    assert mine <= MOST * theirs
