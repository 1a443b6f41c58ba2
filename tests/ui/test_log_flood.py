"""200,000 lines flow while the pane follows: keys answer, memory stays, every line is reached, the last one is shown."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.ui.viewer_terminal import Viewer

pytestmark = pytest.mark.ui
LINES = 200_000
MOST_MB = 50


def test_a_flood_neither_fills_memory_nor_holds_up_keys_nor_loses_a_line(tmp_path: Path) -> None:
    with closing(Viewer(tmp_path)) as viewer:
        viewer.until(lambda seen: "following" in seen)
        flood = viewer.flood(LINES, seconds=3)
        viewer.until(lambda seen: "of the flood" in seen)
        viewer.press(b"\x1b[5~")
        assert viewer.until(lambda seen: "End follows" in seen) < 2
        viewer.press(b"\x1b[F")
        assert viewer.until(lambda seen: "following" in seen) < 2
        assert flood.wait(60) == 0
        viewer.until(lambda seen: f"line {LINES - 1:07}" in seen and "following · 200,000 lines" in seen)
        viewer.press(b"\x1b[H")
        viewer.until(lambda seen: "line 0000000" in seen and "8 of 200,000" in seen)
        viewer.press(b"/0123456 of\r")
        viewer.until(lambda seen: "Search: 0123456 of" in seen and "line 0123456" in seen and "Esc close" in seen)
        viewer.press(b"\x1b")
        viewer.until(lambda seen: "Search:" not in seen and "q leave" in seen)
        assert viewer.resident() <= MOST_MB
        assert viewer.leave() == 0
        assert "bringup attach" in viewer.seen


def test_output_that_wants_to_take_over_the_terminal_is_only_text(tmp_path: Path) -> None:
    hostile = b"\x1b]0;owned\x07title\n\x1b[2Jclear\n\x1b[1;1Hhome\n\x1bc reset\n"
    hostile += b"[bold red]markup[/]\n\x1b[?1000hmouse\n\x90device\x9c\nlast\x00 line\n"
    with closing(Viewer(tmp_path)) as viewer:
        viewer.until(lambda seen: "following" in seen)
        viewer.log.write_bytes(hostile)
        wanted = ("title", "clear", "home", "[bold red]markup[/]", "mouse", "last line", "1 Return point saved", "following · 8 lines")
        viewer.until(lambda seen: all(words in seen for words in wanted))
        assert viewer.screen.title != "owned"
