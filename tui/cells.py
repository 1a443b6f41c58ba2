"""Text measured in terminal cells: cut, padded and wrapped so that Han characters count two and nothing leaves its column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

CLOSING = frozenset("，。、；：？！）】》」』”’…％,.;:?!)]}%")
"""What never starts a line."""
OPENING = frozenset("（【《「『“‘([{")
"""What never ends a line."""
_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u2028\u2029")


class Span(NamedTuple):
    """A piece of a line: its text, its ink (what it means) and the ground it stands on."""

    text: str
    ink: str = "text"
    ground: str = "page"


Line = tuple[Span, ...]
"""One row of the screen, left to right."""
BLANK: Line = ()


def width(text: str) -> int:
    """Return how many cells `text` takes."""
    return cell_len(text)


def clean(text: str) -> str:
    """Return `text` with everything a terminal would obey (control characters, direction marks) replaced by `?`."""
    if text.isprintable():
        return text
    return "".join("?" if ch < " " or "\x7f" <= ch <= "\x9f" or ch in _BIDI else ch for ch in text.expandtabs(4))


def cut(text: str, cells: int, mark: str = "…") -> str:
    """Return `text` in at most `cells` cells; what is cut off is replaced by `mark`."""
    if cell_len(text) <= cells:
        return text
    if cells <= 0:
        return ""
    room, kept = cells - cell_len(mark), []
    for ch in text:
        room -= cell_len(ch)
        if room < 0:
            break
        kept.append(ch)
    return "".join(kept).rstrip() + mark


def cut_path(path: str, cells: int, mark: str = "…") -> str:
    """Return `path` in at most `cells` cells, cut in its middle so that the file name is kept."""
    if cell_len(path) <= cells:
        return path
    head, _, name = path.rpartition("/")
    room = cells - cell_len(name) - cell_len(mark) - 1
    if room < 2 or not head:
        return cut(path, cells, mark)
    kept = ""
    for ch in head:
        if cell_len(kept + ch) > room:
            break
        kept += ch
    kept = kept[: kept.rfind("/") + 1] or kept
    return f"{kept}{mark}/{name}"


def pad(text: str, cells: int, mark: str = "…") -> str:
    """Return `text` in exactly `cells` cells: cut, or filled with blanks."""
    text = cut(text, cells, mark)
    return text + " " * (cells - cell_len(text))


def _pieces(text: str) -> Iterator[str]:
    """Yield what must not be broken: Latin words, single Han characters with the marks that cling to them, and blanks."""
    piece, clings = "", False
    for ch in text:
        wide = cell_len(ch) == 2
        if ch == " ":
            if piece:
                yield piece
            yield " "
            piece, clings = "", False
        elif ch in CLOSING and piece:
            piece += ch
            clings = clings or wide
        elif piece and (wide or clings) and piece[-1] not in OPENING:
            yield piece
            piece, clings = ch, wide
        else:
            piece += ch
            clings = wide and ch not in OPENING
    if piece:
        yield piece


def _broken(piece: str, cells: int) -> Iterator[str]:
    """Yield `piece` in parts of at most `cells` cells, for words that are longer than a line."""
    part = ""
    for ch in piece:
        if cell_len(part) + cell_len(ch) > cells and part:
            yield part
            part = ""
        part += ch
    if part:
        yield part


def wrap(text: str, cells: int) -> list[str]:
    """Return `text` in lines of at most `cells` cells: Latin words whole, Han anywhere, no closing mark at a line's start."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _pieces(clean(paragraph)):
            if cell_len(line) + cell_len(piece) <= cells:
                line += piece if line or piece != " " else ""
                continue
            if line:
                lines.append(line.rstrip())
                line = ""
            if piece == " ":
                continue
            *full, line = _broken(piece, max(1, cells))
            lines.extend(full)
        lines.append(line.rstrip())
    return lines


# --- lines of spans ---------------------------------------------------------------------------------


def line_width(line: Iterable[Span]) -> int:
    """Return how many cells the line takes."""
    return sum(cell_len(span.text) for span in line)


def fit(line: Sequence[Span], cells: int, *, ground: str | None = None) -> Line:
    """Return `line` in exactly `cells` cells; with `ground`, all of it stands on that ground."""
    out: list[Span] = []
    room = cells
    for span in line:
        taken = cell_len(span.text)
        shown = span.text if taken <= room else cut(span.text, room)
        if shown:
            out.append(Span(shown, span.ink, ground or span.ground))
        room -= cell_len(shown)
        if taken > cell_len(shown) or room <= 0:
            break
    if room > 0:
        out.append(Span(" " * room, "text", ground or "page"))
    return tuple(out)


def beside(left: Sequence[Line], left_cells: int, right: Sequence[Line], rows: int, rule: Sequence[Span]) -> list[Line]:
    """Return `rows` lines: the left column in exactly `left_cells` cells, the rule, the right column."""
    out: list[Line] = []
    for row in range(rows):
        first = left[row] if row < len(left) else BLANK
        second = right[row] if row < len(right) else BLANK
        out.append((*fit(first, left_cells), *rule, *second))
    return out


def plain(line: Iterable[Span]) -> str:
    """Return the line as bare text."""
    return "".join(span.text for span in line)
