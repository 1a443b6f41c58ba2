"""What a terminal would show of one line of raw output: text and colours, never anything else that the output asks for.

Carriage return, backspace, tab, erase-line and moves within the line are carried out, colours (SGR) are kept beside the text,
everything else is dropped: output is not trusted. Programs that paint the whole screen are only recognised here
(`screen_open`); `emulator` shows those.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import get_character_cell_size as cells_of

if TYPE_CHECKING:
    import pyte

Colour = int | tuple[int, int, int] | None
"""A number of the 256-colour palette, red-green-blue, or the default."""


class Look(NamedTuple):
    """How a piece of text looks; hidden and blinking text do not exist here."""

    fore: Colour = None
    back: Colour = None
    bold: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


PLAIN = Look()
Piece = tuple[str, Look]

CLIP = 8192
"""Bytes of one line that are looked at: the first ones, or the last ones where the line overwrites itself."""
MAX_COLUMN = CLIP

_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[\?1049h.*?\x1b\[\?1049l"  # what a program painted on a screen of its own
    r"|(?:\x1b\[|\x9b)(?P<params>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?:\x1b[\]P^_X]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # titles, clipboard, device strings
    r"|\x1b7.*?\x1b8"  # what apt paints in the last row between save and restore of the cursor: status, not log
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-~]?"
    r"|(?P<control>[\r\b\t])"
    r"|[\x00-\x1f\x7f-\x9f]",
    re.DOTALL,
)
# Marks that turn the direction of text round or take no cell: they could make a line look like another one.
_UNSEEN = dict.fromkeys((*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0x2028, 0x2029, 0x061C))
_STRAIGHT = re.compile(r"[^\x00-\x1f\x7f-\x9f]*\Z")
_ALTERNATE = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")


def decoded(raw: bytes) -> str:
    """Return the part of a raw line that is looked at; bytes that are not UTF-8 become U+FFFD."""
    raw = raw.rstrip(b"\r\n")
    if len(raw) > CLIP:
        raw = raw[-CLIP:] if b"\r" in raw else raw[:CLIP]
    return raw.decode("utf-8", "replace").translate(_UNSEEN)


def pieces(raw: bytes) -> list[Piece]:
    """Return one raw line as a terminal shows it at its end; blanks at its end are not kept."""
    line = decoded(raw)
    if _STRAIGHT.match(line):
        line = line.rstrip(" ")
        return [(line, PLAIN)] if line else []
    row = _Row()
    for token in _TOKEN.finditer(line):
        _obey(row, token)
    return row.pieces()


def plain(raw: bytes) -> str:
    """Return one raw line as text alone."""
    return "".join(text for text, _ in pieces(raw))


def screen_open(data: bytes, before: bool = False) -> bool:
    """Return whether a program has the whole screen after `data`, when `before` says whether it had it before."""
    said = [found.group(1) for found in _ALTERNATE.finditer(data)]
    return said[-1] == b"h" if said else before


def opened_at(data: bytes) -> int | None:
    """Return where in `data` the whole screen was last taken, or `None` when it was not."""
    return next((found.start() for found in reversed(list(_ALTERNATE.finditer(data))) if found.group(1) == b"h"), None)


class _Row:
    """The cells of the line being painted, and the cursor."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.looks: list[Look] = []
        self.at = 0
        self.look = PLAIN

    def put(self, text: str) -> None:
        """Write `text` over what stands at the cursor; a wide character takes its cell and an empty one."""
        text_cells = list(text) if text.isascii() else _cells(text)
        self.reach(self.at)
        end = self.at + len(text_cells)
        self.text[self.at : end] = text_cells
        self.looks[self.at : end] = [self.look] * len(text_cells)
        self.at = end

    def reach(self, column: int) -> None:
        """Fill with blanks up to `column`."""
        missing = min(column, MAX_COLUMN) - len(self.text)
        if missing > 0:
            self.text += [" "] * missing
            self.looks += [PLAIN] * missing

    def go(self, column: int) -> None:
        """Move the cursor within the line."""
        self.at = max(0, min(column, MAX_COLUMN))

    def erase(self, first: int, last: int | None) -> None:
        """Blank the cells from `first` up to `last`, or to the end of the line."""
        if last is None:
            del self.text[first:]
            del self.looks[first:]
        else:
            last = min(last, len(self.text))
            if last > first:
                self.text[first:last] = [" "] * (last - first)
                self.looks[first:last] = [PLAIN] * (last - first)

    def pieces(self) -> list[Piece]:
        """Return the cells as runs of one look."""
        found: list[Piece] = []
        start = 0
        for column in range(1, len(self.text) + 1):
            if column == len(self.text) or self.looks[column] != self.looks[start]:
                found.append(("".join(self.text[start:column]), self.looks[start]))
                start = column
        while found and found[-1][1].back is None and not found[-1][1].reverse and not found[-1][1].underline:
            text, look = found.pop()
            if text := text.rstrip(" "):
                found.append((text, look))
                break
        return found


