"""What nobody has confirmed is said so, and kinds of cards are told by what they are, not by how a tool spells them."""

from __future__ import annotations

import msgspec
import pytest

from steps.compat import solve
from steps.compat.case import Case
from steps.model.hardware import Accelerator
from steps.model.machine import Machine
from steps.model.profile import DriverAnswers, Profile, ToolkitAnswers
from tests.scoring import machine

WORKSTATION = machine("rtx4090x4-epyc")


def with_card(name: str, pci_id: str | None = None, capability: str = "8.6") -> Machine:
    """Return a machine with one such card."""
    card = Accelerator(vendor="nvidia", pci_id=pci_id, name=name, compute_capability=capability, address="0000:01:00.0")
    return msgspec.structs.replace(WORKSTATION, accelerators=(card,))


def test_a_branch_older_than_the_repository_of_the_system_is_not_said_to_be_in_it() -> None:
    resolute = msgspec.structs.replace(WORKSTATION, os=msgspec.structs.replace(WORKSTATION.os, version="26.04"))
    profile = Profile(driver=DriverAnswers(branch="535", flavor="proprietary", source="nvidia-repo"))
    found = {one.code: one.severity for one in solve.judge_driver(resolute, profile)}
    assert found["driver-offer-unknown"] == "info"
    newer = Profile(driver=DriverAnswers(branch="620", flavor="open", source="nvidia-repo"))
    assert "driver-offer-unknown" not in {one.code for one in solve.judge_driver(resolute, newer)}


@pytest.mark.parametrize(
    ("name", "pci_id", "expected"),
    [
        ("NVIDIA A2", None, True),
        ("P100-PCIE-16GB", "10de:15f8", True),
        ("NVIDIA A800 40GB Active", None, False),
        ("NVIDIA A800 80GB PCIe", None, True),
        ("NVIDIA L40S", None, True),
        ("NVIDIA RTX A6000", None, False),
        ("Quadro P1000", None, False),
        ("NVIDIA T400 4GB", None, False),
        ("NVIDIA RTX A2000", None, False),
    ],
)
def test_a_data_center_card_is_told_from_one_for_desks(name: str, pci_id: str | None, expected: bool) -> None:
    assert Case(with_card(name, pci_id), Profile()).data_center is expected


def test_a_driver_below_the_floor_of_cudnn_alone_is_an_error_of_its_own() -> None:
    old = msgspec.structs.replace(WORKSTATION.driver, kernel_version="450.57", library_version="450.57", packages=())
    found = solve.judge_toolkit(
        msgspec.structs.replace(WORKSTATION, driver=old),
        Profile(driver=DriverAnswers(source="keep"), toolkit=ToolkitAnswers(cuda="11.0", cudnn="9.5")),
    )
    codes = {one.code for one in found}
    assert "driver-too-old-for-cuda" not in codes
    assert "driver-too-old-for-cudnn" in codes
