"""The hardware and BIOS screens: the map, the goal, the card, and the word before the kernel's start is touched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from steps.model.plan import Plan
from steps.text import Language
from tui.app import BringupApp
from tui.backend import House
from tui.privilege import Sudo
from tui.screens.confirm import ConfirmPage
from tui.screens.map import MapPage
from tui.screens.step import StepScreen

pytestmark = pytest.mark.ui
MACHINES = Path(__file__).resolve().parents[1] / "machines"


class Watched(House):
    """The real house, whose files and runs go nowhere."""

    def __init__(self, name: str, language: Language) -> None:
        super().__init__(machine=str(MACHINES / f"{name}.json"), language=language)
        self.saved: dict[str, str] = {}
        self.started = 0

    def save(self, path: str, text: str) -> str:
        self.saved[path] = text
        return path

    def start(self, plan: Plan, sudo: Sudo | None) -> Any:
        self.started += 1
        raise AssertionError("no run is wanted here")


async def opened(name: str, language: Language, play: Callable[[BringupApp, Watched, Pilot[Any]], Awaitable[None]]) -> None:
    """Open the wizard on a recorded machine, go to the hardware screen and play."""
    house = Watched(name, language)
    app = BringupApp(house, language=language)
    async with app.run_test(size=(80, 24)) as pilot:
        for _ in range(400):
            await pilot.pause(0.02)
            if app.wizard.ready:
                break
        await pilot.press("down", "enter")
        await pilot.pause()
        await play(app, house, pilot)


async def test_the_map_shows_the_tree_the_pairs_and_the_lanes() -> None:
    async def play(app: BringupApp, house: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("m")
        await pilot.pause()
        assert isinstance(app.screen, MapPage)
        lines = "\n".join("".join(span.text for span in line) for line in app.screen.lines(76))
        assert "├─ 03:06  ASM1187e  Gen2 ×1  !" in lines
        assert "0a:00  GPU 0  RTX 4070  Gen2 ×1/16  !" in lines
        assert "GPU 0  -      PIX    PXB" in lines
        assert "24 lanes; the cards would use 48, NVMe disks 4." in lines

    await opened("rtx4070x3-riser-x1", "en", play)


async def test_the_goal_of_the_options_grades_the_guide() -> None:
    async def play(app: BringupApp, house: Watched, pilot: Pilot[Any]) -> None:
        assert isinstance(app.screen, StepScreen)
        assert app.screen.context_words().startswith("Goal: train. 3 points")
        await pilot.press("o", "enter", "enter", "enter")
        await pilot.press("escape")
        assert app.wizard.answers.hardware.goal == "fine-tune"
        assert isinstance(app.screen, StepScreen)
        assert app.screen.context_words().startswith("Goal: fine-tune.")

    await opened("article-rtx3090-5900x-u2004", "en", play)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
async def test_the_card_is_written_in_the_language_of_the_screen(language: Language) -> None:
    async def play(app: BringupApp, house: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("enter", "e")
        await pilot.pause()
        text = house.saved["bios-card.txt"]
        assert "Re-Size BAR Support" in " ".join(text.split())
        assert ("[ ] Resizable BAR: off" if language == "en" else "[ ] Resizable BAR：未开启") in text

    await opened("article-rtx3090-5900x-u2004", language, play)


async def test_a_ticked_command_line_wants_the_word_and_a_wrong_one_starts_nothing() -> None:
    async def play(app: BringupApp, house: Watched, pilot: Pilot[Any]) -> None:
        press = pilot.press
        await press("enter", "tab", "space")
        assert app.wizard.answers.firmware.linux == ("c-states",)
        app.go_review()
        await pilot.pause()
        await press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmPage)
        await press(*"wrong", "enter")
        assert house.started == 0
        assert isinstance(app.screen, ConfirmPage)
        await press("escape")
        assert house.started == 0

    await opened("rtx4090x4-epyc", "en", play)
