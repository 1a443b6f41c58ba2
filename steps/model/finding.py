"""A finding: one thing that is true of a machine or of a choice, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steps.model.base import Param, Record, Words

Severity = Literal["error", "warning", "info", "ok"]
StepKey = Literal["hardware", "firmware", "driver", "toolkit", "nccl", "frameworks", "monitoring", "verify"]

Value = str | bool | tuple[str, ...] | Mapping[str, str] | None
"""One answer: what a key of the profile may hold; `None` takes the key out."""
Patch = Mapping[str, Value]
"""Answers by dotted profile key (`driver.flavor`): what a fix or an option changes."""


class Finding(Record):
    """What a rule found, as a code with parameters.

    The words are `finding.<code>.{tag,sentence,why,remedy}` in `assets/i18n`, filled from `params` and `subject`.
    """

    code: str
    severity: Severity
    step: StepKey
    subject: str = ""
    """What it is about, in names that are never translated: `driver 575 (proprietary) × GB202`."""
    params: Mapping[str, Param] = {}
    because: tuple[Words, ...] = ()
    """The facts it was derived from, the first cause first."""
    source: str | None = None
    """Where the rule is written: a URL or the name of a document; `None` where the code alone tells (`catalog/rules.py`)."""
    fix: Patch | None = None
    """The change of answers that removes it, if answers can."""
