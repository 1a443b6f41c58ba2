"""The engine with real apt and dpkg: nothing lost in a flood, a killed runner, a cancel, and the way back."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from steps.engine import client, journal
from steps.engine.waiting import processes_of
from steps.host.local import LocalHost
from steps.host.rooted import RootedHost
from steps.managers import apt, apt_repository
from steps.managers.base import Snapshot, manager
from steps.model.base import Phrase
from tests.engine_kit import ended, kill_runner, output, plan_of, statuses, wait_until
from tests.lab import catalogue
from tests.lab.lab import LabMachine

pytestmark = pytest.mark.lab
ROOT = os.environ.get("LAB_ROOT", "/nonexistent")


# --- what happens beside the root, in the machine's namespaces ---------------------------------------


def install(*packages: str) -> client.RunHandle:
    actions = (*apt_repository.nvidia_repository(catalogue.NVIDIA_URL), apt.install("a.install", "t", packages))
    return client.start(plan_of(*actions, root=ROOT), sudo=None)


def snapshot() -> Snapshot:
    found = manager("apt").snapshot(RootedHost(ROOT, LocalHost()))
    assert found is not None
    return found


def seconds(count: int) -> None:
    Path(ROOT, "etc/lab").mkdir(exist_ok=True)
    Path(ROOT, "etc/lab/seconds").write_text(f"{count}\n")


def flood() -> None:
    before = snapshot()
    handle = install("lab-flood", "lab-ok")
    state = ended(handle, 120)
    assert (state.status, state.exit) == ("done", 0), (state, output(handle, "a.install")[-2000:])
    lines = [line for line in output(handle, "a.install").splitlines() if line.startswith("CC [M]")]
    assert (len(lines), lines[-1]) == (200_000, "CC [M]  /var/lib/dkms/nvidia/build/file200000.o")
    progress = Path(handle.folder, "output", "a.install.status").read_text()
    assert "pmstatus:lab-ok:" in progress
    handle.undo()
    assert ended(handle, 120).status == "undone"
    assert snapshot() == before


def killed() -> None:
    before = snapshot()
    seconds(4)
    handle = install("lab-sleep", "lab-ok")
    wait_until(handle, lambda _: "working 1/4" in output(handle, "a.install"), 60)
    kill_runner(handle)
    handle.resume()
    state = ended(handle, 120)
    assert (state.status, statuses(state)["a.install"]) == ("done", "already"), (state, output(handle, "a.install"))
    text = output(handle, "a.install")
    assert text.count("working 4/4") == 1
    assert "Setting up lab-ok" in text
    assert "still at work" in text
    handle.undo()
    assert ended(handle, 120).status == "undone"
    assert snapshot() == before


def all_killed() -> None:
    """A power cut as far as processes go: the runner, apt, dpkg and the script at once."""
    seconds(30)
    handle = install("lab-sleep", "lab-ok")
    wait_until(handle, lambda _: "working 1/30" in output(handle, "a.install"), 60)
    session = int(Path(handle.folder, "output", "a.install.session").read_text().split()[-1])
    working = tuple(processes_of(session))
    assert len(working) >= 3
    kill_runner(handle)
    for pid in working:
        os.kill(pid, signal.SIGKILL)
    seconds(1)
    handle.resume()
    state = ended(handle, 120)
    assert state.status == "done", (state, output(handle, "a.install"))
    assert "--configure" in output(handle, "a.install"), output(handle, "a.install")


def cancelled() -> None:
    seconds(3)
    handle = install("lab-sleep", "lab-ok")
    wait_until(handle, lambda _: "working 1/3" in output(handle, "a.install"), 60)
    handle.cancel()
    state = ended(handle, 60)
    assert (state.status, state.exit) == ("cancelled", 5)
    assert statuses(state)["a.install"] == "done", (state, output(handle, "a.install"))


def failing() -> None:
    handle = install("lab-fail")
    state = ended(handle, 60)
    error = state.actions["a.install"].error
    assert isinstance(error, Phrase)
    assert (state.status, error.key, error.params["text"]) == ("failed", "manager.apt.script", "lab-fail")
    before = snapshot().packages
    handle.undo()
    assert ended(handle, 60).status == "undone"
    assert "lab-fail" not in snapshot().packages
    assert len(snapshot().packages) < len(before)


def refused() -> None:
    before = snapshot()
    for packages, code in ((("lab-big",), "space-too-small"), (("lab-unmet",), "packages-refused")):
        handle = install(*packages)
        state = ended(handle, 60)
        error = state.actions["a.install"].error
        assert isinstance(error, Phrase)
        assert (state.exit, error.key) == (3, f"error.{code}.sentence")
        entries, _ = journal.read(Path(handle.folder, "journal.jsonl"))
        assert not [entry for entry in entries if entry.kind == "registered" and entry.action == "a.install"]
    assert snapshot() == before


SCENES = {scene.__name__: scene for scene in (flood, killed, all_killed, cancelled, failing, refused)}


# --- what pytest sees --------------------------------------------------------------------------------


@pytest.mark.parametrize("scene", SCENES)
def test_with_real_apt(scene: str, machine: LabMachine) -> None:
    ran = machine.run(sys.executable, "-m", "tests.lab.test_engine_apt", scene, inside=False, env={"SUDO_UID": ""})
    assert ran.returncode == 0, ran.stdout + ran.stderr


if __name__ == "__main__":
    SCENES[sys.argv[1]]()
