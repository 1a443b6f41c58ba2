"""What a log tells of a trouble that was overcome, of an earlier boot or of another machine is no fault of this one now."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.captured import CapturedHost, parse_capture

MACHINE = Path(__file__).parent.parent / "machines" / "rtx3080x2-secureboot.json"
FULL = """Log started: 2024-01-01  10:00:00
dpkg: error processing archive /var/cache/apt/archives/nvidia-utils-535_535.1_amd64.deb (--unpack):
 cannot copy extracted data for './usr/bin/nvidia-smi' to '/usr/bin/nvidia-smi.dpkg-new': failed to write (No space left on device)
Errors were encountered while processing:
 /var/cache/apt/archives/nvidia-utils-535_535.1_amd64.deb
Log ended: 2024-01-01  10:00:10
"""
FINE = """
Log started: 2025-01-01  10:00:00
Setting up nvidia-utils-535 (535.288.01-0ubuntu0.22.04.1) ...
Log ended: 2025-01-01  10:01:10
"""
NOT_BUILT = """Log started: 2024-01-01  10:00:00
Building module:
'make' -j8 KERNEL_UNAME=6.5.0-18-generic modules...(bad exit status: 2)
Error! Bad return status for module build on kernel: 6.5.0-18-generic (x86_64)
Consult /var/lib/dkms/nvidia/535.154/build/make.log for more information.
dpkg: error processing package nvidia-dkms-535 (--configure):
 installed nvidia-dkms-535 package post-installation script subprocess returned error exit status 10
