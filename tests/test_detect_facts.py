"""What detection says of bridges, kernels, keys, users and ports; each fact by a source that shows it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from steps.compat.solve import judge
from steps.detect import configuration, modules, networks, smi, users
from steps.detect.capture import record
from steps.detect.machine import detect
from steps.detect.probes import Probes
from steps.doctor.facts import modules as said_modules
from steps.doctor.facts import owners
from steps.host import users as holders
from steps.host.base import Result
from steps.host.captured import CapturedHost, parse_capture
from steps.host.local import USERS
from steps.managers.base import module_files
from steps.model.hardware import Accelerator
from steps.model.machine import Machine
from steps.model.profile import Profile, answered
from tests import scoring

CASES = Path(__file__).parent / "cases"
MIB = 1 << 20
CARD = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
PORT = "/sys/devices/pci0000:00/0000:00:01.0"


def case(name: str) -> str:
    return (CASES / name).read_text(encoding="utf-8")


def captured(**parts: Any) -> CapturedHost:
    return CapturedHost(parse_capture(json.dumps({"schema": "bringup/capture", "version": 1, **parts}).encode()))


def recorded(**more: Any) -> CapturedHost:
    """Return a machine with one RTX 3090 below one port, and what else is given."""
    files = {
        f"{CARD}/vendor": "0x10de\n",
        f"{CARD}/device": "0x2204\n",
        f"{CARD}/class": "0x030000\n",
        f"{PORT}/vendor": "0x8086\n",
        f"{PORT}/device": "0x1901\n",
        f"{PORT}/class": "0x060400\n",
        "/proc/sys/kernel/osrelease": "6.8.0-60-generic\n",
        **more.pop("files", {}),
    }
    links = {
        "/sys/bus/pci/devices/0000:01:00.0": "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0",
        "/sys/bus/pci/devices/0000:00:01.0": "../../../devices/pci0000:00/0000:00:01.0",
        **more.pop("links", {}),
    }
    return captured(files=files, links=links, dirs=more.pop("dirs", []), commands=more.pop("commands", {}))


# -- configuration space ----------------------------------------------------------------------------------------------


def space(*, target: int = 4, acs: int | None = 0x1D, serial: bytes = b"") -> bytes:
    """Return configuration space with the express capability and, behind each other, a serial number and access control."""
    data = bytearray(4096)
    data[0x06], data[0x34] = 0x10, 0x50
    data[0x50:0x52] = b"\x01\x80"
    data[0x80:0x82] = b"\x10\x00"
    data[0x80 + 0x30] = target
    data[0x100:0x104] = (0x03 | 1 << 16 | 0x140 << 20).to_bytes(4, "little")
    data[0x104 : 0x104 + len(serial)] = serial
    if acs is not None:
        data[0x140:0x144] = (0x0D | 1 << 16).to_bytes(4, "little")
        data[0x146:0x148] = acs.to_bytes(2, "little")
    return bytes(data)


def test_bytes_tell_the_port_s_speed_and_whether_it_redirects() -> None:
    found = configuration.from_bytes(space(target=3))
    assert (found.target_generation, found.redirects) == (3, True)
    assert configuration.from_bytes(space(acs=0x11)).redirects is False
    assert configuration.from_bytes(space(acs=None)).redirects is None


@pytest.mark.parametrize("size", [0, 1, 63, 64])
def test_what_an_ordinary_user_sees_tells_neither(size: int) -> None:
    assert configuration.from_bytes(space()[:size]) == configuration.Configuration()


@pytest.mark.parametrize("size", range(65, 400, 7))
def test_bytes_that_end_anywhere_never_break(size: int) -> None:
    found = configuration.from_bytes(space()[:size])
    assert found.target_generation in (None, 4)


def test_capabilities_in_a_circle_end() -> None:
    data = bytearray(space())
    data[0x51] = 0x50
    data[0x100:0x104] = (0x03 | 1 << 16 | 0x100 << 20).to_bytes(4, "little")
    assert configuration.from_bytes(bytes(data)) == configuration.Configuration()


def test_lspci_tells_the_same_and_no_domain_is_the_first() -> None:
    text = (
        "00:01.0 PCI bridge: x\n\t\tLnkCtl2: Target Link Speed: 8GT/s, EnterCompliance-\n"
        "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+\n\n"
        "0001:00:01.0 PCI bridge: y\n\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- x\n"
    )
    found = configuration.from_lspci(text)
    assert (found["0000:00:01.0"].target_generation, found["0000:00:01.0"].redirects) == (3, True)
    assert found["0001:00:01.0"].redirects is False


def test_a_bridge_is_described_by_its_bytes_and_a_capture_of_it_hides_the_serial_number() -> None:
    data = space(target=2, serial=b"\xaa\xbb\xcc\xdd\xee\xff\x12\x34")
    host = recorded(files={f"{PORT}/config": {"base64": base64.b64encode(data).decode()}})
    (bridge,) = detect(host).bridges
    assert (bridge.address, bridge.pci_id, bridge.target_generation, bridge.redirects) == ("0000:00:01.0", "8086:1901", 2, True)
    kept = json.loads(record(host))["files"][f"{PORT}/config"]["base64"]
    assert b"\xaa\xbb\xcc\xdd\xee\xff" not in base64.b64decode(kept)
    assert detect(CapturedHost(parse_capture(record(host)))).bridges == (bridge,)


# -- kernels and modules ----------------------------------------------------------------------------------------------

MODINFO = "filename: /lib/modules/x/nvidia.ko\nversion:        {}\nlicense:        {}\nsigner:         {}\nvermagic: x\n"
TREE = "/lib/modules/{}/updates/dkms/nvidia.ko"


PLACES = (
    "updates/dkms/nvidia.ko.zst",
    "extra/nvidia/nvidia.ko",
    "extra/drivers/video/nvidia/nvidia.ko",
    "extramodules/nvidia.ko.zst",
    "weak-updates/nvidia/nvidia.ko",
    "kernel/drivers/video/nvidia.ko",
    "kernel/nvidia-580/nvidia.ko",
    "video/nvidia.ko",
)


@pytest.mark.parametrize("place", PLACES)
def test_a_module_is_seen_wherever_packages_and_installers_put_it_by_all_who_look(place: str) -> None:
    kernel = "5.14.0-427.13.1.el9_4.x86_64"
    path = f"/lib/modules/{kernel}/{place}"
    host = recorded(files={path: "", f"/lib/modules/{kernel}/modules.dep": ""})
    assert module_files(host, "nvidia", kernel) == (path,)
    assert [one.present for one in modules.modules(Probes(host), None, nvidia=True)] == [True]
    assert [one.path for one in said_modules.modules(Probes(host)).files or ()] == [path]
    assert [one.path for one in owners.owners(Probes(host)).files] == [path]


def test_the_kernels_own_module_of_a_similar_name_is_not_the_drivers() -> None:
    host = recorded(files={"/lib/modules/6.8.0-60-generic/kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko": ""})
    assert module_files(host, "nvidia", "6.8.0-60-generic") == ()
    assert owners.owners(Probes(host)).files == ()


def kernels() -> CapturedHost:
    return recorded(
        files={
            TREE.format("6.8.0-60-generic"): "",
            TREE.format("6.11.0-26-generic"): "",
            "/lib/modules/6.8.0-60-generic/build/Makefile": "",
            "/lib/modules/6.14.0-1-generic/modules.dep": "",
        },
        commands={
            "modinfo nvidia": {
                "stdout": MODINFO.format("570.133.07", "Dual MIT/GPL", "host Secure Boot Module Signature key"),
                "status": 0,
            },
            "modinfo -k 6.11.0-26-generic nvidia": {"stdout": MODINFO.format("550.144.03", "NVIDIA", ""), "status": 0},
            "dkms status": {"stdout": case("dkms/dkms-status.states.txt"), "status": 0},
            "test -e /lib/modules/6.11.0-26-generic/build": {"status": 1},
        },
    )


def test_each_installed_kernel_has_its_own_module() -> None:
    old, middle, new = detect(kernels()).driver.modules
    assert (old.kernel, old.present, old.version, old.flavor, old.headers) == ("6.8.0-60-generic", True, "570.133.07", "open", True)
    assert (old.dkms, old.signer) == ("installed", "host Secure Boot Module Signature key")
    assert (middle.kernel, middle.present, middle.version, middle.flavor) == ("6.11.0-26-generic", True, "550.144.03", "proprietary")
    assert (middle.dkms, middle.headers, middle.signer) == ("built", False, None)
    assert (new.kernel, new.present, new.dkms, new.headers) == ("6.14.0-1-generic", False, None, None)


@pytest.mark.parametrize(
    ("name", "kernel", "state"),
    [
        ("new-form", "6.5.0-060500rc5-generic", "installed"),
        ("old-form", "4.17.11-200.fc28.x86_64", "installed"),
        ("old-form-original", "4.17.14-202.fc28.x86_64", "installed"),
        ("states", "6.11.0-26-generic", "built"),
    ],
)
def test_dkms_speaks_two_forms(name: str, kernel: str, state: str) -> None:
    host = recorded(commands={"dkms status": {"stdout": case(f"dkms/dkms-status.{name}.txt"), "status": 0}})
    found = {one.kernel: one.dkms for one in modules.modules(Probes(host), None, nvidia=True)}
    assert found[kernel] == state


@pytest.mark.parametrize("name", ["error-no-conf", "new-form-diff"])
def test_dkms_that_speaks_of_other_modules_says_nothing(name: str) -> None:
    host = recorded(commands={"dkms status": {"stdout": case(f"dkms/dkms-status.{name}.txt"), "status": 0}})
    assert [one.dkms for one in modules.modules(Probes(host), None, nvidia=True)] == []


def test_missing_headers_are_said_of_a_driver_that_is_built_here_only() -> None:
    files = {"/lib/modules/6.8.0-60-generic/modules.dep": "", "/etc/os-release": 'ID=debian\nVERSION_ID="12"\n'}
    nothing = {"test -e /lib/modules/6.8.0-60-generic/build": {"status": 1}, "systemd-detect-virt": {"stdout": "none\n", "status": 1}}
    profile = answered(Profile(), {"driver.branch": "580", "driver.flavor": "open", "driver.source": "nvidia-repo"})

    def codes(machine: Machine) -> set[str]:
        return {one.code for one in judge(machine, profile)}

    assert "kernel-headers-missing" in codes(detect(recorded(files=dict(files), commands=nothing)))
    assert "kernel-headers-missing" not in codes(detect(recorded(files=dict(files))))
    there = {**files, "/lib/modules/6.8.0-60-generic/build/Makefile": ""}
    assert "kernel-headers-missing" not in codes(detect(recorded(files=there, commands=nothing)))


# -- what else may stand in the way -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"/sys/module/nouveau/version": "1"}, "loaded"),
        ({"/etc/modprobe.d/blacklist-nvidia-nouveau.conf": "blacklist nouveau\noptions nouveau modeset=0\n"}, "blacklisted"),
        ({"/usr/lib/modprobe.d/nvidia.conf": "# own words\ninstall nouveau /bin/false\n"}, "blacklisted"),
        ({"/proc/cmdline": "quiet modprobe.blacklist=pcspkr,nouveau"}, "blacklisted"),
        ({"/etc/modprobe.d/iwlwifi.conf": "# blacklist nouveau\noptions iwlwifi\n"}, "free"),
        ({}, None),
    ],
)
def test_nouveau_is_loaded_kept_out_or_free(files: dict[str, str], word: str | None) -> None:
    assert detect(recorded(files=files)).driver.nouveau == word


def test_what_nvidia_s_installer_left_is_named() -> None:
    host = recorded(files={"/usr/bin/nvidia-uninstall": "", "/var/log/nvidia-installer.log": "nvidia-installer log file\n"})
    assert detect(host).driver.leftovers == ("/usr/bin/nvidia-uninstall", "/var/log/nvidia-installer.log")


def test_what_its_uninstaller_would_take_away_is_known() -> None:
    written = {
        "/usr/bin/nvidia-uninstall": "",
        "/usr/bin/nvidia-smi": "",
        "/usr/src/nvidia-550.54.14/dkms.conf": "",
        "/var/lib/nvidia/log": "300\n1: /usr/bin/nvidia-smi\n1: /usr/bin/gone\n2: /var/lib/nvidia/100\n",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.14": "",
        "/lib/modules/6.8.0-60-generic/kernel/drivers/video/nvidia.ko": "",
    }
    not_its_own = {"/usr/lib/x86_64-linux-gnu/libcuda.so.535.1.1": "", "/var/lib/nvidia-installer.disabled.tar": ""}
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\n"
    host = recorded(files={**written, **not_its_own, "/proc/driver/nvidia/version": version})
    found = detect(host).driver.run_file
    assert found is not None
    assert found.uninstaller == "/usr/bin/nvidia-uninstall"
    folders = {"/usr/src/nvidia-550.54.14", "/var/lib/nvidia"}
    assert {*found.files} == ({*written} - {"/usr/src/nvidia-550.54.14/dkms.conf", "/var/lib/nvidia/log"}) | folders
    assert found.kept == ("/var/lib/nvidia-installer.disabled.tar",)
    assert detect(recorded(files={"/var/log/nvidia-installer.log": "nvidia-installer log file\n"})).driver.run_file is None


def test_keys_that_the_owner_enrolled_are_named() -> None:
    listed = (
        "[key 1]\nSHA1 Fingerprint: 12:34\n        Subject: CN=mithril Secure Boot Module Signature key\n"
        "[key 2]\n        Subject: C=GB, CN = Canonical Ltd. Master CA\n"
    )
    efi = {"/sys/firmware/efi/fw_platform_size": "64\n"}
    found = detect(recorded(files=efi, commands={"mokutil --list-enrolled": {"stdout": listed, "status": 0}}))
    assert found.firmware.enrolled_keys == ("mithril Secure Boot Module Signature key", "Canonical Ltd. Master CA")
    none = detect(recorded(files=efi, commands={"mokutil --list-enrolled": {"stdout": "MokListRT is empty\n", "status": 0}}))
    assert none.firmware.enrolled_keys == ()
    assert detect(recorded(files=efi)).firmware.enrolled_keys is None
    assert detect(recorded()).firmware.enrolled_keys is None


def test_groups_are_counted_by_kind() -> None:
    kinds = {f"/sys/kernel/iommu_groups/{number}/type": kind for number, kind in enumerate(("DMA-FQ\n", "DMA-FQ\n", "identity\n"))}
    found = detect(recorded(files=kinds)).firmware
    assert (found.iommu, found.iommu_groups) == ("on", {"DMA-FQ": 2, "identity": 1})


def test_functions_are_counted_by_device() -> None:
    found = detect(recorded(files={f"{PORT}/sriov_totalvfs": "8\n", f"{PORT}/sriov_numvfs": "3\n", f"{CARD}/sriov_totalvfs": "0\n"}))
    sriov = found.firmware.sriov
    assert sriov is not None
    assert [(one.address, one.total, one.enabled) for one in sriov.devices] == [("0000:00:01.0", 8, 3)]
    assert (sriov.capable, sriov.enabled) == (("0000:00:01.0",), 3)


# -- ports, switches and nodes ----------------------------------------------------------------------------------------


def test_a_port_without_an_interface_is_a_port_too() -> None:
    machine = scoring.machine("dgx-a100")
    ports = {one.device: one for one in machine.infiniband}
    assert (ports["mlx5_0"].address, ports["mlx5_0"].numa_node, ports["mlx5_0"].interface) == ("0000:0c:00.0", 3, "enp12s0np0")
    assert (ports["mlx5_0"].state, ports["mlx5_0"].rate_mbps) == ("down", 200_000)
    rdma = "/sys/class/infiniband/mlx5_0"
    alone = recorded(files={f"{rdma}/ports/1/state": "4: ACTIVE\n", f"{rdma}/ports/1/link_layer": "InfiniBand\n"})
    (port,) = detect(alone).infiniband
    assert (port.state, port.link_layer, port.interface, port.rate_mbps) == ("active", "InfiniBand", None, None)


def test_switches_and_the_service_that_joins_them_are_seen() -> None:
    machine = scoring.machine("xe9680-h100x8")
    assert machine.nvswitches == ("0000:83:00.0", "0000:84:00.0", "0000:85:00.0", "0000:86:00.0")
    assert machine.driver.fabric_manager == "active"
    assert (len(scoring.machine("dgx-a100").nvswitches), scoring.machine("dgx-a100").driver.fabric_manager) == (6, None)


def test_the_narrow_bridge_above_a_card_is_in_the_tree() -> None:
    machine = scoring.machine("rtx4070x3-riser-x1")
    bridges = {one.address: one for one in machine.bridges}
    card = next(card for card in machine.accelerators if card.address == "0000:0a:00.0")
    widths = [link.max_width for address in card.bridges if (link := bridges[address].link) is not None]
    assert (card.bridges[0], widths) == ("0000:00:01.2", [8, 4, 1, 1, 1])


def test_nodes_have_their_processors() -> None:
    nodes = scoring.machine("gh200-qct").memory.nodes
    assert [(one.node, one.threads) for one in nodes[:2]] == [(0, 72), (1, 0)]


# -- memory by name ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "gib"),
    [("0x20b0", 40), ("0x1db1", 16), ("0x17fd", None), ("0x2342", None), ("0x2204", 24), ("0x2504", None), ("0x222f", None)],
)
def test_memory_is_that_of_the_name_where_all_names_agree(device: str, gib: int | None) -> None:
    bare = {"systemd-detect-virt": {"stdout": "none\n", "status": 1}}
    (card,) = detect(recorded(files={f"{CARD}/device": device}, commands=bare)).accelerators
    assert card.memory_bytes == (None if gib is None else gib << 30)


def test_a_slice_that_a_hypervisor_lends_does_not_have_the_card_s_memory() -> None:
    lent = {"systemd-detect-virt": {"stdout": "kvm\n", "status": 0}}
    (card,) = detect(recorded(files={f"{CARD}/device": "0x20b0"}, commands=lent)).accelerators
    assert card.memory_bytes is None


# -- nvidia-smi as XML ------------------------------------------------------------------------------------------------


def test_xml_tells_what_the_plain_form_tells() -> None:
    found = smi.parse(("nvidia-smi", "-q", "-x"), Result(stdout=case("nvidia-smi/nvidia-smi-qx.a100-sxm4-mig.xml"), status=0))
    (card,) = found.gpus
    assert (found.driver_version, found.cuda_version, card.name) == ("510.47.03", "11.6", "NVIDIA A100-SXM4-40GB")
    assert (card.address, card.memory_bytes, card.mig, card.ecc) == ("0000:00:04.0", 40960 * MIB, True, True)
    assert (card.link.generation, card.link.max_width, card.performance_state) == (4, 16, "P0")


def test_xml_that_was_cut_or_is_hostile_tells_what_it_can() -> None:
    text = case("nvidia-smi/nvidia-smi-qx.tesla-p100.xml")
    cut = smi.parse(("nvidia-smi", "-x", "-q"), Result(stdout=text[: text.index("<fb_memory_usage>")], status=0))
    assert [(card.name, card.memory_bytes) for card in cut.gpus] == [("Tesla P100-PCIE-16GB", None)]
    bomb = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb">]>' + "<nvidia_smi_log>" * 5000 + "<gpu id='x'>&b;" * 5000
    assert smi.parse(("nvidia-smi", "-q", "-x"), Result(stdout=bomb, status=0)).driver_version is None


# -- who uses the cards -----------------------------------------------------------------------------------------------


def proc(folder: Path) -> str:
    """Return a /proc with a training in a container, a display outside, and an editor that holds no card."""
    for pid, name, group, held in (
        ("41", "python", "0::/system.slice/docker-0123456789ab.scope", ("/dev/nvidia1", "/dev/nvidia0", "/dev/nvidiactl")),
        ("7", "Xorg", "0::/user.slice", ("/dev/nvidia0",)),
        ("9", "vim", "0::/user.slice", ("/dev/null", "/dev/nvidiactl")),
    ):
        (folder / pid / "fd").mkdir(parents=True)
        (folder / pid / "comm").write_text(f"{name}\n")
        (folder / pid / "cgroup").write_text(f"{group}\n")
        for number, target in enumerate(held):
            (folder / pid / "fd" / str(number)).symlink_to(target)
    (folder / "self").symlink_to("41")
    (folder / "55").mkdir()
    return str(folder)


def test_processes_that_hold_a_card_are_told_with_their_containers(tmp_path: Path) -> None:
    answer = holders.holders(proc(tmp_path))
    files: dict[str, str] = {}
    host = captured(files=files, commands={" ".join(USERS): {"stdout": answer.stdout, "status": 0}})
    found = users.users(Probes(host), (Accelerator(vendor="nvidia", kernel_driver="nvidia"),))
    assert found is not None
    assert [(one.pid, one.name, one.devices, one.container) for one in found] == [
        (7, "Xorg", ("/dev/nvidia0",), None),
        (41, "python", ("/dev/nvidia0", "/dev/nvidia1"), "docker"),
    ]
    assert "0123456789ab" not in answer.stdout


def test_without_a_driver_nobody_asks_and_a_silent_answer_is_not_nobody() -> None:
    driven = (Accelerator(vendor="nvidia", kernel_driver="nvidia"),)
    assert users.users(Probes(captured()), (Accelerator(vendor="nvidia", kernel_driver="nouveau"),)) is None
    assert users.users(Probes(captured()), driven) is None
    assert users.users(Probes(captured(commands={" ".join(USERS): {"stdout": "{", "status": 0}})), driven) is None


def test_no_proc_is_not_known(tmp_path: Path) -> None:
    assert holders.holders(str(tmp_path / "none")) == Result()


# -- sources that disagree --------------------------------------------------------------------------------------------


def test_mokutil_against_the_firmware_s_own_variable_is_a_gap_and_the_variable_counts() -> None:
    variable = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    on = {"base64": base64.b64encode(b"\x06\x00\x00\x00\x01").decode()}
    machine = detect(recorded(files={variable: on}, commands={"mokutil --sb-state": {"stdout": "SecureBoot disabled\n", "status": 0}}))
    assert machine.firmware.secure_boot == "enabled"
    (gap,) = [gap for gap in machine.gaps if gap.code == "sources-disagree"]
    assert (gap.step, gap.subject, gap.params["first"], gap.params["second"]) == ("firmware", "Secure Boot", "enabled", "disabled")


def test_a_width_of_the_driver_against_the_bus_is_a_gap_and_the_bus_counts() -> None:
    query = "nvidia-smi --query-gpu=name,pci.bus_id,pcie.link.width.current --format=csv"
    answer = "name, pci.bus_id, pcie.link.width.current\nNVIDIA GeForce RTX 3090, 00000000:01:00.0, 8\n"
    machine = detect(recorded(files={f"{CARD}/current_link_width": "16\n"}, commands={query: {"stdout": answer, "status": 0}}))
    card = machine.accelerators[0]
    assert (card.pcie.width if card.pcie else None) == 16
    assert [gap.params["second"] for gap in machine.gaps if gap.code == "sources-disagree"] == ["x8"]


@pytest.mark.parametrize("name", sorted(path.stem for path in scoring.MACHINES.glob("*.json")))
def test_no_recorded_machine_contradicts_itself_unseen(name: str) -> None:
    assert [gap for gap in scoring.machine(name).gaps if gap.code == "sources-disagree"] == []


# -- libraries of CUDA inside environments ----------------------------------------------------------------------------


def test_libraries_that_came_as_wheels_or_by_conda_are_in_their_environment() -> None:
    site, conda = "/home/user/.venv/lib/python3.12/site-packages", "/opt/miniforge3"
    files = {
        "/home/user/.venv/pyvenv.cfg": "uv = 0.8.1\nversion_info = 3.12.3\n",
        f"{site}/torch-2.7.1+cu128.dist-info/METADATA": "",
        f"{site}/nvidia_cudnn_cu12-9.7.1.26.dist-info/METADATA": "",
        f"{site}/nvidia_nccl_cu12-2.26.2.dist-info/METADATA": "",
        f"{conda}/conda-meta/history": "",
        f"{conda}/conda-meta/python-3.11.9-h955ad1f_0.json": "{}",
        f"{conda}/conda-meta/cudnn-9.3.0.75-h62a6f1c_0.json": "{}",
        f"{conda}/conda-meta/cuda-toolkit-12.6.3-ha804496_0.json": "{}",
    }
    own, base = detect(recorded(files=files)).environments
    wheels = {"torch": "2.7.1+cu128", "nvidia-cudnn-cu12": "9.7.1.26", "nvidia-nccl-cu12": "2.26.2"}
    assert (own.manager, own.python, own.frameworks) == ("uv", "3.12.3", wheels)
    assert (base.manager, base.python, base.frameworks) == ("conda", "3.11.9", {"cudnn": "9.3.0.75", "cuda-toolkit": "12.6.3"})


def test_environments_are_found_where_the_plan_puts_them() -> None:
    files = {
        "/home/user/envs/dl/pyvenv.cfg": "version = 3.12.3\n",
        "/root/envs/own/conda-meta/history": "",
        "/root/envs/own/conda-meta/python-3.13.1-h0_0_cpython.json": "{}",
    }
    found = {one.path: (one.manager, one.python) for one in detect(recorded(files=files)).environments}
    assert found == {"/home/user/envs/dl": ("venv", "3.12.3"), "/root/envs/own": ("conda", "3.13.1")}


# -- a card that goes away --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "day"),
    [("07/21/2026", "2026-07-21"), ("4/1/2014", "2014-04-01"), ("12/31/98", "1998-12-31"), ("13/40/2020", None), ("To be filled", None)],
)
def test_the_day_of_the_firmware_is_iso(written: str, day: str | None) -> None:
    assert detect(recorded(files={"/sys/class/dmi/id/bios_date": f"{written}\n"})).firmware.bios_date == day


class Vanishing(CapturedHost):
    """A machine whose card falls off the bus after a number of questions about it."""

    def __init__(self, inner: CapturedHost, questions: int) -> None:
        self.__dict__ = dict(inner.__dict__)
        self._left = questions

    def _gone(self, path: str) -> bool:
        if "0000:01:00.0" not in path:
            return False
        self._left -= 1
        return self._left < 0

    def read(self, path: str) -> str | None:
        return None if self._gone(path) else super().read(path)

    def read_bytes(self, path: str) -> bytes | None:
        return None if self._gone(path) else super().read_bytes(path)

    def exists(self, path: str) -> bool | None:
        return False if self._gone(path) else super().exists(path)

    def readlink(self, path: str) -> str | None:
        return None if self._gone(path) else super().readlink(path)


@pytest.mark.parametrize("questions", range(24))
def test_a_card_that_vanishes_while_it_is_read_leaves_less_and_nothing_wrong(questions: int) -> None:
    whole = recorded(files={f"{CARD}/current_link_width": "16\n", f"{CARD}/max_link_width": "16\n", f"{CARD}/numa_node": "0\n"})
    (full,) = detect(whole).accelerators
    for card in detect(Vanishing(whole, questions)).accelerators:
        for field in card.__struct_fields__:
            assert getattr(card, field) in (getattr(full, field), None, (), False) or field in ("pcie", "kernel_driver")


# -- networks ---------------------------------------------------------------------------------------------------------

TOLD: list[dict[str, Any]] = [
    {"ifname": "bond0", "master": "br0", "addr_info": []},
    {"ifname": "br0", "addr_info": [{"local": "10.0.0.5", "prefixlen": 24}]},
    {"ifname": "ens1f0", "master": "bond0", "addr_info": []},
    {"ifname": "ens1f1", "addr_info": []},
    {"ifname": "veth7", "master": "docker0", "addr_info": []},
    {"ifname": "docker0", "addr_info": [{"local": "172.17.0.1", "prefixlen": 16}]},
]


def test_the_cards_below_a_bond_or_bridge_are_known_through_every_floor_and_a_members_master_too() -> None:
    at = "/sys/class/net"
    cards = ("ens1f0", "ens1f1")
    files = {f"{at}/{one['ifname']}/type": "1\n" for one in TOLD} | {f"{at}/{name}/device/vendor": "0x15b3\n" for name in cards}
    links = {f"{at}/{one['ifname']}": f"../../devices/virtual/net/{one['ifname']}" for one in TOLD if one["ifname"] not in cards}
    host = captured(
        files=files,
        links={**links, f"{at}/ens1f1/master": "../bond0"},
        dirs=[],
        commands={"ip -j addr": {"status": 0, "stdout": json.dumps(TOLD)}},
    )
    found = {one.name: (one.kind, one.master, set(one.carriers)) for one in networks.networks(Probes(host), ())}
    assert found == {
        "br0": ("virtual", None, {"ens1f0", "ens1f1"}),
        "bond0": ("virtual", "br0", {"ens1f0", "ens1f1"}),
        "ens1f0": ("ethernet", "bond0", set()),
        "ens1f1": ("ethernet", "bond0", set()),
        "docker0": ("virtual", None, set()),
        "veth7": ("virtual", "docker0", set()),
    }


def test_the_cards_below_a_vlan_are_known_through_the_bond_it_lies_over() -> None:
    at = "/sys/class/net"
    told = [
        *TOLD[1:4],
        {"ifname": "bond0", "addr_info": []},
        {"ifname": "bond0.100", "link": "bond0", "addr_info": [{"local": "10.0.0.5", "prefixlen": 24}]},
        {"ifname": "veth8", "link": "veth9", "addr_info": []},
        {"ifname": "veth9", "link": "veth8", "addr_info": []},
    ]
    files = {f"{at}/{one['ifname']}/type": "1\n" for one in told} | {f"{at}/ens1f0/device/vendor": "0x15b3\n"}
    links = {f"{at}/{one['ifname']}": f"../../devices/virtual/net/{one['ifname']}" for one in told if one["ifname"] != "ens1f0"}
    host = captured(files=files, links=links, dirs=[], commands={"ip -j addr": {"status": 0, "stdout": json.dumps(told)}})
    found = {one.name: one.carriers for one in networks.networks(Probes(host), ())}
    assert (found["bond0.100"], found["veth8"], found["veth9"]) == (("ens1f0",), (), ())


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("[nvidia-driver]\nname=nvidia-driver\nstream=570-open\nprofiles=\nstate=enabled\n", "570-open"),
        ("[nvidia-driver]\nname=nvidia-driver\nstream=\nprofiles=\nstate=\n", None),
    ],
)
def test_the_stream_that_dnf_has_enabled_for_the_driver_is_read(text: str, stream: str | None) -> None:
    assert detect(recorded(files={"/etc/dnf/modules.d/nvidia-driver.module": text})).driver.stream == stream
    assert detect(recorded(files={})).driver.stream is None
