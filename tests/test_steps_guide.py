"""The hardware guide and the BIOS checklist: for each finding a machine that has it and one that nearly has it."""

from __future__ import annotations

import msgspec
import pytest

from steps import firmware, hardware
from steps.detect import measures, topology
from steps.model.choice import Option
from steps.model.finding import Finding, Severity
from steps.model.hardware import Accelerator, Bridge, Cpu, Disk, Firmware, IdleState, Link, Memory, Network, PcieLink
from steps.model.machine import Machine
from steps.model.plan import Target
from steps.model.profile import FirmwareAnswers, Profile, answered
from steps.model.software import Driver, Os
from steps.text import Language, say, say_finding

GIB = 1 << 30
LINK = PcieLink(generation=1, max_generation=4, width=16, max_width=16)
CARD = Accelerator(
    vendor="nvidia",
    address="0000:01:00.0",
    pci_id="10de:2684",
    name="NVIDIA GeForce RTX 4090",
    chip="AD102",
    architecture="ada",
    memory_bytes=24564 << 20,
    pcie=LINK,
    numa_node=0,
)
NVME = Disk(name="nvme0n1", bytes=1_000_204_886_016, tier="nvme")
GOOD = Machine(
    os=Os(virtualization="none", container="none", wsl=False),
    cpu=Cpu(model="EPYC 7543", cores=64, l3_bytes=256 << 20, pcie_lanes=128, numa_nodes=1, governor="performance", idle_states=()),
    memory=Memory(total_bytes=int(125.6 * GIB), ecc=True, type="DDR4"),
    disks=(NVME, Disk(name="sda", bytes=3_840_755_982_336, tier="ssd"), Disk(name="sdb", bytes=8_001_563_222_016, tier="hdd")),
    accelerators=(CARD,),
    firmware=Firmware(vendor="ASUSTeK COMPUTER INC.", resizable_bar=True, above_4g=True, iommu="off", secure_boot="disabled"),
)
TWO = (CARD, msgspec.structs.replace(CARD, address="0000:41:00.0"))
AMPERE = tuple(msgspec.structs.replace(one, name="NVIDIA RTX A6000", chip="GA102", architecture="ampere") for one in TWO)
WORKING = Driver(state="working")


def varied(**changes: object) -> Machine:
    """Return the good machine with parts of it changed; `cpu_cores=6` changes a part's field."""
    machine = GOOD
    for name, value in changes.items():
        part, _, field = name.partition("_")
        inner = getattr(machine, part)
        machine = msgspec.structs.replace(machine, **{part: msgspec.structs.replace(inner, **{field: value}) if field else value})
    return machine


def findings(machine: Machine) -> tuple[Finding, ...]:
    return (*hardware.check(machine, Profile()), *firmware.check(machine, Profile()))


def codes(machine: Machine) -> set[str]:
    return {one.code for one in findings(machine)}


def severity(machine: Machine, code: str) -> Severity:
    return next(one.severity for one in findings(machine) if one.code == code)


def behind(pci_id: str) -> Machine:
    """Return the good machine with its card behind a bridge of four slow lanes."""
    link = PcieLink(generation=1, max_generation=1, width=4, max_width=4)
    card = msgspec.structs.replace(CARD, bridges=("0000:00:07.0",), pcie=PcieLink(generation=3, max_generation=4, width=4, max_width=16))
    return varied(accelerators=(card,), bridges=(Bridge(address="0000:00:07.0", pci_id=pci_id, link=link),))


