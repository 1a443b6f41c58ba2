"""What tables there are, how many rows they hold and when they were checked."""

from __future__ import annotations

from collections.abc import Mapping

from steps import resources
from steps.catalog import load
from steps.catalog.overlay import DriversFile, File
from steps.model.base import Record


class Table(Record):
    """One file of `assets/data`; `checked` is the ISO date of its facts, `overlay` the user-level file that lies over it."""

    name: str
    checked: str | None = None
    rows: int = 0
    overlay: str | None = None


class Laid(Record):
    """One file of an overlay that counts, and where it lies."""

    path: str
    file: File


def all_tables(laid: Mapping[str, Laid] | None = None) -> tuple[Table, ...]:
    """Return every table that travels with this version, by name, with what lies over it."""
    over = laid or {}
    return tuple(_table(name, over.get(name)) for name in resources.names("data") if name.endswith((".toml", ".tsv")))


def _table(name: str, over: Laid | None) -> Table:
    """Return what one file holds."""
    if name.endswith(".tsv"):
        text = resources.read_text("data", name)
        body = [line for line in text.splitlines() if line and not line.startswith("#")]
        return Table(name=name, checked=_checked_in_comment(text), rows=max(0, len(body) - 1))
    document = load.document(name)
    checked = str(document["checked"]) if document.get("checked") else None
    rows = sum(len(value) for value in document.values() if isinstance(value, list))
    if over is None:
        return Table(name=name, checked=checked, rows=rows)
    if not isinstance(over.file, DriversFile):
        # An index says when releases came, not when a branch ends or what a card needs: those facts stay as old as they are.
        known = {str(row.get("version")) for row in document.get("release", ())}
        rows += sum(row.version not in known for row in over.file.release)
        checked = max(checked or "", over.file.checked)
    return Table(name=name, checked=checked, rows=rows, overlay=over.path)


def _checked_in_comment(text: str) -> str | None:
    """Return the date in a leading `# checked: DATE` line, or `None`."""
    first = text.partition("\n")[0]
    return first.removeprefix("# checked:").strip() if first.startswith("# checked:") else None
