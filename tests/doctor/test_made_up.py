"""Each cause in wordings of its own, the look-alike that differs by one fact, and what is no fault: the machines stand in *.toml here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.doctor import kit

FILES = {path.stem: kit.made_up(path.stem) for path in sorted(Path(__file__).parent.glob("*.toml"))}


def cases(kind: str, key: str) -> list[Any]:
    """Return the machines of one kind as parameters with a readable name."""
    found = ((name, at, case) for name, tables in FILES.items() for at, case in enumerate(tables.get(kind, [])))
    return [pytest.param(case, id=f"{name}-{at}-{case.get('name', case[key])}") for name, at, case in found]


@pytest.mark.parametrize("case", cases("case", "cause"))
def test_a_cause_is_named_from_its_facts(case: dict[str, Any]) -> None:
    verdict = kit.told(case)
    assert verdict.cause is not None
    assert verdict.cause.id in (case["cause"], *case.get("accepted", ())), [(one.id, one.confidence) for one in verdict.diagnoses]


@pytest.mark.parametrize("case", cases("swap", "name"))
def test_the_deciding_fact_decides(case: dict[str, Any]) -> None:
    before, after = kit.told(case["before"]), kit.told(case["after"])
    assert before.cause is None or before.cause.id != case["cause"]
    assert after.cause is not None
    assert after.cause.id == case["cause"], [(one.id, one.confidence) for one in after.diagnoses]


@pytest.mark.parametrize("case", cases("quiet", "name"))
def test_what_is_no_fault_raises_no_alarm(case: dict[str, Any]) -> None:
    verdict = kit.told(case)
    assert verdict.healthy, [(one.id, one.confidence) for one in verdict.diagnoses]


@pytest.mark.parametrize("case", cases("never", "name"))
def test_a_look_alike_is_not_taken_for_what_it_resembles(case: dict[str, Any]) -> None:
    assert [one.id for one in kit.told(case).diagnoses if one.id in case["never"]] == []


def test_every_report_says_where_it_stands() -> None:
    assert [
        case["name"]
        for name, tables in FILES.items()
        if name.startswith("reported")
        for kind in tables.values()
        for case in kind
        if not case["source"].startswith("https://")
    ] == []