CASES = [
    ("cpu-cores-low", varied(cpu_cores=7), varied(cpu_cores=8)),
    ("cpu-l3-small", varied(cpu_l3_bytes=30 << 20), varied(cpu_l3_bytes=32 << 20)),
    ("cpu-pcie-lanes-few", varied(cpu_pcie_lanes=24), varied(cpu_pcie_lanes=40)),
    (
        "gpu-memory-small",
        varied(accelerators=(msgspec.structs.replace(CARD, memory_bytes=16 * GIB),)),
        varied(accelerators=(msgspec.structs.replace(CARD, memory_bytes=22_731 << 20),)),
    ),
    (
        "gpu-architecture-old",
        varied(accelerators=(msgspec.structs.replace(CARD, architecture="turing"),)),
        varied(accelerators=(msgspec.structs.replace(CARD, architecture="ampere"),)),
    ),
    ("gpu-no-nvlink", varied(accelerators=TWO), varied(accelerators=(CARD,))),
    (
        "gpu-no-nvlink",
        varied(accelerators=AMPERE, driver=WORKING, links=(Link(a=0, b=1, kind="PHB"),), told_nvlink=True),
        varied(accelerators=AMPERE, driver=WORKING, links=(Link(a=0, b=1, kind="NV4"),), told_nvlink=True),
    ),
    (
        "gpu-no-nvlink",
        varied(accelerators=(CARD, AMPERE[1]), driver=WORKING),
        varied(accelerators=AMPERE, driver=WORKING, links=(Link(a=0, b=1, kind="PHB"),)),
    ),
    ("memory-small", varied(memory_total_bytes=int(62.7 * GIB)), varied(memory_total_bytes=int(125.4 * GIB))),
    ("memory-no-ecc", varied(memory_ecc=False), varied(memory_ecc=None)),
    ("storage-no-nvme", varied(disks=(Disk(name="sda", bytes=4 * 10**12, tier="ssd"),)), varied(disks=(NVME,))),
    ("storage-no-data-tier", varied(disks=(NVME,)), varied(disks=(Disk(name="nvme0n1", bytes=7_681_501_126_656, tier="nvme"),))),
    ("storage-no-backup-tier", varied(disks=(NVME,)), varied(disks=(NVME, Disk(name="sda", bytes=8_001_563_222_016, tier="external")))),
    ("no-accelerator", varied(accelerators=()), GOOD),
    ("resizable-bar-off", varied(firmware_resizable_bar=False), varied(firmware_resizable_bar=None)),
    ("above-4g-off", varied(firmware_above_4g=False), varied(firmware_above_4g=None)),
    (
        "pcie-width-reduced",
        varied(accelerators=(msgspec.structs.replace(CARD, pcie=PcieLink(width=1, max_width=16)),)),
        varied(accelerators=(msgspec.structs.replace(CARD, pcie=PcieLink(generation=1, max_generation=4, width=16, max_width=16)),)),
    ),
    ("pcie-width-reduced", behind("8086:9a23"), behind("8086:1578")),
    ("pcie-link-below-max", behind("8086:9a23"), behind("8086:1578")),
    (
        "c-states-deep",
        varied(cpu_idle_states=(IdleState(name="C2", latency_us=800, enabled=True),)),
        varied(cpu_idle_states=(IdleState(name="C2", latency_us=18, enabled=True), IdleState(name="C3", latency_us=400, enabled=False))),
    ),
    ("governor-not-performance", varied(cpu_governor="powersave"), varied(cpu_governor="performance")),
    ("iommu-breaks-p2p", varied(accelerators=AMPERE, firmware_iommu="on"), varied(accelerators=AMPERE, firmware_iommu="passthrough")),
    (
        "iommu-breaks-p2p",
        varied(accelerators=AMPERE, firmware_iommu="on", links=(Link(a=0, b=1, kind="SYS"),)),
        varied(accelerators=AMPERE, firmware_iommu="on", links=(Link(a=0, b=1, kind="NV18"),)),
    ),
    (
        "secure-boot-unsigned-module",
        varied(firmware_secure_boot="enabled", driver=Driver(state="blocked")),
        varied(firmware_secure_boot="enabled", driver=WORKING),
    ),
]


@pytest.mark.parametrize(("code", "has", "nearly"), CASES)
def test_a_finding_is_said_of_the_machine_that_has_it_and_not_of_its_neighbour(code: str, has: Machine, nearly: Machine) -> None:
    assert code in codes(has)
    assert code not in codes(nearly)


def test_a_machine_that_meets_the_guide_has_no_finding() -> None:
    assert codes(GOOD) == set()


def test_nothing_is_said_of_a_machine_that_is_not_known() -> None:
    assert codes(Machine(accelerators=(Accelerator(vendor="nvidia"),))) == set()


