"""Every finding as a script reads it: what it was derived from, where the rule is written, and what helps."""

from __future__ import annotations

from typing import Any

import pytest

from steps import documents, planning
from steps.catalog import load, rules
from steps.compat import solve
from steps.model.profile import Profile
from steps.profiles import parse
from tests.scoring import machine, names
from tests.test_house import ENGLISH

ODD = parse(
    """
[driver]
branch = "999"
[toolkit]
cuda = "99.9"
cudnn = "99.9"
nccl = "99.9"
[nccl]
interface = "nope0"
gdr = "auto"
[environment]
name = "dl"
python = "3.12"
[frameworks]
torch = "9.9.9"
nosuch = "1.0"
[monitoring]
dcgm_exporter = true
glances = true
persistence = true
""",
    "odd.toml",
)


def documented(name: str, answers: Profile) -> list[dict[str, Any]]:
    """Return the findings of a machine as documents."""
    return [documents.finding(one, "en") for one in (*machine(name).gaps, *planning.findings(machine(name), answers))]


@pytest.mark.parametrize("name", names())
def test_a_finding_always_says_what_it_was_derived_from_and_where_the_rule_comes_from(name: str) -> None:
    advised = solve.recommend(machine(name)).choices or Profile()
    found = [one for answers in (Profile(), advised, ODD) for one in documented(name, answers)]
    assert found
    assert [one["code"] for one in found if not one["because"] or not all(one["because"])] == []
    assert [one["code"] for one in found if not one["source"]] == []


def test_a_line_that_no_table_has_is_told_with_what_was_asked_for() -> None:
    odd = [one for one in documented("rtx4090x4-epyc", ODD) if one["code"] in ("unknown-version", "no-package-known", "unknown-package")]
    assert ["Installed here, or asked for: CUDA 99.9"] in [one["because"] for one in odd]
    assert ["Installed here, or asked for: nosuch"] in [one["because"] for one in odd]


def test_a_source_of_the_rules_table_is_of_a_finding_that_has_words_and_stands_once() -> None:
    codes = [code for row in load.rows("rules.toml", "rule", rules.RuleSource) for code in row.codes]
    assert len(codes) == len(set(codes))
    worded = {key.split("finding.")[1].rpartition(".")[0] for key in ENGLISH if "finding." in key and key.endswith(".sentence")}
    assert set(codes) - worded == set()
