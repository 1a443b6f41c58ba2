"""Broken systems with real apt, dpkg and DKMS's tree: named, repaired by a run, proven, and taken back to exactly as they were found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from steps.catalog import frameworks
from steps.compat.wheels import cuda_of
from tests.lab.broken import Broken, trusting
from tests.lab.broken_driver import DRIVER
from tests.lab.broken_sets import SETS
from tests.lab.broken_system import SYSTEM
from tests.lab.debs import Deb, File
from tests.lab.lab import LabMachine
from tests.lab.test_whole_path import packages, settings

pytestmark = pytest.mark.lab

MACHINES = Path(__file__).resolve().parents[1] / "machines"
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/root", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
CASES = [pytest.param(case, id=case.id, marks=[pytest.mark.long] if case.long else []) for case in (*DRIVER, *SETS, *SYSTEM)]


def bringup(machine: LabMachine, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `bringup` beside the lab's root."""
    return machine.run(*(sys.executable, "-I", "-m", "tui", *words), inside=False, env=ENVIRON, timeout=300)


def cause(machine: LabMachine, *words: str) -> str | None:
    """Return the cause that the doctor names."""
    told = bringup(machine, "doctor", "--json", *words)
    verdict: dict[str, Any] = json.loads(told.stdout)
    return next((str(one["id"]) for one in verdict["diagnoses"] if one["primary"]), None)


def looks(machine: LabMachine) -> tuple[str, dict[str, str], str]:
    """Return the packages with their states, everything below /etc, and the driver's files and modules with what is in them."""
    found = "find /usr/lib/x86_64-linux-gnu/lib*nvidia* /usr/lib/x86_64-linux-gnu/libcuda* /usr/bin/nvidia* /var/lib/nvidia* /var/lib/dkms"
    files = machine.run(
        "sh", "-c", f"{found} /lib/modules -name modules.* -prune -o -type f -print0 2>/dev/null | xargs -0 sha256sum | sort"
    )
    return packages(machine), settings(machine), files.stdout


@pytest.mark.parametrize("case", CASES)
def test_a_broken_system_is_named_repaired_proven_and_taken_back(case: Broken, machine: LabMachine, tmp_path: Path) -> None:
    log = case.make(machine)
    words: tuple[str, ...] = ("--root", machine.root, "--machine", str(MACHINES / f"{case.hardware}.json"))
    if log is not None:
        Path(tmp_path, "pasted.log").write_text(log)
        words = (*words, "--log", str(tmp_path / "pasted.log"))
    before = looks(machine)
    assert machine.run("sh", "-c", case.proves).returncode != 0
    assert cause(machine, *words) == case.cause, log

    done = bringup(machine, "doctor", "--fix", "--yes", "--json", *words)
    assert done.returncode == (20 if case.unproven else 0), done.stdout + done.stderr
    states = {one["id"]: one["state"] for one in json.loads(done.stdout)["actions"]}
    assert states.pop("repair.proof") == ("failed" if case.unproven else "done")
    assert set(states.values()) <= {"done", "already"}
    assert case.unproven is None or f"Only this would show it again: {case.unproven}" in done.stderr
    proven = machine.run("sh", "-c", case.proves)
    assert proven.returncode == 0, proven.stdout + proven.stderr

    undone = bringup(machine, "undo", "--yes")
    assert undone.returncode == (21 if case.unproven else 0), undone.stdout + undone.stderr
    after = looks(machine)
    assert not case.stays or "as far as can be. What apt completed, if anything, stays." in undone.stdout
    assert (after[0] == before[0]) is not case.stays
    assert {name for name in {*before[1], *after[1]} if before[1].get(name) != after[1].get(name)} == set()
    assert after[2] == before[2]
    if log is None:
        assert cause(machine, *words) == case.cause


# --- what one command alone does not finish ---------------------------------------------------------


