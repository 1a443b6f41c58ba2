"""A line of the log is what a terminal would show, minus everything that could harm; any line is found without holding the log."""

from __future__ import annotations

from pathlib import Path

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style

from steps.engine.client import Spool
from tui.widgets.light_vt import CLIP, PLAIN, Emulator, Look, opened_at, pieces, plain, screen_open
from tui.widgets.log_pane import strip
from tui.widgets.spool_lines import BLOCK, SpoolLines

WORDS = st.text(alphabet="abc XYZ019.:/%", min_size=1, max_size=12)
MOVES = st.sampled_from(["\r", "\b", "\t", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[3C", "\x1b[2D", "\x1b[5G", "\x1b[C", "\x1b[D"])
COLOURS = st.sampled_from(["\x1b[m", "\x1b[1m", "\x1b[31m", "\x1b[38;5;120m", "\x1b[48;2;1;2;3m", "\x1b[0m", "\x1b[7m", "\x1b[4;33m"])
HARMLESS = st.sampled_from(["\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x07", "\x00", "\x1b(B", "\x1b[?25l", "\x1b[?2004h", "\x1b="])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(WORDS, WORDS, MOVES, COLOURS, HARMLESS), max_size=30))
def test_a_line_is_what_a_terminal_shows_at_its_end(parts: list[str]) -> None:
    raw = "".join(parts).encode()
    screen = pyte.Screen(400, 3)
    pyte.ByteStream(screen).feed(raw)
    assert plain(raw).rstrip() == screen.display[0].rstrip()


@given(st.binary(max_size=300))
def test_no_control_survives(raw: bytes) -> None:
    text = plain(raw)
    assert not any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 for letter in text)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b]0;owned\x07after the title", "after the title"),
        (b"\x1b]52;c;cm0gLXJmIC8=\x07clipboard", "clipboard"),
        (b"\x1bP+q544e\x1b\\device", "device"),
        (b"[bold]markup[/bold] is text", "[bold]markup[/bold] is text"),
        (b"10 %\r50 %\r100 %\r", "100 %"),
        (b"Reading package lists... 0%\rReading package lists... Done", "Reading package lists... Done"),
        (b"long line\rshort\x1b[K", "short"),
        (b"\xff\xfe bytes", "�� bytes"),
        (b"nul\x00in\x00side", "nulinside"),
        ("\u202etxt.exe\u202c".encode(), "txt.exe"),
        (b"a\tb", "a       b"),
        ("汉\rab".encode(), "ab"),
        ("e\u0301t\u0301".encode(), "e\u0301t\u0301"),
        (b"\x9b31m is no colour but bytes that are no UTF-8", "�31m is no colour but bytes that are no UTF-8"),
        (b"\x1b7\x1b[24;1H\x1b[42m 40% \x1b8Unpacking", "Unpacking"),
        (b"\x1b[8mhidden\x1b[0m", "hidden"),
        (b"ends with\x1b[", "ends with"),
        (b"\xe2\x94\x80".join([b""] * 4), "───"),
    ],
)
def test_what_is_dropped_and_what_stays(raw: bytes, shown: str) -> None:
    assert plain(raw) == shown


def test_colours_survive_as_looks() -> None:
    assert pieces(b"\x1b[1;31merror\x1b[0m: \x1b[38;2;300;2;3mx\x1b[94my") == [
        ("error", Look(fore=1, bold=True)),
        (": ", PLAIN),
        ("x", Look(fore=(255, 2, 3))),
        ("y", Look(fore=12)),
    ]


def test_of_a_long_line_the_start_is_kept_and_of_an_overwritten_one_the_end() -> None:
    assert plain(b"x" * 100_000 + b"y") == "x" * CLIP
    assert plain(b"\r".join(b"%d %%" % number for number in range(100_000))) == "99999 %"


def test_a_whole_screen_is_noticed_and_left() -> None:
    assert not screen_open(b"text \x1b[31m")
    assert screen_open(b"\x1b[?1049h\x1b[2J")
    assert not screen_open(b"\x1b[?1049h...\x1b[?1049l")
    assert screen_open(b"still inside", True)
    assert opened_at(b"ab\x1b[?1049h") == 2
    assert opened_at(b"ab") is None


def test_a_dialog_is_shown_as_the_terminal_would() -> None:
    emulator = Emulator(40, 10)
    emulator.feed(b"\x1b[?1049h\x1b[2J\x1b[3;5H\x1b[44;97mConfiguring\x1b[0m\x1b[9;1H")
    assert "".join(text for text, _ in emulator.row(2)).rstrip() == "    Configuring"
    assert ("Configuring", Look(fore=15, back=4)) in emulator.row(2)
    assert emulator.cursor == (0, 8)


def test_a_line_longer_than_the_window_says_that_it_goes_on() -> None:
    assert strip(b"0123456789", 8, Style()).text == " 012345…"
    assert strip(b"0123456", 8, Style()).text == " 0123456"
    assert strip(b"0123456789", 8, Style(), shift=5).text == " 56789  "
    assert strip("汉字汉字汉字".encode(), 8, Style()).text == " 汉字汉…"


# --- lines by offset --------------------------------------------------------------------------------


def spooled(path: Path, data: bytes) -> SpoolLines:
    path.write_bytes(data)
    lines = SpoolLines(Spool(path))
    while lines.look():
        if not lines.behind:
            break
    return lines


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_window_equals_the_lines_of_the_file(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    parts = data.draw(
        st.lists(st.sampled_from([b"", b"short", b"x" * 900, b"y" * 9000, b"z" * 70_000, b"\xe6\xb1\x89"]), min_size=1, max_size=60)
    )
    ended = data.draw(st.booleans())
    raw = b"\n".join(parts) + (b"\n" if ended else b"")
    wanted = raw.split(b"\n")
    if not wanted[-1]:
        wanted.pop()
    lines = spooled(tmp_path_factory.mktemp("spool") / "log", raw)
    assert lines.lines == len(wanted)
    first = data.draw(st.integers(0, len(wanted)))
    assert [line[:CLIP] for line in lines.window(first, 7)] == [line[:CLIP] for line in wanted[first : first + 7]]
    assert [line[-20:] for line in lines.tail(5)] == [line[-20:] for line in wanted[-5:]]


def test_every_one_of_200_000_lines_is_reached(tmp_path: Path) -> None:
    lines = spooled(tmp_path / "log", b"".join(b"line %d\n" % number for number in range(200_000)))
    assert lines.lines == 200_000
    for number in (0, 1, 65_535, 65_536, 123_456, 199_999):
        assert lines.window(number, 1) == [b"line %d" % number]
    assert lines.tail(2) == [b"line 199998", b"line 199999"]
    assert lines.window(200_000, 3) == []


def test_one_look_counts_only_so_much(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"0123456\n" * (BLOCK // 8) * 5)
    lines = SpoolLines(Spool(path))
    assert lines.look(budget=2 * BLOCK)
    assert lines.lines == 2 * BLOCK // 8
    assert lines.behind
    assert lines.tail(1) == [b"0123456"]


def test_a_growing_file_is_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    lines = SpoolLines(Spool(path))
    with path.open("ab", buffering=0) as file:
        for number in range(1000):
            file.write(b"half of %d" % number)
            lines.look()
            assert lines.lines == number + 1
            file.write(b", whole\n")
            lines.look()
    assert lines.window(998, 5) == [b"half of 998, whole", b"half of 999, whole"]
    assert not lines.look()


def test_a_search_goes_on_where_its_budget_ended(tmp_path: Path) -> None:
    lines = spooled(tmp_path / "log", b"".join(b"line %d\n" % number for number in range(50_000)))
    found, go_on = lines.find(b"LINE 3\n".strip(), 49_999, back=True, budget=1)
    seen = 0
    while found is None and go_on is not None:
        seen += 1
        found, go_on = lines.find(b"line 3", go_on, back=True, budget=100_000)
    assert found == 39_999
    assert seen > 0
    assert lines.find(b"line 777", 0) == (777, None)
    assert lines.find(b"not there", 0, budget=1 << 30) == (None, None)
