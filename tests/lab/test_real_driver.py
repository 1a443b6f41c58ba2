"""Debian's real driver with its real DKMS build: the wizard, a killed runner, another release's driver over it, and the way back.

Not for every day: three builds take from a quarter of an hour on free cores to more than one on shared ones, and half a
gigabyte is fetched. `tests/run --long lab`, or `pytest -s --long tests/lab/test_real_driver.py` for the figures.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.engine import client
from steps.model.action import ModuleBuilt, installing
from tests.engine_kit import ended, output, plan_of
from tests.lab import lab as laboratory
from tests.lab.lab import LabMachine
from tests.lab.test_whole_path import CAPTURE, ENVIRON, TESTS, command, packages, runs
from tests.ui.screen import Terminal

pytestmark = [pytest.mark.lab, pytest.mark.long]

PROFILE = TESTS / "profiles" / "debian-535.toml"
ROOT = os.environ.get("LAB_ROOT", "/nonexistent")
BUILD = 3600.0
"""So long may a build take on cores that are shared; seconds."""
ASKED = ("nvidia-driver", "nvidia-kernel-dkms", "firmware-nvidia-gsp")


@pytest.fixture(scope="module")
def machine() -> Iterator[LabMachine]:
    """Return one machine for the whole way: what one part leaves is what the next one finds."""
    reason = laboratory.missing()
    if reason is not None:
        pytest.skip(f"no lab here: {reason}")
    with laboratory.machine(laboratory.prepare_real(), size="16G", online=True) as running:
        yield running


@pytest.fixture(scope="module")
def first(machine: LabMachine) -> str:
    """Return the packages as they were before anything was done."""
    return packages(machine)


def modules(machine: LabMachine) -> dict[str, str]:
    """Return the versions of the modules that DKMS has put below the kernels."""
    script = 'for m in /lib/modules/*/updates/dkms/*.ko*; do [ -e "$m" ] && echo "$m $(modinfo -F version "$m")"; done; true'
    lines = machine.run("sh", "-c", script).stdout.splitlines()
    return dict(line.rsplit(" ", 1) for line in lines)


def bringup(machine: LabMachine, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end beside the root."""
    return machine.run(sys.executable, "-I", "-m", "tui", *words, inside=False, env=ENVIRON, timeout=BUILD)


def timed(what: str, began: float) -> None:
    """Print a figure, for who runs this with -s."""
    print(f"{what}: {time.monotonic() - began:.0f} s")


def test_the_wizard_installs_it_and_a_killed_runner_is_gone_on_with(machine: LabMachine, first: str) -> None:
    assert "nvidia" not in first
    words = command(machine, "wizard", "--root", machine.root, "--machine", str(CAPTURE), "--profile", str(PROFILE))
    began = time.monotonic()
    with Terminal(("/usr/bin/env", *words), ENVIRON) as terminal:
        terminal.until("What do you want to do with this machine?", "Set up", seconds=60)
        terminal.press("enter")
        terminal.until("Start the installation", seconds=120)
        terminal.press("enter")
        terminal.until("Silence is normal: the module is built", seconds=BUILD)
        timed("until the build", began)
        pid = machine.run("pgrep", "--full", "--newest", "steps.engine.runner", inside=False).stdout.strip()
        machine.run("kill", f"-{signal.SIGKILL.value}", pid, inside=False)
        terminal.until("The runner is gone", seconds=60)
        terminal.press("q")
        terminal.ended()
    began = time.monotonic()
    resumed = bringup(machine, "resume", "--json")
    timed("resumed until done", began)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert {version.split(".")[0] for version in modules(machine).values()} == {"535"}
    assert any("/nvidia-current.ko" in path for path in modules(machine))
    assert not machine.run("dpkg", "--audit").stdout


def upgrade() -> None:
    """Beside the root: install another release's driver as apt itself would, every version and removal by its name; then undo it."""
    told = subprocess.run(
        ("chroot", ROOT, "env", "LC_ALL=C", "apt-get", "-s", "-t", "trixie", "install", *ASKED), capture_output=True, text=True, check=True
    ).stdout
    named = tuple(f"{name}={version}" for name, version in re.findall(r"^Inst (\S+)(?: \[[^\]]+\])? \((\S+)", told, re.MULTILINE))
    removed = tuple(re.findall(r"^Remv (\S+)", told, re.MULTILINE))
    assert any(name.startswith("libc6=") for name in named), told
    (kernel,) = (path.name for path in Path(ROOT, "lib/modules").iterdir())
    built = ModuleBuilt(module="nvidia", kernel=kernel)
    action = installing("apt", "driver.upgrade", "Driver of trixie", named, may_remove=removed, done_when=(built,))
    handle = client.start(plan_of(action, root=ROOT), sudo=None)
    began = time.monotonic()
    state = ended(handle, BUILD)
    assert state.status == "done", (state, output(handle, "driver.upgrade")[-4000:])
    timed(f"upgrade of {len(named)} packages, {len(removed)} removed", began)
    version = subprocess.run(
        ("chroot", ROOT, "modinfo", "-k", kernel, "-F", "version", "nvidia-current"), capture_output=True, text=True, check=True
    ).stdout
    assert version.startswith("550."), version
    began = time.monotonic()
    handle.undo()
    state = ended(handle, BUILD)
    timed("undo of the upgrade", began)
    assert state.status == "undone", (state, output(handle, "driver.upgrade")[-4000:])


def test_another_release_s_driver_is_refused_by_itself_and_taken_back_where_a_person_insisted(machine: LabMachine, tmp_path: Path) -> None:
    before, built = packages(machine), modules(machine)
    assert "nvidia-driver 535." in before
    newer = tmp_path / "newer.toml"
    newer.write_text(PROFILE.read_text().replace('"535"', '"550"'))
    refused = bringup(machine, "apply", "--yes", "--root", machine.root, "--machine", str(CAPTURE), "--profile", str(newer))
    assert refused.returncode == 3, refused.stdout + refused.stderr
    assert "of another release" in refused.stderr
    assert packages(machine) == before

    insisted = machine.run(sys.executable, "-m", "tests.lab.test_real_driver", inside=False, env={"SUDO_UID": ""}, timeout=3 * BUILD)
    print(insisted.stdout)
    assert insisted.returncode == 0, insisted.stdout + insisted.stderr
    assert packages(machine) == before
    assert modules(machine) == built


def test_undo_leads_back_to_a_machine_without_it(machine: LabMachine, first: str) -> None:
    ours = next(str(run["id"]) for run in runs(machine) if "535" in str(run["title"]))
    began = time.monotonic()
    undone = bringup(machine, "undo", ours, "--yes", "--json")
    timed("undo of the installation", began)
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert packages(machine) == first
    assert modules(machine) == {}


if __name__ == "__main__":
    upgrade()
