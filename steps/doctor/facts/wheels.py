"""What a framework says that its build lacks for a card, held against what the tables know of that build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from steps.catalog.frameworks import TorchVariant, torch_release, variant_of
from steps.compat.wheels import capability_of, kernels
from steps.doctor.events.python import CardUnfit

if TYPE_CHECKING:
    from steps.doctor.evidence import Evidence


def unfit(seen: Evidence) -> tuple[CardUnfit, ...]:
    """Return what frameworks hold against cards; where one names only its wheel, with the code for the card's major that is in it."""
    return tuple(_held(event, seen.system.architecture) for event in seen.all(CardUnfit))


def _held(event: CardUnfit, architecture: str | None) -> CardUnfit:
    """Return an event with the nearest capability that the named wheel has code for and that runs on the card, where there is one.

    PyTorch compares names of code, and takes a card of a later minor for one without: code for its major runs all the same.
    """
    own, row = event.capability, _variant(event.wheel)
    if own is None or row is None:
        return event
    inside = sorted(map(capability_of, _inside(row, architecture)))
    return msgspec.structs.replace(event, relative=next((one for one in reversed(inside) if one[0] == own[0] and one <= own), None))


def _variant(wheel: str | None) -> TorchVariant | None:
    """Return the row of a wheel by its whole version (`2.13.0+cu130`), or `None`."""
    version, _, name = (wheel or "").partition("+")
    release = torch_release(version)
    return variant_of(release, name or release.default_variant) if release else None


def _inside(row: TorchVariant, architecture: str | None) -> tuple[str, ...]:
    """Return the code in a wheel for this processor; for one that nobody named, what is in either."""
    if architecture is not None:
        return kernels(row, architecture) or ()
    return (*(row.arch or ()), *(row.arch_aarch64 or ()))
