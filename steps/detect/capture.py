"""Recording a machine: everything that detection reads, redacted, in one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steps.detect.machine import detect
from steps.host.base import Host
from steps.host.recording import RecordingHost


def record(host: Host, about: Mapping[str, Any] | None = None) -> bytes:
    """Return a capture of `host` that gives the same facts when it is read back; `about` is free text for people."""
    recording = RecordingHost(host)
    machine = detect(recording)
    if not host.rehearsal and any(card.vendor == "nvidia" for card in machine.accelerators):
        # People and the doctor read these; detection itself has asked NVML.
        for argv in (("nvidia-smi",), ("nvidia-smi", "-q")):
            recording.run(argv, timeout=15)
    return recording.capture(about or {})
