"""What the steps say on machines without an NVIDIA card of its own: Jetson, AMD, WSL2."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from steps import checklist, frameworks, hardware, lines, monitoring
from steps.compat.solve import judge, recommend
from steps.detect import topology
from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.model.choice import Option
from steps.model.machine import Machine
from steps.model.plan import Plan, Target
from steps.model.profile import Profile, answered
from steps.report.content import Told, report
from steps.report.markdown import markdown
from steps.text import say, say_finding
from tests import scoring
from tui.cells import Span
from tui.widgets.hint import Block, fitted


@cache
def captured(name: str) -> Machine:
    return detect(open_host(str(scoring.MACHINES / f"{name}.json"), None))


def tool(machine: Machine, name: str) -> Option:
    rows = (option for choice in monitoring.choices(machine, Profile()) for option in choice.options)
    return next(option for option in rows if option.value == name)


def build(machine: Machine, name: str) -> Option:
    advised = recommend(machine, ()).choices
    assert advised is not None
    rows = (option for choice in frameworks.choices(machine, advised) for option in choice.options)
    return next(option for option in rows if option.value == name)


def test_a_gpu_within_the_processor_is_named_and_not_judged() -> None:
    gpu = hardware.choices(captured("jetson-agx-orin"), Profile())[0].options[0]
    assert (gpu.mark, say("en", gpu.tag), say("en", gpu.detail)) == ("info", "not judged", "Orin (nvgpu)")
    assert "part of the processor" in say("en", gpu.sentences[0])


def test_the_build_for_the_processor_leaves_amds_cards_idle_too() -> None:
    assert [build(captured("xe9680-mi300x"), name).mark for name in ("rocm6.3", "cpu")] == ["good", "catch"]


def test_in_wsl_nobody_is_told_to_choose_a_driver() -> None:
    row = tool(captured("wsl2-rtx3060"), "dcgm-exporter")
    assert (row.mark, row.findings[0].code) == ("unknown", "monitoring-unproven-wsl")
    assert "that of Windows" in say_finding("en", row.findings[0], "sentence")


def test_what_cannot_be_installed_says_neither_how_it_is_used_nor_what_to_heed() -> None:
    row = tool(captured("jetson-agx-orin"), "dcgm-exporter")
    assert row.mark == "bad"
    assert [note.label for note in row.notes] == ["source"]


def test_a_file_loses_its_end_and_keeps_the_word_above_it() -> None:
    line = ((Span("x"),),)
    parts = [Block(((Span("subject"),),), 100), *(Block(((Span(f"{at}"),),), 22, gap=at == 0) for at in range(4)), Block(line, 30)]
    shown = ["".join(span.text for span in row).strip() for row in fitted(parts, 5)]
    assert shown == ["subject", "", "0", "1", "x"]


def test_a_blank_row_stays_above_the_notes_when_the_first_of_them_gives_way() -> None:
    parts = [Block(((Span("why"),),), 90), Block(((Span("gone"),),), 10, gap=True), Block(((Span("kept"),),), 20)]
    assert ["".join(span.text for span in row).strip() for row in fitted(parts, 3)] == ["why", "", "kept"]


@pytest.mark.parametrize("name", ["wsl2-rtx3060", "jetson-agx-orin"])
def test_a_gpu_that_is_on_no_bus_is_drawn_without_an_address(name: str) -> None:
    assert [line.split()[:2] for line in topology.tree(captured(name))[1:]] == [
        ["└─", {"wsl2-rtx3060": "GPU", "jetson-agx-orin": "Orin"}[name]]
    ]


def test_memory_has_one_size_in_the_wizard_and_in_detect() -> None:
    shown = list(lines.facts(captured("rtx5090-u2404-fresh"), "en"))
    assert next(line for line in shown if line.startswith("Memory")).split()[1:3] == ["96", "GB"]


def test_a_chinese_report_says_states_in_chinese() -> None:
    told = Told(machine=captured("jetson-agx-orin"), findings=(), version="1", made="2026-11-30")
    shown = markdown(report(told, "zh_CN", lambda text: text))
    assert "正常 · 540.4.0" in shown
    assert "Secure Boot: 未开启" in shown
    assert "working" not in shown


def test_of_eight_cards_it_is_said_that_there_are_more_than_are_shown() -> None:
    measured = [say("en", words) for words in checklist.seen(captured("xe9680-h100x8"), "resizable-bar").measured]
    assert len(measured) == 4
    assert measured[-1] == "and 5 more"


def test_an_environment_without_anything_in_it_is_told_what_is_missing() -> None:
    plan = Plan(actions=(), made=0.0, target=Target(), profile=answered(Profile(), {"environment.python": "3.12"}))
    assert "[frameworks]" in next(lines.plan(plan, (), "en"))
    assert "[frameworks]" not in next(lines.plan(msgspec.structs.replace(plan, profile=Profile()), (), "en"))


def test_a_repository_without_a_last_release_has_all_later_ones() -> None:
    laptop = captured("laptop-katana-4070-secureboot")
    (found,) = (one for one in judge(laptop, answered(Profile(), {"toolkit.cuda": "11.8"})) if one.code == "cuda-not-for-distro")
    assert say("en", found.because[0]).endswith("and later")
    assert "…" not in say("zh_CN", found.because[0])
