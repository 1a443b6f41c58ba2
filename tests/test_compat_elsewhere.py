"""What is said of cards that NVIDIA's usual driver is not for: set aside for guests, of other makers, a part of the processor."""

from __future__ import annotations

import msgspec
import pytest

from steps.catalog import stack
from steps.compat.case import Case
from steps.compat.driver_packages import switched
from steps.compat.hardware import no_accelerator
from steps.compat.solve import judge, recommend
from steps.model.finding import Finding
from steps.model.hardware import Accelerator
from steps.model.machine import Machine
from steps.model.profile import Profile
from steps.model.software import Driver, Os

UBUNTU = Os(id="ubuntu", version="24.04", kernel="6.8.0-60-generic", arch="x86_64", virtualization="none", container="none", wsl=False)
CARD = Accelerator(
    address="0000:01:00.0",
    vendor="nvidia",
    pci_id="10de:2204",
    name="NVIDIA GeForce RTX 3090",
    chip="GA102",
    architecture="ampere",
    compute_capability="8.6",
)
LENT = msgspec.structs.replace(CARD, address="0000:81:00.0", kernel_driver="vfio-pci")
MI210 = Accelerator(address="0000:4c:00.0", vendor="amd", pci_id="1002:740f", name="AMD Instinct MI210", architecture="cdna2", gfx="gfx90a")
ARC = Accelerator(address="0000:03:00.0", vendor="intel", pci_id="8086:e20b", name="Intel Arc B580", architecture="xe")
UHD = Accelerator(address="0000:00:02.0", vendor="intel", integrated=True)
ORIN = Accelerator(vendor="nvidia", name="Orin (nvgpu)", chip="GA10B", architecture="ampere", compute_capability="8.7", integrated=True)


def machine(*cards: Accelerator, state: str = "absent") -> Machine:
    return Machine(os=UBUNTU, accelerators=cards, driver=msgspec.convert({"state": state}, Driver))


def said(found: Machine) -> dict[str, Finding]:
    return {one.code: one for one in judge(found, Profile())}


def test_cards_that_are_set_aside_for_guests_get_no_driver_and_no_blame() -> None:
    found = said(machine(LENT))
    assert found["gpu-lent"].severity == "warning"
    assert "driver-absent" not in found
    choices = recommend(machine(LENT), ("torch",)).choices
    assert choices is not None
    assert (choices.driver.branch, choices.frameworks["variant"]) == (None, "cpu")


def test_beside_a_card_that_is_set_aside_the_other_is_set_up() -> None:
    found = said(machine(CARD, LENT))
    assert found["gpu-lent"].severity == "info"
    assert "driver-absent" in found
    choices = recommend(machine(CARD, LENT), ("torch",)).choices
    assert choices is not None
    assert choices.driver.branch is not None
    assert choices.frameworks["variant"].startswith("cu")


@pytest.mark.parametrize("state", ["not-loaded", "failing"])
def test_a_card_that_amdgpu_does_not_hold_is_named(state: str) -> None:
    assert said(machine(MI210, state=state))["card-not-driven"].params["driver"] == "amdgpu"


@pytest.mark.parametrize("state", ["working", "unknown"])
def test_a_card_that_is_driven_or_was_not_asked_about_is_not(state: str) -> None:
    assert "card-not-driven" not in said(machine(MI210, state=state))


@pytest.mark.parametrize("card", [ARC, ORIN])
def test_where_only_the_maker_has_builds_that_is_said_and_the_processor_is_taken(card: Accelerator) -> None:
    assert said(machine(card))["vendors-own-stack"].severity == "info"
    choices = recommend(machine(card), ("torch",)).choices
    assert choices is not None
    assert choices.frameworks["variant"] == "cpu"
    assert no_accelerator(machine(card)) is None


def test_graphics_inside_a_processor_are_no_accelerator() -> None:
    assert no_accelerator(machine(UHD)) is not None
    assert "vendors-own-stack" not in said(machine(UHD))


def test_intels_card_is_not_spoken_of_beside_one_that_is_set_up() -> None:
    assert "vendors-own-stack" not in said(machine(CARD, ARC))


def test_eight_of_blackwells_boards_are_joined_through_switches_that_no_bus_shows() -> None:
    b200 = msgspec.structs.replace(
        CARD, pci_id="10de:2901", name="NVIDIA B200", chip="GB100", architecture="blackwell", compute_capability="10.0"
    )
    eight = machine(*(msgspec.structs.replace(b200, address=f"0000:{bus:02x}:00.0") for bus in range(1, 9)))
    assert switched(Case(eight, Profile()))
    assert not switched(Case(machine(b200), Profile()))


def test_a_branch_that_ended_before_another_builds_on_no_newer_kernel_than_that() -> None:
    known = stack.branches()
    assert known["450"].kernel_max is None
    assert stack.kernel_ceiling(known["450"], patched=False) == known["470"].kernel_max
    assert stack.kernel_ceiling(known["450"], patched=True) is None
    assert stack.kernel_ceiling(known["580"], patched=False) == known["580"].kernel_max


def test_an_old_card_on_a_new_kernel_gets_no_driver_rather_than_one_that_does_not_build() -> None:
    fedora = msgspec.structs.replace(UBUNTU, id="fedora", version="42", kernel="6.14.6-300.fc42.x86_64")
    kepler = msgspec.structs.replace(
        CARD, pci_id="10de:128b", name="GeForce GT 710", chip="GK208B", architecture="kepler", compute_capability="3.5"
    )
    choices = recommend(msgspec.structs.replace(machine(kepler), os=fedora), ("torch",)).choices
    assert choices is not None
    assert (choices.driver.branch, choices.frameworks["variant"]) == (None, "cpu")
