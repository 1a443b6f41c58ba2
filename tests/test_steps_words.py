"""What the steps say on recorded machines: each sentence must be true of the machine that it is said to."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import driver, firmware, frameworks, hardware, monitoring, nccl
from steps.compat import effects
from steps.compat.case import Case
from steps.compat.framework_plan import size
from steps.compat.solve import recommend
from steps.detect import ways
from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.model.choice import Option
from steps.model.machine import Machine
from steps.model.profile import Profile
from steps.model.step import Step
from steps.text import lookup, say, say_finding

MACHINES = Path(__file__).parent / "machines"
NOBODY = Profile()


def machine(name: str) -> Machine:
    """Return a recorded machine's facts."""
    return detect(open_host(str(MACHINES / f"{name}.json"), None))


def row(step: Step, found: Machine, value: str, answers: Profile = NOBODY) -> Option:
    """Return one row of a step."""
    options = [option for choice in step.choices(found, answers) for option in choice.options]
    return next(option for option in options if option.value == value)


def said(option: Option) -> str:
    """Return everything that an option says, in one text; what it cites has words of its own."""
    notes = (note.text for note in option.notes if note.label != "source")
    words = [*option.sentences, *notes, *(link for found in option.findings for link in found.because)]
    spoken = [say_finding("en", found, part) for found in option.findings for part in ("sentence", "why", "remedy")]
    return "\n".join([*(say("en", one) for one in words), *(text for text in spoken if text)])


# --- hardware and BIOS ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(MACHINES.glob("*.json")), ids=lambda path: path.stem)
def test_the_sentence_counts_the_rows_that_are_marked(path: Path) -> None:
    found = machine(path.stem)
    marked = sum(option.mark == "catch" for option in hardware.choices(found, NOBODY)[0].options)
    words = say("en", hardware.intro(found, NOBODY))
    expected = f"{marked} points" if marked > 1 else "one point" if marked else "nothing falls short"
    assert expected in words.lower()


def test_without_a_gpu_nothing_is_said_to_wait_for_the_cores() -> None:
    assert "GPUs" not in said(row(hardware, machine("wsl2-rtx3060"), "cpu"))


def test_a_card_whose_pci_id_is_not_known_is_named_without_one() -> None:
    assert "(?)" not in said(row(hardware, machine("wsl2-rtx3060"), "gpu"))


def test_one_card_is_spoken_of_in_the_singular() -> None:
    words = said(row(hardware, machine("rtx5090-u2404-fresh"), "pcie"))
    assert "One card wants up to 16 lanes" in words
    assert "1 cards" not in words


def test_memory_in_wsl_is_a_share_that_a_file_of_windows_sets() -> None:
    words = said(row(hardware, machine("wsl2-rtx3060"), "memory"))
    assert "Windows keeps the rest" in words
    assert ".wslconfig" in words


def test_a_data_tier_of_nvme_says_what_counts_for_the_system() -> None:
    words = said(row(hardware, machine("rtx5090-u2404-fresh"), "data"))
    assert "count for the system" in words
    assert "Hard disks" not in words


def test_a_row_that_is_not_known_says_what_is_not_known() -> None:
    option = row(hardware, machine("laptop-katana-4070-secureboot"), "gpu")
    assert option.mark == "unknown"
    assert "Not known: its memory." in said(option)


def test_a_row_that_is_enough_says_against_what() -> None:
    option = row(hardware, machine("rtx4090x4-epyc"), "cpu")
    assert option.mark == "good"
    assert "the guide wants 8 cores" in said(option)


@pytest.mark.parametrize(
    ("name", "lanes", "chipset", "short"),
    [("rtx5090-u2404-fresh", 28, 4, 0), ("rtx4070x3-riser-x1", 24, 4, 32), ("rtx3060-prebuilt-open580", 16, 0, 4)],
)
def test_lanes_are_counted_one_way_and_those_to_the_chipset_serve_no_card(name: str, lanes: int, chipset: int, short: int) -> None:
    found = machine(name)
    budget = ways.lanes(found)
    assert budget is not None
    assert (budget.all, budget.chipset, budget.short) == (lanes, chipset, short)
    assert found.cpu.pcie_lanes == lanes
    told = said(row(hardware, found, "pcie"))
    assert f"{lanes} lanes; the cards would use" in told
    assert f"{lanes} PCIe lanes" in told
    assert (f"{chipset} of them lead to the chipset" in told) == bool(chipset)


