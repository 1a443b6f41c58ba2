"""The doctor against real failures with a known cause."""

from __future__ import annotations

import pytest

from tests.doctor import kit
from tests.doctor.kit import Case

CASES = {case.name: case for case in kit.cases()}
DONE = {
    "apt-state",
    "container",
    "control",
    "cuda-runtime",
    "cudnn",
    "disk-network",
    "dkms",
    "driver-mismatch",
    "framework",
    "gaudi",
    "kernel",
    "mixed-install",
    "nccl",
    "nouveau",
    "pcie-firmware",
    "permission",
    "power-thermal",
    "rocm",
    "secure-boot",
    "ssh-installer",
    "wsl",
    "xid",
}
"""The categories whose rules are written; a case of any other is not asked yet."""


def test_at_least_nineteen_of_twenty_causes_are_found_in_the_categories_that_are_done() -> None:
    asked = [case for case in CASES.values() if case.category in DONE]
    missed = {case.name: kit.answer(case) for case in asked if not kit.right(case)}
    assert len(missed) <= len(asked) // 20, missed


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.primary == "none"], ids=lambda case: case.name)
def test_a_healthy_machine_raises_no_alarm(case: Case) -> None:
    assert kit.right(case), kit.answer(case)


def test_no_look_alike_misleads() -> None:
    misled = {case.name: kit.answer(case)[0] for case in CASES.values() if kit.answer(case)[0] in case.forbidden}
    assert misled == {}
