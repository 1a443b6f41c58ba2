"""What NVIDIA's driver says of itself: by NVML where it answers, else by nvidia-smi."""

from __future__ import annotations

import msgspec

from steps.detect.probes import Probes
from steps.detect.smi import Smi, Trouble, merged, smi
from steps.detect.smi_values import SmiGpu, address
from steps.host.base import Result
from steps.host.local import NO_ANSWER, NVML

_NVML_TROUBLES: dict[int, Trouble] = {4: "no-permission", 9: "no-driver", 17: "no-permission", 18: "mismatch"}
"""NVML's codes for what a driver may suffer from; every other one is a failing driver."""
_NOT_ASKED = (12, 13)
"""The library is not there, or older than the question."""


SECONDS = 15
"""For how long the driver is waited for: many cards that nobody keeps awake take most of it."""


def ahead(host: Probes) -> None:
    """Start the question: on many cards, or without persistence, it takes seconds."""
    host.ahead(NVML, timeout=SECONDS)


def driver_says(host: Probes) -> Smi:
    """Return one answer out of all; nvidia-smi is spared where NVML told everything, or hangs on the same card."""
    found = from_nvml(host.run(NVML, timeout=SECONDS))
    if found.hangs or (found.gpus and found.trouble is None):
        return found
    return merged(smi(host), found)


class _NvmlCard(SmiGpu, forbid_unknown_fields=False):
    """One GPU as our program prints it; one that could not be asked has NVML's code for why."""

    error: int | None = None


class _Nvml(msgspec.Struct, frozen=True):
    """The answer of our program."""

    error: int | None = None
    said: str | None = None
    driver: str | None = None
    library: str | None = None
    cuda: int | None = None
    gpus: tuple[_NvmlCard, ...] = ()


def from_nvml(result: Result) -> Smi:
    """Return what NVML says; nothing when it was not asked or its library is not there."""
    if NO_ANSWER in result.stderr:
        return Smi(installed=True, hangs=True)
    try:
        told = msgspec.json.decode(result.stdout, type=_Nvml)
    except (msgspec.DecodeError, UnicodeError):
        return Smi()
    if told.error is not None:
        return Smi() if told.error in _NOT_ASKED else Smi(installed=True, trouble=_NVML_TROUBLES.get(told.error, "failing"), said=told.said)
    lost = [card for card in told.gpus if card.error is not None]
    return Smi(
        installed=True,
        trouble="failing" if lost else None if told.gpus else "no-devices",
        driver_version=told.driver,
        cuda_version=f"{told.cuda // 1000}.{told.cuda % 1000 // 10}" if told.cuda else None,
        gpus=tuple(_nvml_card(card) for card in told.gpus if card.error is None),
    )


def _nvml_card(card: _NvmlCard) -> SmiGpu:
    fields = {field: getattr(card, field) for field in SmiGpu.__struct_fields__}
    return SmiGpu(**{**fields, "address": address(card.address or "")})
