"""The shape of what the NCCL rules say."""

from __future__ import annotations

from steps.model.base import Param, Words
from steps.model.finding import Finding, Patch, Severity


def said(
    code: str,
    subject: str,
    because: tuple[Words, ...],
    severity: Severity,
    *,
    fix: Patch | None = None,
    source: str | None = None,
    **params: Param,
) -> Finding:
    """Return a finding of the NCCL step."""
    return Finding(code=code, severity=severity, step="nccl", subject=subject, params=params, because=because, fix=fix, source=source)
