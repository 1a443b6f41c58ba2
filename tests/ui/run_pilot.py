"""One run on a screen that a test looks at: the application, the picture as text, waiting for a condition."""

from __future__ import annotations

from collections.abc import Callable

from textual.pilot import Pilot

from steps.text import Language
from tests.ui.fake_run import START, FakeRun
from tui.cells import plain
from tui.screens.run import RunScreen
from tui.shell import Shell
from tui.widgets.sheet import Sheet

NOW = START + 415


class Watching(Shell):
    """One run on a screen, its clock set by the test."""

    def __init__(self, run: FakeRun, *, now: float = NOW, language: Language = "en", attached: bool = False) -> None:
        super().__init__(language=language)
        self.run_handle = run
        self.now = now
        self._attached = attached

    def on_mount(self) -> None:
        self.push_screen(RunScreen(self.run_handle, attached=self._attached, now=lambda: self.now))


def picture(app: Shell) -> list[str]:
    """Return the rows of the screen as text, the log included."""
    rows = [plain(line) for line in app.screen.query_one(Sheet).lines]
    if isinstance(app.screen, RunScreen) and app.screen.pane.display:
        pane = app.screen.pane
        for y in range(pane.size.height):
            rows[pane.region.y + y] = "".join(segment.text for segment in pane.render_line(y))
    return rows


async def until(pilot: Pilot[int], true: Callable[[], bool]) -> None:
    """Wait until a condition holds; fail after ten seconds."""
    for _ in range(200):
        await pilot.pause(0.05)
        if true():
            return
    raise AssertionError("\n".join(picture(pilot.app)))  # type: ignore[arg-type]  # every app of these tests is a Shell


def shows(app: Shell, *words: str) -> bool:
    """Return whether all the words are on the screen."""
    text = "\n".join(picture(app))
    return all(word in text for word in words)
