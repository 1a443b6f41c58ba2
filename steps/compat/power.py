"""The rules of power and cooling: a card held below what its maker set, one that slows itself down, a board that saves power."""

from __future__ import annotations

from steps.compat.setting import guest, setting
from steps.detect.measures import short_name
from steps.model.base import Words
from steps.model.finding import Finding
from steps.model.hardware import Accelerator, PowerLimit
from steps.model.machine import Machine, judged

_LOWERED = 0.98
"""A limit below this share of the maker's was set by somebody; the rest is rounding."""
_SAVING = ("low-power", "quiet", "cool")
"""Profiles of the firmware that give up speed, as the kernel spells them."""
_KERNEL = "https://docs.kernel.org/userspace-api/sysfs-platform_profile.html"
_NVIDIA = "https://docs.nvidia.com/deploy/nvidia-smi/index.html"


def lowered(machine: Machine) -> tuple[tuple[Accelerator, PowerLimit, float], ...]:
    """Return the judged cards whose limit lies below their maker's, with both; empty where limits or defaults are not told."""
    told = ((card, card.power, card.power.default) for card in judged(machine) if card.power is not None)
    return tuple((card, limit, default) for card, limit, default in told if default is not None and limit.watts < default * _LOWERED)


def gpu_power_limited(machine: Machine) -> Finding | None:
    """A card may draw less than its maker set: often a wish, for noise or a weak supply, sometimes forgotten."""
    found = lowered(machine)
    if not found or guest(machine):
        return None
    card, limit, default = min(found, key=lambda one: one[1].watts / one[2])
    because: tuple[Words, ...] = (", ".join(f"{one.address}: {held.watts:.0f} W / {maker:.0f} W" for one, held, maker in found[:8]),)
    number = machine.accelerators.index(card)
    subject, now, usual = f"GPU {number} {short_name(card)}", f"{limit.watts:.0f}", f"{default:.0f}"
    return setting("gpu-power-limited", subject, because, "info", _NVIDIA, number=number, now=now, usual=usual)


def gpu_slowed_down(machine: Machine) -> Finding | None:
    """A card's own hardware lowers its clock now: too hot, or the power supply told it to."""
    found = [card for card in judged(machine) if card.slowed]
    if not found or guest(machine):
        return None
    card = found[0]
    because: tuple[Words, ...] = (", ".join(f"{one.address}: {' + '.join(one.slowed)}" for one in found[:8]),)
    number = machine.accelerators.index(card)
    return setting("gpu-slowed-down", f"GPU {number} {short_name(card)}", because, "warning", _NVIDIA, number=number, why=card.slowed[0])


def power_profile_low(machine: Machine) -> Finding | None:
    """The firmware was asked to save power."""
    profile = machine.power.profile
    if profile not in _SAVING or guest(machine):
        return None
    because: tuple[Words, ...] = (f"/sys/firmware/acpi/platform_profile = {profile}",)
    return setting("power-profile-low", str(profile), because, "info", _KERNEL, profile=str(profile))
