"""A fragment of somebody's report, where no driver answers: what was said there is not lost, however it was quoted or dated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.captured import CapturedHost, parse_capture

XID = "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
LOST = f"Nov 02 21:03:11 box kernel: {XID}\n"
NEXT = "Nov 02 21:20:04 box kernel: nvidia: loading out-of-tree module taints kernel.\n"
DIFFERS = "Failed to initialize NVML: Driver/library version mismatch"
NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
FELL_OFF, MISMATCH = "gpu-fell-off-bus", "driver-library-mismatch"


def verdict(log: str | None = None, *, files: dict[str, str] | None = None, **commands: str) -> Verdict:
    """Return the verdict on a capture of nothing but these: `_` in a command's name is a blank, `__` a hyphen."""
    return of({
        "commands": {name.replace("__", "-").replace("_", " "): text for name, text in commands.items()},
        "files": files or {},
        "logs": {"report": log} if log else {},
    })  # fmt: skip


def of(parts: dict[str, Any]) -> Verdict:
    commands = {name: {"stdout": text, "stderr": "", "status": None} for name, text in parts["commands"].items()}
    document = {"schema": "bringup/capture", "version": 1, **parts, "commands": commands}
    return judge(Evidence(CapturedHost(parse_capture(json.dumps(document).encode()))))


@pytest.mark.parametrize(
    ("log", "id"),
    [
        (f"# {DIFFERS}\n\nnvidia-smi in my shell:\n", MISMATCH),
        (f"// {DIFFERS}\n", MISMATCH),
        (f"# Output:\n# {NO_IMAGE}\n", "wheel-lacks-gpu-kernels"),
        (f"If you see `{DIFFERS}`\n", MISMATCH),
        (f"{DIFFERS}\nI rebooted, and it says\nGPU 0: NVIDIA A100 (UUID: GPU-a)\n", MISMATCH),
    ],
    ids=("title", "comment", "comments", "advice", "over"),
)
def test_what_seems_quoted_or_over_is_a_possible_cause_where_nothing_else_is(log: str, id: str) -> None:
    cause = verdict(log).cause
    assert cause is not None
    assert (cause.id, cause.known, cause.repair.steps) == (id, False, ())
    assert cause.confidence <= 0.5


@pytest.mark.parametrize(
    "line",
    [
        "$ dmesg | grep -i 'fallen off the bus'",
        'dmesg | grep -iE "Xid|GPU has fallen off the bus" | tail',
        "GPU fallen off the bus: no",
        "echo 'Failed to initialize NVML: Driver/library version mismatch'",
    ],
)
def test_what_was_only_searched_for_or_is_denied_stays_nothing(line: str) -> None:
    assert verdict(f"a first line\n{line}\n").healthy


@pytest.mark.parametrize(
    ("log", "id"),
    [
        (f"`{DIFFERS}`\n", MISMATCH),
        (f"After the update I get `{DIFFERS}` today\n", MISMATCH),
        (f"$ nvidia-smi {DIFFERS}\n", MISMATCH),
        (f"+ {DIFFERS}\n", MISMATCH),
        (f'when I run nvidia-smi I get "{DIFFERS}".\n', MISMATCH),
        (f"if I run nvidia-smi: '{DIFFERS}' appears\n", MISMATCH),
        (f"dmesg | grep -i nvrm shows: {XID}\n", FELL_OFF),
        (f"sudo dmesg | grep NVRM [ 12.3] {XID}\n", FELL_OFF),
        (f"me@box:~$ sudo dmesg | grep -i nvrm; {XID}\n", FELL_OFF),
        (f"+ {XID}\n", FELL_OFF),
        (f"     5  {XID}\n", FELL_OFF),
        (f"   42  {NO_IMAGE}\n", "wheel-lacks-gpu-kernels"),
    ],
)  # fmt: skip
def test_what_a_program_printed_counts_whatever_stands_on_its_line(log: str, id: str) -> None:
    cause = verdict(log).cause
    assert cause is not None
    assert (cause.id, cause.known) == (id, True)


@pytest.mark.parametrize(
    "parts",
    [
        {"commands": {"journalctl -k -b -1": LOST}},
        {"commands": {"journalctl -k": f"-- Boot aaaa --\n{LOST}-- Boot bbbb --\n{NEXT}"}},
        {"commands": {"journalctl -k -r": f"{LOST}-- Boot aaaa --\n{NEXT}"}},
        {"files": {"/var/log/kern.log": LOST + "Nov 02 21:20:00 box kernel: [    0.000000] Linux version 6.8.0-45-generic (x)\n"}},
        {"logs": {"journalctl -b -1": LOST}},
    ],
    ids=("asked", "marked", "reversed", "kern.log", "log"),
)
def test_the_crash_of_an_earlier_boot_is_what_a_report_is_about(parts: dict[str, dict[str, str]]) -> None:
    cause = of({"commands": {}, "files": {}, "logs": {}, **parts}).cause
    assert cause is not None
    assert (cause.id, cause.repair.steps == () or cause.known) == (FELL_OFF, True)


