"""A repair is proven by what decided the cause, seen anew; what cannot be seen anew is not proven, and never gone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.doctor.proving import Second, second_look
from steps.doctor.repairs.own_python import HAS_CUDA, shown_as
from steps.host.captured import Capture, CapturedHost, Recorded, parse_capture
from steps.host.local import LocalHost
from steps.host.rooted import RootedHost
from tests.doctor import kit
from tests.doctor.live import AnsweringHost

SMI = "GPU 00000000:01:00.0\n    Product Name : NVIDIA GeForce RTX 3090\n"
WORKING = {"nvidia-smi -q": Recorded(stdout=f"==============NVSMI LOG==============\nDriver Version : 550.90.07\n{SMI}", status=0)}
FELL_OFF = "[  100.5] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"


def looked(id: str, commands: dict[str, Recorded], since: float | None = None, files: dict[str, str] | None = None) -> Second:
    host = AnsweringHost(Capture(schema="bringup/capture", version=1, commands=commands, files=dict(files or {})))
    seen = Evidence(host, now=True, since=since)
    try:
        return second_look(seen, judge(seen), id)
    finally:
        seen.close()


def dmesg(text: str) -> dict[str, Recorded]:
    return {"dmesg": Recorded(stdout=text, status=0), "nvidia-smi -L": Recorded(stdout="GPU 0: RTX (UUID: GPU-x)\n", status=0), **WORKING}


def test_a_fault_in_the_kernels_log_is_here_unless_it_is_from_before_the_repair() -> None:
    boot = {"/proc/stat": "cpu 1 2 3\nbtime 1000000\n"}
    assert looked("gpu-fell-off-bus", dmesg(FELL_OFF)).state == "here"
    assert looked("gpu-fell-off-bus", dmesg(FELL_OFF), 1000050.0, boot).state == "here"
    assert looked("gpu-fell-off-bus", dmesg(FELL_OFF), 1000200.0, boot).state == "gone"


def test_a_driver_that_does_not_answer_proves_nothing() -> None:
    broken = Recorded(stdout="No devices were found\n", status=6)
    assert looked("stale-module-on-disk", {"nvidia-smi -q": broken, "dmesg": Recorded(stdout="[ 1.0] x\n", status=0)}).state == "unproven"
    assert looked("stale-module-on-disk", {}).state == "unproven"


def test_a_log_that_nobody_may_read_proves_nothing() -> None:
    refused = {name: Recorded(stderr="Operation not permitted\n", status=1) for name in ("dmesg",)}
    assert looked("gpu-fell-off-bus", {**WORKING, **refused}).because is not None


def test_a_full_disk_is_here_as_long_as_it_is_full() -> None:
    check = {"apt-get check": Recorded(status=0)}
    for free, state in (("0", "here"), ("20G", "gone")):
        room = Recorded(stdout=f"Filesystem Size Used Avail Use% Mounted on\n/dev/sda1 100G 80G {free} 100% /\n", status=0)
        deb = {"/etc/os-release": "ID=debian\nVERSION_ID=12\n"}
        assert looked("disk-full-during-install", {**check, "df -h": room}, files=deb).state == state


@pytest.mark.parametrize(
    ("params", "state"), [("RmProfilingAdminOnly: 1\n", "here"), ("RmProfilingAdminOnly: 0\n", "gone"), ("", "unproven")]
)
def test_counters_are_proven_by_what_the_loaded_module_shows(params: str, state: str) -> None:
    assert looked("operation-needs-admin-rights", WORKING, files={"/proc/driver/nvidia/params": params}).state == state


@pytest.mark.skipif(os.geteuid() != 0, reason="makes an environment of root's")
@pytest.mark.parametrize(("mode", "cuda", "state"), [(0o755, "'12.8'", "gone"), (0o755, "None", "unproven"), (0o777, "'12.8'", "unproven")])
def test_a_build_is_proven_by_its_own_python_where_nobody_else_can_change_that(mode: int, cuda: str, state: str) -> None:
    with tempfile.TemporaryDirectory(dir="/root") as folder:
        path = Path(folder, "env")
        subprocess.run((sys.executable, "-m", "venv", "--without-pip", str(path)), check=True)
        site = next(path.glob("lib/python3*/site-packages"))
        (site / "torch.py").write_text(f"class version:\n    cuda = {cuda}\n")
        command = shown_as(str(path), HAS_CUDA)
        path.chmod(mode)
        seen = Evidence(LocalHost(), now=True)
        try:
            assert second_look(seen, Verdict(healthy=True), "cpu-only-build-active", command).state == state
        finally:
            seen.close()


def _without_texts(case: kit.Case) -> AnsweringHost:
    """Return the machine of a case, unrepaired, without anything that a program printed."""
    capture = parse_capture(case.capture.read_bytes())
    files = {path: text for path, text in capture.files.items() if not path.startswith("/var/log/")}
    commands = {**capture.commands, "apt-get check": Recorded(status=0), "df -h": Recorded(status=0)}
    return AnsweringHost(msgspec.structs.replace(capture, logs={}, files=files, commands=commands))


@pytest.mark.parametrize("case", [case for case in kit.cases() if not kit.verdict(case.capture).healthy], ids=lambda case: case.name)
def test_no_case_is_proven_repaired_while_nothing_was_repaired(case: kit.Case) -> None:
    cause = kit.verdict(case.capture).cause
    assert cause is not None
    seen = Evidence(_without_texts(case), now=True)
    try:
        assert second_look(seen, judge(seen), cause.id).state != "gone"
    finally:
        seen.close()


@pytest.mark.parametrize(("named", "state"), [("535.183.01", "here"), ("550.120", "gone")])
def test_a_specification_is_proven_by_the_files_that_it_names(tmp_path: Path, named: str, state: str) -> None:
    library = "/usr/lib/x86_64-linux-gnu/libcuda.so"
    for path, text in {f"{library}.550.120": "", "/etc/cdi/nvidia.yaml": f"  - hostPath: {library}.{named}\n"}.items():
        place = tmp_path / path[1:]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    hardware = CapturedHost(Capture(schema="bringup/capture", version=1), "c")
    seen = Evidence(RootedHost(str(tmp_path), hardware), now=True)
    try:
        assert second_look(seen, judge(seen), "cdi-spec-stale").state == state
    finally:
        seen.close()
