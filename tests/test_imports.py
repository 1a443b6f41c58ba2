"""What a start loads: the runner and every verb without a screen stay free of Textual, in a clean interpreter."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steps.model.loading import without
from tests import fresh
from tui.options import VERBS

STEPS = ("driver", "firmware", "frameworks", "hardware", "monitoring", "nccl", "toolkit")
SMALL = {
    *("textual", "rich", "distro", "pygments", "markdown_it", "pynvml", "packaging", "tomli_w"),
    *("asyncio", "ssl", "http", "email", "typing_extensions", "bz2", "lzma", "zlib"),
}
"""What the runner, which stays in memory for the whole of a run, has no use for."""
OF_OTHERS = {"steps.managers.apt", "steps.managers.dnf", "steps.model.hardware"}
"""What only a plan with packages of that kind, or the finding of a machine, needs."""
AT_HAND = """
from steps.engine.work import _have_at_hand
from steps.host.local import LocalHost
from steps.model.action import Reboot
from tests.engine_kit import plan_of

_have_at_hand(plan_of(Reboot(id="driver.reboot", title="t", reason="r")))
"""
ARGUMENTS = {
    "apply": ["--json"],
    "attach": ["no-such-run", "--json"],
    "capture": ["{folder}/capture.json"],
    "check": ["--json"],
    "doctor": ["--json"],
    "knowledge": ["--json"],
    "plan": ["--json"],
    "resume": ["no-such-run", "--json"],
    "undo": ["no-such-run", "--json"],
    "verify": ["--json"],
    "wizard": ["--plain"],
}


def loaded(code: str, folder: Path) -> set[str]:
    """Return the names of all modules that are loaded when `code` has run, however it ended."""
    report = folder / "loaded.json"
    program = (
        f"import atexit, json, sys\natexit.register(lambda: open({str(report)!r}, 'w').write(json.dumps(sorted(sys.modules))))\n{code}"
    )
    environment = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "LC_ALL": "C.UTF-8"}
    argv = [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-c", program]
    subprocess.run(argv, env={**environment, "PYTHONPATH": str(fresh.CHECKOUT)}, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    return set(json.loads(report.read_text(encoding="utf-8")))


def packages(modules: set[str]) -> set[str]:
    return {module.split(".")[0] for module in modules}


def test_the_runner_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    found = loaded(f"from steps.engine.runner import main\nmain([{str(tmp_path / 'no-run')!r}])", tmp_path)
    assert "steps.engine.undo" in found
    assert packages(found) & SMALL == set()
    assert found & OF_OTHERS == set()


def test_what_a_reboot_looks_at_is_loaded_before_the_run_begins(tmp_path: Path) -> None:
    at_hand = loaded(AT_HAND, tmp_path)
    assert "steps.engine.work" in at_hand
    assert loaded(f"{AT_HAND}\nfrom steps.detect import boot\nboot.entries(LocalHost())\n", tmp_path) == at_hand


def test_what_is_hidden_from_a_loading_is_found_afterwards_and_what_was_there_stays() -> None:
    there = sys.modules["json"]
    with without("json", "of_nobody"):
        assert sys.modules["json"] is there
        with without("of_nobody"):
            pass
        # The outer one hides it still.
        with pytest.raises(ModuleNotFoundError, match="halted"):
            importlib.import_module("of_nobody")
    assert sys.modules["json"] is there
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        importlib.import_module("of_nobody")


@pytest.mark.parametrize("verb", [*VERBS, "--version", "--help"])
def test_a_verb_without_a_screen_loads_no_textual(verb: str, tmp_path: Path) -> None:
    arguments = [argument.format(folder=tmp_path) for argument in ARGUMENTS.get(verb, ["--json"] if verb in VERBS else [])]
    argv = ["bringup", verb, *arguments]
    found = loaded(
        f"import sys\nsys.argv = {argv!r}\nfrom tui.__main__ import _guarded\nsys.exit(_guarded(sys.argv[1:], { {'LC_ALL': 'C.UTF-8'}!r}))",
        tmp_path,
    )
    assert "tui.options" in found
    # What follows a run measures cells with Rich; the other verbs have no use for it.
    follows = verb in ("wizard", "apply", "attach", "resume", "undo")
    assert packages(found) & ({"textual"} if follows else {"textual", "rich"}) == set()


@pytest.mark.parametrize("step", STEPS)
def test_a_step_module_imports_no_other_step_no_engine_and_no_host(step: str) -> None:
    source = (fresh.CHECKOUT / "steps" / f"{step}.py").read_text(encoding="utf-8")
    imported = {
        f"{node.module}.{name.name}" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) for name in node.names
    }
    imported |= {name.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import) for name in node.names}
    banned = ("steps.engine", "steps.host", *(f"steps.{other}" for other in STEPS if other != step))
    assert [name for name in imported if f"{name}.".startswith(tuple(f"{one}." for one in banned))] == []
