"""The live monitor: its rows in both languages and sizes, a lost card, a driver that is silent, and that it stops when it is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from steps.model.gauge import Gauge, Gauges, Load
from steps.text import Language
from tests.ui.made_up import MadeUp
from tui.app import BringupApp
from tui.cells import line_width, plain
from tui.screens.monitor import Feed, MonitorPage
from tui.widgets import gauges
from tui.widgets.sheet import Sheet

pytestmark = pytest.mark.ui

HOT = Gauge(
    index=0, name="NVIDIA GeForce RTX 4090", address="00000000:01:00.0", utilization=98, memory_used=19_541_262_336,
    memory_total=25_757_220_864, temperature=83, watts=412.3, limit_watts=450.0, generation=1, max_generation=4, width=16, max_width=16,
    mhz=1410, max_mhz=2520, fan_percent=98, performance_state=2, slowed=("sw-thermal", "power-cap"),
    loads=(Load(pid=4711, name="python3", bytes=19_000_000_000), Load(pid=12, bytes=None, kind="graphics")),
)  # fmt: skip
LOST = Gauge(index=1, error=15, name="NVIDIA GeForce RTX 4090", address="00000000:41:00.0", max_generation=4, max_width=16)
IDLE = msgspec.structs.replace(HOT, index=0, utilization=0, slowed=("idle",), loads=())


class Told:
    """A feed that says what a test wants."""

    def __init__(self, now: Gauges | None, silent: float = 0.0) -> None:
        self.now, self.silent = now, silent
        self.turns = 0
        self.closed = False

    def turn(self) -> Gauges | None:
        self.turns += 1
        return self.now

    def close(self) -> None:
        self.closed = True


class Watching(BringupApp):
    """The wizard over the made-up house, whose GPUs do what a feed says."""

    def __init__(self, folder: Path, feed: Told, **look: Any) -> None:
        super().__init__(MadeUp(folder), **look)
        self.feed = feed

    def gauges(self) -> Feed | None:
        return None if self.recorded else self.feed


def shown(app: BringupApp) -> str:
    return "\n".join(plain(line).rstrip() for line in app.screen.query_one(Sheet).lines)


async def opened(pilot: Pilot[Any]) -> str:
    """Open the monitor and return what it shows."""
    await pilot.press("g")
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, BringupApp)
    assert isinstance(app.screen, MonitorPage)
    return shown(app)


async def test_two_cards_one_too_hot_and_one_lost(tmp_path: Path) -> None:
    app = Watching(tmp_path, Told(Gauges(driver="570.124.06", cards=(HOT, LOST))))
    async with app.run_test(size=(80, 24)) as pilot:
        text = await opened(pilot)
        assert "1 of 2 GPUs answer · driver 570.124.06 · 412 W together" in text
        assert "›  0 RTX 4090       ████████  98%     18.2/24  83C   412/450  1×16 ! too hot" in text
        assert "   1 RTX 4090                   -           -    -         -     - ✗ lost" in text
        assert "Slowed by the driver: too hot" in text
        assert "The link runs at 1×16 of 4×16 under load" in text
        assert "4711    17.7 GiB  computes    python3" in text
        assert "12           -  draws       (another container)" in text
        await pilot.press("down")
        text = shown(app)
        assert "✗ Lost: it has fallen off the bus" in text
        assert "python3" not in text


async def test_it_follows_what_the_cards_do_and_stops_when_it_is_left(tmp_path: Path) -> None:
    app = Watching(tmp_path, Told(Gauges(cards=(IDLE,))))
    async with app.run_test(size=(80, 24)) as pilot:
        assert "· idle" in await opened(pilot)
        app.feed.now = Gauges(cards=(HOT,))
        for _ in range(200):
            if "! too hot" in shown(app):
                break
            await pilot.pause(0.02)
        assert "! too hot" in shown(app)
        await pilot.press("g")
        await pilot.pause()
        assert app.feed.closed
        assert not isinstance(app.screen, MonitorPage)


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("size", [(80, 24), (60, 18), (120, 40)])
@pytest.mark.parametrize("count", [1, 2, 8])
async def test_every_size_and_language_holds_the_cards(tmp_path: Path, language: Language, size: tuple[int, int], count: int) -> None:
    cards = tuple(msgspec.structs.replace(HOT if at % 2 else LOST, index=at) for at in range(count))
    app = Watching(tmp_path, Told(Gauges(cards=cards)), language=language)
    async with app.run_test(size=size) as pilot:
        await opened(pilot)
        lines = [plain(line) for line in app.screen.query_one(Sheet).lines]
        assert len(lines) == size[1]
        assert all(line_width(line) == size[0] for line in app.screen.query_one(Sheet).lines)
        rows = [line for line in lines if "RTX" in line and "GeForce" not in line] if size[0] >= 80 else lines[5:10]
        assert len(rows) >= min(count, size[1] - 14)
        assert not any("…" in row for row in rows if size[0] >= 80)


async def test_without_colour_and_unicode_the_rows_say_the_same(tmp_path: Path) -> None:
    app = Watching(tmp_path, Told(Gauges(cards=(HOT, LOST))), marks="bare", palette="mono")
    async with app.run_test(size=(80, 24)) as pilot:
        text = await opened(pilot)
        assert text.isascii()
        assert ">  0 RTX 4090       ########  98%     18.2/24  83C   412/450  1x16 ! too hot" in text
        assert "x lost" in text


@pytest.mark.parametrize(
    ("now", "silent", "said"),
    [
        (None, 0.0, "Asking the driver"),
        (None, 7.0, "The driver does not answer. A card may hang"),
        (Gauges(error=12), 0.0, "There is no NVIDIA GPU to watch here"),
        (Gauges(error=9), 0.0, "NVIDIA's kernel module is not loaded"),
        (Gauges(error=18), 0.0, "are of two versions"),
        (Gauges(error=999, said="Unknown Error"), 0.0, "(NVML code 999: Unknown Error)"),
        (Gauges(), 0.0, "sees no GPU"),
    ],
)
async def test_where_there_is_nothing_to_see_it_says_why(tmp_path: Path, now: Gauges | None, silent: float, said: str) -> None:
    app = Watching(tmp_path, Told(now, silent))
    async with app.run_test(size=(80, 24)) as pilot:
        assert said in await opened(pilot)


async def test_old_figures_are_said_to_be_old(tmp_path: Path) -> None:
    app = Watching(tmp_path, Told(Gauges(cards=(HOT,)), silent=12.4))
    async with app.run_test(size=(80, 24)) as pilot:
        assert "has not answered for 12 s; the figures are old" in await opened(pilot)


async def test_a_recorded_machine_has_nothing_to_watch(tmp_path: Path) -> None:
    app = Watching(tmp_path, Told(Gauges(cards=(HOT,))))
    async with app.run_test(size=(80, 24)) as pilot:
        app.rehearse("/demo/gpu01.json")
        await pilot.pause()
        assert "This is a recorded machine" in await opened(pilot)
        assert app.feed.turns == 0


@pytest.mark.parametrize("reasons", [gauges._ORDER, ()])
def test_every_state_of_a_card_has_a_sentence(reasons: Any) -> None:
    card = msgspec.structs.replace(HOT, slowed=reasons)
    said = [sentence for _, sentence in gauges._sentences(card)]
    assert len(said) == max(1, len(reasons)) + 1
