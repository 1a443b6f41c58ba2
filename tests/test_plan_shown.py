"""A plan as a person reads it: words for our own scripts, their text where it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import documents, lines, planning
from steps.compat import solve
from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.managers.shown import brief, line
from steps.model.action import Packages, installing
from steps.model.plan import Installer, Plan, Target
from steps.text import Language

CARDS = Path(__file__).parent / "machines" / "article-rtx3090-5900x-u2004.json"
LONGEST = 400
"""Five rows of 80 columns: the longest command that is one a person types."""


@pytest.fixture(scope="module")
def made() -> Plan:
    machine = detect(open_host(str(CARDS), None))
    choices = solve.recommend(machine, ("torch",)).choices
    assert choices is not None
    return planning.make_plan(machine, choices, Target(rehearsal=True, installer=Installer(own_python="/usr/bin/python3")), made=0.0)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_plan_says_in_words_what_our_scripts_do_and_shows_them_only_when_asked(made: Plan, language: Language) -> None:
    short, whole = (list(lines.plan(made, (), language, scripts=scripts)) for scripts in (False, True))
    assert "\n".join(whole).count("import glob, os, pathlib") == 1
    assert "import glob" not in "\n".join(short)
    assert max(map(len, short)) < LONGEST
    at = next(number for number, one in enumerate(short) if "-c … " in one)
    assert short[at - 1].strip().startswith({"en": "Only a new or empty folder,", "zh_CN": "只使用新建或空的目录，"}[language])
    assert sum("plan -v" in one for one in short) == 1
    assert not any("plan -v" in one for one in whole)


def test_the_document_of_a_plan_keeps_the_whole_argv(made: Plan) -> None:
    room = next(action for action in documents.plan(made, (), "en")["actions"] if action["id"] == "environment.room")
    assert room["run"][3].startswith("import glob, os, pathlib")


def test_only_a_long_script_is_cut_and_its_arguments_stay() -> None:
    assert brief(("python3", "-I", "-c", "x" * 61, "/a b")) == ("python3", "-I", "-c", "…", "/a b")
    assert line(("python3", "-c", "…", "/a b")) == "python3 -c … '/a b'"
    for argv in (("sh", "-c", "echo hi"), ("python3", "-m", "venv", "x" * 90), ("tail", "-c"), ()):
        assert brief(argv) == argv


def test_an_update_of_the_lists_has_nothing_to_take_back() -> None:
    lists = Packages(id="driver.lists", title="t", lane="packages", manager="apt", refresh=True)
    assert documents.undo(lists, "en") == "nothing to take back"
    assert documents.undo(lists, "zh_CN") == "没有需要撤销的"
    assert documents.undo(installing("apt", "a.b", "t", ("jq",)), "en").startswith("puts every package back")
