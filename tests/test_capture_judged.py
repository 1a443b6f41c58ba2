"""What a capture hands on to the doctor: the same cause as on the machine, and nothing that names anybody."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from steps.detect.capture import record
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.headless.facts import as_the_doctor
from steps.host.base import Host
from steps.host.captured import CapturedHost, parse_capture
from steps.host.recording import RecordingHost
from tests import scoring
from tests.doctor import kit


def captured(**parts: Any) -> CapturedHost:
    return CapturedHost(parse_capture(json.dumps({"schema": "bringup/capture", "version": 1, **parts}).encode()))


def _handed_on(host: CapturedHost) -> tuple[dict[str, Any], str]:
    """Return the capture that the command writes, and the cause that the doctor finds in it."""
    data = record(host, more=as_the_doctor)
    cause = judge(Evidence(CapturedHost(parse_capture(data)))).cause
    return json.loads(data), cause.id if cause else "none"


@pytest.mark.parametrize(
    "case",
    [
        "004-dkms-ondisk-module-stale",
        "009-modeset-module-version-mix",
        "018-gsp-firmware-missing-open-fedora",
        "020-open-module-unsupported-pre-turing",
        "021-nouveau-owns-gpu",
        "037-secureboot-mok-never-staged",
        "110-xid79-5090-load",
        "162-nouveau-cmdline-initrd-only",
    ],
)
def test_in_a_capture_of_a_broken_machine_the_doctor_finds_what_it_found_there(case: str) -> None:
    there = kit.HANDED / f"{case}.json"
    cause = kit.verdict(there).cause
    assert cause is not None
    assert cause.id != "none"
    assert _handed_on(CapturedHost(parse_capture(there.read_bytes())))[1] == cause.id


def test_of_what_the_doctor_asks_a_capture_keeps_only_what_names_nobody() -> None:
    log = (
        "[    0.1] Linux version 6.8.0\n[    1.0] [UFW BLOCK] IN=eth0 SRC=203.0.113.9 DST=203.0.113.7\n"
        "[    2.0] CIFS: Attempting to mount //bag/end\n"
        "[    3.0] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"
    )
    host = captured(
        files={"/var/log/apt/history.log": "Requested-By: bilbo (54321)\nInstall: secretd\n"},
        commands={
            "dmesg": {"stdout": log, "status": 0},
            "ps -eo pid,ppid,stat,args": {"stdout": "1 0 S python train.py --for baggins\n", "status": 0},
            "env": {"stdout": "WANDB_API_KEY=precious\n", "status": 0},
            "df -h": {"stdout": "//shire/home 1T 1T 0 100% /home\n", "status": 0},
        },
    )
    document, cause = _handed_on(host)
    assert cause == "gpu-fell-off-bus"
    assert document["commands"]["dmesg"]["stdout"].splitlines() == [log.splitlines()[0], log.splitlines()[3]]
    for word in ("203.0.113", "CIFS", "bilbo", "secretd", "baggins", "precious", "shire"):
        assert word not in json.dumps(document), word


def test_what_a_person_wrote_into_a_log_names_nobody_in_a_capture_whatever_its_encoding() -> None:
    installer = "PATH: /home/galadriel/bin\nkernel 5.15.167.4-microsoft-standard-WSL2\n--http-proxy=203.0.113.9\n"
    latin = "# für frodo, siehe 203.0.113.7\noptions nvidia NVreg_EnableGpuFirmware=0\n".encode("latin-1")
    host = captured(
        about={"name": "dl"},
        files={
            "/etc/passwd": "frodo:x:1000:1000::/home/frodo:/bin/sh\n",
            "/var/log/nvidia-installer.log": installer,
            "/etc/modprobe.d/nvidia.conf": {"base64": base64.b64encode(latin).decode()},
        },
        commands={
            "uname -a": {"stdout": "Linux dl 5.15.167.4-microsoft-standard-WSL2 #1 SMP x86_64 GNU/Linux\n", "status": 0},
            "dmesg": {"stdout": "", "stderr": "dmesg: read kernel buffer failed: Operation not permitted\n", "status": 1},
            "journalctl -k -b --no-pager -o short-monotonic": {
                "stdout": "[    0.1] dl kernel: Linux version 6\n[    0.2] dl kernel: NVRM: loading\n",
                "status": 0,
            },
            "modinfo nvidia": {"stdout": "version: 570.1\nsigner: dl Secure Boot Module Signature key\n", "status": 0},
            "mokutil --list-new": {
                "stdout": "[key 1]\n  Serial Number:\n    7a:1b\n"
                "  Subject: CN=dl Secure Boot Module Signature key, emailAddress=f@shire.example\n",
                "status": 0,
            },
            "lspci -D -nn -vv": {"stdout": "01:00.0 [0200]:\n\tCapabilities: Device Serial Number 48-b0-2d-ff-ff-aa-bb-cc\n", "status": 0},
        },
    )
    document, _ = _handed_on(host)
    commands, files = document["commands"], document["files"]
    kept = base64.b64decode(files["/etc/modprobe.d/nvidia.conf"]["base64"]).decode("latin-1")
    assert re.fullmatch(r"# für user\d?, siehe 198\.51\.100\.\d\noptions nvidia NVreg_EnableGpuFirmware=0\n", kept)
    for word in ("galadriel", "frodo", "203.0.113", "dl kernel", "dl Secure", "shire", "7a:1b", "48-b0"):
        assert word not in json.dumps(document) + kept, word
    assert "[key 1]" in commands["mokutil --list-new"]["stdout"]
    for text in (commands["uname -a"]["stdout"], files["/var/log/nvidia-installer.log"]):
        assert "5.15.167.4-microsoft" in text


def test_a_machine_on_which_the_doctor_stumbles_can_be_captured_all_the_same() -> None:
    def stumbles(host: Host) -> None:
        host.run(("lsmod",))
        raise ZeroDivisionError

    document = json.loads(record(captured(commands={"lsmod": {"stdout": "nvidia 1 0\n", "status": 0}}), more=stumbles))
    assert document["commands"]["lsmod"]["stdout"] == "nvidia 1 0\n"


def test_of_a_log_that_grew_for_years_a_capture_keeps_the_end() -> None:
    line = "[Nov 30 2026 10:00:00] [INFO] [tid 1] a line of somebody's fabric\n"
    document, _ = _handed_on(captured(files={"/var/log/fabricmanager.log": line * 100_000 + "the last\n"}))
    kept = document["files"]["/var/log/fabricmanager.log"]
    assert 4_000_000 < len(kept) <= 4 << 20
    assert (kept.startswith(line), kept.endswith(f"{line}the last\n")) == (True, True)


def test_the_answer_of_nvml_that_no_driver_is_there_speaks_of_no_container() -> None:
    machine = json.loads((scoring.MACHINES / "rtx5090-u2404-fresh.json").read_text())
    missing = {"stdout": '{"error": 12, "said": "NVML Shared Library Not Found"}\n', "status": 0}
    said = judge(Evidence(captured(**machine | {"commands": machine["commands"] | {"bringup nvml": missing}})))
    assert said.healthy, said.cause


def test_a_probe_that_answers_while_the_capture_is_written_breaks_nothing() -> None:
    recording = RecordingHost(captured())

    class Watched(tuple[str, ...]):
        """A command line which, when it is looked at, lets another probe answer."""

        __slots__ = ()

        def __getitem__(self, at: Any) -> Any:
            recording.run(("modinfo", "late"))
            return super().__getitem__(at)

    recording.run(Watched(("lsmod",)))
    assert list(json.loads(recording.capture({}))["commands"]) == ["lsmod"]
