"""A plan as a person reads it: words for our own scripts, their text where it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps import documents, lines, planning
from steps.compat import solve
from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.managers.shown import brief, line, run, shown
from steps.model.action import ManagerName, Packages, installing
from steps.model.plan import Installer, Plan, Target
from steps.model.profile import Profile, answered
from steps.model.run import ActionState, RunState
from steps.text import Language
from tests import scoring

CARDS = Path(__file__).parent / "machines" / "article-rtx3090-5900x-u2004.json"
REHEARSED = Target(rehearsal=True, installer=Installer(own_python="/usr/bin/python3"))
LONGEST = 400
"""Five rows of 80 columns: the longest command that is one a person types."""


@pytest.fixture(scope="module")
def made() -> Plan:
    machine = detect(open_host(str(CARDS), None))
    choices = solve.recommend(machine, ("torch",)).choices
    assert choices is not None
    return planning.make_plan(machine, choices, REHEARSED, made=0.0)


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


@pytest.mark.parametrize(
    ("tool", "typed"),
    [
        ("apt", "apt-get install driver=1"),
        ("dnf", "dnf install driver-1"),
        ("pacman", "pacman -S --needed driver"),
        ("zypper", "zypper install driver=1"),
    ],
)
def test_an_install_is_shown_as_a_person_types_it_who_wants_to_be_asked(tool: ManagerName, typed: str) -> None:
    action = Packages(id="a.install", title="t", manager=tool, install=("driver=1",))
    assert line(shown(action)) == typed
    assert line(run(action)) != typed


def test_an_update_of_the_lists_has_nothing_to_take_back() -> None:
    lists = Packages(id="driver.lists", title="t", lane="packages", manager="apt", refresh=True)
    assert documents.undo(lists, "en") == "nothing to take back"
    assert documents.undo(lists, "zh_CN") == "没有需要撤销的"
    assert documents.undo(installing("apt", "a.b", "t", ("jq",)), "en").startswith("puts every package back")


@pytest.mark.parametrize("name", scoring.names())
def test_every_action_says_what_it_is_for_and_how_it_is_taken_back(name: str) -> None:
    here = scoring.machine(name)
    answers = solve.recommend(here, ("torch", "cuda")).choices or solve.recommend(here).choices
    assert answers is not None
    made = planning.make_plan(here, answers, REHEARSED, made=0.0)
    languages: tuple[Language, ...] = ("en", "zh_CN")
    for language in languages:
        actions = documents.plan(made, (), language)["actions"]
        assert actions
        assert [one["id"] for one in actions if not one["why"] or not one["undo"] or not one["title"]] == []


def test_frameworks_without_a_python_get_the_one_that_fits_where_no_interpreter_is_known() -> None:
    here = scoring.machine("rtx4090x4-epyc")
    answers = answered(Profile(), {"frameworks.torch": "2.14.1", "frameworks.variant": "cu126"})
    assert planning.make_plan(here, answers, REHEARSED, made=0.0).profile.environment.python == "3.12"
    old = Target(rehearsal=True, installer=Installer(own_python="/usr/bin/python3.11", pythons={"3.11": "/usr/bin/python3.11"}))
    made = planning.make_plan(here, answers, old, made=0.0)
    assert made.profile.environment.python is None
    assert any("/usr/bin/python3.11" in str(documents.action(one, made, "en")["run"]) for one in made.actions)


def test_a_run_is_told_with_every_action_that_was_planned(made: Plan) -> None:
    first = made.actions[0].id
    state = RunState(status="running", actions={first: ActionState(id=first, status="done", started=1.0, ended=3.5)})
    told = documents.run("1130-a", made.actions, state, (), "en", "attach")["actions"]
    assert [one["id"] for one in told] == [one.id for one in made.actions]
    assert told[0] == {"id": first, "state": "done", "seconds": 2.5, "error": None}
    assert {(one["state"], one["seconds"]) for one in told[1:]} == {("waiting", None)}
