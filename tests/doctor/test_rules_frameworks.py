"""Frameworks, libraries, NCCL, ROCm and Gaudi: each cause in wordings of its own, and the look-alike that differs by one fact."""

from __future__ import annotations

from typing import Any

import pytest

from tests.doctor import kit

MADE_UP = kit.made_up("frameworks")


@pytest.mark.parametrize("case", MADE_UP["case"], ids=lambda case: case["cause"])
def test_a_cause_is_named_from_its_facts(case: dict[str, Any]) -> None:
    verdict = kit.told(case)
    assert verdict.cause is not None
    assert verdict.cause.id == case["cause"], [(one.id, one.confidence) for one in verdict.diagnoses]


@pytest.mark.parametrize("case", MADE_UP["swap"], ids=lambda case: case["name"])
def test_the_deciding_fact_decides(case: dict[str, Any]) -> None:
    before, after = kit.told(case["before"]).cause, kit.told(case["after"]).cause
    assert before is not None
    assert after is not None
    assert before.id != case["cause"]
    assert after.id == case["cause"]


@pytest.mark.parametrize("case", MADE_UP["quiet"], ids=lambda case: case["name"])
def test_what_is_no_fault_raises_no_alarm(case: dict[str, Any]) -> None:
    verdict = kit.told(case)
    assert verdict.healthy, [(one.id, one.confidence) for one in verdict.diagnoses]
