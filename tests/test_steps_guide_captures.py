"""The hardware guide and the BIOS checklist on recorded machines: for each finding one that has it and one that nearly has it.

Where no machine was recorded with a fault, one is made from a recording by changing the very bytes that the fault changes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from steps import firmware, hardware
from steps.compat import paths
from steps.compat.firmware import RULES as FIRMWARE_RULES
from steps.compat.hardware import RULES as HARDWARE_RULES
from steps.detect import topology
from steps.detect.machine import detect
from steps.host.captured import CapturedHost, parse_capture
from steps.model.base import Phrase
from steps.model.finding import Finding
from steps.model.hardware import Network
from steps.model.machine import Machine
from steps.model.profile import Profile
from tests import scoring

Document = dict[str, Any]
Change = Callable[[Document], None]


def changed(name: str, *changes: Change) -> Machine:
    """Return a recorded machine after changes to its recording."""
    document: Document = json.loads((scoring.MACHINES / f"{name}.json").read_text(encoding="utf-8"))
    for change in changes:
        change(document)
    return detect(CapturedHost(parse_capture(json.dumps(document).encode())))


def file_at(path: str, text: str) -> Change:
    """Return the change of one recorded file."""
    return lambda document: document["files"].update({path: text})


def card_file(address: str, name: str, text: str) -> Change:
    """Return the change of a file in a device's folder, wherever the recording has the device."""

    def change(document: Document) -> None:
        place = next(path for path in document["files"] if path.endswith(f"/{address}/vendor"))
        document["files"][place.removesuffix("vendor") + name] = text

    return change


def said(command: str, before: str, after: str) -> Change:
    """Return the change of what a command printed; the words must be there."""

    def change(document: Document) -> None:
        stdout = document["commands"][command]["stdout"]
        assert before in stdout
        document["commands"][command]["stdout"] = stdout.replace(before, after)

    return change


def port_held(address: str, speed: str) -> Change:
    """Return the change of a port's target speed in lspci."""

    def change(document: Document) -> None:
        found = document["commands"]["lspci -D -nn -vv"]
        head, mark, rest = found["stdout"].partition(f"\n{address} ")
        assert mark
        block, gap, others = rest.partition("\n\n")
        words = block.partition("Target Link Speed: ")
        found["stdout"] = head + mark + words[0] + words[1] + speed + words[2][words[2].index(",") :] + gap + others

    return change


def installed(package: str) -> Change:
    """Return the change of dpkg's database by one more package."""
    stanza = f"\n\nPackage: {package}\nStatus: install ok installed\nVersion: 9.0.0-4\n"
    return lambda document: document["files"].update({"/var/lib/dpkg/status": document["files"].get("/var/lib/dpkg/status", "") + stanza})


def logged(line: str) -> Change:
    """Return the change of the kernel log by one more line."""

    def change(document: Document) -> None:
        document["commands"]["dmesg"]["stdout"] += f"[    0.500000] {line}\n"

    return change


Made = tuple[str, Change] | tuple[str]


def machine(made: Made) -> Machine:
    """Return a recorded machine, or what a change makes of it."""
    return scoring.machine(made[0]) if len(made) == 1 else changed(*made)


def findings(found: Machine) -> tuple[Finding, ...]:
    return (*hardware.check(found, Profile()), *firmware.check(found, Profile()))


