"""What PCI configuration space says, as the bytes of sysfs or as lspci prints it."""

from __future__ import annotations

import re

from steps.detect.pci import generation
from steps.host.pci_space import extended_capability
from steps.model.base import Record

_STATUS, _CAPABILITIES = 0x06, 0x34
_EXPRESS, _ACS = 0x10, 0x0D
_LINK_CONTROL_2 = 0x30
_REDIRECT = 0x04
"""ACS control: requests between devices below the port are sent up to the processor."""
_MOST_CAPABILITIES = 96


class Configuration(Record):
    """What only root may see of a device; `None` where the bytes end before it or the device has no such capability."""

    target_generation: int | None = None
    redirects: bool | None = None
    isolation: int | None = None
    """The whole ACS control word."""


def from_bytes(data: bytes) -> Configuration:
    """Return what the bytes of a device's `config` file say; an ordinary user is shown the first 64 only."""
    express = _capability(data, _EXPRESS)
    control = _word(data, express + _LINK_CONTROL_2) if express else None
    target = control & 0xF if control is not None else 0
    acs = extended_capability(data, _ACS)
    switched = _word(data, acs + 6) if acs else None
    return Configuration(
        target_generation=target if 1 <= target <= 6 else None,
        redirects=None if switched is None else bool(switched & _REDIRECT),
        isolation=switched,
    )


def _word(data: bytes, at: int) -> int | None:
    return int.from_bytes(data[at : at + 2], "little") if at + 2 <= len(data) else None


def _capability(data: bytes, wanted: int) -> int:
    """Return where a capability begins; 0 when it is not there. A list that runs in a circle ends."""
    if len(data) <= 64 or not data[_STATUS] & 0x10:
        return 0
    at = data[_CAPABILITIES] & 0xFC
    for _ in range(_MOST_CAPABILITIES):
        if at < 0x40 or at + 2 > len(data):
            return 0
        if data[at] == wanted:
            return at
        at = data[at + 1] & 0xFC
    return 0


_FLAGS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
"""The bits of the ACS control word from the lowest on, as lspci names them."""


def _control(text: str) -> int:
    return sum(1 << place for place, flag in enumerate(_FLAGS) if f"{flag}+" in text)


def from_lspci(text: str) -> dict[str, Configuration]:
    """Return the same by address from `lspci -vv`; what root alone may see is missing from an ordinary user's."""
    found: dict[str, Configuration] = {}
    for block in re.split(r"\n(?=\S)", text):
        head = re.match(r"((?:[0-9a-f]{4,}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ", block)
        target = re.search(r"LnkCtl2: Target Link Speed: ([\d.]+GT/s)", block)
        switches = re.search(r"ACSCtl:((?:[ \t]*\w+[+-])+)", block)
        redirected = re.search(r"ReqRedir([+-])", switches[1]) if switches else None
        if head and (target or redirected):
            address = head[1] if head[1].count(":") == 2 else f"0000:{head[1]}"
            found[address] = Configuration(
                target_generation=generation(target[1]) if target else None,
                redirects=redirected[1] == "+" if redirected else None,
                isolation=_control(switches[1]) if switches else None,
            )
    return found
