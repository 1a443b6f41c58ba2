"""Text measured in cells: wrapped, cut, painted; and the words of every step in their columns."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import Color, ColorSystem

from steps import resources
from steps.compat import solve
from steps.detect.machine import detect
from steps.host.opening import open_host
from steps.model.profile import Profile
from steps.registry import SETUP, steps_of
from steps.text import Language, say
from tui.cells import CLOSING, OPENING, Span, clean, cut, cut_path, fit, line_width, pad, width, wrap
from tui.shell import spaced
from tui.theme import ASCII_OF, COLOURS, Colours, spelled
from tui.widgets.footer import footer
from tui.widgets.sheet import changed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MACHINES = sorted((Path(__file__).resolve().parents[1] / "machines").glob("*.json"))
LANGUAGES: tuple[Language, ...] = ("en", "zh_CN")
TEXTS = st.text(alphabet="ab c，。（）汉字驱动-./:()", max_size=120)


@given(TEXTS, st.integers(min_value=4, max_value=40))
def test_wrapped_text_fits_and_keeps_every_letter(text: str, cells: int) -> None:
    lines = wrap(text, cells)
    assert all(width(line) <= cells for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(TEXTS, st.integers(min_value=0, max_value=40))
def test_cut_and_padded_text_has_exactly_its_width(text: str, cells: int) -> None:
    assert width(cut(text, cells)) <= max(cells, 0)
    if cells:
        assert width(pad(text, cells)) == cells
        assert line_width(fit((Span(text), Span("汉")), cells)) == cells


def test_han_breaks_anywhere_but_not_before_a_closing_mark_or_behind_an_opening_one() -> None:
    lines = wrap("RTX 5090 只能用开源内核模块（open）。闭源模块能加载，但不认这块卡：nvidia-smi 找不到设备。", 39)
    assert lines == ["RTX 5090 只能用开源内核模块（open）。闭", "源模块能加载，但不认这块卡：nvidia-smi", "找不到设备。"]
    assert all(line[0] not in CLOSING and line[-1] not in OPENING for line in lines)


def test_a_path_is_cut_in_its_middle_and_keeps_the_file_name() -> None:
    assert cut_path("/usr/lib/x86_64-linux-gnu/libcudnn.so.9", 24) == "/usr/lib/…/libcudnn.so.9"


def test_what_a_terminal_would_obey_becomes_a_question_mark() -> None:
    assert clean("a\x1b[2Jb\x9bc\u202ed") == "a?[2Jb?c?d"


def test_every_mark_has_one_ascii_cell_for_its_one_cell() -> None:
    assert all(width(mark) == 1 and len(plain) == 1 and plain.isascii() for mark, plain in ASCII_OF.items())
    assert spelled("✓ 汉", "bare") == "+ ??"


def test_the_footer_drops_from_behind_and_never_the_help() -> None:
    line = footer(40, [("Enter", "take, next"), ("Space", "take"), ("Esc", "back"), ("w", "why"), ("?", "help")])
    assert "".join(span.text for span in line).rstrip() == " Enter take, next   Space take   ? help"


def test_only_the_cells_that_differ_are_painted() -> None:
    assert changed((Span("abcdef"),), (Span("abXdef"),)) == (2, 3)
    assert changed((Span("汉字ab"),), (Span("汉典ab"),)) == (2, 4)
    assert changed((Span("same"),), (Span("same"),)) is None
    assert changed((Span("same"),), (Span("same", "strong"),)) == (0, 4)


def test_a_filled_in_name_gets_its_blank_beside_han() -> None:
    assert spaced("保留580 开源模块") == "保留 580 开源模块"


@pytest.mark.parametrize("palette", ["dark", "light"])
def test_every_text_colour_reads_on_every_ground(palette: str) -> None:
    colours: Colours = COLOURS[palette]  # type: ignore[index]  # both are palettes
    for ink in (colours.text, colours.mute, colours.primary, colours.accent, colours.good, colours.catch, colours.bad):
        for ground in (colours.page, colours.bar, colours.cursor):
            assert contrast(ink or "", ground or "") >= 4.5
            assert contrast(of_256(ink or ""), of_256(ground or "")) >= 4.5


def test_the_greys_of_the_dark_palette_stay_grey_in_256_colours() -> None:
    dark = COLOURS["dark"]
    assert [of_256(colour or "") for colour in (dark.text, dark.page, dark.bar)] == ["#e4e4e4", "#121212", "#262626"]


def of_256(colour: str) -> str:
    """Return the colour that a terminal with 256 of them shows instead."""
    return Color.parse(colour).downgrade(ColorSystem.EIGHT_BIT).get_truecolor().hex


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG defines it."""
    lights = sorted((_light(one), _light(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def _light(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("capture", MACHINES, ids=lambda path: path.stem)
def test_names_and_words_of_every_option_fit_their_columns_in_both_languages(capture: Path) -> None:
    machine = detect(open_host(str(capture), None))
    answers = solve.recommend(machine).choices or Profile()
    too_wide: set[str] = set()
    for step in steps_of(SETUP, machine):
        for choice in step.choices(machine, answers):
            for option in choice.options:
                for language in LANGUAGES:
                    name, tag = say(language, option.label), say(language, option.tag)
                    most = 21 if choice.kind == "facts" else 16
                    if width(name) > most or width(tag) > 11:
                        too_wide.add(f"{step.KEY} {language} {name!r} {width(name)} {tag!r} {width(tag)}")
    assert not too_wide


def flat(table: Mapping[str, object], before: str = "") -> dict[str, str]:
    """Return the words of a file by dotted key."""
    found: dict[str, str] = {}
    for key, value in table.items():
        found.update(flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": str(value)})
    return found


def test_the_two_languages_of_the_screens_have_the_same_keys() -> None:
    english, chinese = (flat(tomllib.loads(resources.read_text("i18n", language, "ui.toml"))) for language in LANGUAGES)
    assert english.keys() == chinese.keys()
    braces = re.compile(r"{\w+}")
    assert {key for key in english if set(braces.findall(english[key])) != set(braces.findall(chinese[key]))} == set()
    assert all(width(english[key]) <= 100 for key in english if key.endswith((".title", ".sub", ".next")))
