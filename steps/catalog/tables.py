"""What tables there are, how many rows they hold and when they were checked."""

from __future__ import annotations

from steps import resources
from steps.catalog import load
from steps.model.base import Record


class Table(Record):
    """One file of `assets/data`; `checked` is the ISO date on which its facts were compiled, `overlay` a user-level addition."""

    name: str
    checked: str | None = None
    rows: int = 0
    overlay: str | None = None


def all_tables() -> tuple[Table, ...]:
    """Return every table that travels with this version, by name."""
    return tuple(_table(file) for file in resources.names("data") if file.endswith((".toml", ".tsv")))


def _table(file: str) -> Table:
    """Return what one file holds."""
    if file.endswith(".tsv"):
        text = resources.read_text("data", file)
        body = [line for line in text.splitlines() if line and not line.startswith("#")]
        return Table(name=file, checked=_checked_in_comment(text), rows=max(0, len(body) - 1))
    document = load.document(file)
    checked = document.get("checked")
    rows = sum(len(value) for value in document.values() if isinstance(value, list))
    return Table(name=file, checked=str(checked) if checked else None, rows=rows)


def _checked_in_comment(text: str) -> str | None:
    """Return the date in a leading `# checked: DATE` line, or `None`."""
    first = text.partition("\n")[0]
    return first.removeprefix("# checked:").strip() if first.startswith("# checked:") else None