Log ended: 2024-01-01  10:00:10
"""
MISMATCH = (
    "[    5.1] NVRM: API mismatch: the client has the version 535.288.01, but\n"
    "NVRM: this kernel module has the version 535.230.02.  Please\n"
)
FELL_OFF = "2025-01-01T00:00:00 host kernel: NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"
WAITED = """Waiting for cache lock: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1234 (unattended-upgr)... 10s
Reading package lists... Done
Setting up nvidia-driver-550 (550.54.14-0ubuntu1) ...
"""


@cache
def machine() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MACHINE.read_text(encoding="utf-8"))
    return found


def verdict(log: str = "", *, dmesg: str = "", **files: str) -> Verdict:
    """Return the verdict on a machine that is well, with these files (by their names in /var/log) and this log."""
    document = copy.deepcopy(machine())
    document["files"].update({f"/var/log/{name.replace('__', '/').replace('_', '.')}": text for name, text in files.items()})
    document["commands"]["dmesg"]["stdout"] = dmesg + document["commands"]["dmesg"]["stdout"]
    seen = Evidence(CapturedHost(parse_capture(json.dumps(document).encode())), (("log", (log.encode(),)),) if log else ())
    return judge(seen)


@pytest.mark.parametrize(
    "found",
    [
        {"apt__term_log": FULL + FINE},
        {"apt__term_log": NOT_BUILT + FINE},
        {"kern_log": FELL_OFF},
        {"kern_log_1": MISMATCH},
        {"dmesg": MISMATCH},
        {"log": WAITED},
    ],
    ids=("disk", "build", "year", "boot", "update", "lock"),
)
def test_a_trouble_that_was_overcome_is_no_fault(found: dict[str, str]) -> None:
    said = verdict(**found)
    assert said.healthy, said.cause


@pytest.mark.parametrize(
    ("found", "id"),
    [
        ({"apt__term_log": FINE + FULL}, "disk-full-during-install"),
        ({"log": WAITED.partition("Reading")[0]}, "apt-lock-held"),
        ({"dmesg": FELL_OFF.replace("2025-01-01T00:00:00 host kernel", "[ 9000.1]").replace("]:", "]")}, "gpu-fell-off-bus"),
    ],
    ids=("disk", "lock", "boot"),
)
def test_the_same_trouble_is_one_where_nothing_came_after_it(found: dict[str, str], id: str) -> None:
    cause = verdict(**found).cause
    assert cause is not None
    assert cause.id == id


def test_a_log_whose_driver_is_none_of_this_machines_is_judged_alone() -> None:
    foreign = MISMATCH.replace("535.288.01", "550.54.14").replace("535.230.02", "550.40.07")
    said = verdict(foreign)
    assert said.foreign is not None
    assert (said.foreign.there, said.foreign.here) == ("550.54.14", "535.288.01")
    assert said.cause is not None
    assert {place.source for place in said.cause.evidence} == {"log"}
    assert said.cause.repair.steps == ()
    own = verdict(MISMATCH)
    assert own.foreign is None


def test_a_message_that_a_text_quotes_was_not_printed() -> None:
    quoted = "If you see `Failed to initialize NVML: Driver/library version mismatch`, reboot.\n"
    assert verdict(f"# Troubleshooting\n{quoted}").healthy
    assert not verdict(quoted.replace("`", "")).healthy


@pytest.mark.parametrize(
    "line",
    [
        "user@host:~$ dmesg | grep -i 'fallen off the bus'",
        "[root@node ~]# dmesg | grep -i 'fallen off the bus'",
        "$ journalctl -k | grep -c 'GPU has fallen off the bus'",
        "+ grep -q 'fallen off the bus' kern.log",
        "++ dmesg -T '|' egrep 'Driver/library version mismatch'",
        "# fix for: NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1474)",
        "#NVRM: API mismatch: the client has the version 515.48.07, but this kernel module has the version 510.73.05",
        "nvidia-smi 2>&1 | grep 'Driver/library version mismatch' || echo fine",
        "  512  sudo dmesg | grep 'fallen off the bus'",
        "if dmesg | grep -q 'fallen off the bus'; then",
        "    if 'GPU has fallen off the bus' in line:",
        '    LOST = re.compile(r"GPU has fallen off the bus")',
        "GPU fallen off the bus: no",
        "has fallen off the bus = 0",
        "echo 'Failed to initialize NVML: Driver/library version mismatch'",
    ],
)
def test_words_that_were_typed_searched_for_or_denied_did_not_happen(line: str) -> None:
    said = verdict(f"a first line\n{line}\n")
    assert said.healthy, said.cause


@pytest.mark.parametrize(
    "log",
    [
        "user@host:~$ dmesg | grep -i 'fallen off'\n[  9.1] NVRM: GPU at PCI:0000:01:00: GPU has fallen off the bus.\n",
        "kern.log:[  9.1] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n",
        "echo: [  9.1] NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n",
        '{"log":"NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\\n","stream":"stdout"}\n',
    ],
    ids=("answer", "file", "name", "json"),
)
def test_what_a_search_found_did_happen(log: str) -> None:
    cause = verdict(log).cause
    assert cause is not None
    assert cause.id == "gpu-fell-off-bus"


LOST = "[ 9000.1] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"
ANEW = "[    0.000000] Linux version 5.15.0-91-generic (buildd@lcy02) (gcc 11.4.0)\n"
LOADED = "[    5.2] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.288.01  Wed Nov 1\n"


@pytest.mark.parametrize(
    "log",
    [LOST + ANEW + LOADED, LOST + "-- Boot 3f2a --\n" + LOADED, LOST + LOADED, f"$ sudo journalctl -k -b -1\n{LOST}"],
    ids=("kern.log", "journal", "reloaded", "last-boot"),
)
def test_a_fault_of_an_earlier_boot_is_told_and_not_repaired(log: str) -> None:
    said = verdict(log)
    assert said.cause is not None
    assert (said.healthy, said.cause.id, said.cause.known) == (False, "gpu-fell-off-bus", False)
    assert said.cause.confidence <= 0.5
    assert said.cause.because.key == "doctor.unknown.log.because"
    assert said.cause.repair.steps == ()


@pytest.mark.parametrize("log", [ANEW + LOADED + LOST, LOST, f"$ dmesg\n{LOST}", "$ cat /proc/version\nLinux version 5.15.0\n" + LOST])
def test_a_fault_after_the_last_boot_is_one_now(log: str) -> None:
    cause = verdict(log).cause
    assert cause is not None
    assert (cause.id, cause.known) == ("gpu-fell-off-bus", True)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", None),
        ("[ 5.1] NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x26:0x56:1474)", None),
        ("[ 5.1] NVRM: Xid (PCI:0000:01:00): 43, pid=2, Ch 00000010", "doctor_gpu.application-illegal-memory-access.title"),
        ("[ 5.1] NVRM: Xid (PCI:0000:01:00): 8, pid=2, Channel 00000010", None),
        ("[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", None),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please update your driver",
            "doctor_gpu.driver-too-old-for-cuda.title",
        ),
        ("[ 5.1] Out of memory: Killed process 4242 (python) total-vm:90GB, anon-rss:60GB", "doctor.unknown.line-memory.title"),
        ("Error! Your kernel headers for kernel 6.8.0-45-generic cannot be found.", None),
        ("/bin/sh: 1: gcc-13: not found", "doctor.unknown.line-program.title"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB", "doctor.unknown.line-gpu-memory.title"),
        ("E: Type '<!DOCTYPE' is not known on line 1 in source list /etc/apt/sources.list.d/x.list", "doctor.unknown.line-page.title"),
        ("E: Package 'nvidia-driver-550' has no installation candidate", "doctor.unknown.line-package.title"),
        (
            "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file",
            "doctor.unknown.line-container.title",
        ),
        ("error: externally-managed-environment", "doctor.unknown.line-managed.title"),
        ("OSError: CUDA_HOME environment variable is not set.", "doctor.unknown.line-toolkit.title"),
        ("ImportError: /x/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi", "doctor.unknown.line-extension.title"),
        (
            "ERROR: modpost: GPL-incompatible module nvidia.ko uses GPL-only symbol 'x'",
            "doctor_system.driver-does-not-build-on-kernel.title",
        ),
    ],
)
def test_a_fault_in_a_log_is_never_called_health(line: str, key: str | None) -> None:
    said = verdict(f"a first line\n{line}\nand more\n")
    assert not said.healthy, line
    assert said.cause is not None
    assert key in (None, said.cause.title.key)


def test_a_log_with_other_cards_or_another_kernel_is_of_another_machine() -> None:
    others = verdict("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n" + LOST)
    assert others.foreign is not None
    assert (others.foreign.what, others.foreign.there) == ("card", "h100 80gb hbm3")
    kernel = verdict(ANEW.replace("5.15.0-91", "6.1.0-1") + LOST)
    assert kernel.foreign is not None
    assert kernel.foreign.what == "kernel"
    for said in (others, kernel):
        assert said.cause is not None
        assert (said.cause.id, said.cause.known, said.cause.repair.steps) == ("gpu-fell-off-bus", True, ())


HELD = WAITED.partition("Reading")[0]
SUMMARY = "0 upgraded, 0 newly installed, 0 to remove and 12 not upgraded.\n"
NO_KEY = (
    "Err:3 https://nvidia.github.io/libnvidia-container/stable/deb/amd64  InRelease\n"
    "  The following signatures couldn't be verified because the public key is not available: NO_PUBKEY DDCAE044F796ECB0\n"
    "W: GPG error: https://nvidia.github.io/libnvidia-container/stable/deb/amd64  InRelease: The following signatures couldn't be "
    "verified because the public key is not available: NO_PUBKEY DDCAE044F796ECB0\n"
)
HIT = "Hit:1 https://nvidia.github.io/libnvidia-container/stable/deb/amd64  InRelease\nReading package lists...\n"
OTHER_HIT = "Hit:4 http://archive.ubuntu.com/ubuntu jammy InRelease\nReading package lists...\n"
DIFFERS = "Failed to initialize NVML: Driver/library version mismatch\n"
LISTED = "GPU 0: NVIDIA GeForce RTX 3080 (UUID: GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee)\n"


@pytest.mark.parametrize(
    "log", [HELD + SUMMARY, NO_KEY + HIT, f"{DIFFERS}$ sudo reboot\n$ nvidia-smi -L\n{LISTED}"], ids=("lock", "key", "driver")
)
def test_what_succeeds_later_in_the_same_log_is_over(log: str) -> None:
    said = verdict(log)
    assert said.healthy, said.cause


@pytest.mark.parametrize(
    ("log", "id"),
    [
        (SUMMARY + HELD, "apt-lock-held"),
        (HIT + NO_KEY, "apt-repo-key-rotated"),
        (NO_KEY + OTHER_HIT, "apt-repo-key-rotated"),
        (f"$ docker run --gpus all x nvidia-smi\n{DIFFERS}$ nvidia-smi -L\n{LISTED}", None),
    ],
    ids=("lock", "key", "other-repository", "container"),
)
def test_success_before_it_or_elsewhere_ends_no_trouble(log: str, id: str | None) -> None:
    said = verdict(log)
    assert not said.healthy
    assert said.cause is not None
    assert id in (None, said.cause.id)