LIMIT = "Current Power Limit                            "
BRAKE = "HW Power Brake Slowdown       : Not Active"
PROFILE = "/sys/firmware/acpi/platform_profile"
NODE = "/sys/devices/system/node"
AT_WORK: Made = ("a6000x2-threadripper", card_file("0000:2e:00.0", "current_link_speed", "2.5 GT/s PCIe\n"))
"""A card at 100 per cent and P2 whose link stayed at Gen1."""
UNBRIDGED: Made = ("a6000x2-threadripper", said("nvidia-smi nvlink --status", "14.062 GB/s", "<inactive>"))
"""The pair without the bridge that joins it."""
WINDOW = "pci_bus 0000:00: root bus resource [mem {} window]"
CASES: list[tuple[str, Made, Made]] = [
    ("no-accelerator", ("nogpu-dell-r6515",), ("wsl2-rtx3060",)),
    ("cpu-cores-low", ("gt1030x2-run-over-apt",), ("laptop-katana-4070-secureboot",)),
    ("cpu-l3-small", ("gtx1080ti-u1804",), ("rtx4070x3-riser-x1",)),
    ("cpu-pcie-lanes-few", ("rtx5090-3090ti-mixed",), ("p40-3090-mixed",)),
    ("gpu-memory-small", ("rtx3060-prebuilt-open580",), ("rtx4090x4-epyc",)),
    ("gpu-architecture-old", ("2080ti-dkms-missing",), ("article-rtx3090-5900x-u2004",)),
    ("gpu-no-nvlink", ("rtx3080x2-secureboot",), ("xe9680-h100x8",)),
    ("gpu-no-nvlink", UNBRIDGED, ("a6000x2-threadripper",)),
    ("memory-small", ("rtx5090-u2404-fresh",), ("2080ti-dkms-missing",)),
    ("memory-no-ecc", ("rtx3060-prebuilt-open580",), ("a5000-nouveau-bound",)),
    ("storage-no-nvme", ("gtx1080ti-u1804",), ("p40-3090-mixed",)),
    ("storage-no-data-tier", ("rtx3090-x570-k7",), ("dgx-a100",)),
    ("storage-no-backup-tier", ("article-rtx3090-5900x-u2004",), ("rtx3090-x570-k7",)),
    ("resizable-bar-off", ("article-rtx3090-5900x-u2004",), ("2080ti-dkms-missing",)),
    (
        "above-4g-off",
        ("gt1030x2-run-over-apt", logged(WINDOW.format("0x90000000-0xdfffffff"))),
        ("gt1030x2-run-over-apt", logged(WINDOW.format("0x4000000000-0x7fffffffff"))),
    ),
    ("pcie-width-reduced", ("rtx4070x3-riser-x1",), ("rtx3060-prebuilt-open580",)),
    ("pcie-link-below-max", ("a5000-nouveau-bound",), ("rtx3090-x570-k7",)),
    ("pcie-link-below-max", AT_WORK, ("rtx6000ada-4060ti",)),
    ("pcie-link-below-max", ("rtx4070x3-riser-x1",), ("rtx4090x4-epyc",)),
    ("pcie-gen4-off", ("rtx3090-x570-k7", port_held("0000:00:03.2", "8GT/s")), ("rtx4070x3-riser-x1",)),
    ("c-states-deep", ("dgx-a100",), ("rtx3090-x570-k7",)),
    ("governor-not-performance", ("a6000x2-threadripper",), ("dgx-spark-gb10",)),
    ("iommu-breaks-p2p", UNBRIDGED, ("rtx4090x4-epyc",)),
    ("iommu-breaks-p2p", UNBRIDGED, ("a6000x2-threadripper",)),
    ("acs-on", ("a6000x2-threadripper",), ("rtx6000ada-4060ti",)),
    ("acs-on", ("xe9680-h100x8", said("lspci -vvv", "ReqRedir-", "ReqRedir+")), ("xe9680-h100x8",)),
    ("sriov-off", ("nogpu-dell-r6515", installed("libvirt-daemon-system")), ("nogpu-dell-r6515",)),
    (
        "numa-misplaced",
        ("dgx-a100", file_at(f"{NODE}/node3/meminfo", "Node 3 MemTotal: 0 kB\n")),
        ("dgx-a100", file_at(f"{NODE}/node2/meminfo", "Node 2 MemTotal: 0 kB\n")),
    ),
    (
        "gpu-power-limited",
        ("rtx3060-prebuilt-open580", said("nvidia-smi -q", f"{LIMIT}: 170.00 W", f"{LIMIT}: 130.00 W")),
        ("rtx3060-prebuilt-open580",),
    ),
    ("gpu-slowed-down", ("a6000x2-threadripper", said("nvidia-smi -q", BRAKE, BRAKE.replace("Not ", ""))), ("a6000x2-threadripper",)),
    (
        "power-profile-low",
        ("rtx3060-prebuilt-open580", file_at(PROFILE, "low-power\n")),
        ("rtx3060-prebuilt-open580", file_at(PROFILE, "balanced\n")),
    ),
    ("secure-boot-unsigned-module", ("vm-a6000-3090-secureboot",), ("rtx3080x2-secureboot",)),
]


@pytest.mark.parametrize(("code", "has", "nearly"), CASES, ids=[f"{code}-{number}" for number, (code, _, _) in enumerate(CASES)])
def test_a_recorded_machine_has_the_finding_and_its_neighbour_does_not(code: str, has: Made, nearly: Made) -> None:
    found = [one for one in findings(machine(has)) if one.code == code]
    assert len(found) == 1
    assert found[0].because
    assert code not in {one.code for one in findings(machine(nearly))}


def test_every_rule_has_a_recorded_machine() -> None:
    rules = {rule.__name__.replace("_", "-") for rule in (*HARDWARE_RULES, *FIRMWARE_RULES)}
    assert rules == {code for code, _, _ in CASES}


@pytest.mark.parametrize("name", scoring.names())
def test_no_link_speed_alarm_on_any_machine_that_rests(name: str) -> None:
    recorded = scoring.machine(name)
    alarms = [one for one in findings(recorded) if one.code == "pcie-link-below-max" and one.severity != "info"]
    assert alarms == [] or any(paths.working(card) for card in recorded.accelerators)


