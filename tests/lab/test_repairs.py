"""Broken systems with real apt, dpkg and DKMS's tree: named, repaired by a run, proven, and taken back to exactly as they were found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab.broken import BROKEN, Broken
from tests.lab.lab import LabMachine
from tests.lab.test_whole_path import packages, settings

pytestmark = pytest.mark.lab

CAPTURE = Path(__file__).resolve().parents[1] / "machines" / "rtx4090x4-epyc.json"
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/root", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
CASES = [pytest.param(case, id=case.id, marks=[pytest.mark.long] if case.long else []) for case in BROKEN]


def bringup(machine: LabMachine, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `bringup` beside the lab's root."""
    return machine.run(*(sys.executable, "-I", "-m", "tui", *words), inside=False, env=ENVIRON, timeout=300)


def cause(machine: LabMachine, *words: str) -> str | None:
    """Return the cause that the doctor names in the root, with the cards of a capture."""
    told = bringup(machine, "doctor", "--root", machine.root, "--machine", str(CAPTURE), "--json", *words)
    verdict: dict[str, Any] = json.loads(told.stdout)
    return next((str(one["id"]) for one in verdict["diagnoses"] if one["primary"]), None)


def looks(machine: LabMachine) -> tuple[str, dict[str, str]]:
    """Return the packages with their states, and everything below /etc."""
    return packages(machine), settings(machine)


@pytest.mark.parametrize("case", CASES)
def test_a_broken_system_is_named_repaired_proven_and_taken_back(case: Broken, machine: LabMachine, tmp_path: Path) -> None:
    log = case.make(machine)
    words: tuple[str, ...] = ()
    if log is not None:
        Path(tmp_path, "pasted.log").write_text(log)
        words = ("--log", str(tmp_path / "pasted.log"))
    before = looks(machine)
    assert machine.run("sh", "-c", case.proves).returncode != 0
    assert cause(machine, *words) == case.cause, log

    done = bringup(machine, "doctor", "--fix", "--yes", "--json", "--root", machine.root, "--machine", str(CAPTURE), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    actions = json.loads(done.stdout)["actions"]
    assert [one["state"] for one in actions if one["id"] == "repair.proof"] == ["done"]
    proven = machine.run("sh", "-c", case.proves)
    assert proven.returncode == 0, proven.stdout + proven.stderr

    undone = bringup(machine, "undo", "--yes", "--json")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    after = looks(machine)
    assert after[0] == before[0]
    assert {name for name in {*before[1], *after[1]} if before[1].get(name) != after[1].get(name)} == set()
    if log is None:
        assert cause(machine) == case.cause
