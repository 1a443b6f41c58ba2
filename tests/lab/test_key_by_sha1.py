"""A key that apt refuses for its age alone: Debian 13's apt with Sequoia, and a repository whose key was bound anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import lab as laboratory
from tests.lab import rebound
from tests.lab.lab import LabMachine
from tests.lab.test_repairs import MACHINES, bringup, cause, looks

pytestmark = [pytest.mark.lab, pytest.mark.long]

_SOURCE, _KEY = "/etc/apt/sources.list.d/cuda-debian13-x86_64.list", "/usr/share/keyrings/cuda-archive-keyring.gpg"


@pytest.fixture
def newer() -> Iterator[LabMachine]:
    """Return a machine with Debian 13 and the key that it was given long ago."""
    reason = laboratory.missing()
    if reason is not None:
        pytest.skip(f"no lab here: {reason}")
    made = laboratory.prepare_newer()
    with laboratory.machine(made) as running:
        running.path(_KEY).write_bytes((made.repositories / "old.gpg").read_bytes())
        running.path(_SOURCE).write_text(f"deb [signed-by={_KEY}] {rebound.URL} /\n")
        yield running


def test_a_key_that_is_too_old_gives_way_to_the_same_key_as_it_is_now(newer: LabMachine, tmp_path: Path) -> None:
    update = ("apt-get", "-o", "APT::Update::Error-Mode=any", "update")
    refused = newer.run(*update)
    assert refused.returncode != 0
    assert "SHA1" in refused.stdout + refused.stderr
    log = tmp_path / "pasted.log"
    log.write_text(refused.stdout + refused.stderr)
    words = ("--root", newer.root, "--machine", str(MACHINES / "rtx4090x4-epyc.json"), "--log", str(log))
    before = looks(newer)
    assert cause(newer, *words) == "apt-repo-key-rotated"

    done = bringup(newer, "doctor", "--fix", "--yes", "--json", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {one["id"]: one["state"] for one in json.loads(done.stdout)["actions"]}["repair.proof"] == "done"
    assert newer.run(*update).returncode == 0

    undone = bringup(newer, "undo", "--yes", "--json")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert looks(newer) == before
    assert newer.run(*update).returncode != 0
