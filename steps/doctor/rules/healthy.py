"""Nothing is wrong."""

from __future__ import annotations

from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import LIKELY, WEAK, Answer, found, rule
from steps.doctor.rules.kernel import left_out


@rule("none")
def nothing(seen: Evidence) -> Answer:
    """The driver answers; any fault goes before this, whatever the tools say."""
    if seen.driver_answers is False:
        return None
    strength = WEAK if seen.driver_answers is None else LIKELY + 0.2
    told = (*seen.versions.loaded[:1], *seen.versions.user[:1])
    apart = left_out(seen)
    if apart is None:
        return found(strength, *told)
    said, other, variant = apart
    words = {"card": said.card or "?", "other": other.name or "?", "branch": said.branch, "driver": said.driver or "?"}
    return found(strength, said, other, *told, variant=variant, **words)
