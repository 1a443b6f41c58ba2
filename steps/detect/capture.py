"""Recording a machine: everything that detection reads, and what else is looked at and names nobody, redacted, in one file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from steps.detect.machine import detect
from steps.host.base import Host
from steps.host.discreet import Discreet
from steps.host.recording import RecordingHost


def record(host: Host, about: Mapping[str, Any] | None = None, *, more: Callable[[Host], object] | None = None) -> bytes:
    """Return a capture of `host` that gives the same facts when it is read back; `about` is free text for people.

    `more` looks at the machine for another purpose; of what it asks, that is kept which names nobody, until it fails if it does.
    """
    recording = RecordingHost(host)
    machine = detect(recording)
    if not host.rehearsal and any(card.vendor == "nvidia" for card in machine.accelerators):
        # People and the doctor read these; detection itself has asked NVML.
        for argv in (("nvidia-smi",), ("nvidia-smi", "-q")):
            recording.run(argv, timeout=15)
    if more is not None:
        # A fault in the judging of a machine is a reason to hand its capture on, and none to have no capture.
        with contextlib.suppress(Exception):
            more(Discreet(recording))
    return recording.capture(about or {})