def test_an_idle_link_is_never_an_alarm() -> None:
    idle = varied(accelerators=(msgspec.structs.replace(CARD, pcie=PcieLink(generation=1, max_generation=5, width=16, max_width=16)),))
    assert not {code for code in codes(idle) if code.startswith("pcie-")}


def test_few_lanes_are_a_remark_for_one_card_and_a_warning_for_two() -> None:
    assert severity(varied(cpu_pcie_lanes=24), "cpu-pcie-lanes-few") == "info"
    assert severity(varied(cpu_pcie_lanes=24, accelerators=AMPERE), "cpu-pcie-lanes-few") == "warning"


def test_a_card_that_has_no_resizable_window_is_not_sent_to_the_bios_for_it() -> None:
    old = varied(accelerators=(msgspec.structs.replace(CARD, architecture="turing"),), firmware_resizable_bar=False)
    assert "resizable-bar-off" not in codes(old)
    option = row(firmware.choices(old, Profile())[0].options, "resizable-bar")
    assert (option.mark, say("en", option.tag)) == ("info", "not offered")


def test_a_chip_beside_its_processor_has_no_slot_to_be_judged() -> None:
    grace = msgspec.structs.replace(CARD, name="NVIDIA GH200 480GB", architecture="hopper", pcie=PcieLink(width=1, max_width=16))
    assert "pcie-width-reduced" not in codes(varied(accelerators=(grace,)))


def test_the_tag_of_a_row_is_filled() -> None:
    option = row(firmware.choices(varied(cpu_governor="powersave"), Profile())[0].options, "governor")
    assert say("en", option.tag) == "powersave"


def test_a_card_whose_memory_is_not_known_is_not_called_enough() -> None:
    hidden = varied(accelerators=(msgspec.structs.replace(CARD, memory_bytes=None),))
    assert said(row(hardware.choices(hidden, Profile())[0].options, "gpu")) == ("RTX 4090", "unknown", "unknown")


def test_half_the_lanes_are_a_remark_and_one_lane_is_a_warning() -> None:
    shares = msgspec.structs.replace(CARD, pcie=PcieLink(width=8, max_width=16))
    riser = msgspec.structs.replace(CARD, pcie=PcieLink(width=1, max_width=16))
    assert severity(varied(accelerators=(shares,)), "pcie-width-reduced") == "info"
    assert severity(varied(accelerators=(riser,)), "pcie-width-reduced") == "warning"


def test_an_integrated_gpu_is_not_judged() -> None:
    integrated = Accelerator(vendor="amd", name="Radeon Graphics", architecture="gcn", memory_bytes=512 << 20, integrated=True)
    assert codes(varied(accelerators=(CARD, integrated))) == set()


def test_disks_behind_a_controller_or_a_hypervisor_are_not_judged() -> None:
    assert not {code for code in codes(varied(disks=(Disk(name="sda", bytes=10**11, tier="raid"),))) if code.startswith("storage-")}
    assert not {code for code in codes(varied(disks=(Disk(name="vda", bytes=10**11, tier="virtual"),))) if code.startswith("storage-")}


def test_a_guest_is_not_sent_to_a_bios_that_it_does_not_have() -> None:
    guest = varied(
        os=Os(virtualization="kvm"), firmware_resizable_bar=False, cpu_idle_states=(IdleState(name="C6", latency_us=800, enabled=True),)
    )
    assert not {one.code for one in firmware.check(guest, Profile())}
    assert row(firmware.choices(guest, Profile())[0].options, "resizable-bar").mark == "info"


def test_geforce_cards_without_p2p_are_not_warned_of_the_iommu() -> None:
    assert "iommu-breaks-p2p" not in codes(varied(accelerators=TWO, firmware_iommu="on"))


def row(options: tuple[Option, ...], value: str) -> Option:
    return next(one for one in options if one.value == value)


def said(option: Option) -> tuple[str, str, str]:
    return say("en", option.detail), option.mark, say("en", option.tag)


