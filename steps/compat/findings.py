"""How a rule writes down what it found, and the windows of a card that several rules look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from steps.catalog.stack import Architecture
from steps.catalog.versions import number
from steps.compat.case import Case, Gpu
from steps.model.base import Param, Phrase, Words, phrase
from steps.model.finding import Finding, Patch, Severity

MINOR = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
"""Where the floors of each CUDA major stand."""


Bound = Literal["first", "last"]
"""The end of a window: what a card needs at least, or what still supports it."""


def named(what: str) -> Phrase:
    """Return the fact behind a finding about something that no table has: that it is here, or was asked for."""
    return phrase("general.because.named", what=what)


def beyond(case: Case, version: str, bound: Bound, what: Literal["branch", "cuda"]) -> Iterator[tuple[Gpu, Architecture, str]]:
    """Yield the kinds of cards whose first or last driver branch, or toolkit line, a version lies beyond, with that end."""
    for gpu in case.kinds:
        end: str | None = getattr(gpu.row, f"{bound}_{what}", None)
        if gpu.row and end and (number(version) < number(end) if bound == "first" else number(version) > number(end)):
            yield gpu, gpu.row, end


def driver_finding(
    case: Case,
    code: str,
    severity: Severity,
    because: tuple[Words, ...],
    source: str | None,
    *,
    subject: str = "",
    fix: Patch | None = None,
    **params: Param,
) -> Finding:
    """Return a finding of this step about the driver of the case."""
    return Finding(
        code=code,
        severity=severity,
        step="driver",
        subject=subject or case.driver.title,
        params={"branch": case.driver.branch or "?", **params},
        because=because,
        source=source,
        fix=fix,
    )


def framework_finding(
    code: str,
    severity: Severity,
    because: tuple[Words, ...],
    source: str | None,
    subject: str,
    *,
    fix: Patch | None = None,
    **params: Param,
) -> Finding:
    """Return a finding of the frameworks step."""
    return Finding(code=code, severity=severity, step="frameworks", subject=subject, params=params, because=because, source=source, fix=fix)


def toolkit_finding(
    case: Case,
    code: str,
    severity: Severity,
    because: tuple[Words, ...],
    source: str | None,
    *,
    subject: str,
    **params: Param,
) -> Finding:
    """Return a finding of the toolkit step about the toolkit of the case."""
    return Finding(
        code=code,
        severity=severity,
        step="toolkit",
        subject=subject,
        params={"cuda": case.cuda or "?", **params},
        because=because,
        source=source,
    )
