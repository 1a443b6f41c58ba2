"""The painter of differences shows, cell for cell, what Textual's own painting shows, in fewer bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from tests.ui.fake_run import halfway
from tests.ui.run_pilot import Watching, shows, until
from tests.ui.two_painters import Terminals, painted_twice
from tui.theme import PaletteName

STYLES = (
    None,
    Style(),
    Style(color="red", bgcolor="black"),
    Style(bgcolor="#101520"),
    Style(color="#aabbcc", bgcolor="#101520"),
    Style(color="green", bold=True),
    Style(underline=True),
    Style(reverse=True, bold=True),
)
WORDS = ("hello", " ", "    ", "abc def", "日本", "é", "─" * 8, " " * 30, "驱动，已编译", "x")


def a_line(chance: random.Random, width: int) -> Strip:
    """Return a line of words in any style, as wide as the screen."""
    segments: list[Segment] = []
    cells = 0
    while cells < width:
        word = chance.choice(WORDS)
        one = Segment(word, chance.choice(STYLES))
        if cells + one.cell_length > width:
            one = Segment(" " * (width - cells), one.style)
        segments.append(one)
        cells += one.cell_length
    return Strip(segments, width)


def changed(chance: random.Random, lines: list[Strip]) -> list[Strip]:
    """Return the lines after a scroll up or down of some of them, a few new ones, or all new ones."""
    height, width = len(lines), lines[0].cell_length
    kind = chance.random()
    if kind < 0.6:
        first = chance.randint(0, height - 4)
        last = chance.randint(first + 3, height - 1)
        by = chance.randint(1, last - first)
        fresh = [a_line(chance, width) for _ in range(by)]
        up, down = [*lines[first + by : last + 1], *fresh], [*fresh, *lines[first : last + 1 - by]]
        return [*lines[:first], *(up if kind < 0.3 else down), *lines[last + 1 :]]
    if kind < 0.9:
        new = list(lines)
        for _ in range(chance.randint(1, 4)):
            new[chance.randrange(height)] = a_line(chance, width)
        return new
    return [a_line(chance, width) for _ in lines]


def whole(lines: list[Strip]) -> LayoutUpdate:
    """Return an update of the whole screen."""
    return LayoutUpdate([[line] for line in lines], Region(0, 0, lines[0].cell_length, len(lines)))


@pytest.mark.parametrize(("columns", "rows", "coloured"), [(80, 24, True), (40, 10, True), (80, 24, False)])
def test_random_pictures_look_as_textual_paints_them_and_cost_a_third(columns: int, rows: int, coloured: bool) -> None:
    chance = random.Random(columns + coloured)
    terminals = Terminals(columns, rows, erases_in_colour=coloured)
    lines = [a_line(chance, columns) for _ in range(rows)]
    for _ in range(60):
        terminals.take(whole(lines))
        terminals.send()
        terminals.compare()
        lines = changed(chance, lines)
    assert terminals.lean_bytes < terminals.plain_bytes / 3


def test_a_piece_of_a_line_is_taken_where_textual_puts_it() -> None:
    terminals = Terminals(10, 2)
    terminals.take(whole([Strip([Segment("0123456789")], 10), Strip([Segment("abcdefghij")], 10)]))
    terminals.send()
    pieces = [{0: None, 4: Strip([Segment("45XY89")], 6)}, {0: Strip([Segment("ABcd")], 4), 4: None}]
    terminals.take(ChopsUpdate(pieces, [(0, 6, 8), (1, 0, 2)], [[4, 10], [4, 10]]))
    assert terminals.send() > 0
    assert terminals.lean.display == ["012345XY89", "ABcdefghij"]
    terminals.compare()


def test_what_is_shown_already_costs_nothing_and_is_painted_again_when_forgotten() -> None:
    terminals = Terminals(40, 10)
    lines = [a_line(random.Random(7), 40) for _ in range(10)]
    terminals.take(whole(lines))
    first = terminals.send()
    terminals.take(whole(lines))
    assert terminals.send() == 0
    terminals.lean.reset()
    terminals.painter.forget()
    assert terminals.send() == first
    terminals.compare()


def test_lines_that_move_up_are_moved_by_the_terminal() -> None:
    terminals = Terminals(80, 24)
    page = Style(color="#aabbcc", bgcolor="#101520")
    lines = [Strip([Segment(f"line {number} of the log, as long as such lines are".ljust(80), page)], 80) for number in range(40)]
    terminals.take(whole(lines[:24]))
    terminals.send()
    terminals.take(whole([*lines[:3], *lines[5:26]]))
    assert terminals.send() < 300
    terminals.take(whole(lines[:24]))
    assert terminals.send() < 300
    terminals.compare()


def test_a_letter_of_unsure_width_takes_its_neighbour_and_a_new_place_with_it() -> None:
    terminals = Terminals(20, 2)
    terminals.take(whole([Strip([Segment("a👩b c".ljust(19))], 20), Strip([Segment(" " * 20)], 20)]))
    terminals.send()
    terminals.take(whole([Strip([Segment("a🙂b c".ljust(19))], 20), Strip([Segment(" " * 20)], 20)]))
    frame = terminals.painter.frame(terminals.size.clamp_offset(terminals.painter._cursor))  # type: ignore[arg-type]
    assert "🙂\x1b[1;4Hb" in frame


@pytest.mark.ui
@pytest.mark.parametrize(("language", "palette"), [("en", "mono"), ("zh_CN", "dark")])
async def test_a_persons_way_through_a_run_looks_as_textual_paints_it(tmp_path: Path, language: str, palette: PaletteName) -> None:
    run = halfway(tmp_path)
    app = Watching(run, language="zh_CN" if language == "zh_CN" else "en")
    app.use_palette(palette)
    terminals = painted_twice(app, 80, 24)
    chance = random.Random(f"{language} {palette}")
    keys = ("up", "down", "pageup", "pagedown", "home", "end", "l", "escape", "L", "?", "escape", "slash", "c", "6", "3", "tab", "ctrl+t")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shows(app, "1130-a"))
        for step in range(24):
            run.print("driver.install", "  CC [M]  编译 nvidia.o \x1b[32m好\x1b[0m\r\n".encode() * chance.randint(0, 9))
            await pilot.press(chance.choice(keys))
            await pilot.pause(0.02)
            terminals.compare()
            if step == 12:
                await pilot.resize_terminal(100, 30)
    assert terminals.lean_bytes < terminals.plain_bytes / 2
