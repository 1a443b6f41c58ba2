"""How a rule of the BIOS checklist writes down what it found, and where it must be silent."""

from __future__ import annotations

from collections.abc import Callable

from steps.model.base import Param, Words
from steps.model.finding import Finding, Severity
from steps.model.machine import Machine

Rule = Callable[[Machine], "Finding | None"]


def setting(
    code: str, subject: str, because: tuple[Words, ...], severity: Severity = "warning", source: str | None = None, **params: Param
) -> Finding:
    """Return a finding of the firmware step."""
    return Finding(code=code, severity=severity, step="firmware", subject=subject, params=params, because=because, source=source)


def guest(machine: Machine) -> bool:
    """Whether the firmware is a hypervisor's: nothing can be set there."""
    return machine.os.virtualization not in (None, "none") or machine.os.wsl is True
