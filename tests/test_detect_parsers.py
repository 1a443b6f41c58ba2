"""Raw outputs of many generations, and the facts in them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from steps.catalog import devices
from steps.catalog.load import rows
from steps.detect import cpu, links, nvml, packages, pci, power, smi, system
from steps.detect.probes import Probes
from steps.host.base import Result
from steps.host.captured import Capture, CapturedHost, Encoded, Recorded
from steps.host.local import NO_ANSWER, NVML, LocalHost
from steps.model.hardware import Fan, Power, PowerLimit

CASES = Path(__file__).parent / "cases"
MIB = 1 << 20


def case(name: str) -> str:
    return (CASES / name).read_text(encoding="utf-8")


def asked(*argv: str, text: str = "", status: int | None = 0) -> smi.Smi:
    return smi.parse(argv, Result(stdout=text, status=status))


# -- nvidia-smi -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        "bash: nvidia-smi: command not found\n",
        "Command 'nvidia-smi' not found, but can be installed with:\n",
        "zsh: command not found: nvidia-smi\n",
        "bash: nvidia-smi: Kommando nicht gefunden.\n",
        "-bash: nvidia-smi: 未找到命令\n",
    ],
)
def test_a_shell_without_the_tool_is_known_by_its_words_where_the_status_was_not_told(said: str) -> None:
    assert asked("nvidia-smi", text=said, status=None).installed is False
    assert asked("nvidia-smi", text="No devices were found\n", status=None).installed is True


def test_the_long_form_of_2015_is_read() -> None:
    found = asked("nvidia-smi", "-q", text=case("nvidia-smi/nvidia-smi-q.titanx-352.txt"))
    (card,) = found.gpus
    assert (found.driver_version, found.cuda_version) == ("352.63", None)
    assert (card.address, card.name, card.memory_bytes) == ("0000:06:00.0", "GeForce GTX TITAN X", 12284 * MIB)


def test_what_a_fermi_card_does_not_tell_is_not_known() -> None:
    (card,) = asked("nvidia-smi", "-q", text=case("nvidia-smi/nvidia-smi-q.gtx460-358.txt")).gpus
    assert (card.name, card.memory_bytes, card.bar1_bytes) == ("GeForce GTX 460", 1018 * MIB, None)
    assert (card.link.generation, card.link.max_width, card.ecc, card.mig) == (None, None, None, None)


def test_the_link_now_and_at_most_are_told_apart() -> None:
    found = asked("nvidia-smi", "-q", text=case("nvidia-smi/nvidia-smi-q.gtx1650-laptop-525.txt"))
    link = found.gpus[0].link
    assert (link.generation, link.max_generation, link.width, link.max_width) == (3, 3, 8, 16)
    assert (found.driver_version, found.cuda_version) == ("525.125.06", "12.0")


def test_each_of_four_cards_has_its_own_entries() -> None:
    found = asked("nvidia-smi", "-q", text=case("nvidia-smi/nvidia-smi-q.rtx2080tix4-440.txt"))
    assert [card.address for card in found.gpus] == ["0000:02:00.0", "0000:03:00.0", "0000:83:00.0", "0000:84:00.0"]
    assert [card.link.generation for card in found.gpus] == [3, 1, 3, 3]
    assert {card.memory_bytes for card in found.gpus} == {11019 * MIB}


def test_the_plain_table_names_cards_and_versions() -> None:
    found = asked("nvidia-smi", text=case("nvidia-smi/nvidia-smi.wsl2-rtx5080.txt"))
    (card,) = found.gpus
    assert (found.driver_version, found.cuda_version) == ("591.86", "13.1")
    assert (card.address, card.name, card.memory_bytes) == ("0000:01:00.0", "NVIDIA GeForce RTX 5080", 16303 * MIB)


def test_a_name_that_the_table_cut_is_not_taken_for_the_name() -> None:
    row = (
        "|   0  NVIDIA GeForce RTX 4090 La...    Off |   00000000:01:00.0 Off |                  N/A |\n"
        "| N/A   44C    P8              4W /  150W |      12MiB /  16376MiB |      0%      Default |\n"
    )
    (card,) = asked("nvidia-smi", text=f"Driver Version: 550.90.07\n{row}").gpus
    assert (card.name, card.memory_bytes) == (None, 16376 * MIB)


def test_the_wording_of_branch_610_is_understood() -> None:
    head = "| NVIDIA-SMI 610.20    KMD Version: 610.20    CUDA UMD Version: 13.4 |\n"
    found = asked("nvidia-smi", text=head)
    assert (found.driver_version, found.cuda_version) == ("610.20", "13.4")


@pytest.mark.parametrize(
    ("text", "status", "trouble"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 525.125\n", 18, "mismatch"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", 9, "no-driver"),
        ("No devices were found\n", 6, "no-devices"),
        ("Unable to determine the device handle for GPU0000:0F:00.0: Unknown Error\n", 15, "failing"),
        ("Unable to determine the device handle for GPU0000:0F:00.0: GPU is lost.\n", 0, "failing"),
        ("Failed to initialize NVML: Unknown Error\n", 255, "failing"),
    ],
)
def test_each_trouble_has_its_name(text: str, status: int, trouble: str) -> None:
    found = asked("nvidia-smi", text=text, status=status)
    assert (found.trouble, found.said) == (trouble, text.splitlines()[0])


def test_not_installed_not_asked_and_hanging_are_three_things() -> None:
    assert asked("nvidia-smi", status=127) == smi.Smi(installed=False)
    assert asked("nvidia-smi", status=None) == smi.Smi()
    assert smi.parse(("nvidia-smi", "-q"), Result(stderr=f"{NO_ANSWER}\n")).hangs
    assert asked("nvidia-smi", "-q", status=124).hangs


def test_any_query_is_read_by_its_own_fields() -> None:
    text = "name, pci.bus_id, memory.total [MiB], compute_cap\nNVIDIA GB10, 0000000F:01:00.0, [N/A], 12.1\n"
    (card,) = asked("nvidia-smi", "--query-gpu=name,pci.bus_id,memory.total,compute_cap", "--format=csv", text=text).gpus
    assert (card.name, card.address, card.memory_bytes, card.compute_capability) == ("NVIDIA GB10", "000f:01:00.0", None, "12.1")


# -- topology ---------------------------------------------------------------------------------------------------------


def test_a_matrix_of_pcie_only() -> None:
    found = links.matrix(case("topology/topo-m.5090x2-4090x3.txt"))
    assert len(found) == 10
    assert (found[0, 1], found[1, 2], found[1, 3], found[3, 4]) == ("SYS", "PHB", "NODE", "PHB")


def test_network_cards_in_the_matrix_are_no_gpus() -> None:
    found = links.matrix(case("topology/topo-m.rtx4090x8-sys.txt"))
    assert len(found) == 28
    assert set(found.values()) == {"SYS"}


def test_rows_that_were_cut_off_leave_pairs_out() -> None:
    assert len(links.matrix(case("topology/topo-m.dgx-a100.partial.txt"))) == 7 + 6 + 5 + 4
    old = links.matrix(case("topology/topo-m.dgx2-old-format.partial.txt"))
    assert (len(old), set(old.values())) == (15 + 14 + 13, {"NV6"})
    assert links.matrix(case("topology/topo-m.single-a100-pcie.txt")) == {}


# -- lspci ------------------------------------------------------------------------------------------------------------


def test_lspci_with_numbers_gives_ids_and_domains() -> None:
    found = pci.from_lspci(case("lspci/lspci-nn.azure-nd96-a100.txt"))
    cards = [device for device in found.values() if device.kind[:4] == "0302"]
    assert len(cards) == 8
    assert {device.pci_id for device in cards} == {"10de:20b2"}
    assert found["000e:00:00.0"].pci_id == "10de:20b2"


def test_lspci_of_a_laptop_shows_both_cards() -> None:
    found = pci.from_lspci(case("lspci/lspci-nn.gtx1650-laptop-525.txt"))
    assert (found["0000:01:00.0"].pci_id, found["0000:05:00.0"].pci_id) == ("10de:1f91", "1002:15d8")


def test_lspci_without_numbers_tells_vendor_and_driver() -> None:
    found = pci.from_lspci(case("lspci/lspci-k.vega20.txt"))
    card = found["0000:07:00.0"]
    assert (card.vendor, card.device, card.kind, card.driver) == ("1002", "", "030000", "amdgpu")


@pytest.mark.parametrize(
    ("speed", "generation"), [("2.5 GT/s PCIe", 1), ("8 GT/s", 3), ("16.0 GT/s PCIe", 4), ("32GT/s", 5), ("Unknown", None), (None, None)]
)
def test_a_speed_is_a_generation(speed: str | None, generation: int | None) -> None:
    assert pci.generation(speed) == generation


# -- processors and packages ------------------------------------------------------------------------------------------


def probes(capture: Capture) -> Probes:
    return Probes(CapturedHost(capture))


def capture(**parts: object) -> Capture:
    return Capture(schema="bringup/capture", version=1, **parts)  # type: ignore[arg-type]


def test_an_old_lscpu_counts_one_cache_only_so_the_sum_is_not_known() -> None:
    text = case("cpu/lscpu.epyc7742.txt")
    found = cpu.cpu(probes(capture(commands={"lscpu": Recorded(stdout=text, status=0)})), bare_metal=True)
    assert (found.sockets, found.cores, found.threads, found.numa_nodes, found.l3_bytes) == (2, 128, 128, 2, None)
    assert found.pcie_lanes is None


def test_a_newer_lscpu_adds_the_caches_up() -> None:
    text = case("cpu/lscpu.ryzen5950x.txt")
    found = cpu.cpu(probes(capture(commands={"lscpu": Recorded(stdout=text, status=0)})), bare_metal=True)
    assert (found.cores, found.threads, found.l3_bytes, found.pcie_lanes) == (16, 32, 64 * MIB, 24)


@pytest.mark.parametrize(
    ("model", "lanes"),
    [
        ("AMD EPYC 7763 64-Core Processor", 128),
        ("AMD EPYC 9654 96-Core Processor", 128),
        ("AMD Ryzen Threadripper PRO 5975WX 32-Cores", 128),
        ("AMD Ryzen 7 5800X3D 8-Core Processor", 24),
        ("AMD Ryzen 9 9950X 16-Core Processor", 28),
        ("Intel(R) Core(TM) i9-10900K CPU @ 3.70GHz", 16),
        ("Intel(R) Core(TM) i9-10980XE CPU @ 3.00GHz", 48),
        ("12th Gen Intel(R) Core(TM) i7-12700K", 20),
        ("Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz", 64),
        ("Intel(R) Xeon(R) Platinum 8480+", 80),
        ("INTEL(R) XEON(R) PLATINUM 8570", 80),
        ("Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", 40),
        ("AMD Ryzen 7 5800H with Radeon Graphics", None),
        ("12th Gen Intel(R) Core(TM) i7-12700H", None),
        ("Common KVM processor", None),
    ],
)
def test_lanes_are_those_of_the_maker_or_not_known(model: str, lanes: int | None) -> None:
    row = devices.cpu(model)
    assert (row.pcie_lanes if row else None) == lanes


def test_every_pattern_of_a_processor_begins_with_its_family_s_word() -> None:
    patterns = [row.model for row in rows("cpus.toml", "cpu", devices.CpuRow)]
    assert [one for one in patterns if not re.match(r"(?:Ryzen|EPYC|Xeon|Core)(?: |\\)", one)] == []


def test_only_installed_packages_count() -> None:
    status = (
        "Package: nvidia-driver-515\nStatus: install ok installed\nVersion: 515.65.01-0ubuntu0.18.04.1\n\n"
        "Package: nvidia-driver-470\nStatus: deinstall ok config-files\nVersion: 470.141.03-0ubuntu0.18.04.1\n\n"
        "Package: half\nStatus: install ok half-installed\nVersion: 1\n"
    )
    assert packages.from_dpkg_status(status) == {"nvidia-driver-515": "515.65.01-0ubuntu0.18.04.1"}
    assert packages.from_dpkg_list("ii  libc6:amd64  2.35-0ubuntu3  amd64  GNU C Library\nrc  old  1  all  x\n") == {
        "libc6": "2.35-0ubuntu3"
    }
    assert packages.from_rpm("kmod-nvidia-open-dkms-580.95.05-1.el9.noarch\nglibc 2.34-100.el9\n") == {
        "kmod-nvidia-open-dkms": "580.95.05-1.el9",
        "glibc": "2.34-100.el9",
    }


def test_every_row_of_the_device_tables_can_be_read() -> None:
    for line in (Path(__file__).parent.parent / "assets/data/gpus.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        row = devices.gpu(f"10de:{line[:4]}")
        assert row is not None
        assert row.open_modules in ("no", "optional", "required")
    for line in (Path(__file__).parent.parent / "assets/data/amd_names.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        device, revision, name = line.split("\t")[:3]
        assert devices.amd_name(f"1002:{device}", revision) == name
        assert devices.accelerator(f"1002:{device}") is not None
    for line in (Path(__file__).parent.parent / "assets/data/accelerators.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        vendor, device = line.split("\t")[:2]
        assert devices.accelerator(f"{vendor}:{device}") is not None


def test_names_are_found_only_where_all_their_devices_agree() -> None:
    row = devices.gpu_by_name("NVIDIA GeForce RTX 3060")
    assert row is not None
    assert (row.architecture, row.compute_capability) == ("ampere", "8.6")
    assert devices.gpu_by_name("NVIDIA GeForce RTX 9999") is None


# -- NVML -------------------------------------------------------------------------------------------------------------

H200 = (
    '{"error": null, "driver": "570.124.06", "library": "12.570.124.06", "cuda": 12080, "gpus": [{"error": null, '
    '"address": "00000000:1B:00.0", "name": "NVIDIA H200", "memory_bytes": 150754820096, "bar1_bytes": null, "compute_capability": "9.0", '
    '"link": {"generation": 5, "max_generation": 5, "width": 16, "max_width": 16}, "ecc": true, "mig": false}, {"error": 15}]}'
)


def test_nvml_s_answer_has_all_that_nvidia_smi_tells() -> None:
    found = nvml.from_nvml(Result(stdout=H200.replace(', {"error": 15}', ""), status=0))
    (card,) = found.gpus
    assert (found.driver_version, found.cuda_version, found.trouble) == ("570.124.06", "12.8", None)
    assert (card.address, card.name, card.memory_bytes, card.compute_capability) == ("0000:1b:00.0", "NVIDIA H200", 150754820096, "9.0")
    assert (card.link.generation, card.link.max_width, card.ecc, card.mig) == (5, 16, True, False)


def test_a_lost_card_makes_the_driver_failing_and_keeps_the_others() -> None:
    found = nvml.from_nvml(Result(stdout=H200, status=0))
    assert (found.trouble, len(found.gpus)) == ("failing", 1)


@pytest.mark.parametrize(
    ("stdout", "trouble", "installed"),
    [
        ('{"error": 18, "said": "RM has detected an NVML/RM version mismatch."}', "mismatch", True),
        ('{"error": 9, "said": "Driver Not Loaded"}', "no-driver", True),
        ('{"error": 999, "said": "Unknown Error"}', "failing", True),
        ('{"error": null, "driver": "570.1", "gpus": []}', "no-devices", True),
        ('{"error": 12, "said": "NVML Shared Library Not Found"}', None, None),
        ("", None, None),
        ('{"error": {}}', None, None),
    ],
)
def test_nvml_s_errors_are_the_same_troubles(stdout: str, trouble: str | None, installed: bool | None) -> None:
    found = nvml.from_nvml(Result(stdout=stdout, status=0))
    assert (found.trouble, found.installed) == (trouble, installed)


def test_nvml_that_hangs_spares_the_machine_a_second_question() -> None:
    asked_of = capture(
        commands={"bringup nvml": Recorded(stderr=NO_ANSWER), "nvidia-smi -q": Recorded(stdout="No devices were found", status=6)}
    )
    found = nvml.driver_says(probes(asked_of))
    assert (found.hangs, found.trouble) == (True, None)


def test_our_question_to_nvml_answers_one_document_with_or_without_a_library() -> None:
    found = json.loads(LocalHost().run(NVML, timeout=60).stdout)
    assert "error" in found


# -- slices, limits and fans ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pci_id", "subsystem", "name", "gib"),
    [
        ("10de:2236", "10de:14bb", "NVIDIA A10-4Q", 4),
        ("10de:2236", "10de:14cb", "NVIDIA A10-24", 24),
        ("10de:1eb8", "10de:1375", "GRID T4-16C", 16),
        ("10de:20f1", "10de:1495", "GRID A100-3-20C", 20),
        ("10de:26b9", "10de:18b1", "NVIDIA L40S-48C", 48),
        ("10de:2331", "10de:17f0", "NVIDIA H100-1-10CME", 10),
    ],
)
def test_a_lent_slice_is_known_by_its_subsystem(pci_id: str, subsystem: str, name: str, gib: int) -> None:
    assert devices.slice_of(pci_id, subsystem) == devices.Slice(name=name, gib=gib)


@pytest.mark.parametrize(
    ("pci_id", "subsystem"),
    [("10de:2236", "10de:1482"), ("10de:2236", "1462:14bb"), ("10de:2204", "10de:14bb"), ("10de:2236", None), ("10de:2236", "10de:14cc")],
)
def test_a_whole_card_is_no_slice(pci_id: str, subsystem: str | None) -> None:
    assert devices.slice_of(pci_id, subsystem) is None


TABLE = """\
|   0  NVIDIA A100-SXM...  On   | 00000000:07:00.0 Off |                   On |
| N/A   31C    P0    56W / 400W |      0MiB / 40536MiB |     N/A      Default |
|   1  Tesla T4            Off  | 00000000:08:00.0 Off |                    0 |
| ERR!  31C    P8   ERR! / N/A  |      0MiB / 15109MiB |     97%      Default |
|   2  GeForce GTX 460     Off  | 0000:09:00.0     N/A |                  N/A |
| 47%   44C    P0    N/A /  N/A |    221MiB /  1018MiB |     N/A      Default |
"""


def test_the_plain_table_tells_limit_fan_state_and_load() -> None:
    found = smi.parse(("nvidia-smi",), Result(stdout=TABLE, status=0)).gpus
    assert [(one.power and one.power.watts, one.fan_percent, one.performance_state, one.utilization) for one in found] == [
        (400.0, None, "P0", None),
        (None, None, "P8", 97),
        (None, 47, "P0", None),
    ]


def test_limits_of_the_board_are_read_from_the_kernel() -> None:
    rapl, sensors = "/sys/class/powercap/intel-rapl:0", "/sys/class/hwmon/hwmon3"
    files: dict[str, str | Encoded] = {
        "/sys/firmware/acpi/platform_profile": "balanced\n",
        f"{rapl}/name": "package-0\n",
        f"{rapl}/constraint_0_name": "long_term\n",
        f"{rapl}/constraint_0_power_limit_uw": "125000000\n",
        f"{rapl}/constraint_0_max_power_uw": "0\n",
        f"{rapl}:0/name": "core\n",
        f"{sensors}/name": "nct6798\n",
        f"{sensors}/fan1_input": "1190\n",
        f"{sensors}/fan2_input": "0\n",
        f"{sensors}/fan2_label": "PUMP\n",
        f"{sensors}/fan3_input": "-1\n",
    }
    found = power.power(probes(capture(files=files)))
    assert found == Power(
        profile="balanced",
        packages=(PowerLimit(watts=125.0),),
        fans=(Fan(name="fan1", chip="nct6798", rpm=1190), Fan(name="PUMP", chip="nct6798", rpm=0)),
    )


def test_the_limit_of_an_amd_card_is_the_driver_s() -> None:
    at = "/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon4"
    files: dict[str, str | Encoded] = {
        f"{at}/power1_cap": "600000000\n",
        f"{at}/power1_cap_default": "750000000\n",
        f"{at}/power1_cap_max": "750000000\n",
        f"{at}/pwm1": "128\n",
        f"{at}/pwm1_max": "255\n",
    }
    assert power.of_amd_card(probes(capture(files=files)), "0000:03:00.0") == (PowerLimit(watts=600.0, default=750.0, most=750.0), 50)
    assert power.of_amd_card(probes(capture()), "0000:03:00.0") == (None, None)


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("NVIDIA GeForce RTX 4090", 24),
        ("NVIDIA A100-SXM4-40GB", 40),
        ("NVIDIA GeForce RTX 3060", None),
        ("NVIDIA GeForce RTX 4090 D", None),
    ],
)
def test_a_card_sold_with_one_size_only_has_that_memory(name: str, gib: int | None) -> None:
    assert devices.memory_gib(name) == gib


def test_every_name_with_a_memory_is_a_card_of_the_tables_and_stands_there_once() -> None:
    names = [name for row in rows("gpu_memory.toml", "memory", devices.MemoryRow) for name in row.names]
    cards = (Path(__file__).parent.parent / "assets/data/gpus.tsv").read_text(encoding="utf-8").splitlines()
    known = {name for line in cards for name in line.split("\t")[1].split(" / ")}
    assert len(names) == len(set(names))
    assert set(names) <= known


# -- probes -----------------------------------------------------------------------------------------------------------


class Slow:
    """A machine one of whose programs never answers; it writes down what it was asked."""

    rehearsal = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def __getattr__(self, name: str) -> object:
        return lambda *_: None

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        self.asked.append(argv)
        if argv == ("broken",):
            raise ValueError("no such thing")
        return Result(stderr=f"{NO_ANSWER}\n") if argv[0] == "lscpu" else Result(stdout=" ".join(argv), status=0)


def test_a_program_that_hangs_is_not_asked_in_other_words() -> None:
    host = Slow()
    found = Probes(host).first(("lscpu", "-J"), ("lscpu",))  # type: ignore[arg-type]  # it has what is asked of it here
    assert NO_ANSWER in found.stderr
    assert host.asked == [("lscpu", "-J")]


def test_each_question_is_asked_once_and_an_error_comes_out_where_the_answer_is_wanted() -> None:
    host = Slow()
    probes_ = Probes(host)  # type: ignore[arg-type]  # as above
    questions = tuple(("echo", str(number)) for number in range(20))
    probes_.ahead(*questions, ("broken",))
    assert [probes_.run(argv).stdout for argv in questions] == [" ".join(argv) for argv in questions]
    assert sorted(host.asked) == sorted((*questions, ("broken",)))
    with pytest.raises(ValueError, match="no such thing"):
        probes_.run(("broken",))


@pytest.mark.parametrize(
    ("said", "below", "virtualization", "container"),
    [("docker", "none", "none", "docker"), ("lxc", "kvm", "kvm", "lxc"), ("kvm", "kvm", "kvm", None), ("none", "none", "none", None)],
)
def test_a_container_does_not_hide_the_machine_below(said: str, below: str, virtualization: str, container: str | None) -> None:
    answers = {"systemd-detect-virt": Recorded(stdout=f"{said}\n"), "systemd-detect-virt --vm": Recorded(stdout=f"{below}\n")}
    host = probes(capture(commands=answers))
    found = system.system(host, packages.packages(host))
    assert (found.virtualization, found.container) == (virtualization, container)