def _cells(text: str) -> list[str]:
    """Return what stands in each cell: a wide character and an empty cell behind it, marks without a width on the letter before."""
    found: list[str] = []
    for character in text:
        width = cells_of(character)
        if width:
            found += [character] if width == 1 else [character, ""]
        elif found:
            found[-1 if found[-1] else -2] += character
    return found


def _obey(row: _Row, token: re.Match[str]) -> None:
    """Carry out one token of the line."""
    if text := token["text"]:
        row.put(text)
    elif control := token["control"]:
        if control == "\r":
            row.at = 0
        elif control == "\b":
            row.at = max(0, row.at - 1)
        else:
            row.go((row.at // 8 + 1) * 8)
    elif final := token["final"]:
        _obey_sequence(row, final, token["params"])


def _obey_sequence(row: _Row, final: str, params: str) -> None:
    """Carry out a control sequence that stays within the line or sets colours; any other means nothing here."""
    if final == "m":
        row.look = _look(row.look, params)
        return
    count = int(params) if params.isdigit() and len(params) < 6 else 0
    if final == "K":
        first, last = ((row.at, None), (0, row.at + 1), (0, None))[count if count < 3 else 0]
        row.erase(first, last)
    elif final == "G":
        row.go(max(1, count) - 1)
    elif final == "C":
        row.go(row.at + max(1, count))
    elif final == "D":
        row.go(row.at - max(1, count))


_ATTRIBUTES = {
    1: ("bold", True),
    3: ("italic", True),
    4: ("underline", True),
    7: ("reverse", True),
    22: ("bold", False),
    23: ("italic", False),
    24: ("underline", False),
    27: ("reverse", False),
}


@lru_cache(maxsize=2048)
def _look(look: Look, params: str) -> Look:
    """Return `look` after the SGR sequence with these parameters."""
    numbers = [int(part) if part.isdigit() and len(part) < 6 else 0 for part in params.replace(":", ";").split(";")]
    at = 0
    while at < len(numbers):
        number = numbers[at]
        if number == 0:
            look = PLAIN
        elif number in _ATTRIBUTES:
            name, value = _ATTRIBUTES[number]
            look = look._replace(**{name: value})
        elif number in (38, 48):
            colour, used = _extended(numbers[at + 1 :])
            look = look._replace(fore=colour) if number == 38 else look._replace(back=colour)
            at += used
        else:
            look = _palette(look, number)
        at += 1
    return look


def _palette(look: Look, number: int) -> Look:
    """Return `look` with one of the sixteen colours, or the default one again."""
    tens, unit = divmod(number, 10)
    if tens in (3, 9) and unit < 8:
        return look._replace(fore=unit + (8 if tens == 9 else 0))
    if tens in (4, 10) and unit < 8:
        return look._replace(back=unit + (8 if tens == 10 else 0))
    if number == 39:
        return look._replace(fore=None)
    if number == 49:
        return look._replace(back=None)
    return look


def _extended(numbers: list[int]) -> tuple[Colour, int]:
    """Return the colour that stands after 38 or 48, and how many numbers it took."""
    if numbers[:1] == [5] and len(numbers) > 1:
        return min(numbers[1], 255), 2
    if numbers[:1] == [2] and len(numbers) > 3:
        red, green, blue = (min(number, 255) for number in numbers[1:4])
        return (red, green, blue), 4
    return None, len(numbers)


class Emulator:
    """A whole screen, for programs that address it: pyte, loaded when the first one is needed."""

    def __init__(self, columns: int, rows: int) -> None:
        import pyte

        self.screen: pyte.Screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)

    def feed(self, data: bytes) -> None:
        """Take what the program wrote."""
        self._stream.feed(data)

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row of the cursor."""
        return self.screen.cursor.x, self.screen.cursor.y

    def row(self, number: int) -> list[Piece]:
        """Return one row of the screen, at its full width."""
        cells = self.screen.buffer[number]
        found: list[Piece] = []
        for column in range(self.screen.columns):
            cell = cells[column]
            look = Look(_named(cell.fg), _named(cell.bg), cell.bold, cell.italics, cell.underscore, cell.reverse)
            if found and found[-1][1] == look:
                found[-1] = (found[-1][0] + cell.data, look)
            else:
                found.append((cell.data, look))
        return found


_NAMES = ("black", "red", "green", "brown", "blue", "magenta", "cyan", "white")


@lru_cache(maxsize=512)
def _named(name: str) -> Colour:
    """Return pyte's colour name or hexadecimal value as ours; `None` for the default."""
    bright = name.startswith("bright")
    base = name.removeprefix("bright")
    if base in _NAMES:
        return _NAMES.index(base) + (8 if bright else 0)
    try:
        return int(name[0:2], 16), int(name[2:4], 16), int(name[4:6], 16)
    except ValueError:
        return None
