"""The bytes of one frame: cells, erases and scrolls, in as few as the terminal's place and look of the moment allow."""

from __future__ import annotations

from functools import lru_cache

Cell = tuple[str, str]
"""A character and its SGR numbers; the second cell of a wide character is empty."""
Row = list[Cell]
_SEEN_ON_BLANKS = frozenset(("4", "7", "9", "21", "53"))
"""SGR numbers that are seen on a blank: underlines, reverse, strike, overline."""


@lru_cache(maxsize=4096)
def unsure(letter: str) -> bool:
    """Return whether terminals do not agree about the width of a character: emoji, joined letters, rare scripts."""
    if len(letter) != 1:
        return bool(letter)
    code = ord(letter)
    return not any(first <= code <= last for first, last in _SURE)


_SURE = (
    (0x20, 0x7E), (0xA1, 0xAC), (0xAE, 0x24F), (0x370, 0x3FF), (0x400, 0x45F), (0x2010, 0x2027), (0x2030, 0x205E), (0x2190, 0x21FF),
    (0x2500, 0x25FF), (0x2713, 0x2717), (0x3001, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF01, 0xFF60),
)  # fmt: skip


class Frame:
    """The bytes of a frame, with the place and the look that the terminal has after them."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._place: tuple[int, int] | None = None
        self._look: str | None = None

    def go(self, y: int, x: int) -> None:
        """Move the cursor, in as few bytes as possible."""
        if self._place == (y, x):
            return
        if self._place is not None and self._place[0] == y and self._place[1] < x:
            by = x - self._place[1]
            self.sent.append("\x1b[C" if by == 1 else f"\x1b[{by}C")
        else:
            self.sent.append((f"\x1b[{y + 1}H" if y else "\x1b[H") if not x else f"\x1b[{y + 1};{x + 1}H")
        self._place = (y, x)

    def lose_place(self) -> None:
        """Take note that the cursor stands where terminals differ: behind the last column."""
        self._place = None

    def put(self, y: int, x: int, cells: Row) -> None:
        """Write cells; the place is given anew behind a character whose width is unsure."""
        for at, (letter, look) in enumerate(cells, x):
            if not letter:
                continue
            self.go(y, at)
            if letter != " " or self._look is None or not _serves(self._look, look):
                self._turn(look)
            self.sent.append(letter)
            wide = at + 1 - x < len(cells) and not cells[at + 1 - x][0]
            self._place = None if unsure(letter) else (y, at + (2 if wide else 1))

    def erase(self, y: int, x: int, look: str) -> None:
        """Make a row blank from a column on."""
        self.go(y, x)
        if self._look is None or not _serves(self._look, look):
            self._turn(look)
        self.sent.append("\x1b[K")

    def clear(self) -> None:
        """Make the whole screen blank."""
        self._turn("")
        self.sent.append("\x1b[r\x1b[2J")

    def scroll(self, first: int, last: int, by: int) -> None:
        """Move the rows of a region up, or down where `by` is negative: by line feeds, which every terminal has known since the VT100."""
        self._turn("")
        ends = (f"\x1b[{last + 1}H", "\n" * by) if by > 0 else (f"\x1b[{first + 1}H", "\x1bM" * -by)
        self.sent += [f"\x1b[{first + 1};{last + 1}r", *ends, "\x1b[r"]
        self._place = None

    def _turn(self, look: str) -> None:
        """Change the look, in as few bytes as possible."""
        if look != self._look:
            self.sent.append("\x1b[m" if not look else f"\x1b[0;{look}m" if self._look is None else _turned(self._look, look))
            self._look = look


@lru_cache(maxsize=4096)
def _serves(look: str, blank: str) -> bool:
    """Return whether a blank looks alike in both: on the same ground, and nothing of the ink is seen."""
    here, there = _parts(look), _parts(blank)
    return here[2] == there[2] and not (here[0] | there[0]) & _SEEN_ON_BLANKS


@lru_cache(maxsize=4096)
def _turned(before: str, after: str) -> str:
    """Return the sequence from one look to another: only what changes, unless something has to be switched off."""
    old, new = _parts(before), _parts(after)
    if old[0] - new[0]:
        return f"\x1b[0;{after}m"
    changes = sorted(new[0] - old[0])
    changes += [there or none for here, there, none in ((old[1], new[1], "39"), (old[2], new[2], "49")) if here != there]
    short = f"\x1b[{';'.join(changes)}m"
    return min(short, f"\x1b[0;{after}m", key=len)


def _parts(look: str) -> tuple[frozenset[str], str, str]:
    """Return the attributes of a look, its foreground and its background; "" for the default."""
    numbers = look.split(";") if look else []
    attributes, colours = set[str](), {"fore": "", "back": ""}
    at = 0
    while at < len(numbers):
        number = numbers[at]
        count = 1
        if number in ("38", "48"):
            count = 5 if numbers[at + 1] == "2" else 3
        whole = ";".join(numbers[at : at + count])
        if number == "38" or (number.isdigit() and (30 <= int(number) <= 37 or 90 <= int(number) <= 97)):
            colours["fore"] = whole
        elif number == "48" or (number.isdigit() and (40 <= int(number) <= 47 or 100 <= int(number) <= 107)):
            colours["back"] = whole
        elif number not in ("39", "49"):
            attributes.add(whole)
        at += count
    return frozenset(attributes), colours["fore"], colours["back"]
