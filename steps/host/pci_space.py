"""Where things stand in the configuration space of a PCI device."""

from __future__ import annotations

_EXTENDED, _WHOLE, _SERIAL_NUMBER = 0x100, 0x1000, 0x03
_MOST_CAPABILITIES = 96


def extended_capability(configuration: bytes, wanted: int) -> int:
    """Return where an extended capability of a PCI device begins; 0 when it is not there or the bytes do not go that far."""
    at = _EXTENDED
    for _ in range(_MOST_CAPABILITIES):
        if at < _EXTENDED or at + 4 > min(len(configuration), _WHOLE):
            return 0
        head = int.from_bytes(configuration[at : at + 4], "little")
        if head & 0xFFFF == wanted:
            return at
        at = head >> 20 & 0xFFC
    return 0


def without_serial(configuration: bytes) -> bytes:
    """Return a device's configuration space with its serial number, often made from a network address, as zeros."""
    at = extended_capability(configuration, _SERIAL_NUMBER)
    if not at:
        return configuration
    return configuration[: at + 4] + bytes(len(configuration[at + 4 : at + 12])) + configuration[at + 12 :]