def test_the_rows_say_what_is_there_and_how_it_stands() -> None:
    machine = varied(
        accelerators=TWO, disks=(NVME,), networks=(Network(name="eno1", kind="ethernet", up=True, speed_mbps=25_000),), driver=WORKING
    )
    options = hardware.choices(machine, Profile())[0].options
    assert said(row(options, "gpu")) == ("2× RTX 4090", "good", "enough")
    assert said(row(options, "cpu")) == ("64 cores", "good", "enough")
    assert said(row(options, "pcie")) == ("Gen4 ×16", "good", "enough")
    assert said(row(options, "memory")) == ("128 GB ECC", "good", "enough")
    assert said(row(options, "data")) == ("no SSD", "catch", "short")
    assert said(row(options, "nvlink")) == ("none", "info", "none")
    assert said(row(options, "network")) == ("25 Gb/s", "good", "enough")


def test_what_is_not_known_is_shown_as_unknown() -> None:
    options = hardware.choices(Machine(accelerators=(CARD,)), Profile())[0].options
    assert said(row(options, "cpu")) == ("", "unknown", "unknown")
    assert said(row(options, "memory")) == ("", "unknown", "unknown")


def test_the_menu_path_is_the_board_vendors_and_the_manual_elsewhere() -> None:
    off = varied(firmware_resizable_bar=False)
    notes = row(firmware.choices(off, Profile())[0].options, "resizable-bar").notes
    assert "ASUS AMD 800 series: Advanced > PCI Subsystem Settings > Re-Size BAR Support" in [
        note.text for note in notes if note.label == "bios"
    ]
    unknown = msgspec.structs.replace(off, firmware=Firmware(vendor="HUANANZHI", resizable_bar=False))
    notes = row(firmware.choices(unknown, Profile())[0].options, "resizable-bar").notes
    assert [say("en", note.text) for note in notes if note.label == "bios"] == ["Look for Re-Size BAR Support in your board's manual"]


def test_an_item_is_confirmed_by_eye_and_the_confirmation_taken_back() -> None:
    option = row(firmware.choices(varied(firmware_above_4g=None), Profile())[0].options, "above-4g")
    assert (option.mark, say("en", option.tag)) == ("unknown", "by eye")
    confirmed = answered(Profile(), option.patch)
    assert confirmed.firmware == FirmwareAnswers(acknowledged=("above-4g",))
    option = row(firmware.choices(varied(firmware_above_4g=None), confirmed)[0].options, "above-4g")
    assert (option.mark, say("en", option.tag)) == ("info", "seen by you")
    assert answered(confirmed, option.patch) == Profile()


def test_neither_step_writes_anything() -> None:
    assert firmware.actions(GOOD, Profile(firmware=FirmwareAnswers(acknowledged=("iommu",))), Target()) == ()
    assert hardware.actions(GOOD, Profile(), Target()) == ()


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_finding_has_its_words(language: Language) -> None:
    for _, machine, _ in CASES:
        for one in findings(machine):
            for words in (say_finding(language, one, "tag"), say_finding(language, one, "sentence"), say_finding(language, one, "remedy")):
                assert words
                assert "{" not in words
            assert all("because" not in say(language, fact) for fact in one.because)


def test_sizes_are_said_as_they_are_sold() -> None:
    sizes = (8, 15.5, 31.2, 62.7, 125.6, 251.5, 503.5)
    assert [measures.memory(int(size * GIB)) for size in sizes] == ["8 GB", "16 GB", "32 GB", "64 GB", "128 GB", "256 GB", "512 GB"]
    assert [measures.storage(size) for size in (480_103_981_056, 960_197_124_096, 3_840_755_982_336)] == ["480 GB", "1 TB", "3.8 TB"]
    assert measures.speed(2500) == "2.5 Gb/s"


def test_the_tree_has_a_root_for_each_node_and_fits_the_hint() -> None:
    machine = varied(accelerators=(CARD, msgspec.structs.replace(CARD, address="0000:c1:00.0", numa_node=1)))
    assert topology.tree(machine) == (
        "CPU   NUMA node 0",
        "└─ 01:00  GPU 0  Gen4 ×16",
        "CPU   NUMA node 1",
        "└─ c1:00  GPU 1  Gen4 ×16",
    )
    assert all(len(line) <= 39 for line in topology.tree(machine))
