"""What the GPUs do at one moment; `None` is a question that the card does not answer."""

from __future__ import annotations

from typing import Literal

from steps.model.base import Record

Slowdown = Literal[
    "hw-thermal", "sw-thermal", "power-brake", "hw-slowdown", "power-cap", "sync-boost", "set-clocks", "display-clocks", "idle"
]
"""Why a card runs below its highest clock, by NVML's reasons."""


class Load(Record):
    """A process that holds a GPU."""

    pid: int
    name: str | None = None
    """What /proc calls it; `None` for a process of another container."""
    bytes: int | None = None
    kind: Literal["compute", "graphics"] = "compute"


class Gauge(Record):
    """One GPU; of one that is lost only what was known before."""

    index: int
    error: int | None = None
    """NVML's code for a card that cannot be asked any more."""
    late: bool = False
    """Whether it has not answered yet: then the rest is its last answer."""
    name: str | None = None
    address: str | None = None
    utilization: int | None = None
    """Percent of the time in which a kernel ran."""
    memory_used: int | None = None
    memory_total: int | None = None
    temperature: int | None = None
    """Degrees Celsius."""
    watts: float | None = None
    limit_watts: float | None = None
    generation: int | None = None
    max_generation: int | None = None
    width: int | None = None
    max_width: int | None = None
    mhz: int | None = None
    max_mhz: int | None = None
    fan_percent: int | None = None
    performance_state: int | None = None
    slowed: tuple[Slowdown, ...] | None = None
    loads: tuple[Load, ...] | None = None


class Gauges(Record):
    """All GPUs that NVML knows; `error` is its code when it does not even start."""

    error: int | None = None
    said: str | None = None
    driver: str | None = None
    cards: tuple[Gauge, ...] = ()
