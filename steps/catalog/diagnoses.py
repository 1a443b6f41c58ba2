"""The vocabulary of the doctor: every cause, what it resembles, and what follows from it."""

from __future__ import annotations

from typing import Literal

from steps.catalog.load import remembered, rows
from steps.model.base import Record

Severity = Literal["broken", "degraded", "not-a-fault"]
FixClass = Literal[
    "container-repair", "enroll-key", "env-repair", "firmware", "free-space", "hardware", "network", "none", "package-repair",
    "rebuild-module", "reboot", "reinstall-same", "reload-module", "repo-repair", "reset-gpu", "settings", "switch-branch",
    "switch-flavor", "wait",
]  # fmt: skip


class CategoryRow(Record):
    """One category; its words stand in the area `words` of the texts."""

    id: str
    words: str
    probes: tuple[str, ...] = ()
    """The command whose output mostly tells of these causes, where a cause names none of its own."""


class DiagnosisRow(Record):
    """One cause. `explains` are the causes that are mere consequences where this one holds too."""

    id: str
    category: str
    severity: Severity
    fix_class: FixClass
    look_alikes: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    """Popular advice that makes it worse, by its key in the words `doctor.avoid`."""
    probes: tuple[str, ...] = ()
    """The commands whose output would decide, most telling first."""
    source: str | None = None


@remembered
def categories() -> dict[str, CategoryRow]:
    """Return the categories by id."""
    return {row.id: row for row in rows("diagnoses.toml", "category", CategoryRow)}


@remembered
def diagnoses() -> dict[str, DiagnosisRow]:
    """Return every cause by id, in the order of the table."""
    return {row.id: row for row in rows("diagnoses.toml", "diagnosis", DiagnosisRow)}


def probes_of(row: DiagnosisRow) -> tuple[str, ...]:
    """Return the commands whose output would tell of a cause, the one that tells most first."""
    return (*row.probes, *categories()[row.category].probes)


def words(id: str, part: str) -> str:
    """Return the key of one of a diagnosis's texts (`title`, `because`, `sign`)."""
    return f"{categories()[diagnoses()[id].category].words}.{id}.{part}"
