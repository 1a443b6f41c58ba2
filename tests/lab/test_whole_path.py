"""The whole path in a real Debian root: keys in a real terminal, real apt, the proof, and everything taken back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import lab as laboratory
from tests.lab.lab import Lab, LabMachine
from tests.ui.screen import Terminal

pytestmark = pytest.mark.lab

TESTS = Path(__file__).resolve().parents[1]
CAPTURE = TESTS / "machines" / "rtx4090x4-epyc.json"
PROFILE = TESTS / "profiles" / "lab-nvidia.toml"
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/root", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
PROMISED = {"nvidia-open", "cuda-toolkit-12-8", "libnccl2", "libcudnn9-cuda-12"}
MAY_DIFFER = {"ld.so.cache", "passwd", "passwd-", "group", "group-", "shadow", "shadow-", "gshadow", "gshadow-", ".pwd.lock"}
"""What undo does not put back: a cache, backups of the account files, and accounts that maintainer scripts made."""


@pytest.fixture
def machine(lab: Lab) -> Iterator[LabMachine]:
    """Return a fresh machine with room for what the toolkit announces: its stand-in is small, the check of free space is real."""
    with laboratory.machine(lab, size="16G") as running:
        yield running


def command(machine: LabMachine, *words: str) -> tuple[str, ...]:
    """Return how `bringup` is started beside the lab root, with the hardware of a capture."""
    return machine.argv(sys.executable, "-I", "-m", "tui", *words)


def wizard(machine: LabMachine) -> Terminal:
    """Return a terminal with the wizard for the lab root."""
    words = command(machine, "wizard", "--root", machine.root, "--machine", str(CAPTURE), "--profile", str(PROFILE))
    return Terminal(("/usr/bin/env", *words), ENVIRON)


def packages(machine: LabMachine) -> str:
    """Return `dpkg -l` of the root, without its heading."""
    return machine.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${binary:Package} ${Version}\n").stdout


def settings(machine: LabMachine) -> dict[str, str]:
    """Return every file and link below the root's /etc with what it holds, but for what may differ."""
    script = "cd /etc && find . -type f -exec sha256sum {} + ; find . -type l -printf '%l  %p\\n'"
    lines = machine.run("sh", "-c", script).stdout.splitlines()
    found = {name.removeprefix("./"): what for what, name in (line.split("  ", 1) for line in lines)}
    return {name: what for name, what in found.items() if name not in MAY_DIFFER}


def installed(machine: LabMachine) -> set[str]:
    """Return the names of the packages that are installed and configured."""
    return {line.split()[1] for line in packages(machine).splitlines() if line.startswith("ii ")}


def runs(machine: LabMachine) -> list[dict[str, object]]:
    """Return what `bringup runs` says."""
    ended = machine.run(*(sys.executable, "-I", "-m", "tui", "runs", "--json"), inside=False, env=ENVIRON)
    found: list[dict[str, object]] = json.loads(ended.stdout)["runs"]
    return found


def start(terminal: Terminal) -> None:
    """Press the two keys that lead from the first screen to a running installation."""
    terminal.until("What do you want to do with this machine?", "Set up", "4× RTX 4090")
    terminal.press("enter")
    terminal.until("Start the installation")
    terminal.press("enter")


def until_proven(terminal: Terminal) -> str:
    """Wait for the verdict and return the screen; a failed step ends the wait at once."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and "stopped at" not in terminal.text() and "not proven" not in terminal.text():
        if "proven as far as a mounted system can be" in terminal.text():
            return terminal.text()
        terminal.read()
    raise AssertionError(f"it was not proven:\n{terminal.text()}")


def test_two_keys_lead_to_a_proven_machine_and_undo_leads_back(machine: LabMachine) -> None:
    before, etc = packages(machine), settings(machine)
    with wizard(machine) as terminal:
        start(terminal)
        terminal.until("safe to leave", "log of")
        terminal.until("Setting up", seconds=60)
        until_proven(terminal)
        terminal.press("q")
        assert terminal.ended() == 0
    assert installed(machine) >= PROMISED
    assert "NCCL_SOCKET_IFNAME=eno1np0" in machine.path("/etc/nccl.conf").read_text()
    sources = "".join(path.read_text() for path in machine.path("/etc/apt/sources.list.d").glob("*.sources"))
    assert "Signed-By: /etc/apt/keyrings/" in sources
    run = runs(machine)[0]
    assert (run["state"], run["exit"]) == ("done", 0)

    undone = machine.run(*(sys.executable, "-I", "-m", "tui", "undo", "--yes", "--json"), inside=False, env=ENVIRON, timeout=300)
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert packages(machine) == before
    assert settings(machine) == etc


def test_a_package_that_cannot_be_configured_is_left_out_whole_and_the_end_says_so(machine: LabMachine) -> None:
    machine.path("/etc/lab").mkdir(exist_ok=True)
    machine.path("/etc/lab/behave").write_text("cuda-nvcc-12-8 fail 1\n")
    with wizard(machine) as terminal:
        start(terminal)
        terminal.until("Step 12 failed", seconds=90)
        terminal.press("n")
        terminal.until("Done, not proven: nvcc. Left out: CUDA toolkit 12.8", seconds=90)
        terminal.press("q")
        assert terminal.ended() == 20
    half = [line for line in packages(machine).splitlines() if line.split()[0] not in ("ii", "rc")]
    assert half == []
    assert installed(machine) >= {"libnccl2", "libcudnn9-cuda-12"}
    assert not machine.path("/etc/profile.d/bringup-cuda.sh").exists()
    run = runs(machine)[0]
    assert (run["state"], run["exit"]) == ("failed", 20)


def test_a_closed_terminal_does_not_end_the_run(machine: LabMachine) -> None:
    slow = machine.path("/etc/lab/behave")
    slow.write_text("cuda-nvcc-12-8 sleep 8\n")
    with wizard(machine) as terminal:
        start(terminal)
        terminal.until("safe to leave", "Setting up", seconds=60)
        # What a terminal does when its window is closed or its connection breaks.
        os.killpg(terminal.pid, signal.SIGHUP)
        terminal.ended()
    attached = Terminal(("/usr/bin/env", *command(machine, "attach")), ENVIRON)
    with attached:
        until_proven(attached)
        attached.press("q")
        attached.ended()
    assert installed(machine) >= PROMISED
    run = runs(machine)[0]
    assert (run["state"], run["exit"]) == ("done", 0)
    folder = machine.run("sh", "-c", "cat /var/lib/bringup/runs/*/output/*.log", inside=False, env=ENVIRON).stdout
    assert "lab: working 8/8" in folder or "working 8/8" in folder


def test_a_second_run_at_the_same_time_names_the_first(machine: LabMachine) -> None:
    machine.path("/etc/lab/behave").write_text("cuda-nvcc-12-8 sleep 6\n")
    common = ("--root", machine.root, "--machine", str(CAPTURE), "--profile", str(PROFILE), "--yes", "--json")
    first = machine.run(*(sys.executable, "-I", "-m", "tui", "apply", "--detach", *common), inside=False, env=ENVIRON)
    name = json.loads(first.stdout)["run"]
    second = machine.run(*(sys.executable, "-I", "-m", "tui", "apply", *common), inside=False, env=ENVIRON)
    assert second.returncode == 75, second.stderr
    assert name in second.stderr
    watched: subprocess.CompletedProcess[str] = machine.run(
        *(sys.executable, "-I", "-m", "tui", "attach", "--json"), inside=False, env=ENVIRON, timeout=300
    )
    assert watched.returncode == 0, watched.stdout + watched.stderr
