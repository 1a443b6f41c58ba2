"""Handed cases in which one deciding fact is exchanged for a look-alike's: the diagnosis has to follow the fact."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.captured import CapturedHost, parse_capture
from tests.doctor import kit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = ("files", "commands", "logs")
CASES = {case.name: case for case in kit.cases()}
EDITS: list[dict[str, Any]] = [
    edit
    for path in sorted((Path(__file__).parent / "swaps").glob("*.toml"))
    for edit in tomllib.loads(path.read_text(encoding="utf-8"))["edit"]
]


def edited(document: dict[str, Any], edit: dict[str, Any]) -> dict[str, Any]:
    """Return a capture after an edit; what the edit speaks of must be there."""
    found = copy.deepcopy(document)
    for name in edit.get("drop", ()):
        del next(found[kind] for kind in KINDS if name in found.get(kind, {}))[name]
    for name, pairs in edit.get("change", {}).items():
        held = next(found[kind] for kind in KINDS if name in found.get(kind, {}))
        for old, new in pairs:
            held[name] = _changed(held[name], old, new)
    for kind in KINDS:
        for name, text in edit.get(kind, {}).items():
            found.setdefault(kind, {})[name] = {"stdout": text, "status": None} if kind == "commands" else text
    return found


def _changed(held: str | dict[str, Any], old: str, new: str) -> str | dict[str, Any]:
    if isinstance(held, str):
        assert old in held
        return held.replace(old, new)
    assert old in held.get("stdout", "") + held.get("stderr", "")
    return {**held, **{stream: held[stream].replace(old, new) for stream in ("stdout", "stderr") if stream in held}}


@pytest.mark.parametrize("edit", EDITS, ids=[f"{edit['case'][:3]}-{at}-{edit['to']}" for at, edit in enumerate(EDITS)])
def test_the_diagnosis_follows_the_deciding_fact(edit: dict[str, Any]) -> None:
    case = CASES[edit["case"]]
    assert kit.right(case), kit.answer(case)
    assert edit["to"] != kit.answer(case)[0]
    document = edited(json.loads(case.capture.read_text(encoding="utf-8")), edit)
    document["about"] = {}
    said = judge(Evidence(CapturedHost(parse_capture(json.dumps(document).encode()), "capture.json")))
    assert (said.cause.id if said.cause else "none") == edit["to"], [(one.id, one.confidence) for one in said.diagnoses]


def test_more_than_fifty_cases_of_every_category_turn_into_a_look_alike() -> None:
    turned = {edit["case"] for edit in EDITS if edit["to"] in _resembles(CASES[edit["case"]].primary)}
    assert len(turned) > 50
    assert {CASES[edit["case"]].category for edit in EDITS} == {case.category for case in CASES.values()}


def _resembles(cause: str) -> set[str]:
    """Return the look-alikes of a cause in the vocabulary, in either direction."""
    return {*diagnoses()[cause].look_alikes, *(row.id for row in diagnoses().values() if cause in row.look_alikes)}
