"""The sentences of a diagnosis over every case there is: no value is missing in them, and nothing is asserted of what was ruled out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from steps import medical
from steps.catalog.diagnoses import diagnoses
from steps.doctor.diagnosis import Verdict
from steps.doctor.worded import worded
from steps.model.base import phrase
from steps.text import Language, say
from tests.doctor import kit

_BARE = re.compile(r"(?<![\w/])\?(?![\w=])")
_MADE_UP = ("frameworks", "gpu", "reported_driver", "reported_frameworks", "reported_gpu", "reported_system", "wordings")


def verdicts() -> Iterator[Verdict]:
    for folder in (kit.HANDED, kit.REPORTED):
        yield from (kit.verdict(case.capture) for case in kit.cases(folder))
    for name in _MADE_UP:
        for rows in kit.made_up(name).values():
            yield from (kit.told(case) for case in rows if {"files", "commands", "logs"} & set(case))


def sentences(verdict: Verdict, language: Language) -> Iterator[str]:
    for one in verdict.diagnoses:
        yield from (say(language, one.title), say(language, one.because))
        yield from (say(language, step.says) for step in one.repair.steps)
        yield from (say(language, action.title) for step in one.repair.steps for action in step.actions)


def test_no_sentence_names_a_value_that_is_missing() -> None:
    bare = {
        text for verdict in verdicts() for language in get_args(Language) for text in sentences(verdict, language) if _BARE.search(text)
    }
    assert bare == set()


def test_a_missing_value_has_a_sentence_of_its_own() -> None:
    without = phrase("doctor_gpu.driver-too-old-for-cuda.because", supported="12.4", wanted="?")
    assert worded(without).key == f"{without.key}-unknown"
    known = phrase(without.key, supported="12.4", wanted="13.0")
    assert worded(known) is known


@pytest.mark.parametrize(("language", "word"), [("en", "Otherwise: "), ("zh_CN", "若是如此，")])
def test_what_was_ruled_out_is_said_as_what_would_have_been(language: Language, word: str) -> None:
    path = Path(__file__).parent / "handed" / "001-mismatch-pending-reboot-minor.json"
    verdict = kit.verdict(path)
    assert verdict.ruled_out
    assert all(one["because"].startswith(word) for one in medical.document(verdict, language)["ruled_out"])
    shown = "\n".join(medical.lines(verdict, language))
    assert ("otherwise: " if language == "en" else word) in shown


@pytest.mark.parametrize("language", get_args(Language))
def test_a_look_alike_that_nobody_looked_for_is_not_ruled_out(language: Language) -> None:
    alone = kit.judged(logs={"boot.log": "[   13.2] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"})
    assert alone.cause is not None
    assert alone.ruled_out == ()
    told = medical.document(alone, language)
    assert told["open"]
    assert {one["id"] for one in told["open"]} <= set(diagnoses()[alone.cause.id].look_alikes)
    assert all(one["probe"] for one in told["open"])
    shown = "\n".join(medical.lines(alone, language))
    assert all(f"`{one['probe']}`" in shown for one in told["open"])


def test_what_is_ruled_out_names_the_facts_that_do_it() -> None:
    out = [one for case in kit.cases() for one in kit.verdict(case.capture).ruled_out]
    assert len(out) > 20
    assert all(one.evidence for one in out)
