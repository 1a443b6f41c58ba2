"""A capture of a mounted system gives the facts that the system itself gives, and names nobody."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab import LabMachine

pytestmark = pytest.mark.lab

HARDWARE = Path(__file__).resolve().parents[1] / "machines" / "rtx4090x4-epyc.json"


def detected(machine: LabMachine, *words: str) -> dict[str, Any]:
    """Return the `detect` document without network addresses, which a capture has other ones for."""
    result = machine.run(sys.executable, "-I", "-m", "tui", "detect", "--json", *words, inside=False)
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    for network in document["networks"]:
        network["addresses"] = len(network["addresses"])
    return document


@pytest.mark.parametrize("hardware", [(), ("--machine", str(HARDWARE))], ids=["this machine", "a capture"])
def test_a_capture_of_a_lab_root_gives_the_same_document(machine: LabMachine, hardware: tuple[str, ...]) -> None:
    accounts, kernel = machine.path("/etc/passwd"), "6.1.0-99-amd64"
    accounts.write_text(f"{accounts.read_text()}brandybuck:x:1004:1004::/home/brandybuck:/bin/sh\n")
    assert machine.run("sh", "-c", f"mkdir -p /lib/modules/{kernel}/updates/dkms /home/brandybuck/.venv").returncode == 0
    machine.path(f"/lib/modules/{kernel}/updates/dkms/nvidia.ko").write_bytes(b"no module")
    machine.path("/home/brandybuck/.venv/pyvenv.cfg").write_text("home = /home/brandybuck/python\nversion = 3.12.3\n")
    where = ("--root", machine.root, *hardware)
    live = detected(machine, *where)
    file = machine.path("/srv/recorded.json")
    result = machine.run(sys.executable, "-I", "-m", "tui", "capture", f"{machine.root}/srv/recorded.json", *where, inside=False)
    assert result.returncode == 0, result.stderr
    again = detected(machine, "--machine", f"{machine.root}/srv/recorded.json")
    live["environments"] = [{**one, "path": one["path"].replace("brandybuck", "user")} for one in live["environments"]]
    assert again == live
    assert (live["os"]["id"], live["os"]["kernel"]) == ("debian", kernel)
    assert live["environments"][0]["python"] == "3.12.3"
    text = file.read_text(encoding="utf-8")
    assert "brandybuck" not in text
    assert f"Linux {os.uname().nodename} " not in text
    if hardware:
        module = live["driver"]["modules"][-1]
        assert (module["kernel"], module["present"], module["headers"]) == (kernel, True, False)
