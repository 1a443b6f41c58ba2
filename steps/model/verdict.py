"""The proof: a ladder of rungs, each passed, failed or skipped with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

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


def as_document(rung: Rung, because: str, detail: str) -> dict[str, Any]:
    """Return a rung for the `verify` document: its words in one language, and the phrases for who shows it in another."""
    phrases = {"because": msgspec.to_builtins(rung.because), "detail": msgspec.to_builtins(rung.detail)}
    return {**msgspec.to_builtins(rung), "because": because, "detail": detail, "phrases": phrases}


def from_document(document: Mapping[str, Any]) -> tuple[Rung, ...]:
    """Return the rungs of a `verify` document; raises `msgspec.ValidationError` when it is none."""
    rungs = []
    for shown in document.get("rungs", ()):
        fields = {key: value for key, value in shown.items() if key != "phrases"}
        rungs.append(msgspec.convert({**fields, **shown.get("phrases", {})}, Rung))
    return tuple(rungs)
