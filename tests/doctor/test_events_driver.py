"""What the driver, NVML, package managers and people's commands say, as events."""

from __future__ import annotations

from typing import Any

import pytest

from steps.doctor.events.base import Event
from steps.doctor.events.builds import CompilerRefused
from steps.doctor.events.kernel import InitFailed, InsertFailed, LegacyCard, Loading, NeedsOpen, NoGsp
from steps.doctor.events.nvml import NvmlError
from steps.doctor.events.outcomes import LogAsked
from steps.doctor.events.packages import Changed, Overwrite, Unmet
from steps.doctor.events.typed import Command
from tests.doctor import kit

LEGACY = """\
NVRM: The NVIDIA NVIDIA GeForce GTX 1050 GPU installed in this system is
NVRM:  supported through the NVIDIA 580.xx Legacy drivers. Please
NVRM:  visit http://www.nvidia.com/object/unix.html for more
NVRM:  information.  The 595.58.03 NVIDIA driver will ignore
NVRM:  this GPU.  Continuing probe...
"""
NO_GSP = """\
[ 1157.0] NVRM: The NVIDIA GPU 0000:af:00.0 (PCI ID: 10de:1db5)
               NVRM: installed in this system is not supported by open
               NVRM: nvidia.ko because it does not include the required GPU
               NVRM: System Processor (GSP).
"""
NEEDS_OPEN = """\
[    5.5] NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2c58)
[    5.5] NVRM: installed in this system requires use of the NVIDIA open kernel modules.
"""
TABLE: tuple[tuple[str, type[Event], dict[str, Any]], ...] = (
    (
        "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.172.08  Release Build",
        Loading,
        {"version": "570.172.08", "flavor": "open"},
    ),
    ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.105.08  Wed Oct 29", Loading, {"version": "580.105.08", "flavor": "proprietary"}),
    (
        "nvidia-modeset: Loading NVIDIA UNIX Open Kernel Mode Setting Driver for x86_64  550.76",
        Loading,
        {"version": "550.76", "flavor": "open", "modeset": True},
    ),
    (LEGACY, LegacyCard, {"branch": "580", "driver": "595.58.03", "card": "NVIDIA GeForce GTX 1050"}),
    (NEEDS_OPEN, NeedsOpen, {"address": "0000:02:00.0", "pci_id": "10de:2c58"}),
    (NO_GSP, NoGsp, {"address": "0000:af:00.0", "pci_id": "10de:1db5"}),
    ("NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x22:0x56:884)", InitFailed, {"address": "0000:01:00.0", "code": "0x22:0x56"}),
    (
        "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
        InsertFailed,
        {"module": "nvidia", "reason": "Key was rejected by service"},
    ),
    (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124",
        NvmlError,
        {"trouble": "mismatch", "library": "570.124"},
    ),
    ("nvidia-container-cli: initialization error: nvml error: unknown error", NvmlError, {"trouble": "unknown-error"}),
    (
        "Upgrade: libnvidia-common-460:amd64 (460.56-0ubuntu0.20.04.1, 460.73.01-0ubuntu0.20.04.1)",
        Changed,
        {"name": "libnvidia-common-460", "old": "460.56-0ubuntu0.20.04.1", "new": "460.73.01-0ubuntu0.20.04.1"},
    ),
    (
        "2024-04-05 10:11:12 upgrade nvidia-smi:amd64 525.85-1 535.1-1",
        Changed,
        {"name": "nvidia-smi", "old": "525.85-1", "new": "535.1-1"},
    ),
    (
        "[2025-04-01T10:00:00+0200] [ALPM] upgraded nvidia-utils (595.80-1 -> 595.84-1)",
        Changed,
        {"name": "nvidia-utils", "old": "595.80-1", "new": "595.84-1"},
    ),
    (
        " nvidia-driver-565 : Depends: libnvidia-gl-565 (= 565.57.01-0ubuntu1) but it is not going to be installed",
        Unmet,
        {"name": "nvidia-driver-565", "wanted": "libnvidia-gl-565", "relation": "=", "version": "565.57.01-0ubuntu1", "why": "refused"},
    ),
    (
        "Dépend : nvidia-kernel-common-470 (<=470.86-1) mais 470.103.01-0ubuntu0.20.04.1 doit être installé",
        Unmet,
        {
            "name": "",
            "wanted": "nvidia-kernel-common-470",
            "relation": "<=",
            "version": "470.86-1",
            "why": "other",
            "other": "470.103.01-0ubuntu0.20.04.1",
        },
    ),
    (
        "trying to overwrite '/lib/udev/rules.d/71-nvidia.rules', which is also in package nvidia-kernel-common-418 418.56",
        Overwrite,
        {"file": "/lib/udev/rules.d/71-nvidia.rules", "package": "nvidia-kernel-common-418"},
    ),
    (
        "/usr/include/crt/host_config.h:139:2: error: #error -- unsupported GNU version! gcc versions later than 11 are not supported!",
        CompilerRefused,
        {"header": "/usr/include/crt/host_config.h", "newest": 11},
    ),
    (
        "/usr/include/crt/host_config.h:9:2: error: #error -- unsupported GNU version! gcc 0 and up are not supported!",
        CompilerRefused,
        {"header": "/usr/include/crt/host_config.h", "newest": 0},
    ),
    ("user@box:~$ sudo apt install nvtop", Command, {"words": ("apt", "install", "nvtop")}),
    (
        "bash ./NVIDIA-Linux-x86_64-570.124.04.run --no-kernel-modules",
        Command,
        {"words": ("bash", "./NVIDIA-Linux-x86_64-570.124.04.run", "--no-kernel-modules")},
    ),
)


@pytest.mark.parametrize(("text", "kind", "wanted"), TABLE, ids=[f"{kind.__name__}-{number}" for number, (_, kind, _) in enumerate(TABLE)])
def test_a_text_becomes_its_event(text: str, kind: type[Event], wanted: dict[str, Any]) -> None:
    assert kit.fields(text, kind) == [wanted]


@pytest.mark.parametrize(
    "line",
    [
        "  501  bash ./NVIDIA-Linux-x86_64-570.124.04.run --no-kernel-modules",
        "  501  2026-03-02 21:10:00 sudo bash ./NVIDIA-Linux-x86_64-570.124.04.run --no-kernel-modules",
        "➜  ~ sudo bash ./NVIDIA-Linux-x86_64-570.124.04.run --no-kernel-modules",
        "me@box:~> cd /tmp && bash ./NVIDIA-Linux-x86_64-570.124.04.run --no-kernel-modules",
    ],
)
def test_a_command_is_read_behind_the_numbers_of_a_history_and_any_prompt(line: str) -> None:
    (found,) = kit.events(f"{line}\n").all(Command)
    assert found.words == ("bash", "./NVIDIA-Linux-x86_64-570.124.04.run", "--no-kernel-modules")


@pytest.mark.parametrize(
    ("line", "old"),
    [
        ("/usr/bin/journalctl -b -1 --no-pager", [True]),
        ("me@box ~> journalctl -k -b -1", [True]),
        ("  501  sudo dmesg -T", [False]),
        ("### dmesg", []),
    ],
)
def test_the_question_for_the_kernels_log_is_seen_behind_any_prompt(line: str, old: list[bool]) -> None:
    assert [event.old for event in kit.events(f"{line}\n").all(LogAsked)] == old
