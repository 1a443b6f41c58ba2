"""Who uses the accelerators now."""

from __future__ import annotations

import msgspec

from steps.detect.probes import Probes
from steps.host.local import USERS
from steps.model.hardware import Accelerator
from steps.model.software import GpuUser

_HELD = ("nvidia", "amdgpu", "habanalabs", "habanalabs_gaudi2")


class _Answer(msgspec.Struct, frozen=True):
    """The answer of our question."""

    partial: bool = False
    users: tuple[GpuUser, ...] = ()


def users(host: Probes, cards: tuple[Accelerator, ...]) -> tuple[GpuUser, ...] | None:
    """Return the processes by number; asked only where a driver holds a card, `None` where nobody asked."""
    if not any(card.kernel_driver in _HELD and not card.integrated for card in cards):
        return None
    told = _answer(host)
    return None if told is None else tuple(sorted(told.users, key=lambda user: user.pid))


def partial(host: Probes, found: tuple[GpuUser, ...] | None) -> bool:
    """Return whether there may be users that we were not allowed to see."""
    told = _answer(host) if found is not None else None
    return told is not None and told.partial


def _answer(host: Probes) -> _Answer | None:
    try:
        return msgspec.json.decode(host.run(USERS).stdout, type=_Answer)
    except (msgspec.DecodeError, UnicodeError):
        return None
