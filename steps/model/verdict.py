"""The proof: a ladder of rungs, each passed, failed or skipped with its reason."""

from __future__ import annotations

from typing import Literal

from steps.model.base import Record, Words


class Rung(Record):
    """One thing that was tried for real."""

    id: str
    """The words are `verify.rung.<id>`."""
    state: Literal["passed", "failed", "skipped"]
    because: Words = ""
    """Why it failed or was skipped, or what was seen."""
    detail: Words = ""
    """The short middle column: a version, a count (`4 GPUs`), a measure (`9.6 GB/s`)."""
    value: float | None = None
    unit: str | None = None
    expected: float | None = None
