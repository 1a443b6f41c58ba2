"""Where a rule is written whose finding names no row of another table."""

from __future__ import annotations

from steps.catalog import load
from steps.model.base import Record


class RuleSource(Record):
    """The finding codes whose rule is written in one place."""

    source: str
    codes: tuple[str, ...]


@load.remembered
def _sources() -> dict[str, str]:
    """Return the place by finding code."""
    return {code: row.source for row in load.rows("rules.toml", "rule", RuleSource) for code in row.codes}


def source_of(code: str) -> str | None:
    """Return where the rule behind a finding code is written; `None` for a code whose findings name their source themselves."""
    return _sources().get(code)
