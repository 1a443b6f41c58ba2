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
    detect(recording)
    return recording.capture(about or {})
