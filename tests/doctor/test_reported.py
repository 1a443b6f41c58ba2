"""The doctor against what public reports show: other versions, distributions, languages and programs than those of the handed cases."""

from __future__ import annotations

import json

import pytest

from steps.catalog.diagnoses import diagnoses
from tests.doctor import kit
from tests.doctor.kit import Case

CASES = kit.cases(kit.REPORTED)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cause_of_a_report_is_named(case: Case) -> None:
    assert kit.right(case), [(one.id, one.confidence) for one in kit.verdict(case.capture).diagnoses]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_report_says_where_it_is_from(case: Case) -> None:
    about = json.loads(case.capture.read_text(encoding="utf-8"))["about"]
    assert all(source.startswith("https://") for source in about["sources"])
    assert about["sources"]
    assert {case.primary, *case.acceptable, *case.forbidden} <= {*diagnoses(), "none"}
