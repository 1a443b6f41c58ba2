"""Nothing is wrong."""

from __future__ import annotations

from steps.compat.case import Case
from steps.detect.machine import detect
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import LIKELY, WEAK, Answer, found, rule
from steps.doctor.rules.kernel import left_out
from steps.model.profile import Profile


@rule("none")
def nothing(seen: Evidence) -> Answer:
    """The driver answers; any fault goes before this, whatever the tools say."""
    if seen.driver_answers is False:
        return None
    strength = WEAK if seen.driver_answers is None else LIKELY + 0.2
    told = (*seen.versions.loaded[:1], *seen.versions.user[:1])
    apart = left_out(seen)
    if apart is not None:
        said, other, variant = apart
        words = {"card": said.card or "?", "other": other.name or "?", "branch": said.branch, "driver": said.driver or "?"}
        return found(strength, said, other, *told, variant=variant, **words)
    if seen.driver_answers is None and _without_driver(seen):
        return found(strength, *seen.cards.cards[:1], variant="guest" if _slice(seen) else "without")
    return found(strength, *told, variant=_partly(seen))


def _without_driver(seen: Evidence) -> bool:
    """Return whether there is a card and nothing of its driver: that is no fault, and still what a person wants to hear."""
    return bool(seen.cards.cards) and seen.smi.installed is False and not seen.versions.loaded and not seen.packages.driver()


def _partly(seen: Evidence) -> str:
    """Return the variant of the words for a machine of which not all could be seen."""
    return "partly" if seen.unseen else ""


def _slice(seen: Evidence) -> bool:
    """Return whether the card is a slice of one (vGPU), whose driver only its host's provider has."""
    return Case(detect(seen.host.host), Profile()).virtual_gpu
