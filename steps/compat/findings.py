"""How a rule writes down what it found about a driver."""

from __future__ import annotations

from steps.compat.case import Case
from steps.model.base import Param, Words
from steps.model.finding import Finding, Patch, Severity

MINOR = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"
"""Where the floors of each CUDA major stand."""


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