def test_an_iommu_that_translates_between_cards_without_direct_copies_is_said_to_cost_nothing_and_how_to_change_it() -> None:
    option = row(firmware, machine("rtx4090x4-epyc"), "iommu")
    assert say("en", option.tag) == "translating"
    assert "nothing is lost here" in said(option)
    assert "iommu=pt on the kernel's command line" in said(option)


# --- driver ---------------------------------------------------------------------------------------


def test_the_closed_modules_of_a_late_branch_are_not_said_to_be_for_cards_it_no_longer_drives() -> None:
    found = machine("rtx4090x4-epyc")
    assert "what cards before Turing need, up to branch 580" in said(row(driver, found, "580-proprietary"))
    assert "Cards that need them end with branch 580" in said(row(driver, found, "595-proprietary"))


def test_a_driver_that_adds_a_repository_names_that_as_its_catch() -> None:
    option = row(driver, machine("rtx5090-u2404-fresh"), "620-open")
    assert option.mark == "catch"
    assert "It comes from NVIDIA's repository" in said(option)


def test_the_sentence_above_says_which_branches_have_open_modules() -> None:
    assert say("en", driver.intro(machine("rtx5090-u2404-fresh"), NOBODY)).endswith("with open modules 580, 595.")


def test_a_kept_driver_says_what_was_measured_and_where_its_branch_is_described() -> None:
    option = row(driver, machine("rtx3060-prebuilt-open580"), "keep")
    assert "module 580.126.09, libraries 580.126.09" in said(option)
    assert [note.label for note in option.notes] == ["measured", "source"]


def test_no_linux_driver_in_wsl_is_called_the_driver_of_windows() -> None:
    found = machine("wsl2-rtx3060")
    assert say("en", row(driver, found, "none").label) == "Windows' driver"
    assert say("en", row(driver, machine("rtx5090-u2404-fresh"), "none").tag) == "GPU unused"


def test_the_server_series_is_not_said_to_be_the_desktop_driver_with_less_in_it() -> None:
    found = machine("rtx5090-u2404-fresh")
    answers = recommend(found).choices
    assert answers is not None
    words = said(row(driver, found, "distro-server", answers))
    assert "data-center releases" in words
    assert "desktop" not in words


# --- AMD, and no GPU ------------------------------------------------------------------------------


def test_an_amd_machine_is_told_nothing_of_cuda_in_what_it_can_take() -> None:
    found = machine("xe9680-mi300x")
    answers = recommend(found).choices
    assert answers is not None
    assert "ROCm's libraries" in said(row(frameworks, found, "torch", answers))
    for name in ("torch", "jax", "tensorflow", "student", "rocm6.3"):
        assert "CUDA" not in said(row(frameworks, found, name, answers))


def test_pytorch_for_amd_is_counted_with_rocm_in_it() -> None:
    found = machine("xe9680-mi300x")
    answers = recommend(found).choices
    assert answers is not None
    assert size(Case(found, answers)) > 4e9


def test_a_tool_for_nvidia_beside_amd_cards_names_both() -> None:
    option = row(monitoring, machine("xe9680-mi300x"), "nvitop")
    assert say("en", option.tag) == "NVIDIA only"
    assert "knows cards of NVIDIA only; the ones here are 8× MI300X" in said(option)


def test_a_build_for_the_processor_brings_no_libraries_of_a_gpu() -> None:
    found = machine("nogpu-dell-r6515")
    answers = recommend(found).choices
    assert answers is not None
    assert "CUDA" not in said(row(frameworks, found, "torch", answers))


def test_the_place_of_an_environment_is_said_for_root_and_for_others() -> None:
    words = say("en", frameworks.intro(machine("rtx5090-u2404-fresh"), NOBODY))
    assert "~/envs" in words
    assert "/opt/bringup/envs" in words


