"""How many bytes a run costs the link: recorded output on a clock of the test's own, so that the figures are the same everywhere."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui.fake_run import START, FakeRun
from tests.ui.run_pilot import Watching
from tests.ui.screen import Terminal
from tests.ui.test_wizard_pty import ROOT, bringup, environment
from tests.ui.two_painters import Terminals, painted_twice
from tui.screens.run import RunScreen

pytestmark = pytest.mark.bench

RECORDED = Path(__file__).parent / "transcripts"
TICKS = 12
"""Looks at the log in a second."""
MOST = {"apt": 3_100, "pip": 750, "dkms": 2_000}
"""Bytes a second at 80×24; the demand is 6,000, the rest is room for what the screen may say one day."""
MOST_SLOW = 400
"""The same in low-bandwidth mode; the demand is 2,600."""
MOST_FIRST = 4_000
"""The demand is 8,000."""
Piece = tuple[float, bytes]


def recorded(name: str) -> Iterator[Piece]:
    """Yield when a program wrote what, in seconds: apt and pip as recorded in a terminal of 80×24, a DKMS build at 200 lines a second."""
    if name == "dkms":
        for number in range(0, 2000, 10):
            lines = (b"  CC [M]  /var/lib/dkms/nvidia/580.95.05/build/nvidia-drm/nvidia-drm-%05d.o\n" % (number + one) for one in range(10))
            yield number / 200, b"".join(lines)
        return
    for line in (RECORDED / f"{name}.jsonl").read_text().splitlines():
        seconds, data = json.loads(line)
        yield seconds, base64.b64decode(data)


async def replayed(folder: Path, pieces: list[Piece], *, slow: bool) -> tuple[float, Terminals]:
    """Return the bytes a second that watching such a run paints, and the terminals it was painted on."""
    run = FakeRun(folder)
    run.action("driver.install", "running", started=0)
    app = Watching(run, now=START)
    terminals = painted_twice(app, 80, 24, at_once=False)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        screen = app.screen
        assert isinstance(screen, RunScreen)
        for timer in (*app._timers, *screen._timers, *screen.pane._timers):
            timer.pause()
        app.gate.slow = slow
        await paint(app)
        terminals.send()
        before, ticks = terminals.lean_bytes, int(pieces[-1][0] * TICKS) + 2
        left = list(pieces)
        for tick in range(1, ticks + 1):
            app.now = START + tick / TICKS
            while left and left[0][0] <= tick / TICKS:
                run.print("driver.install", left.pop(0)[1])
            screen.pane._tick()
            if tick % 3 == 0:
                screen._tick()
            await paint(app)
            if not slow or tick % 3 == 0:
                terminals.send()
        terminals.send()
        terminals.compare()
        return (terminals.lean_bytes - before) / (ticks / TICKS), terminals


async def paint(app: Watching) -> None:
    """Let Textual paint what changed, now."""
    for _ in range(4):
        await asyncio.sleep(0)
    app.screen._on_timer_update()


@pytest.mark.parametrize("name", ["apt", "pip", "dkms"])
async def test_watching_a_run_costs_the_link_little(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pieces = list(recorded(name))
    for slow, most in ((False, MOST[name]), (True, MOST_SLOW)):
        folder = tmp_path / str(slow)
        folder.mkdir()
        bytes_a_second, terminals = await replayed(folder, pieces, slow=slow)
        with capsys.disabled():
            seconds = int(pieces[-1][0] * TICKS + 2) / TICKS
            print(
                f"\npainted {name}{' on a slow link' if slow else ''}: {bytes_a_second / 1000:.2f} kB/s,"
                f" as Textual paints it {terminals.plain_bytes / seconds / 1000:.1f} kB/s;"
                f" {terminals.frames} frames (at most {most / 1000} kB/s)"
            )
        assert bytes_a_second <= most


def test_the_first_screens_are_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {}
    for name, terminal in (("wizard", bringup()), ("viewer", viewer(tmp_path))):
        with terminal:
            terminal.until("What do you want to do" if name == "wizard" else "following · 2,114 lines")
            quiet = time.monotonic()
            while time.monotonic() - quiet < 0.3:
                size = len(terminal.raw)
                terminal.read(0.05)
                quiet = time.monotonic() if len(terminal.raw) != size else quiet
            sizes[name] = len(terminal.raw)
    with capsys.disabled():
        print(f"\nfirst screen: {', '.join(f'{name} {size} bytes' for name, size in sizes.items())} (at most {MOST_FIRST})")
    assert max(sizes.values()) <= MOST_FIRST


def viewer(folder: Path) -> Terminal:
    """Return a terminal with the viewer of a run that is half-way."""
    source = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom pathlib import Path\nfrom tests.ui.fake_run import halfway\n"
    source += f"from tui.app import watch\nwatch(halfway(Path({str(folder)!r})), 'en')"
    return Terminal((sys.executable, "-I", "-c", source), environment(COLORTERM="truecolor"))
