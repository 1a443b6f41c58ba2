"""The colours and marks: what each ink and ground looks like in the dark, light, terminal and plain palettes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from rich.cells import cell_len
from rich.style import Style

PaletteName = Literal["dark", "light", "ansi", "mono"]
"""`ansi` keeps the terminal's own colours; `mono` uses bold and reverse only."""

MARKS: Mapping[str, str] = {"good": "✓", "catch": "!", "bad": "✗", "info": "·", "unknown": "?", "running": "▸"}
ASCII_OF: Mapping[str, str] = dict(zip("✓✗·▸›‹•│─├└┌→←×…–—↑↓█░“”‘’µ≥≤", "+x->><*|-+`+><x~--^v#.\"\"''u><", strict=True))
"""One cell for one cell, so that nothing moves."""
AMBIGUOUS = frozenset("│·—–…×→•─├└┌█←↑↓≥≤“”‘’")
"""East-Asian ambiguous: two cells wide in some terminals, which the width probe finds out."""
_TO_ASCII = str.maketrans(dict(ASCII_OF))
_TO_NARROW = str.maketrans({mark: ASCII_OF[mark] for mark in AMBIGUOUS})

Marks = Literal["unicode", "narrow", "ascii", "bare"]
"""All marks · those that are one cell wide everywhere · ASCII marks · nothing but ASCII."""


def spelled(text: str, marks: Marks) -> str:
    """Return `text` in the signs that this terminal can show: one cell for one cell, so that nothing moves."""
    if marks == "unicode" or text.isascii():
        return text
    if marks == "narrow":
        return text.translate(_TO_NARROW)
    spelt = text.translate(_TO_ASCII)
    if marks == "bare" and not spelt.isascii():
        return "".join(ch if ch.isascii() else "?" * cell_len(ch) for ch in spelt)
    return spelt


class Colours(NamedTuple):
    """One palette's colours; `None` leaves the terminal's own."""

    text: str | None
    mute: str | None
    primary: str | None
    accent: str | None
    good: str | None
    catch: str | None
    bad: str | None
    rule: str | None
    page: str | None
    bar: str | None
    cursor: str | None


# Over SSH and in tmux most terminals have 256 colours: greys stay grey there, and every pair stays readable.
COLOURS: Mapping[PaletteName, Colours] = {
    "dark": Colours(
        "#E8EAEC", "#A3AEBA", "#66CCFF", "#D2B0FF", "#7AD694", "#F3C558", "#FF9088", "#5A6875", "#131619", "#252B31", "#132E57"
    ),
    "light": Colours(
        "#1A1F24", "#525C66", "#00558A", "#5A2A9F", "#17622F", "#6A4500", "#A11B15", "#8A949C", "#FBFBF8", "#E1E6E8", "#CDE5F5"
    ),
    "ansi": Colours(None, None, None, None, "green", "yellow", "red", None, None, None, None),
    "mono": Colours(None, None, None, None, None, None, None, None, None, None, None),
}

_COLOUR_OF: Mapping[str, str] = {
    "text": "text",
    "strong": "text",
    "mute": "mute",
    "primary": "primary",
    "key": "primary",
    "accent": "accent",
    "good": "good",
    "catch": "catch",
    "bad": "bad",
    "info": "mute",
    "unknown": "mute",
    "running": "primary",
    "rule": "rule",
}
"""Inks by the colour they take; `<ink>-strong` is the same colour in bold."""


@cache
def style(palette: PaletteName, ink: str, ground: str = "page") -> Style:
    """Return the Rich style of `ink` on `ground` ("page", "bar" for header and footer, "cursor" for the row under the cursor)."""
    colours = COLOURS[palette]
    base = ink.removesuffix("-strong")
    bold = ink.endswith("strong") or ink == "key"
    if palette in ("ansi", "mono"):
        # No palette colour is readable on every background: text keeps the terminal's own pair, and only a bare mark is coloured.
        mark = ink in ("good", "catch", "bad") and ground == "page"
        colour: str | None = getattr(colours, ink) if mark else None
        return Style(color=colour, bold=bold or ground == "cursor" or None, reverse=True if ground in ("bar", "cursor") else None)
    colour = getattr(colours, _COLOUR_OF.get(base, "text"))
    back = {"page": colours.page, "bar": colours.bar, "cursor": colours.cursor}.get(ground, colours.page)
    strong = bold or (ground == "cursor" and base in ("text", "mute"))
    return Style(color=colour, bgcolor=back, bold=strong or None)


def ground_colour(palette: PaletteName) -> str:
    """Return the background of a screen as Textual's style sheet wants it."""
    return COLOURS[palette].page or "ansi_default"
