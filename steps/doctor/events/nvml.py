"""What NVML and nvidia-smi say when they cannot answer, in the words of any program that passes them on."""

from __future__ import annotations

import re
from typing import Literal

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place

NvmlTrouble = Literal[
    "mismatch",
    "no-driver",
    "no-devices",
    "no-permission",
    "unknown-error",
    "function-not-found",
    "library-not-found",
    "blocked-by-os",
    "no-handle",
    "lost",
    "timeout",
]


class NvmlError(Event):
    """NVML failed; `library` is its own version, which leaves the third component out."""

    trouble: NvmlTrouble
    library: str | None = None


_WORDS: tuple[tuple[str, NvmlTrouble], ...] = (
    ("driver/library version mismatch", "mismatch"),
    ("communicate with the nvidia driver", "no-driver"),
    ("driver not loaded", "no-driver"),
    ("driver is not loaded", "no-driver"),
    ("no devices were found", "no-devices"),
    ("insufficient permissions", "no-permission"),
    ("unknown error", "unknown-error"),
    ("function not found", "function-not-found"),
    ("mismatch in versions between nvidia-smi and nvml", "function-not-found"),
    ("could not load nvml library", "library-not-found"),
    ("libnvidia-ml.so.1: cannot open shared object file", "library-not-found"),
    ("shared library not found", "library-not-found"),
    ("couldn't find libnvidia-ml.so", "library-not-found"),
    ("gpu access blocked by the operating system", "blocked-by-os"),
    ("unable to determine the device handle", "no-handle"),
    ("gpu is lost", "lost"),
    ("driver rpc error: timed out", "timeout"),
)


_NAMED: dict[str, NvmlTrouble] = {
    "LIB_RM_VERSION_MISMATCH": "mismatch",
    "DRIVER_NOT_LOADED": "no-driver",
    "LIBRARY_NOT_FOUND": "library-not-found",
    "NO_PERMISSION": "no-permission",
    "FUNCTION_NOT_FOUND": "function-not-found",
    "OPERATING_SYSTEM": "blocked-by-os",
    "GPU_IS_LOST": "lost",
    "UNKNOWN": "unknown-error",
}
"""NVML's own names of its errors, which programs in Go and C print in place of words."""


@parses(
    rf"\bNVML_ERROR_(?P<c>{'|'.join(_NAMED)})\b|\b(?:NVML|nvml)\b[^\n]{{0,80}}?\bERROR_(?P<go>{'|'.join(_NAMED)})\b|"
    r"\bERROR_(?P<alone>LIB_RM_VERSION_MISMATCH)\b",
    "NVML_ERROR_", " ERROR_LIB_RM_VERSION", " ERROR_DRIVER_NOT_LOADED", " ERROR_LIBRARY_NOT_FOUND", " ERROR_NO_PERMISSION",
    " ERROR_FUNCTION_NOT", " ERROR_OPERATING_SYSTEM", " ERROR_GPU_IS_LOST", ": ERROR_UNKNOWN",
)  # fmt: skip
def nvml_error_by_name(found: re.Match[str], at: Place) -> NvmlError:
    """Recognise the names, where the line speaks of NVML."""
    return NvmlError(place=at, trouble=_NAMED[found["c"] or found["go"] or found["alone"]])


@parses(
    r"(?:driver/library version mismatch|Mismatch in versions between nvidia-smi and NVML|"
    r"could(?:n't| not) communicate with the NVIDIA driver|No devices were found|GPU is lost|"
    r"driver rpc error: timed out|GPU access blocked by the operating system|Unable to determine the device handle|"
    r"libnvidia-ml\.so\.1: cannot open shared object file|couldn't find libnvidia-ml\.so|"
    r"(?:NVML|nvml)\b.{0,60}?"
    r"(?:Insufficient Permissions|Unknown Error|Function Not Found|Shared Library Not Found|Driver (?:is )?Not Loaded)|"
    r"Insufficient Permissions)"
    r"(?:.{0,120}?NVML library version: (?P<library>[\d.]+))?",
    "ersion mismatch", "Mismatch in versions", "communicate with the NVIDIA driver", "No devices were found", "GPU is lost", "rpc error",
    "blocked by the operating", "determine the device handle", "libnvidia-ml.so.1", "find libnvidia-ml", "NVML", "nvml",
    "Insufficient Permissions", "nsufficient permissions",
    lines=4,
    flags=re.IGNORECASE | re.DOTALL,
)  # fmt: skip
def nvml_error(found: re.Match[str], at: Place) -> NvmlError | None:
    """Recognise the trouble in whatever a program wraps it."""
    text = " ".join(found[0].lower().split())
    return next((NvmlError(place=at, trouble=trouble, library=found["library"]) for words, trouble in _WORDS if words in text), None)
