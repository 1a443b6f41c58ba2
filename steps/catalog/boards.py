"""The boards' menus, as records: where a BIOS keeps its switches, by vendor, family of boards and platform."""

from __future__ import annotations

from steps.catalog.load import rows
from steps.model.base import Record


class Board(Record):
    """One family of a vendor's boards and how its BIOS is entered."""

    vendor: str
    family: str
    matches: tuple[str, ...]
    """Beginnings of the DMI names, in lower case."""
    names: tuple[str, ...] = ()
    """Beginnings of words in the DMI names, one of which must be there; empty for a family that takes what is left."""
    laptop: bool = False
    setup_key: str
    source: str

    def fits(self, said: tuple[str, ...], portable: bool) -> bool:
        """Return whether a machine with these DMI names, in lower case, is of this family."""
        named = not self.names or any(f" {part}" in f" {name}" for name in said for part in self.names)
        return self.laptop is portable and named and any(name.startswith(self.matches) for name in said)


class Menu(Record):
    """Where one family keeps a switch."""

    vendor: str
    families: tuple[str, ...] = ()
    """Empty: the source makes no difference between this vendor's families."""
    platform: str | None = None
    """Whose processors the menu belongs to (`amd`, `intel`); `None` where the source makes no difference."""
    items: tuple[str, ...]
    seen: str = ""
    """The boards that the path was seen on; "" where the source speaks of the vendor's boards in general."""
    path: str
    entry: str
    by_eye: bool = False
    """Whether the source is not the vendor's own: what the menu is called may differ."""
    source: str


def board(names: tuple[str, ...], *, portable: bool) -> Board | None:
    """Return the family that the DMI names fit first; `None` when it is not in the table."""
    said = tuple(name.strip().lower() for name in names)
    return next((row for row in rows("boards.toml", "board", Board) if row.fits(said, portable)), None)


def menus(of: Board, item: str, platform: str | None) -> tuple[Menu, ...]:
    """Return where a family keeps a switch, the vendor's own word first; with an unknown processor, the paths of both platforms."""
    found = tuple(
        row
        for row in rows("boards.toml", "menu", Menu)
        if row.vendor == of.vendor
        and item in row.items
        and (not row.families or of.family in row.families)
        and (row.platform is None or platform is None or row.platform == platform)
    )
    official = {(row.path, row.entry) for row in found if not row.by_eye}
    return (*(row for row in found if not row.by_eye), *(row for row in found if row.by_eye and (row.path, row.entry) not in official))


def families() -> tuple[Board, ...]:
    """Return every family of boards in the table, in its order."""
    return rows("boards.toml", "board", Board)
