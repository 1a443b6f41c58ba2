"""A small program: asks NVML about the driver and its GPUs, and prints one JSON document.

A process of its own, for a wedged card holds whoever asks: the one who waits for this can stop waiting.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pynvml


def answers(ask: Callable[[], Any]) -> Any:
    """Return what NVML answers, or `None` for any of its errors: one question that fails says nothing about the others."""
    try:
        found = ask()
    except pynvml.NVMLError:
        return None
    return found.decode("utf-8", errors="replace") if isinstance(found, bytes) else found


def card(index: int) -> dict[str, Any]:
    """Return what is known of one GPU; `error` is NVML's code for a card that cannot be asked, or that vanished on the way."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:
        return {"error": code(error)}
    found = _facts(handle)
    try:
        # Asked last: a card that fell off the bus while it was being read has answered nothing since.
        pynvml.nvmlDeviceGetName(handle)
    except pynvml.NVMLError as error:
        if code(error) in GONE:
            return {**found, "error": code(error)}
    return found


GONE = (15, 16, 999)
"""Lost, in need of a reset, and what NVML has no word for."""


def code(error: pynvml.NVMLError) -> int:
    """Return NVML's code of an error; 999 where its class has none."""
    code = getattr(error, "value", None)
    return code if isinstance(code, int) else 999


def _facts(handle: Any) -> dict[str, Any]:
    """Return the answers about one GPU, `None` for each question that it does not answer."""
    memory = answers(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).total)
    place = answers(lambda: pynvml.nvmlDeviceGetPciInfo(handle).busId)
    ecc, mig = answers(lambda: pynvml.nvmlDeviceGetEccMode(handle)), answers(lambda: pynvml.nvmlDeviceGetMigMode(handle))
    state = answers(lambda: pynvml.nvmlDeviceGetPerformanceState(handle))
    reasons = answers(lambda: pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    capability = answers(lambda: pynvml.nvmlDeviceGetCudaComputeCapability(handle))
    link = {
        "generation": answers(lambda: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)),
        "max_generation": answers(lambda: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)),
        "width": answers(lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle)),
        "max_width": answers(lambda: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle)),
    }
    return {
        "error": None,
        "address": place.decode("ascii", errors="replace") if isinstance(place, bytes) else place,
        "name": answers(lambda: pynvml.nvmlDeviceGetName(handle)),
        "memory_bytes": memory,
        "bar1_bytes": answers(lambda: pynvml.nvmlDeviceGetBAR1MemoryInfo(handle).bar1Total),
        "compute_capability": f"{capability[0]}.{capability[1]}" if capability else None,
        "link": {name: value or None for name, value in link.items()},
        "ecc": bool(ecc[0]) if ecc else None,
        "mig": bool(mig[0]) if mig else None,
        "utilization": answers(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        # 32 stands for a state that NVML does not know.
        "performance_state": f"P{state}" if state is not None and state < 16 else None,
        "power": _power(handle),
        "fan_percent": answers(lambda: pynvml.nvmlDeviceGetFanSpeed(handle)),
        "slowed": None if reasons is None else [name for name, bit in _SLOWED.items() if reasons & bit],
    }


_SLOWED = {"thermal": 0x40, "power-brake": 0x80}
"""NVML's bits for a slow-down by the hardware itself."""


def _power(handle: Any) -> dict[str, float | None] | None:
    """Return the power limit in watts, of NVML's milliwatts; `None` for a card that has none."""
    now = answers(lambda: pynvml.nvmlDeviceGetPowerManagementLimit(handle))
    default = answers(lambda: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle))
    bounds = answers(lambda: pynvml.nvmlDeviceGetPowerManagementLimitConstraints(handle))
    if not now:
        return None
    return {"watts": now / 1000, "default": default / 1000 if default else None, "most": bounds[1] / 1000 if bounds else None}


def document() -> dict[str, Any]:
    """Return the whole answer; `error` is NVML's code when it does not even start."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"error": code(error), "said": str(error)}
    try:
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        return {"error": code(error), "said": str(error)}
    return {
        "error": None,
        "driver": answers(pynvml.nvmlSystemGetDriverVersion),
        "library": answers(pynvml.nvmlSystemGetNVMLVersion),
        "cuda": answers(pynvml.nvmlSystemGetCudaDriverVersion_v2),
        "gpus": [card(index) for index in range(count)],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document()) + "\n")
