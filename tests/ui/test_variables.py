"""NCCL on the screen: its variables as a list, an existing file line by line, and the file as it will be written."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steps.catalog import stack
from steps.registry import SETUP
from steps.text import Language, lookup, say
from tests.ui.test_wizard import Drive, press, text, top, until
from tui.app import BringupApp
from tui.backend import House
from tui.cells import line_width
from tui.screens.step import StepScreen
from tui.screens.variables import VariablesPage
from tui.widgets.sheet import Sheet

pytestmark = pytest.mark.ui

CAPTURE = Path(__file__).resolve().parents[1] / "machines" / "rtx4090x4-epyc.json"
FILE = "# ours\nNCCL_DEBUG=WARN\nexport NCCL_P2P_LEVEL=SYS\nNCCL_IB_HCA=mlx5 # fast\nNCCL_FOO=1\nfoo\n"


@asynccontextmanager
async def nccl(folder: Path, language: Language = "en") -> AsyncIterator[tuple[BringupApp, Drive]]:
    """Yield a wizard at the NCCL step of a machine that has a file."""
    recorded = json.loads(CAPTURE.read_text(encoding="utf-8"))
    recorded["files"]["/etc/nccl.conf"] = FILE
    (folder / "machine.json").write_text(json.dumps(recorded), encoding="utf-8")
    app = BringupApp(House(machine=str(folder / "machine.json"), language=language), language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.wizard.ready and app.earlier is not None)
        app.open_step(next(step for step in SETUP if step.KEY == "nccl"))
        await pilot.pause()
        yield app, pilot


def test_every_variable_has_its_meaning_and_every_meaning_its_variable() -> None:
    names = set(stack.nccl_variables())
    for language in ("en", "zh_CN"):
        assert {name for name in names if not lookup(language, f"nccl_variables.meaning.{name}")} == set()
    assert len(names) > 60


@pytest.mark.parametrize("part", ["default", "values"])
def test_what_is_said_of_a_variable_in_words_holds_every_value_of_the_table(part: str) -> None:
    for row in stack.nccl_variables().values():
        bare = row.default if part == "default" else "; ".join(row.values)
        if (said := lookup("en", f"nccl_variables.{part}.{row.name}")) is not None:
            assert said == bare
            chinese = lookup("zh_CN", f"nccl_variables.{part}.{row.name}") or ""
            assert set(re.findall(r"\d+", bare)) - set(re.findall(r"\d+", chinese)) == set()
        # A number may stand for a range of them.
        assert all(re.fullmatch(r"\w+", value) and (value in bare or value.isdigit()) for value in row.plain if part == "values")


async def test_letters_search_and_enter_takes_one_plain_value_after_the_other(tmp_path: Path) -> None:
    async with nccl(tmp_path) as (app, pilot):
        await press(pilot, "v")
        page = top(app, VariablesPage)
        assert "DEBUG                · WARN" in text(app)
        assert "now      WARN, stands in /etc/nccl.conf" in text(app)
        await press(pilot, *"relax")
        assert [item.key for item in page.items()] == ["NCCL_IB_PCI_RELAXED_ORDERING"]
        taken = []
        for _ in range(4):
            await press(pilot, "enter")
            taken.append((app.wizard.answers.nccl.extra or {}).get("NCCL_IB_PCI_RELAXED_ORDERING"))
        assert taken == ["0", "1", "2", None]
        await press(pilot, "escape")
        assert len(page.items()) == len(stack.nccl_variables())
        await press(pilot, "escape")
        assert isinstance(app.screen, StepScreen)


async def test_a_variable_without_plain_values_asks_for_one_and_delete_takes_it_out(tmp_path: Path) -> None:
    async with nccl(tmp_path) as (app, pilot):
        await press(pilot, "v", *"gid_index", "enter", "3", "enter")
        assert app.wizard.answers.nccl.extra == {"NCCL_IB_GID_INDEX": "3"}
        assert "3, will be written" in text(app)
        await press(pilot, "delete")
        assert app.wizard.answers.nccl.extra is None


async def test_nothing_found_says_so(tmp_path: Path) -> None:
    async with nccl(tmp_path) as (app, pilot):
        await press(pilot, "v", *"xyzzy", "enter", "delete", "tab")
        assert "Searching: xyzzy  No variable has that" in text(app)
        assert isinstance(app.screen, VariablesPage)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
async def test_a_file_that_stands_there_is_shown_line_by_line_with_what_comes_of_it(tmp_path: Path, language: Language) -> None:
    async with nccl(tmp_path, language) as (app, pilot):
        step = top(app, StepScreen)
        rows = {row.option.value: row.option for row in step.rows() if row.choice and row.choice.key == "nccl.file.0" and row.option}
        words = {value: say("en", option.tag) for value, option in rows.items()}
        assert words == {"1": "comment", "2": "read", "3": "misread", "4": "misread", "5": "unknown", "6": "no effect"}
        assert [finding.code for finding in rows["3"].findings] == ["nccl-line-misread"]
        assert [finding.code for finding in rows["4"].findings] == ["nccl-inline-comment"]
        assert say("en", rows["3"].sentences[0]) == "export NCCL_P2P_LEVEL=SYS — NCCL sets export NCCL_P2P_LEVEL to “SYS”."
        for _ in range(20):
            await press(pilot, "down")
            assert all(line_width(line) == 80 for line in app.screen.query_one(Sheet).lines)
        await press(pilot, "v")
        for _ in range(8):
            await press(pilot, "down")
            assert all(line_width(line) == 80 for line in app.screen.query_one(Sheet).lines)


async def test_the_fix_of_a_line_shows_in_the_file_as_it_will_be(tmp_path: Path) -> None:
    async with nccl(tmp_path) as (app, pilot):
        step = top(app, StepScreen)
        at = next(at for at, row in enumerate(step.rows()) if row.option is not None and row.option.value == "3")
        step.cursor = at
        await press(pilot, "f")
        written = next(row.option for row in step.rows() if row.option is not None and row.option.value == "written")
        lines = [note.text for note in written.notes if note.command]
        assert "NCCL_P2P_LEVEL=SYS" in lines
        assert "export NCCL_P2P_LEVEL=SYS" not in lines
        assert "NCCL_IB_HCA=mlx5 # fast" in lines