def test_who_makes_the_environment_says_where_that_is_described() -> None:
    found = machine("rtx5090-u2404-fresh")
    answers = recommend(found).choices
    assert answers is not None
    environment = next(choice for choice in frameworks.choices(found, answers) if choice.key == "environment")
    assert all(any(note.label == "source" for note in option.notes) for option in environment.options)


# --- a driver that does not run -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "fact"),
    [
        ("vm-2080ti-library-mismatch", "driver-mismatch", "Module 515.65.01 is loaded, the libraries are 525.125.06"),
        ("2080ti-dkms-missing", "driver-not-loaded", "No module of NVIDIA's is loaded"),
        ("a5000-nouveau-bound", "driver-blocked", "is held by nouveau"),
        ("rtx4070x3-riser-x1", "driver-failing", "Module 535.230.02 is loaded, and no card answers"),
    ],
)
def test_a_driver_that_does_not_run_is_said_with_the_fact_behind_it(name: str, code: str, fact: str) -> None:
    found = [one for one in driver.check(machine(name), NOBODY) if one.code == code]
    assert [one.severity for one in found] == ["warning"]
    assert fact in " ".join(say("en", link) for link in found[0].because)


def test_a_driver_that_will_be_replaced_is_not_blamed_for_not_running() -> None:
    found = machine("vm-2080ti-library-mismatch")
    answers = recommend(found).choices
    assert answers is not None
    assert answers.driver.branch is not None
    assert not [one for one in driver.check(found, answers) if one.code == "driver-mismatch"]


@pytest.mark.parametrize(
    "key",
    [
        "doctor_frameworks.wheel-lacks-gpu-kernels.title",
        "doctor_frameworks.rocblas-lacks-gpu-kernels.title",
        "doctor_frameworks.rocblas-lacks-gpu-kernels.because",
        "frameworks.finding.wheel-lacks-gpu-kernels.tag",
    ],
)
def test_a_kernel_that_a_gpu_runs_is_not_called_by_the_name_of_linuxs(key: str) -> None:
    said = lookup("zh_CN", key)
    assert said is not None
    assert "核函数" in said
    assert "内核" not in said


def test_a_disk_is_named_with_its_size_and_no_name_is_cut() -> None:
    option = row(hardware, machine("rtx4090x4-epyc"), "nvme")
    assert option.sentences[1:] == ("nvme0n1  3.8 TB  SAMSUNG MZQL23T8HCLS-00A07", "sda  16 TB  ST16000NM001G-2K")


def test_ways_between_cards_are_sentences_that_do_not_run_together() -> None:
    option = row(nccl, machine("rtx4090x4-epyc"), "p2p")
    assert all(say("en", one).endswith(".") and say("zh_CN", one).endswith("。") for one in option.sentences)
    assert len(option.sentences) == 3


def test_a_driver_that_is_warned_of_says_too_that_it_adds_a_source() -> None:
    option = row(driver, machine("rtx4090x4-epyc"), "570-open")
    assert [say("en", note.text) for note in option.notes if note.label == "trap"] == [
        "Ubuntu does not have it. It comes from NVIDIA's repository: one more source, one more key."
    ]
    closed = row(driver, machine("rtx4090x4-epyc"), "570-proprietary")
    assert not any(note.label == "trap" for note in closed.notes)


def test_a_set_names_all_that_it_adds_and_what_cannot_touch_the_stack_says_nothing_of_it() -> None:
    found = machine("rtx4090x4-epyc")
    answers = recommend(found).choices
    assert answers is not None
    student = row(frameworks, found, "student", answers)
    assert "jupyterlab" in {change.topic for change in effects.effects(found, answers, student.patch).changes}
    assert effects.effects(found, answers, row(monitoring, found, "glances", answers).patch).keeps == ()
    assert effects.effects(found, answers, row(driver, found, "595-open", answers).patch).keeps != ()


def test_an_architecture_of_amd_is_written_as_its_maker_writes_it() -> None:
    assert "CDNA3" in said(row(hardware, machine("xe9680-mi300x"), "gpu"))
    assert "Ada" in said(row(hardware, machine("rtx4090x4-epyc"), "gpu"))
