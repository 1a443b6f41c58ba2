"""The screens of MOK Manager, as shim shows them at a boot."""

from __future__ import annotations

from typing import Literal

from steps.catalog import load
from steps.model.base import Record


class MokScreen(Record):
    """One screen: its title and rows are never translated; `keys` says what is pressed."""

    title: str
    rows: tuple[str, ...]
    choose: str | None = None
    keys: Literal["any", "down", "enter", "password"]


@load.remembered
def mok_screens() -> tuple[MokScreen, ...]:
    """Return the screens in their order."""
    return load.rows("mok.toml", "screens", MokScreen)
