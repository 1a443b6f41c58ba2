"""What the kernel, modprobe, mokutil and the boot chain say of the keys that sign modules."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class KeyRefused(Event):
    """The kernel refused a module for its signature; `unsigned` when it has none at all."""

    unsigned: bool


@parses(
    r"Loading of (?:unsigned module|module with unavailable key) is rejected|unsigned module loading is restricted|"
    r"signature not signed with a trusted key|Key was rejected by service|Required key not available|"
    r"not signed by a key that is trusted by the kernel|kernel does not trust any key which",
    "unsigned module", "with unavailable key", "with a trusted key", "rejected by service", "Required key not available",
    "not signed by a key", "not trust any key",
    lines=2,
)  # fmt: skip
def key_refused(found: re.Match[str], at: Place) -> KeyRefused:
    """Recognise the kernel, modprobe's words for its two errors, and NVIDIA's installer."""
    return KeyRefused(place=at, unsigned="unsigned" in found[0] or "Required" in found[0])


class MokState(Event):
    """What mokutil says of a key: whether the firmware's list holds it."""

    enrolled: bool
    file: str | None = None


@parses(
    r"(?:(?<!\S)(?P<file>\S+) )?is (?P<state>already enrolled|not enrolled|already in the enrollment request)",
    "is already enrolled", "is not enrolled", "in the enrollment request",
)  # fmt: skip
def mok_state(found: re.Match[str], at: Place) -> MokState:
    """Recognise `mokutil --test-key` and `--import`."""
    return MokState(place=at, enrolled=found["state"] == "already enrolled", file=found["file"])


class MokTrustFailed(Event):
    """The boot chain could not tell the kernel that it may trust the enrolled keys."""


@parses(
    r"(?:[Ff]ailed to|[Cc]ould not|[Cc]ouldn't|[Uu]nable to)[^\n]{0,300}\bMokListTrusted(?:RT)?\b|"
    r"\bMokListTrusted(?:RT)?\b[^\n]{0,120}(?:failed|[Ff]ailure|Error|not set)",
    "MokListTrusted",
)
def trust_failed(found: re.Match[str], at: Place) -> MokTrustFailed:
    """Recognise MokManager and shim."""
    return MokTrustFailed(place=at)
