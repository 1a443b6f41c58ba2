"""The proof: a ladder of rungs, each passed, failed or skipped with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from steps.model.base import Phrase, Record, Words


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


PACKAGES = "packages"
"""The rung of the package database: it says that nothing is half done, and nothing of what was promised."""
Reach = Literal["failed", "nothing", "mounted", "proven"]
"""A rung broke · nothing of the stack could be tried · what does not run cannot show more · all that was tried held."""


def reach(rungs: Iterable[Rung]) -> Reach:
    """Return how much was proven."""
    listed = tuple(rungs)
    if any(one.state == "failed" for one in listed):
        return "failed"
    if not any(one.state == "passed" and one.id != PACKAGES for one in listed):
        return "nothing"
    mounted = any(isinstance(one.because, Phrase) and one.because.key == "verify.because.mounted" for one in listed)
    return "mounted" if mounted else "proven"


def gpus_in(rungs: Iterable[Rung]) -> int:
    """Return how many GPUs a proof saw; 0 where it saw none, or none was asked for."""
    return max((int(one.value) for one in rungs if one.unit == "GPUs" and one.value is not None), default=0)


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
