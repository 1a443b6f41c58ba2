"""What the wizard explains on recorded machines: effects, fixes, reasons with their ways, the matrix, lessons, copied commands."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from steps import resources
from steps.model.choice import Choice, Option
from steps.model.profile import Profile, answered
from steps.text import Language
from tests.ui.test_wizard import press, text, top, until
from tui.app import BringupApp
from tui.backend import House
from tui.cells import line_width, width
from tui.screens.matrix import MatrixPage
from tui.screens.step import StepScreen
from tui.screens.teaching import lesson_of, lines
from tui.screens.why import WhyPage
from tui.sources import parts, short
from tui.widgets.sheet import Sheet

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.ui

MACHINES = Path(__file__).resolve().parents[1] / "machines"


@asynccontextmanager
async def recorded(
    name: str, step: str, *, language: Language = "en", size: tuple[int, int] = (80, 24), **patch: str
) -> AsyncIterator[tuple[BringupApp, Pilot[int]]]:
    """Yield the wizard at a step of a recorded machine, `patch` (keys with `__` for the dot) taken over the recommendation."""
    app = BringupApp(House(machine=str(MACHINES / f"{name}.json"), root=None, language=language), language=language)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        if patch:
            app.wizard.take({key.replace("__", "."): value for key, value in patch.items()})
        app.open_step(next(one for one in app.wizard.steps if step == one.KEY))
        await pilot.pause()
        yield app, pilot


async def to(app: BringupApp, pilot: Pilot[int], value: str) -> None:
    """Move the cursor to the row of a value."""
    screen = top(app, StepScreen)
    for _ in screen.rows():
        row = screen.row()
        if row.option is not None and row.option.value == value:
            return
        await press(pilot, "down")
    raise AssertionError(f"no row {value}")


# --- effects and fixes ----------------------------------------------------------------------------


async def test_a_driver_that_is_too_old_for_the_wheel_names_the_wheel_it_changes_and_takes_it_along() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        before = app.wizard.answers
        await to(app, pilot, "570-open")
        shown = text(app)
        assert re.search(r"Changes +PyTorch 2\.\d+\.\d\+cu13\d →", shown)
        assert re.search(r"Trap +Ubuntu does not have it\.", shown)
        await press(pilot, "space")
        assert "Changed with it: PyTorch" in text(app)
        assert app.wizard.answers.frameworks["variant"].startswith("cu12")
        assert not app.wizard.errors()
        await press(pilot, "z")
        assert app.wizard.answers == before


async def test_the_fix_names_what_it_takes() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver", driver__branch="595") as (app, pilot):
        await to(app, pilot, "580-proprietary")
        assert "f  take 580 open instead" in text(app)
        await press(pilot, "f")
        assert (app.wizard.answers.driver.branch, app.wizard.answers.driver.flavor) == ("580", "open")
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        await to(app, pilot, "580-proprietary")
        assert "f  stay with 580 open" in text(app)


async def test_no_fix_is_offered_where_no_branch_is_supported_any_more() -> None:
    async with recorded("k80x2-board-legacy470", "driver") as (app, pilot):
        await to(app, pilot, "keep")
        assert "end of life" in text(app)
        assert not re.search(r"│ f  ", text(app))
        assert "Take a branch that is still supported" not in text(app)


async def test_commands_say_who_types_them_and_sources_are_short() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        await to(app, pilot, "595-open")
        assert "│ # apt-get install nvidia-" in text(app)
        assert re.search(r"Source +[\w.]+\.\w+$", text(app), re.MULTILINE)
    async with recorded("rtx5090-u2404-fresh", "frameworks") as (app, pilot):
        await to(app, pilot, "torch")
        assert "│ $ uv pip install torch==" in text(app)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html", "docs.nvidia.com"),
        ("github:endoflife-date/endoflife.date@a70eca33 products/nvidia-driver.md; x", "endoflife-date/endoflife.date"),
        ("pypi:nvidia-cuda-nvcc==13.5.37 (ptxas/nvcc --list-gpu-code); y", "PyPI nvidia-cuda-nvcc 13.5.37"),
        ("https://github.com/NVIDIA/nvidia-docker/issues/1731: in the CUDA repositories since 1.13", "NVIDIA/nvidia-docker"),
        ("Deep-learning machine guide, 2.1: 32 MB of L3 cache or more", "Deep-learning machine guide"),
    ],
)
def test_a_source_is_shown_as_its_first_host_or_document(source: str, shown: str) -> None:
    assert short(source) == shown
    assert "; ".join(parts(source)) == source


# --- why not --------------------------------------------------------------------------------------


async def test_the_why_not_page_marks_facts_and_answers_and_a_number_takes_a_way() -> None:
    async with recorded("rtx5090-u2404-fresh", "frameworks") as (app, pilot):
        await to(app, pilot, "tensorflow")
        await press(pilot, "w")
        shown = text(app)
        assert re.search(r"fact +torch brings cudnn-cu13", shown)
        assert re.search(r"your answer +PyTorch 2\.", shown)
        assert re.search(r"this option +✗ TensorFlow", shown)
        assert re.search(r"1  take TensorFlow [\d.]+ instead of PyTorch 2\.", shown)
        assert "The plan is then" in shown
        await press(pilot, "1")
        top(app, StepScreen)
        assert "tensorflow" in app.wizard.answers.frameworks
        assert "torch" not in app.wizard.answers.frameworks
        assert not app.wizard.errors()


async def test_no_numbered_way_leads_into_an_error() -> None:
    async with recorded("rtx5090-u2404-fresh", "toolkit", toolkit__cuda="13.0") as (app, pilot):
        screen = top(app, StepScreen)
        tried = 0
        for row in [row for row in screen.rows() if row.option is not None and not row.option.takeable]:
            assert row.choice is not None
            assert row.option is not None
            for way in app.wizard.ways(row.choice, row.option):
                app.wizard.take(way.patch)
                assert not app.wizard.errors()
                app.wizard.take_back()
                tried += 1
        assert tried > 0
        await pilot.pause()


# --- the matrix -----------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 18)])
async def test_the_matrix_fits_every_window_and_starts_on_what_is_taken(size: tuple[int, int], language: Language) -> None:
    async with recorded("rtx5090-u2404-fresh", "driver", language=language, size=size) as (app, pilot):
        await press(pilot, "m")
        page = top(app, MatrixPage)
        cell = page.cell()
        assert cell is not None
        assert (cell.patch["driver.branch"], cell.patch["toolkit.cuda"], cell.mark) == ("580", "13.0", "good")
        assert "580" in text(app)
        assert {line_width(line) for line in page.query_one(Sheet).lines} == {size[0]}


async def test_enter_in_the_matrix_takes_driver_and_cuda_together() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        await press(pilot, "m", "down")
        assert "595 open × CUDA 13.0" in text(app)
        await press(pilot, "enter")
        top(app, StepScreen)
        assert (app.wizard.answers.driver.branch, app.wizard.answers.toolkit.cuda) == ("595", "13.0")
        assert "z takes it back" in text(app)


async def test_every_word_in_view_is_explained_below_the_matrix() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        await press(pilot, "m")
        shown = text(app)
        for means in ("branch past its end of life", "no PTX", "driver older than CUDA needs", "cannot drive this card"):
            assert means in shown


async def test_an_impossible_cell_is_explained_and_never_taken() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        before = app.wizard.answers
        await press(pilot, "m", "up")
        assert "570 open × CUDA 13.0  ✗ old" in text(app)
        assert "Driver 570 is too old for CUDA 13.0" in text(app)
        await press(pilot, "enter")
        top(app, WhyPage)
        assert "Why not 570 open × CUDA 13.0?" in text(app)
        await press(pilot, "escape", "escape")
        top(app, StepScreen)
        assert app.wizard.answers == before


async def test_the_window_of_the_matrix_follows_the_cursor() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        await press(pilot, "m", "end")
        shown = text(app)
        assert "CUDA 13.5" in shown
        assert "‹" in shown
        await press(pilot, "home")
        assert "CUDA 13.5" not in text(app)


# --- lessons and commands -------------------------------------------------------------------------


async def test_the_lesson_follows_the_cursor_until_t_again() -> None:
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        await press(pilot, "t")
        assert "Open kernel modules" in text(app)
        assert "$ modinfo -F license nvidia" in text(app)
        await to(app, pilot, "580-proprietary")
        assert "Proprietary kernel modules" in text(app)
        await press(pilot, "t")
        assert "cannot work" in text(app)


def test_every_lesson_says_what_it_is_and_what_breaks_without_it_and_fits_its_pane() -> None:
    languages: tuple[Language, ...] = ("en", "zh_CN")
    for language in languages:
        lessons = tomllib.loads(resources.read_text("i18n", language, "teach.toml"))
        assert {"hardware", "firmware", "driver", "toolkit", "nccl", "frameworks", "monitoring"} <= lessons.keys()
        for step, entries in lessons.items():
            assert "step" in entries, step
            for name, lesson in entries.items():
                assert {"title", "what", "without", "command"} <= lesson.keys(), f"{step}.{name}"
                assert lesson["command"].startswith(("# ", "$ ")), f"{step}.{name}"
                assert width(lesson["title"]) <= 39, f"{step}.{name}"
                option = Option(value=name, label=name)
                assert len(lines(language, step, Choice(key=name, kind="one"), option, 40)) <= 18, f"{language} {step}.{name}"


def test_a_row_without_a_lesson_of_its_own_has_that_of_its_question_or_step() -> None:
    assert lesson_of("toolkit", Choice(key="toolkit.cuda", kind="one"), Option(value="12.8", label="12.8")) == "teach.toolkit.toolkit-cuda"
    assert lesson_of("driver", Choice(key="driver.branch", kind="one"), Option(value="580-open", label="580 open")) == "teach.driver.open"
    assert lesson_of("nccl", None, None) == "teach.nccl.step"


async def test_c_hands_the_shown_command_to_the_terminal_without_its_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    async with recorded("rtx5090-u2404-fresh", "driver") as (app, pilot):
        monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
        await to(app, pilot, "595-open")
        await press(pilot, "c")
        assert len(copied) == 1
        assert copied[0].startswith("apt-get install nvidia-")
        assert "Copied" in text(app)


# --- every option of every machine ----------------------------------------------------------------


@pytest.mark.parametrize("capture", sorted(MACHINES.glob("*.json")), ids=lambda path: path.stem)
def test_taking_any_option_makes_no_new_error(capture: Path) -> None:
    from steps.compat import effects, solve
    from steps.detect.machine import detect
    from steps.host.opening import open_host
    from steps.registry import SETUP, steps_of

    machine = detect(open_host(str(capture), None))
    answers = solve.recommend(machine).choices or Profile()
    before = {found.code for found in solve.judge(machine, answers) if found.severity == "error"}
    bad: list[str] = []
    for step in steps_of(SETUP, machine):
        if step.KEY not in ("driver", "toolkit", "frameworks"):
            continue
        asked = [choice for choice in step.choices(machine, answers) if choice.key != "driver.console"]
        # That nobody can confirm a key is a fact about the machine, and forbids what needs one.
        for option in [option for choice in asked for option in choice.options if option.takeable]:
            after = answered(answers, effects.effects(machine, answers, option.patch).patch)
            new = {found.code for found in solve.judge(machine, after) if found.severity == "error"} - before
            if new:
                bad.append(f"{step.KEY} {option.value}: {sorted(new)}")
    assert bad == []