def test_under_load_is_a_warning_and_the_slot_s_end_a_remark() -> None:
    busy = next(one for one in findings(machine(AT_WORK)) if one.code == "pcie-link-below-max")
    assert (busy.severity, busy.params["now"], busy.params["most"]) == ("warning", 1, 4)
    slot = next(one for one in findings(scoring.machine("a5000-nouveau-bound")) if one.code == "pcie-link-below-max")
    assert (slot.severity, slot.params["now"], slot.params["most"]) == ("info", 3, 4)


def test_risers_are_named_where_the_way_narrows_and_where_it_is_slow() -> None:
    found = {one.code: one for one in findings(scoring.machine("rtx4070x3-riser-x1"))}
    narrow = found["pcie-width-reduced"].because[1]
    assert isinstance(narrow, Phrase)
    assert narrow.params["bridges"] == "0000:03:06.0 (1022:43ea): ×1 / ×1, 0000:03:07.0 (1022:43ea): ×1 / ×1"
    slow = found["pcie-link-below-max"]
    assert (slow.severity, slow.params["now"], slow.params["most"]) == ("info", 2, 4)
    assert "0000:04:00.0 (1b21:1187): Gen2, 0000:0b:00.0: Gen4" in str(slow.because[0])


def test_a_network_card_below_a_card_s_switch_is_drawn_there() -> None:
    drawn = topology.drawn(topology.forest(scoring.machine("dgx-a100")))
    place = drawn.index("   ├─ 0a:00  PEX880xx")
    assert drawn[place + 1 : place + 3] == ("   │  ├─ 0f:00  GPU 1  Gen4 ×16", "   │  └─ 0c:00  enp12s0np0  200 Gb/s")


@pytest.mark.parametrize(("name", "link"), [("gh200-qct", "NVLink-C2C"), ("dgx-spark-gb10", "NVLink-C2C")])
def test_a_chip_beside_its_processor_has_no_slot_in_any_picture(name: str, link: str) -> None:
    recorded = scoring.machine(name)
    drawn = topology.drawn(topology.forest(recorded))
    assert [line for line in drawn if line.endswith(f"GPU 0  {link}")]
    assert not [line for line in drawn if line.endswith("!")]
    assert not [one for one in findings(recorded) if one.code.startswith("pcie-")]


def test_acs_below_a_shared_switch_is_a_warning_and_on_root_ports_a_remark() -> None:
    ports = next(one for one in findings(scoring.machine("a6000x2-threadripper")) if one.code == "acs-on")
    assert ports.severity == "info"
    switch = "/sys/bus/pci/devices/{}"
    shared = changed("k80x2-board-legacy470", *(acs(switch.format(port)) for port in ("0000:04:08.0", "0000:04:10.0")))
    found = next(one for one in findings(shared) if one.code == "acs-on")
    assert (found.severity, found.params["count"]) == ("warning", 2)


def acs(folder: str) -> Change:
    """Return the change that gives a bridge configuration space with request redirection on, held at Gen2."""
    data = bytearray(4096)
    data[0x06], data[0x34] = 0x10, 0x40
    data[0x40:0x42] = b"\x10\x00"
    data[0x40 + 0x30] = 2
    data[0x100:0x104] = (0x0D | 1 << 16).to_bytes(4, "little")
    data[0x106:0x108] = (0x1D).to_bytes(2, "little")
    encoded = {"base64": base64.b64encode(bytes(data)).decode()}

    def change(document: Document) -> None:
        real = document["links"][folder]
        path = "/sys/" + real.removeprefix("../../../")
        document["files"][f"{path}/config"] = encoded

    return change


def test_a_network_on_another_node_than_every_card_is_a_remark() -> None:
    near = scoring.machine("xe9680-h100x8")
    assert "numa-misplaced" not in {one.code for one in findings(near)}
    far = Network(name="ens9", up=True, speed_mbps=100_000, numa_node=2)
    slow = msgspec.structs.replace(far, speed_mbps=1000)
    assert "numa-misplaced" not in {one.code for one in findings(msgspec.structs.replace(near, networks=(slow,)))}
    (found,) = [one for one in findings(msgspec.structs.replace(near, networks=(far, slow))) if one.code == "numa-misplaced"]
    assert (found.severity, found.subject) == ("info", "ens9")


def test_a_guest_is_not_told_of_the_cache_that_its_hypervisor_made_up() -> None:
    found = scoring.machine("vm-p100-passthrough")
    assert "cpu-l3-small" not in {finding.code for finding in hardware.check(found, Profile())}


def test_an_old_card_does_not_speak_for_the_window_of_a_newer_one() -> None:
    found = scoring.machine("rtx4090x4-epyc")
    off = msgspec.structs.replace(found, firmware=msgspec.structs.replace(found.firmware, resizable_bar=False))
    assert all(card.bar1_bytes is not None and card.bar1_bytes > 20 << 30 for card in found.accelerators if card.vendor == "nvidia")
    assert "resizable-bar-off" not in {finding.code for finding in firmware.check(off, Profile())}
