"""Detection on kinds of machines that no capture shows: systems on a chip, cards by their driver's word alone, names that several share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steps.catalog import devices, stack
from steps.detect.machine import detect
from steps.host.release import release
from steps.model.hardware import Accelerator
from steps.model.machine import Machine
from tests.test_detect_facts import captured

CASES = Path(__file__).parent / "cases"
GIB = 1 << 30
AT = "/sys/devices/pci0000:00/0000:00:01.0"
BUS = "/sys/bus/pci/devices/0000:00:01.0"


def smi(name: str) -> dict[str, Any]:
    return {"nvidia-smi": {"stdout": (CASES / "nvidia-smi" / name).read_text(encoding="utf-8"), "status": 0}}


def with_device(pci_id: str, kind: str, **more: str) -> Machine:
    """Return a machine with one device of a class, and what else its folder holds."""
    vendor, _, device = pci_id.partition(":")
    files = {f"{AT}/vendor": f"0x{vendor}\n", f"{AT}/device": f"0x{device}\n", f"{AT}/class": f"0x{kind}00\n"}
    files |= {f"{AT}/{name}": text for name, text in more.items()}
    return detect(captured(files=files, links={BUS: "../../../devices/pci0000:00/0000:00:01.0"}, dirs=[]))


def only(machine: Machine) -> Accelerator:
    (card,) = machine.accelerators
    return card


# -- cards that no bus shows ------------------------------------------------------------------------------------------


def jetson(compatible: str = "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0", **more: Any) -> Machine:
    files = {"/proc/device-tree/compatible": compatible, "/proc/sys/kernel/osrelease": "5.15.148-tegra\n"}
    return detect(captured(files=files, dirs=["/sys/bus/pci/devices"], **more))


def test_the_gpu_of_a_system_on_a_chip_is_found_by_the_device_tree() -> None:
    card = only(jetson(commands=smi("nvidia-smi.jetson-orin-540.txt")))
    assert (card.name, card.address, card.integrated) == ("Orin (nvgpu)", None, True)
    assert (card.chip, card.architecture, card.compute_capability, card.memory_bytes) == ("GA10B", "ampere", "8.7", None)


@pytest.mark.parametrize(("soc", "capability"), [("tegra210", "5.3"), ("tegra186", "6.2"), ("tegra194", "7.2"), ("tegra234", "8.7")])
def test_older_ones_have_no_tool_and_are_found_all_the_same(soc: str, capability: str) -> None:
    assert only(jetson(f"nvidia,p0000\0nvidia,{soc}\0")).compute_capability == capability


def test_a_board_of_another_maker_has_none() -> None:
    assert jetson("raspberrypi,5-model-b\0brcm,bcm2712\0").accelerators == ()


def test_a_name_that_the_table_had_to_cut_is_completed_where_one_card_is_left() -> None:
    files = {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
    card = only(detect(captured(files=files, commands=smi("nvidia-smi.wsl2-rtx4070-laptop-551.txt"))))
    assert (card.name, card.compute_capability, card.kernel_driver) == ("NVIDIA GeForce RTX 4070 Laptop GPU", "8.9", "dxgkrnl")
    assert card.memory_bytes == 8188 << 20


@pytest.mark.parametrize(
    ("cut", "gib", "name", "capability"),
    [
        ("NVIDIA GeForce RTX 4070", 12, "NVIDIA GeForce RTX 4070 …", "8.9"),
        ("GeForce RTX 208", 11, "GeForce RTX 208 …", "7.5"),
        ("NVIDIA GeForce RTX 5060 T", None, None, None),
        ("NVIDIA GeForce", 8, None, None),
    ],
)
def test_of_a_cut_name_only_what_all_that_begin_so_agree_on_is_known(
    cut: str, gib: int | None, name: str | None, capability: str | None
) -> None:
    row = devices.gpu_by_beginning(cut, gib)
    assert (row.name if row else None, row.compute_capability if row else None) == (name, capability)


def test_where_nothing_of_the_bus_was_recorded_the_driver_s_word_counts() -> None:
    card = only(
        detect(captured(files={"/proc/sys/kernel/osrelease": "6.8.0-60-generic\n"}, commands=smi("nvidia-smi.wsl2-rtx4070-laptop-551.txt")))
    )
    assert (card.address, card.kernel_driver, card.architecture) == ("0000:01:00.0", "nvidia", "ada")


def test_where_the_bus_was_seen_and_has_no_card_there_is_none() -> None:
    assert detect(captured(dirs=["/sys/bus/pci/devices"], commands=smi("nvidia-smi.wsl2-rtx4070-laptop-551.txt"))).accelerators == ()


# -- one id, several products -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("revision", "name"),
    [
        ("0xc8\n", "AMD Radeon RX 7900 XTX"),
        ("0xcc\n", "AMD Radeon RX 7900 XT"),
        ("0x00\n", "AMD Radeon RX 7900 XT/7900 XTX/7900 GRE/7900M"),
    ],
)
def test_amd_sells_several_cards_under_one_id_and_the_revision_tells_which(revision: str, name: str) -> None:
    assert only(with_device("1002:744c", "0300", revision=revision)).name == name


def test_the_revision_that_lspci_reads_of_a_sleeping_card_says_nothing() -> None:
    line = "03:00.0 VGA compatible controller [0300]: Advanced Micro Devices, Inc. [AMD/ATI] Navi 32 [1002:747e] (rev {})\n"
    names = [
        only(detect(captured(commands={"lspci -nn": {"stdout": line.format(revision), "status": 0}}))).name for revision in ("c8", "ff")
    ]
    assert names == ["AMD Radeon RX 7800 XT", "AMD Radeon RX 7700 XT / 7800 XT"]


def windows(*sizes: int) -> str:
    """Return a device's memory windows as the kernel lists them."""
    return "".join(
        f"0x{1 << 44:016x} 0x{(1 << 44) + size - 1 if size else 0:016x} 0x000000000014220c\n" if size else "0x0 0x0 0x0\n" for size in sizes
    )


