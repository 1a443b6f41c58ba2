"""The lab's root as the system that runs: our program lies in it, and what the kernel says of its module is a stand-in."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.lab.broken import trusting
from tests.lab.lab import LabMachine
from tests.lab.test_whole_path import packages, settings

pytestmark = pytest.mark.lab

CHECKOUT = Path(__file__).resolve().parents[2]
OLD, NEW = "570.124.06", "580.82.07"
_PARTS = ("nvidia-kernel-dkms", "nvidia-kernel-support", "nvidia-driver-cuda", "nvidia-driver-libs")
_LOADED, _BOOT = "/proc/driver/nvidia/version", "/proc/sys/kernel/random/boot_id"


def inhabit(machine: LabMachine) -> None:
    """Put our program into the root, and the places where the kernel tells of its module and its boot."""
    if sys.base_prefix == "/usr":
        pytest.skip("needs an interpreter that can be laid into another system: this one is spread over /usr")
    for folder in (sys.base_prefix, str(CHECKOUT)):
        machine.run("sh", "-ec", f"mkdir -p {machine.root}{folder}; mount --bind {folder} {machine.root}{folder}", inside=False)
    machine.run(
        "sh", "-ec", "mount -t tmpfs lab /proc/driver; mkdir /proc/driver/nvidia; cat /proc/sys/kernel/random/boot_id >/run/boot_id"
    )
    machine.run("mount", "--bind", "/run/boot_id", _BOOT)


def boot(machine: LabMachine) -> None:
    """Load the module that lies on disk for the running kernel, as a boot does."""
    load(machine, machine.run("modinfo", "-F", "version", "nvidia").stdout.strip())


def load(machine: LabMachine, version: str) -> None:
    """Let the kernel of another boot tell of a module of this version, and the tools find it."""
    machine.path("/run/boot_id").write_text(f"{uuid.uuid4()}\n")
    machine.path(_LOADED).write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Feb 11 2025\n")
    machine.path("/etc/lab/smi").write_text("ok")


def bringup(machine: LabMachine, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `bringup` in the root."""
    return machine.run(sys.executable, "-I", "-m", "tui", *words, timeout=300)


def cause_of(machine: LabMachine, *words: str) -> dict[str, Any]:
    """Return the primary diagnosis."""
    told = bringup(machine, "doctor", "--json", *words)
    found: list[dict[str, Any]] = json.loads(told.stdout)["diagnoses"]
    return next(one for one in found if one["primary"])


def states(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the states of a run's actions."""
    return {one["id"]: one["state"] for one in json.loads(done.stdout)["actions"]}


def test_an_upgrade_under_a_running_driver_asks_for_the_reboot_that_proves_it(machine: LabMachine) -> None:
    inhabit(machine)
    for path, data in trusting().items():
        machine.path(path).write_bytes(data)
    machine.run("sh", "-ec", "mkdir -p /lib/modules/$(uname -r)/build; apt-get -q update")
    for version in (OLD, NEW):
        done = machine.run("apt-get", "-qy", "install", *(f"{name}={version}-1" for name in _PARTS))
        assert done.returncode == 0, done.stdout + done.stderr
        if version == OLD:
            boot(machine)
    machine.path("/etc/lab/smi").write_text("mismatch")
    before = packages(machine), settings(machine)
    found = cause_of(machine)
    assert found["id"] == "reboot-pending-after-driver-update"
    assert OLD in found["because"]
    assert NEW in found["because"]

    asked = bringup(machine, "doctor", "--fix", "--yes", "--json")
    assert asked.returncode == 10, asked.stdout + asked.stderr
    assert json.loads(asked.stdout)["state"] == "reboot"
    assert cause_of(machine)["id"] == found["id"]
    boot(machine)
    done = bringup(machine, "resume", "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert states(done) == {"repair.reboot": "done", "repair.proof": "done"}
    assert cause_of(machine)["id"] == "none"

    # A reboot has no way back and left nothing behind: with the old module in the kernel it is the same broken system.
    undone = bringup(machine, "undo", "--yes", "--json")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    machine.path(_LOADED).write_text(f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {OLD}  Tue Feb 11 2025\n")
    machine.path("/etc/lab/smi").write_text("mismatch")
    assert (packages(machine), settings(machine)) == before
    assert cause_of(machine)["id"] == found["id"]
