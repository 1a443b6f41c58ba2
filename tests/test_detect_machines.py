"""Detection against the captured machines and what is true of each."""

from __future__ import annotations

import pytest

from steps.detect.summary import gpu_line, headline, os_line
from steps.model.machine import Machine
from tests import scoring

NOT_YET = {
    # The maker lists lanes to slots and lanes to drives apart for this mobile chip; no source says which count the kernel's name means.
    "laptop-katana-4070-secureboot": {"cpu.pcie_lanes"},
}


@pytest.mark.parametrize("name", scoring.names())
def test_every_fact_that_a_capture_can_tell_is_found(name: str) -> None:
    found = scoring.facts(scoring.expected(name), scoring.detected(name))
    assert [line for line in scoring.wrong(found) if line.split(": ")[0] not in NOT_YET.get(name, ())] == []


def test_nothing_that_is_said_is_wrong() -> None:
    """Not knowing is better than guessing: what is not right must be null."""
    said = [fact for name in scoring.names() for fact in scoring.facts(scoring.expected(name), scoring.detected(name)) if not fact.right]
    assert [fact for fact in said if fact.got is not None] == []


@pytest.mark.parametrize("name", scoring.names())
def test_every_accelerator_has_an_id_a_name_and_an_architecture(name: str) -> None:
    machine = scoring.machine(name)
    for card in machine.accelerators if scoring.expected(name).get("gpu") else ():
        if not card.integrated:
            assert card.name is not None
            assert card.architecture is not None
            assert (card.pci_id is None) == (machine.os.wsl is True)


def _machine(name: str) -> Machine:
    return scoring.machine(name)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("2080ti-dkms-missing", "not-loaded"),
        ("a5000-nouveau-bound", "blocked"),
        ("article-rtx3090-5900x-u2004", "absent"),
        ("rtx3060-prebuilt-open580", "working"),
        ("rtx4070x3-riser-x1", "failing"),
        ("rtx3090-x570-k7", "failing"),
        ("rtx5090-proprietary-refused", "failing"),
        ("vm-2080ti-library-mismatch", "mismatch"),
        ("vm-a6000-3090-secureboot", "blocked"),
        ("wsl2-rtx3060", "working"),
        ("xe9680-mi300x", "working"),
        ("nogpu-dell-r6515", "absent"),
    ],
)
def test_the_driver_s_state_says_what_is_the_matter(name: str, state: str) -> None:
    assert _machine(name).driver.state == state


def test_sources_of_a_driver_are_told_apart() -> None:
    assert _machine("rtx3060-prebuilt-open580").driver.source == "apt"
    assert _machine("gtx1080ti-u1804").driver.source == "runfile"
    assert _machine("gt1030x2-run-over-apt").driver.source == "mixed"
    assert _machine("article-rtx3090-5900x-u2004").driver.source is None


def test_a_mismatch_names_both_halves() -> None:
    driver = _machine("vm-2080ti-library-mismatch").driver
    assert (driver.kernel_version, driver.library_version) == ("515.65.01", "525.125.06")


def test_links_come_from_the_driver_s_matrix_else_from_the_tree() -> None:
    assert {link.kind for link in _machine("xe9680-h100x8").links} == {"NV18"}
    assert len(_machine("xe9680-h100x8").links) == 28
    undriven = {(link.a, link.b): link.kind for link in _machine("dgx-a100").links}
    assert undriven[0, 1] == "PXB"
    assert undriven[0, 7] == "SYS"


def test_integrated_graphics_are_listed_and_marked() -> None:
    cards = {card.address: card for card in _machine("rtx5090-u2404-fresh").accelerators}
    assert cards["0000:0f:00.0"].integrated
    assert not cards["0000:01:00.0"].integrated
    assert [card.integrated for card in _machine("laptop-katana-4070-secureboot").accelerators] == [True, False]


def test_windows_lends_a_card_without_an_address() -> None:
    (card,) = _machine("wsl2-rtx3060").accelerators
    assert (card.address, card.kernel_driver, card.architecture) == (None, "dxgkrnl", "ampere")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("rtx4090x4-epyc", "4× RTX 4090 · Ubuntu 22.04.4"),
        ("rtx5090-3090ti-mixed", "RTX 5090 + RTX 3090 Ti · Ubuntu 24.04.4"),
        ("xe9680-mi300x", "8× MI300X · Debian 11"),
        ("nogpu-dell-r6515", "Ubuntu 22.04.4"),
        ("dgx-a100", "8× A100-SXM4-40GB · Ubuntu 24.04.4"),
        ("laptop-katana-4070-secureboot", "RTX 4070 Laptop · Ubuntu 24.04.2"),
    ],
)
def test_a_machine_in_a_few_words(name: str, line: str) -> None:
    machine = _machine(name)
    assert headline(machine) == line
    assert os_line(machine) in line
    assert gpu_line(machine) in line
