"""A small program: says what the GPUs do now, one JSON line for each line that it is asked with, until nobody asks any more.

A process of its own, for a wedged card holds whoever asks it; in it a thread for each card, so that one does not hold the others.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pynvml

from steps.host.nvml import GONE, answers, code

PATIENCE = 0.4
"""Seconds that a card may take; one that takes longer is said to be late, with its last answer."""
_MOST_PROCESSES = 64
_UNKNOWN_STATE = 32
_SLOWDOWNS = {
    "hw-thermal": pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "sw-thermal": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown,
    "power-brake": pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    "hw-slowdown": pynvml.nvmlClocksThrottleReasonHwSlowdown,
    "power-cap": pynvml.nvmlClocksThrottleReasonSwPowerCap,
    "sync-boost": pynvml.nvmlClocksThrottleReasonSyncBoost,
    "set-clocks": pynvml.nvmlClocksThrottleReasonApplicationsClocksSetting,
    "display-clocks": pynvml.nvmlClocksThrottleReasonDisplayClockSetting,
    "idle": pynvml.nvmlClocksThrottleReasonGpuIdle,
}


class Card(threading.Thread):
    """One GPU and the thread that asks it."""

    def __init__(self, index: int) -> None:
        super().__init__(daemon=True)
        self._fixed: dict[str, Any] = {"index": index}
        self._found: dict[str, Any] = self._fixed
        self._handle: Any = None
        self._turns: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._done = threading.Event()
        self._done.set()

    def run(self) -> None:
        """Ask the card whenever that is wanted."""
        while True:
            self._turns.get()
            self._found = self._look()
            self._done.set()

    def ask(self) -> None:
        """Want a new answer, unless one is still awaited."""
        if self._done.is_set():
            self._done.clear()
            self._turns.put(None)

    def told(self, deadline: float) -> dict[str, Any]:
        """Return the newest answer there is at `deadline`."""
        on_time = self._done.wait(max(0.0, deadline - time.monotonic()))
        return {**self._found, "late": not on_time}

    def _look(self) -> dict[str, Any]:
        """Return what the card says now; of one that is gone, its name and NVML's code for why."""
        try:
            if self._handle is None:
                handle = pynvml.nvmlDeviceGetHandleByIndex(self._fixed["index"])
                self._fixed.update(fixed(handle))
                self._handle = handle
        except pynvml.NVMLError as error:
            return {**self._fixed, "error": code(error)}
        found = {**self._fixed, **now(self._handle)}
        try:
            # Asked last: a card that fell off the bus while it was being read has answered nothing since.
            pynvml.nvmlDeviceGetName(self._handle)
        except pynvml.NVMLError as error:
            if code(error) in GONE:
                return {**self._fixed, "error": code(error)}
        return found


def fixed(handle: Any) -> dict[str, Any]:
    """Return what does not change."""
    place = answers(lambda: pynvml.nvmlDeviceGetPciInfo(handle).busId)
    return {
        "name": answers(lambda: pynvml.nvmlDeviceGetName(handle)),
        "address": place.decode("ascii", errors="replace") if isinstance(place, bytes) else place,
        "max_generation": answers(lambda: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)) or None,
        "max_width": answers(lambda: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle)) or None,
        "max_mhz": answers(lambda: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)),
    }


def now(handle: Any) -> dict[str, Any]:
    """Return what changes all the time."""
    memory = answers(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle))
    watts = answers(lambda: pynvml.nvmlDeviceGetPowerUsage(handle))
    limit = answers(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle))
    state = answers(lambda: pynvml.nvmlDeviceGetPerformanceState(handle))
    reasons = answers(lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    return {
        "utilization": answers(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        "memory_used": None if memory is None else memory.used,
        "memory_total": None if memory is None else memory.total,
        "temperature": answers(lambda: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
        "watts": None if watts is None else watts / 1000,
        "limit_watts": None if limit is None else limit / 1000,
        "generation": answers(lambda: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)) or None,
        "width": answers(lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle)) or None,
        "mhz": answers(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        "fan_percent": answers(lambda: pynvml.nvmlDeviceGetFanSpeed(handle)),
        "performance_state": state if state is not None and state < _UNKNOWN_STATE else None,
        "slowed": None if reasons is None else [name for name, bit in _SLOWDOWNS.items() if reasons & bit],
        "loads": loads(handle),
    }


def loads(handle: Any) -> list[dict[str, Any]] | None:
    """Return the processes on a card, the largest first; `None` where NVML does not tell."""
    computing = answers(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    drawing = answers(lambda: pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle))
    if computing is None and drawing is None:
        return None
    found = {one.pid: ("graphics", one.usedGpuMemory) for one in drawing or ()}
    found |= {one.pid: ("compute", one.usedGpuMemory) for one in computing or ()}
    ordered = sorted(found.items(), key=lambda one: -(one[1][1] or 0))[:_MOST_PROCESSES]
    return [{"pid": pid, "name": name_of(pid), "bytes": size, "kind": kind} for pid, (kind, size) in ordered]


def name_of(pid: int) -> str | None:
    """Return what /proc calls a process; `None` when it is not seen from here."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


class Driver:
    """NVML with its cards; started again at each turn until it starts."""

    def __init__(self) -> None:
        self._cards: tuple[Card, ...] | None = None
        self._version: str | None = None

    def turn(self) -> dict[str, Any]:
        """Return one whole answer."""
        if self._cards is None:
            try:
                pynvml.nvmlInit()
                count = pynvml.nvmlDeviceGetCount()
            except pynvml.NVMLError as error:
                return {"error": code(error), "said": str(error)}
            self._version = answers(pynvml.nvmlSystemGetDriverVersion)
            self._cards = tuple(Card(index) for index in range(count))
            for card in self._cards:
                card.start()
        for card in self._cards:
            card.ask()
        deadline = time.monotonic() + PATIENCE
        return {"driver": self._version, "cards": [card.told(deadline) for card in self._cards]}


def main() -> None:
    """Answer until standard input ends."""
    driver = Driver()
    for _ in sys.stdin:
        sys.stdout.write(json.dumps(driver.turn()) + "\n")
        sys.stdout.flush()
    # A thread that hangs in a driver must not hold the end.
    os._exit(0)


if __name__ == "__main__":
    main()
