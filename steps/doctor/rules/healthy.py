"""Nothing is wrong."""

from __future__ import annotations

from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import LIKELY, WEAK, Answer, found, rule


@rule("none")
def nothing(seen: Evidence) -> Answer:
    """The driver answers; any fault goes before this, whatever the tools say."""
    if seen.driver_answers is False:
        return None
    if seen.driver_answers is None:
        return found(WEAK)
    return found(LIKELY + 0.2, *seen.versions.loaded[:1], *seen.versions.user[:1])
