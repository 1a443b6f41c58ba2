"""One GPU as nvidia-smi tells of it, and its ways of writing numbers, sizes and switches."""

from __future__ import annotations

import re

from steps.detect import power
from steps.model.base import Record
from steps.model.hardware import PcieLink, PowerLimit


class SmiGpu(Record):
    """One GPU; what the answer did not hold is `None`."""

    address: str | None = None
    name: str | None = None
    cut_name: str | None = None
    """The beginning of the name, where the table had to cut it."""
    memory_bytes: int | None = None
    bar1_bytes: int | None = None
    compute_capability: str | None = None
    link: PcieLink = PcieLink()
    ecc: bool | None = None
    mig: bool | None = None
    utilization: int | None = None
    performance_state: str | None = None
    power: PowerLimit | None = None
    fan_percent: int | None = None
    slowed: tuple[str, ...] | None = None


def address(text: str) -> str | None:
    """Return `0000:2b:00.0` for nvidia-smi's `00000000:2B:00.0`, or `None`."""
    found = re.fullmatch(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", text.strip().lower())
    return f"{int(found[1], 16):04x}:{found[2]}:{found[3]}.{found[4]}" if found else None


def mebibytes(text: str | None) -> int | None:
    """Return the bytes of `12288 MiB`, or `None`."""
    found = re.fullmatch(r"(\d+)(?: MiB)?", text or "")
    return int(found[1]) << 20 if found else None


def whole(text: str | None) -> int | None:
    """Return the number that a text begins with, or `None`."""
    found = re.match(r"\d+", text or "")
    return int(found[0]) if found else None


def state(text: str | None) -> str | None:
    """Return a performance state as nvidia-smi spells it (`P8`), or `None`."""
    return text if text and re.fullmatch(r"P\d{1,2}", text) else None


def switch(text: str | None) -> bool | None:
    """Return whether `Enabled` or `Disabled` is said; `None` for anything else."""
    return {"enabled": True, "disabled": False}.get((text or "").lower())


def limit(now: str | None, default: str | None, most: str | None) -> PowerLimit | None:
    """Return a power limit of `300.00 W` and the like; `None` where the present one is not told."""
    numbers = [
        power.watts(float(found[1])) if (found := re.match(r"(\d{1,6}(?:\.\d{1,4})?)(?: W)?$", text or "")) else None
        for text in (now, default, most)
    ]
    return None if numbers[0] is None else PowerLimit(watts=numbers[0], default=numbers[1], most=numbers[2])


def percent(text: str | None) -> int | None:
    """Return the number of `30 %`; `None` for anything else."""
    found = re.match(r"(\d{1,3})(?: ?%)?$", text or "")
    return int(found[1]) if found else None
