"""A run that stops at a broken system, its repair as a run of its own, and the way on and back: with real dpkg."""

from __future__ import annotations

import json
import os
import sys

import pytest

from steps.engine import client
from steps.model.action import Run, installing
from steps.model.base import Phrase
from tests.engine_kit import ended, output, plan_of
from tests.lab.broken_system import SYSTEM
from tests.lab.lab import LabMachine
from tests.lab.test_repairs import ENVIRON, bringup, looks

pytestmark = pytest.mark.lab
ROOT = os.environ.get("LAB_ROOT", "/nonexistent")
_WANTED = "libnccl-dev=2.28.3-1+cuda13.0"
_BROKEN = next(case for case in SYSTEM if case.id == "held-library")


def stops() -> None:
    """Start a run that wants a newer library than the one that a person holds; print its id."""
    # apt's own words must stand in the output: a simulation that is refused has none.
    asks = Run(id="a.asks", title="t", lane="packages", argv=("apt-get", "-s", "install", _WANTED))
    actions = (installing("apt", "a.ok", "t", ("lab-ok",)), asks, installing("apt", "a.library", "t", (_WANTED,)))
    handle = client.start(plan_of(*actions, root=ROOT), sudo=None)
    state = ended(handle, 120)
    error = state.actions["a.ok"].error
    assert (state.status, state.actions["a.ok"].status) == ("failed", "done"), (
        state,
        error if isinstance(error, Phrase) else "",
        output(handle, "a.asks"),
    )
    print(handle.id)


def test_a_stopped_run_is_repaired_gone_on_with_and_both_are_taken_back(machine: LabMachine) -> None:
    _BROKEN.make(machine)
    before = looks(machine)
    began = machine.run(sys.executable, "-m", "tests.lab.test_repair_of_run", inside=False, env=ENVIRON)
    assert began.returncode == 0, began.stdout + began.stderr
    run = began.stdout.split()[-1]

    told = bringup(machine, "attach", run, "--plain")
    assert f"bringup doctor --fix --run {run}" in told.stdout, told.stdout + told.stderr
    mended = bringup(machine, "doctor", "--fix", "--run", run, "--yes")
    assert mended.returncode == 0, mended.stdout + mended.stderr
    assert f"bringup resume {run}" in mended.stderr

    # Without a name it is the stopped run that goes on, not the newer one that repaired it.
    went_on = bringup(machine, "resume", "--json")
    document = json.loads(went_on.stdout)
    assert (document["run"], document["state"]) == (run, "done"), went_on.stdout + went_on.stderr
    assert "2.28.3" in machine.run("dpkg-query", "-W", "libnccl-dev").stdout

    # Newest doing first: the run that went on rests on its repair.
    for taken in (run, None):
        undone = json.loads(bringup(machine, "undo", "--yes", "--json").stdout)
        assert (undone["run"] == run, undone["state"]) == (taken == run, "undone"), undone
    assert looks(machine) == before


if __name__ == "__main__":
    stops()