@pytest.mark.parametrize(
    ("pci_id", "kind", "sizes", "whole"),
    [
        ("1da3:1020", "1200", (128 << 20, 0, 2 << 20, 0, 128 * GIB, 0), 128 * GIB),
        ("8086:e20b", "0300", (16 << 20, 0, 16 * GIB, 0, 0, 0), 16 * GIB),
        ("1002:740f", "0380", (64 * GIB, 0, 2 << 20, 0, 0, 512 << 10), 64 * GIB),
        ("10de:2204", "0300", (16 << 20, 256 << 20, 0, 32 << 20, 0, 0), 256 << 20),
    ],
)
def test_each_maker_has_its_own_window_onto_a_card_s_memory(pci_id: str, kind: str, sizes: tuple[int, ...], whole: int) -> None:
    assert only(with_device(pci_id, kind, resource=windows(*sizes))).bar1_bytes == whole


# -- the system -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('NAME="openSUSE Leap"\nID="opensuse-leap"\nVERSION_ID="15.6"\n', ("opensuse-leap", "15.6")),
        ('NAME="Oracle Linux Server"\nID="ol"\nVERSION_ID="9.4"\n', ("ol", "9.4")),
        ('NAME="openEuler"\nID="openEuler"\nVERSION_ID="22.03"\n', ("openEuler", "22.03")),
        ("ID=arch\n", ("arch", None)),
    ],
)
def test_a_distribution_is_called_what_it_calls_itself(text: str, told: tuple[str, str | None]) -> None:
    found = release(captured(files={"/etc/os-release": text}))
    assert (found.id, found.version) == told


def test_a_virtio_interface_has_the_one_driver_there_is() -> None:
    at = "/sys/devices/pci0000:00/0000:00:12.0/virtio4/net/enp6s18"
    links = {"/sys/class/net/enp6s18": f"../../{at.removeprefix('/sys/')}", f"{at}/device": "../../../virtio4"}
    (found,) = detect(captured(files={f"{at}/operstate": "up\n", f"{at}/type": "1\n"}, links=links, dirs=[])).networks
    assert (found.driver, found.kind, found.up) == ("virtio_net", "ethernet", True)


@pytest.mark.parametrize(("kind", "tier"), [("MMC\n", "ssd"), ("SD\n", "external"), (None, None)])
def test_a_soldered_flash_chip_is_told_from_a_card_in_a_slot(kind: str | None, tier: str | None) -> None:
    files = {"/sys/block/mmcblk0/size": "122142720\n", "/sys/block/mmcblk0/removable": "0\n"}
    if kind:
        files["/sys/block/mmcblk0/device/type"] = kind
    (disk,) = detect(captured(files=files)).disks
    assert disk.tier == tier


# -- NVLink -----------------------------------------------------------------------------------------------------------


def pair(links: str, *, count: int = 2) -> Machine:
    """Return cards on root ports of one processor, of which `nvidia-smi nvlink --status` says so many lines each."""
    files: dict[str, str] = {}
    there: dict[str, str] = {}
    for number in range(1, count + 1):
        at = f"/sys/devices/pci0000:00/0000:00:0{number}.0/0000:0{number}:00.0"
        files |= {f"{at}/vendor": "0x10de\n", f"{at}/device": "0x2230\n", f"{at}/class": "0x030000\n"}
        there[f"/sys/bus/pci/devices/0000:0{number}:00.0"] = f"../../../{at.removeprefix('/sys/')}"
    text = "".join(f"GPU {number}: NVIDIA RTX A6000 (UUID: GPU-0)\n{links}" for number in range(count))
    return detect(captured(files=files, links=there, dirs=[], commands={"nvidia-smi nvlink --status": {"stdout": text, "status": 0}}))


