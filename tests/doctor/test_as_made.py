"""What a machine was made with is no fault of it; and a service that does not run is one though nobody tried what needs it."""

from __future__ import annotations

from typing import Any

import pytest

from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from tests.test_detect_facts import captured

PORT, CARD = "/sys/devices/pci0000:00/0000:00:01.0", "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
SMI = "index, name, pci.bus_id, memory.total [MiB]\n0, {}, 00000000:01:00.0, 23028 MiB\n"
QUERY = "nvidia-smi --query-gpu=index,name,pci.bus_id,memory.total --format=csv"


def cause(*, width: int = 8, pci_id: str = "10de:2237", **more: Any) -> str | None:
    """Return what is said of a machine whose card has so many of sixteen lanes and works."""
    vendor, _, device = pci_id.partition(":")
    files = {
        f"{CARD}/vendor": f"0x{vendor}\n",
        f"{CARD}/device": f"0x{device}\n",
        f"{CARD}/class": "0x030200\n",
        f"{CARD}/current_link_width": f"{width}\n",
        f"{CARD}/max_link_width": "16\n",
        f"{PORT}/vendor": "0x8086\n",
        f"{PORT}/device": more.pop("port", "0x1901\n"),
        f"{PORT}/class": "0x060400\n",
        "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025\n",
        "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n",
        "/proc/cpuinfo": f"processor\t: 0\nflags\t\t: {more.pop('flags', 'fpu')}\n",
        **more.pop("files", {}),
    }
    links = {
        "/sys/bus/pci/devices/0000:01:00.0": "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0",
        "/sys/bus/pci/devices/0000:00:01.0": "../../../devices/pci0000:00/0000:00:01.0",
        f"{CARD}/driver": "../../../../bus/pci/drivers/nvidia",
        **more.pop("links", {}),
    }
    commands = {QUERY: {"stdout": SMI.format("NVIDIA A10G"), "status": 0}, **more.pop("commands", {})}
    told = judge(Evidence(captured(files=files, links=links, dirs=[], commands=commands))).cause
    return None if told is None else told.id


LAPTOP = {"/sys/class/dmi/id/chassis_type": "10\n"}
NARROW = "pcie-link-below-capability"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, NARROW),
        ({"flags": "fpu hypervisor"}, "none"),
        ({"files": LAPTOP}, "none"),
        ({"files": LAPTOP, "width": 2}, NARROW),
        ({"port": "0x1578\n", "width": 4}, "none"),
        ({"port": "0x1901\n", "width": 4}, NARROW),
    ],
)
def test_lanes_that_nobody_can_give_back_are_no_fault(changes: dict[str, Any], expected: str) -> None:
    assert cause(**changes) == expected


SWITCH = "/sys/devices/pci0000:00/0000:00:02.0"


def behind_switches(service: str, more: dict[str, dict[str, Any]], *, there: bool = True) -> str | None:
    """Return what is said of a working card of a board with NVSwitch, whose fabric manager systemd says this of."""
    chip = {f"{SWITCH}/vendor": "0x10de\n", f"{SWITCH}/device": "0x22a3\n", f"{SWITCH}/class": "0x068000\n"} if there else {}
    links = {"/sys/bus/pci/devices/0000:00:02.0": "../../../devices/pci0000:00/0000:00:02.0"} if there else {}
    asked = {"systemctl is-active nvidia-fabricmanager": {"stdout": service, "status": 0 if service == "active\n" else 3}}
    files, commands = {**chip, **more.get("files", {})}, {**asked, **more.get("commands", {})}
    return cause(width=16, pci_id="10de:2330", files=files, links=links, commands=commands)


@pytest.mark.parametrize(
    ("service", "there", "expected"),
    [("inactive\n", True, "fabricmanager-not-running"), ("active\n", True, "none"), ("inactive\n", False, "none")],
)
def test_behind_switches_a_fabric_manager_that_does_not_run_is_a_fault_before_anybody_tried(
    service: str, there: bool, expected: str
) -> None:
    assert behind_switches(service, {}, there=there) == expected


READY = """\
==============NVSMI LOG==============

Driver Version                            : 580.95.05
Attached GPUs                             : 1
GPU 00000000:01:00.0
    Fabric
        State                             : Completed
        Status                            : Success
"""


@pytest.mark.parametrize(
    "more",
    [
        {"files": {"/run/nvidia/driver/etc/os-release": "ID=ubuntu\n"}},
        {"commands": {"ps -eo pid,ppid,stat,args": {"stdout": "  77 1 Sl /usr/bin/nv-fabricmanager -c /etc/fm.cfg\n", "status": 0}}},
        {"commands": {"nvidia-smi -q": {"stdout": READY, "status": 0}}},
    ],
    ids=["operator", "process", "ready"],
)
def test_switches_that_somebody_else_manages_need_no_service(more: dict[str, dict[str, Any]]) -> None:
    assert behind_switches("inactive\n", more) == "none"