def test_an_upgrade_that_dpkg_cannot_configure_alone_is_completed_by_apt(machine: LabMachine) -> None:
    half = Deb("lab-half", "1.0", "all", 60, {}, {"/etc/lab-half.conf": File(b"level = 1\n")})
    # What needs the new library was unpacked, the library was not yet; of the other package the archive is gone.
    unpacked = Broken(
        "cut-off-upgrade",
        "dpkg-interrupted",
        files=trusting(),
        debs=(half,),
        script="apt-get -q update; apt-get -qy install libnccl2=2.26.2-1+cuda12.8 libnccl-dev=2.26.2-1+cuda12.8; "
        "cd /var/cache/apt/archives; apt-get -qy download libnccl-dev=2.28.3-1+cuda13.0; "
        "dpkg --unpack libnccl-dev_2.28.3*.deb lab-half_1.0_all.deb; rm lab-half_1.0_all.deb",
    )
    unpacked.make(machine)
    words = ("--root", machine.root, "--machine", str(MACHINES / f"{unpacked.hardware}.json"))
    assert machine.run("dpkg", "--dry-run", "--configure", "-a").returncode == 1
    assert cause(machine, *words) == "dpkg-interrupted"

    done = bringup(machine, "doctor", "--fix", "--yes", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    states = machine.run(
        "dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n", "libnccl2", "libnccl-dev", "lab-half"
    ).stdout
    assert sorted(states.split("\n"))[1:] == [
        "lab-half 1.0 ii ",
        "libnccl-dev 2.28.3-1+cuda13.0 ii ",
        "libnccl2 2.28.3-1+cuda13.0 ii ",
    ]
    undone = bringup(machine, "undo", "--yes")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert "undone as far as can be. Half-done packages stay configured." in undone.stdout
    assert "the machine is as it was" not in undone.stdout


# --- a real Python environment ----------------------------------------------------------------------

_ENV, _WHEELS, _RELEASE = "/opt/lab-env", "/opt/lab-wheels", "2.8.0"


def _wheel(folder: Path, local: str, cuda: str | None) -> None:
    """Write the smallest wheel that calls itself this build of PyTorch."""
    version = f"{_RELEASE}+{local}"
    folder.mkdir(exist_ok=True)
    info = f"torch-{version}.dist-info"
    with zipfile.ZipFile(folder / f"torch-{version}-py3-none-any.whl", "w") as file:
        file.writestr("torch/__init__.py", f"class version:\n    cuda = {cuda!r}\n")
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"torch/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")


def _pip(machine: LabMachine, *words: str) -> str:
    return machine.run(f"{_ENV}/bin/python", "-m", "pip", *words, inside=False, env=ENVIRON, timeout=120).stdout


@pytest.mark.long
def test_a_build_without_cuda_gives_way_to_one_with_it_and_comes_back(
    machine: LabMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What this machine's person tells pip is not the lab's; a child takes it from here.
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    release = frameworks.torch_release(_RELEASE)
    assert release is not None
    for variant in release.variant:
        _wheel(tmp_path / "wheels", variant.name, cuda_of(variant.name))
    # The machine's own /opt is a copy that ends with it.
    machine.run("cp", "-r", str(tmp_path / "wheels"), _WHEELS, inside=False)
    machine.run(sys.executable, "-I", "-m", "venv", _ENV, inside=False, env=ENVIRON, timeout=120)
    settings_file = tmp_path / "pip.conf"
    settings_file.write_text(f"[global]\nno-index = true\nfind-links = {_WHEELS}\ndisable-pip-version-check = true\n")
    machine.run("cp", str(settings_file), f"{_ENV}/pip.conf", inside=False)
    _pip(machine, "install", f"torch=={_RELEASE}+cpu")
    listed = _pip(machine, "list")
    assert f"{_RELEASE}+cpu" in listed
    # A build with CUDA is for a card: this is what the kernel would show of one.
    card = tmp_path / "bus" / "0000:01:00.0"
    card.mkdir(parents=True)
    for name, value in (("vendor", "0x10de"), ("device", "0x2204"), ("class", "0x030000")):
        (card / name).write_text(f"{value}\n")
    machine.run("mount", "--bind", str(card.parent), "/sys/bus/pci/devices", inside=False, env=ENVIRON)
    log = tmp_path / "pasted.log"
    log.write_text(listed + "AssertionError: Torch not compiled with CUDA enabled\n")
    told = json.loads(bringup(machine, "doctor", "--json", "--log", str(log)).stdout)
    assert next(one["id"] for one in told["diagnoses"] if one["primary"]) == "cpu-only-build-active"

    done = bringup(machine, "doctor", "--fix", "--yes", "--json", "--log", str(log))
    # The environment is root's, so its own Python is asked what it imports now.
    assert done.returncode == 0, done.stdout + done.stderr
    assert "+cu" in _pip(machine, "list")
    undone = bringup(machine, "undo", "--yes", "--json")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert _pip(machine, "list") == listed
