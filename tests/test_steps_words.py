"""What the steps say on recorded machines: each sentence must be true of the machine that it is said to."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import firmware, hardware
from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.model.choice import Option
from steps.model.machine import Machine
from steps.model.profile import Profile
from steps.model.step import Step
from steps.text import say, say_finding

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
    """Return everything that an option says, in one text."""
    words = [*option.sentences, *(note.text for note in option.notes), *(link for found in option.findings for link in found.because)]
    spoken = [say_finding("en", found, part) for found in option.findings for part in ("sentence", "why", "remedy")]
    return "\n".join([*(say("en", one) for one in words), *(text for text in spoken if text)])


# --- hardware and BIOS ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(MACHINES.glob("*.json")), ids=lambda path: path.stem)
def test_the_sentence_counts_the_rows_that_are_marked(path: Path) -> None:
    found = machine(path.stem)
    marked = sum(option.mark == "catch" for option in hardware.choices(found, NOBODY)[0].options)
    words = say("en", hardware.intro(found, NOBODY))
    expected = f"{marked} points" if marked > 1 else "one point" if marked else "nothing falls short"
    assert expected in words


def test_without_a_gpu_nothing_is_said_to_wait_for_the_cores() -> None:
    assert "GPUs" not in said(row(hardware, machine("wsl2-rtx3060"), "cpu"))


def test_memory_in_wsl_is_a_share_that_a_file_of_windows_sets() -> None:
    words = said(row(hardware, machine("wsl2-rtx3060"), "memory"))
    assert "Windows keeps the rest" in words
    assert ".wslconfig" in words


def test_a_data_tier_of_nvme_says_what_counts_for_the_system() -> None:
    words = said(row(hardware, machine("rtx5090-u2404-fresh"), "data"))
    assert "count for the system" in words
    assert "Hard disks" not in words


def test_a_row_that_is_not_known_says_what_is_not_known() -> None:
    option = row(hardware, machine("rtx5090-u2404-fresh"), "gpu")
    assert option.mark == "unknown"
    assert "Not known: its memory." in said(option)


def test_a_row_that_is_enough_says_against_what() -> None:
    option = row(hardware, machine("rtx4090x4-epyc"), "cpu")
    assert option.mark == "good"
    assert "the guide wants 8 cores" in said(option)


def test_an_iommu_that_translates_between_cards_without_direct_copies_is_said_to_cost_nothing_and_how_to_change_it() -> None:
    option = row(firmware, machine("rtx4090x4-epyc"), "iommu")
    assert say("en", option.tag) == "translating"
    assert "nothing is lost here" in said(option)
    assert "iommu=pt on the kernel command line" in said(option)