LISTED = "| NVIDIA-SMI 550.90.07              Driver Version: 550.90.07      CUDA Version: 12.4     |\n"
GPU = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa)\n"
LOADED = {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 09:35:42 UTC 2024\n"}
SMI = f"{LISTED}|   0  NVIDIA A100-SXM4-40GB  On  | 00000000:07:00.0 Off | 0 |\n"


@pytest.mark.parametrize(
    "log",
    [
        f"ops@gpu01:~$ nvidia-smi\n{DIFFERS}\nops@gpu02:~$ nvidia-smi\n{LISTED}",
        f"ops@gpu01:~$ nvidia-smi\n{DIFFERS}\nops@gpu01:~$ sudo reboot\nops@gpu02:~$ nvidia-smi -L\n{GPU}",
        f"[root@gpu01 ~]# nvidia-smi\n{DIFFERS}\n[root@gpu01 ~]# reboot\n[root@gpu01 ~]# ssh gpu02 nvidia-smi -L\n{GPU}",
        f"### Actual\n{DIFFERS}\n### Expected\n{LISTED}",
        f"Now:\n{DIFFERS}\n\nBefore the update it was:\n{LISTED}",
    ],
    ids=("hosts", "reboot-elsewhere", "ssh", "expected", "before"),
)
def test_a_card_that_another_machine_or_time_lists_ends_no_mismatch(log: str) -> None:
    cause = verdict(log).cause
    assert cause is not None
    assert (cause.id, cause.known) == (MISMATCH, True)


HELD = "Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 2211 (unattended-upgr)"
SUMMARY = "0 upgraded, 12 newly installed, 0 to remove and 3 not upgraded.\n"


@pytest.mark.parametrize(
    ("then", "known"),
    [
        (f"$ apt-get -s install nvidia-driver-550\n{SUMMARY}", True),
        ("$ sudo tail /var/log/apt/term.log\nSetting up linux-headers-generic (6.8.0.45.45) ...\n", True),
        (f"$ sudo apt install nvidia-driver-550\n{SUMMARY}", False),
    ],
    ids=("simulated", "read", "again"),
)
def test_a_lock_is_over_where_the_same_was_done_again(then: str, known: bool) -> None:
    cause = verdict(f"$ sudo apt install nvidia-driver-550\nE: {HELD}\n{then}").cause
    assert cause is not None
    assert (cause.id, cause.known) == ("apt-lock-held", known)


NO_KEY = (
    "Err:1 https://nvidia.github.io/libnvidia-container/stable/deb/amd64  InRelease\n"
    "  The following signatures couldn't be verified because the public key is not available: NO_PUBKEY DDCAE044F796ECB0\n"
)
HIT = "Hit:2 https://nvidia.github.io/libnvidia-container/stable/deb/amd64  InRelease\n"


@pytest.mark.parametrize(("then", "known"), [(HIT, True), (f"$ sudo apt update\n{HIT}", False)], ids=("same-call", "later-call"))
def test_a_repository_is_well_where_a_later_call_reached_it(then: str, known: bool) -> None:
    cause = verdict(NO_KEY + then).cause
    assert cause is not None
    assert (cause.id, cause.known) == ("apt-repo-key-rotated", known)


@pytest.mark.parametrize(("suite", "known"), [("eoan", False), ("noble", True)])
def test_another_release_below_one_address_is_another_repository(suite: str, known: bool) -> None:
    url = "https://developer.download.nvidia.com/compute/cuda/repos"
    key = NO_KEY.replace("https://nvidia.github.io/libnvidia-container/stable/deb/amd64 ", f"{url} eoan")
    cause = verdict(f"{key}$ sudo apt update\nHit:1 {url} {suite} InRelease\n").cause
    assert cause is not None
    assert cause.known is known


API = (
    "[91000.1] NVRM: API mismatch: the client has the version 550.54.14, but\nNVRM: this kernel module has the version 550.90.07.  Please\n"
)


def test_a_client_that_the_running_module_refuses_now_is_told_of_a_driver_that_works() -> None:
    cause = verdict(files=LOADED, nvidia__smi=SMI, dmesg=API).cause
    assert cause is not None
    assert cause.id == MISMATCH
    assert verdict(files=LOADED, nvidia__smi=SMI, dmesg=API.replace("550.90.07", "550.54.15")).healthy


def test_a_driver_that_works_does_not_excuse_a_build_for_the_next_kernel() -> None:
    built = "nvidia/550.90.07, 6.14.0-33-generic, x86_64: installed\n"
    log = {
        "/var/lib/dkms/nvidia/550.90.07/build/make.log": "DKMS make.log for nvidia-550.90.07 for kernel 6.17.0-5-generic (x86_64)\n"
        "/var/lib/dkms/nvidia/550.90.07/build/nvidia-drm/nvidia-drm-drv.c:213:6: error: 'struct drm_driver' has no member named 'date'\n"
    }
    kernel = {"uname_-r": "6.14.0-33-generic\n", "nvidia__smi": SMI}
    cause = verdict(files={**LOADED, **log}, dkms_status=built, **kernel).cause
    assert cause is not None
    assert cause.id == "driver-does-not-build-on-kernel"
    assert verdict(files={**LOADED, **log}, dkms_status=built + built.replace("6.14.0-33", "6.17.0-5"), **kernel).healthy


def test_the_kernels_log_file_counts_where_only_a_piece_of_its_ring_is_seen() -> None:
    commands = {"dmesg": {"stdout": "[    4.1] nvidia: loading out-of-tree module taints kernel.\n", "stderr": "", "status": 0}}
    document = {"schema": "bringup/capture", "version": 1, "files": {"/var/log/kern.log": LOST}, "commands": commands}
    cause = judge(Evidence(CapturedHost(parse_capture(json.dumps(document).encode())))).cause
    assert cause is not None
    assert (cause.id, cause.known) == (FELL_OFF, True)
