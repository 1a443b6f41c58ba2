"""The vocabulary: every cause has one rule, words in both languages, and what it names exists."""

from __future__ import annotations

from collections import Counter

from steps.catalog.diagnoses import categories, diagnoses, words
from steps.doctor.repairs.all import repairers
from steps.doctor.rules.all import rules
from steps.text import lookup


def test_every_cause_has_exactly_one_rule() -> None:
    written = Counter(rule.id for rule in rules())
    assert [id for id, times in written.items() if times > 1 or id not in diagnoses()] == []
    assert [id for id in diagnoses() if id not in written] == []


def test_every_cause_that_has_a_rule_has_words() -> None:
    parts = ("title", "because", "sign")
    missing = [words(rule.id, part) for rule in rules() for part in parts if lookup("en", words(rule.id, part)) is None]
    assert missing == []


def test_what_a_row_names_exists() -> None:
    known = diagnoses()
    assert {row.category for row in known.values()} == set(categories())
    strange = {row.id: id for row in known.values() for id in (*row.look_alikes, *row.explains) if id not in known}
    assert strange == {}
    assert {key for row in known.values() for key in row.avoid if lookup("en", f"doctor.avoid.{key}") is None} == set()
    assert set(repairers()) <= set(known)


def test_nothing_explains_itself_by_way_of_others() -> None:
    def reach(id: str, seen: frozenset[str]) -> set[str]:
        return {id, *(far for other in diagnoses()[id].explains if other not in seen for far in reach(other, seen | {other}))}

    circles = {id for id, row in diagnoses().items() if any(id in reach(other, frozenset((other,))) for other in row.explains)}
    assert circles == set()