def test_two_cards_with_running_links_are_joined_by_them() -> None:
    found = pair("\t Link 0: 14.062 GB/s\n\t Link 1: 14.062 GB/s\n")
    assert ([link.kind for link in found.links], found.told.nvlink) == (["NV2"], True)


def test_links_that_do_not_run_join_nothing_and_that_is_known() -> None:
    found = pair("\t Link 0: <inactive>\n\t Link 1: <inactive>\n")
    assert ([link.kind for link in found.links], found.told.nvlink) == (["PHB"], True)


def test_of_four_cards_it_is_not_known_who_is_joined_to_whom() -> None:
    found = pair("\t Link 0: 14.062 GB/s\n", count=4)
    assert ({link.kind for link in found.links}, found.told.nvlink) == ({"PHB"}, False)


@pytest.mark.parametrize(
    ("system", "glibc"),
    [
        (("centos", "7"), "2.17"),
        (("rhel", "7.9"), "2.17"),
        (("amzn", "2"), "2.26"),
        (("amzn", "2023"), "2.34"),
        (("kylin", "V10"), "2.28"),
        (("centos", "70"), None),
        (("arch", None), None),
    ],
)
def test_the_c_library_of_a_release_is_known_where_its_packages_are_not(system: tuple[str, str | None], glibc: str | None) -> None:
    assert stack.glibc_of(*system) == glibc


# -- reports that were cut --------------------------------------------------------------------------------------------


def told(text: str, status: int | None = 0) -> dict[str, Any]:
    return {"stdout": text, "status": status}


def test_where_lspci_was_cut_before_the_cards_the_driver_names_them() -> None:
    lspci = told("0000:00:00.0 Host bridge [0600]: AMD Device [1022:14a4]\n0000:00:01.1 PCI bridge [0604]: AMD Dev", None)
    found = detect(captured(commands={"lspci -D -nn -vv": lspci, **smi("nvidia-smi.wsl2-rtx4070-laptop-551.txt")}))
    assert [card.address for card in found.accelerators] == ["0000:01:00.0"]


def test_lspci_prints_a_number_where_it_knows_no_name() -> None:
    text = "19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n83:00.0 Bridge: NVIDIA Corporation Device 22a3 (rev a1)\n"
    found = detect(captured(commands={"lspci -vvv": told(text)}))
    assert (only(found).pci_id, only(found).chip, found.nvswitches) == ("10de:2330", "GH100", ("0000:83:00.0",))


CPUINFO = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nphysical id\t: 0\ncore id\t\t: 0\n\nprocessor\t: 1\nphysical id\t: 0\ncore id\t\t: 1\n"
)
WHOLE = "CPU(s):                256\nOn-line CPU(s) list:   0-255\nModel name:            AMD EPYC 7742 64-Core Processor\n"


def test_of_a_cpuinfo_that_was_cut_nothing_is_counted_where_lscpu_counts() -> None:
    lscpu = WHOLE + "Thread(s) per core:    2\nCore(s) per socket:    64\nSocket(s):             2\n"
    found = detect(captured(files={"/proc/cpuinfo": CPUINFO}, commands={"lscpu": told(lscpu)})).cpu
    assert (found.sockets, found.cores, found.threads) == (2, 128, 256)


def test_a_lscpu_that_was_cut_within_a_line_names_no_empty_model() -> None:
    assert detect(captured(commands={"lscpu": told("CPU(s):  2\nModel name:  ", None)})).cpu.model is None


def test_both_kinds_of_core_are_counted() -> None:
    lines = "Core(s) per socket: 10\nSocket(s): 1\n"
    text = f"CPU(s): 20\nModel name: Cortex-X925\n{lines}Model name: Cortex-A725\n{lines}"
    found = detect(captured(commands={"lscpu": told(text)})).cpu
    assert (found.model, found.cores, found.threads) == ("Cortex-X925 + Cortex-A725", 20, 20)


@pytest.mark.parametrize(("flags", "tier"), [("fpu hypervisor", None), ("fpu", "nvme")])
def test_an_nvme_disk_of_a_guest_that_gives_no_name_may_be_any(flags: str, tier: str | None) -> None:
    files = {"/sys/block/nvme0n1/size": "209715200\n", "/proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\n"}
    (disk,) = detect(captured(files=files)).disks
    assert disk.tier == tier


def test_in_wsl_no_module_is_ever_loaded_so_a_cut_answer_leaves_the_state_open() -> None:
    files = {"/proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
    states = [
        detect(captured(files=files, commands={"nvidia-smi": answer})).driver.state
        for answer in (told("+-----------+\n| NVIDIA-SMI ", None), told("", 127))
    ]
    assert states == ["unknown", "absent"]
