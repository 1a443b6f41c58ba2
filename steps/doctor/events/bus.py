"""What the kernel says of the PCI bus, and of who drives a card on it."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place

_ADDRESS = r"(?P<address>(?:[0-9a-f]{4,}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"


class BootFirmwareFailed(Event):
    """The card's own firmware did not come to its end."""


@parses(
    r"[Ff]ailed to wait for GFW[_ ](?:BOOT|boot)|GFW[_ ](?:BOOT|boot)[^\n]*(?:timed? ?out|fail|not complete)|"
    r"[Tt]imed? ?out[^\n]*GFW[_ ](?:BOOT|boot)",
    "GFW_BOOT",
    "GFW boot",
)
def boot_firmware_failed(found: re.Match[str], at: Place) -> BootFirmwareFailed:
    """Recognise every wording of the driver's wait."""
    return BootFirmwareFailed(place=at)


class WindowFailed(Event):
    """A device or a bridge got no addresses for one of its windows; `rom` for its expansion ROM."""

    address: str
    window: int | None
    size: int | None
    rom: bool = False
    io: bool = False


@parses(
    rf"(?P<driver>[\w-]+) {_ADDRESS}: (?P<window>BAR \d+|bridge window|ROM|VF BAR \d+)?[^\n]{{0,80}}?"
    r"(?P<range>\[(?:mem|io)[^\n]{0,200}?)?(?:(?:: )?no space for|(?:: )?failed to assign|can't assign; no space)(?P<rest>[^\n]*)",
    "no space for", "failed to assign", "; no space",
)  # fmt: skip
def window_failed(found: re.Match[str], at: Place) -> WindowFailed:
    """Recognise the kernel before and after 6.8."""
    number = re.search(r"BAR (\d+)", found[0])
    size = re.search(r"size 0x([0-9a-f]+)", found[0])
    rom = " ROM" in found[0] or (number is not None and number[1] == "6" and "pref" in found[0])
    return WindowFailed(
        place=at, address=found["address"], window=int(number[1]) if number else None, size=int(size[1], 16) if size else None, rom=rom,
        io="[io" in found[0],
    )  # fmt: skip


class WindowAssigned(Event):
    """A device or a bridge got addresses for a window; the kernel tries more than once, and its last word counts."""

    address: str
    window: int | None


@parses(
    rf"{_ADDRESS}: (?:BAR (?P<number>\d+)|bridge window)(?:: assigned \[mem| \[mem[^\n\]]{{0,80}}\]: assigned)",
    ": assigned",
)
def window_assigned(found: re.Match[str], at: Place) -> WindowAssigned:
    """Recognise the kernel before and after 6.8."""
    return WindowAssigned(place=at, address=found["address"], window=int(found["number"]) if found["number"] else None)


class RegionInvalid(Event):
    """The driver found that a card's window was never given addresses."""


@parses(r"PCI I/O region assigned to your NVIDIA device is invalid", "PCI I/O region assigned", "region assigned to your", lines=2)
def region_invalid(found: re.Match[str], at: Place) -> RegionInvalid:
    """Recognise the driver's message."""
    return RegionInvalid(place=at)


class LinkError(Event):
    """The root port's or a device's report of an error on its link; `layer` is `Data Link Layer` or its like."""

    address: str | None
    layer: str
    corrected: bool
    driver: str | None = None
    """Whose device reports: `pcieport` is a port's; `None` where the line does not say."""


@parses(
    rf"(?:(?:(?P<driver>[\w-]+) )?{_ADDRESS}: )?(?:AER: )?PCIe Bus Error: severity=(?P<severity>\w+)[^,\n]*(?:\([^)]*\))?, "
    r"type=(?P<layer>(?:Data Link|Physical|Transaction) Layer)",
    "PCIe Bus Error",
)
def link_error(found: re.Match[str], at: Place) -> LinkError:
    """Recognise the kernel's decoded report."""
    return LinkError(
        place=at,
        address=found["address"],
        layer=found["layer"],
        corrected=found["severity"].lower().startswith("correct"),
        driver=found["driver"],
    )


@parses(
    r"\[ ?\d+\] ?(?P<kind>BadTLP|BadDLLP|Bad TLP|Bad DLLP|Rollover|Timeout|Replay Timer Timeout|RELAY_NUM Rollover|REPLAY_NUM Rollover)\b",
    "BadTLP",
    "BadDLLP",
    "Bad TLP",
    "Bad DLLP",
    "Rollover",
    "] Timeout",
    "Replay Timer",
)
def link_error_kind(found: re.Match[str], at: Place) -> LinkError:
    """Recognise the bit that is set: all of these belong to the data link."""
    return LinkError(place=at, address=None, layer="Data Link Layer", corrected=True)


@parses(rf"(?:(?P<driver>[\w-]+) )?{_ADDRESS}: (?:AER: )?aer_layer=(?P<layer>(?:Data Link|Physical|Transaction) Layer)", "aer_layer=")
def link_error_of_firmware(found: re.Match[str], at: Place) -> LinkError:
    """Recognise a report that came through the firmware (APEI, as on many servers); its line does not tell the severity."""
    return LinkError(place=at, address=found["address"], layer=found["layer"], corrected=True, driver=found["driver"])


class SurpriseDown(Event):
    """The far end of a link went away, or answers with ones only."""


@parses(
    r"\[ ?5\] (?:SDES|Surprise Down(?: Error)?)\b|TLP Header: +(?:0x)?f{8}(?: +(?:0x)?f{8}){3}\b",
    "5] SDES", "Surprise Down", "TLP Header:",
    flags=re.IGNORECASE,
)  # fmt: skip
def surprise_down(found: re.Match[str], at: Place) -> SurpriseDown:
    """Recognise the bit of the port above, and the header of an answer that never came."""
    return SurpriseDown(place=at)


class RecoveryFailed(Event):
    """The kernel could not bring a card back after an error of its link that was not corrected."""

    address: str


@parses(
    rf"(?:nvidia|amdgpu|nouveau) {_ADDRESS}: (?:AER: can't recover|device has no AER-aware driver)",
    "can't recover",
    "no AER-aware driver",
)
def recovery_failed(found: re.Match[str], at: Place) -> RecoveryFailed:
    """Recognise the kernel's word on a driver that takes no part in recovery; a disk's or a network card's is none."""
    return RecoveryFailed(place=at, address=found["address"])


class Unreachable(Event):
    """The kernel, or the driver, gets no answer from a card that is listed."""

    address: str | None = None


@parses(
    rf"(?:nvidia|vfio-pci|amdgpu) {_ADDRESS}: (?:Unable to change power state from \w+ to \w+, device inaccessible|"
    r"not ready \d+ms after [\w ]{1,20}; giving up)|osInitNvMapping: \*\*\* Cannot attach gpu",
    "device inaccessible", "; giving up", "Cannot attach gpu",
)  # fmt: skip
def unreachable(found: re.Match[str], at: Place) -> Unreachable:
    """Recognise the bus's word for a card that does not wake, and the driver's."""
    return Unreachable(place=at, address=found["address"])


class BandwidthLimited(Event):
    """The kernel says that something above a device limits its link."""

    address: str
    at: str
    speed: float
    width: int
    able_speed: float
    able_width: int


@parses(
    rf"{_ADDRESS}: [\d.]+ Gb/s available PCIe bandwidth, limited by (?P<speed>\d+(?:\.\d+)?) ?GT/s(?: PCIe)? x(?P<width>\d+) link at "
    r"(?P<at>[0-9a-f:.]+) \(capable of [\d.]+ Gb/s with (?P<fast>\d+(?:\.\d+)?) ?GT/s(?: PCIe)? x(?P<wide>\d+) link\)",
    "available PCIe bandwidth", "limited by",
    lines=2,
)  # fmt: skip
def bandwidth_limited(found: re.Match[str], at: Place) -> BandwidthLimited:
    """Recognise the note of the boot."""
    return BandwidthLimited(
        place=at, address=found["address"], at=found["at"], speed=float(found["speed"]), width=int(found["width"]),
        able_speed=float(found["fast"]), able_width=int(found["wide"]),
    )  # fmt: skip


class ProbeNotCalled(Event):
    """The module was not offered a card because another driver has it."""


@parses(
    r"NVIDIA probe routine was not called for \d+ device|obtained ownership of the NVIDIA device",
    "probe routine was not", "obtained ownership of",
)  # fmt: skip
def probe_not_called(found: re.Match[str], at: Place) -> ProbeNotCalled:
    """Recognise the driver's message."""
    return ProbeNotCalled(place=at)


class OwnedBy(Event):
    """A driver has a card: the kernel's log says so."""

    address: str | None
    driver: str
    refused: bool = False
    """Whether it is NVIDIA's own module that says so: then it is meant to have the card."""


@parses(rf"GPU {_ADDRESS} is already bound to (?P<driver>[\w-]+)", "is already bound to")
def owned_by(found: re.Match[str], at: Place) -> OwnedBy:
    """Recognise NVIDIA's module."""
    return OwnedBy(place=at, address=found["address"], driver=_driver(found["driver"]), refused=True)


@parses(
    r"configuration:[^\n]*\bdriver=(?P<lshw>nouveau|vfio-pci|nova_core|NovaCore)\b|"
    r"\bdriver: (?P<inxi>nouveau|nova_core) v:|\bNVIDIA\b[^\n]*\bdriver: (?P<lent>vfio-pci) v:",
    "driver=nouveau", "driver=vfio-pci", "driver=nova", "driver=NovaCore", "driver: nouveau", "driver: nova_core", "driver: vfio-pci",
)  # fmt: skip
def owned_as_listed(found: re.Match[str], at: Place) -> OwnedBy:
    """Recognise lshw and inxi."""
    return OwnedBy(place=at, address=None, driver=_driver(found["lshw"] or found["inxi"] or found["lent"]))


def _driver(name: str) -> str:
    """Return the name of a driver as modules have it: nova_core calls itself `NovaCore` on the bus."""
    return "nova_core" if name.lower().startswith("nova") else name.replace("-", "_")


@parses(
    rf"\b(?P<driver>nouveau|nova_core|NovaCore|nova-core|vfio-pci) {_ADDRESS}: (?P<what>[^\n]*)",
    "nouveau 0", "nova_core", "NovaCore", "nova-core", "vfio-pci 0",
)  # fmt: skip
def alive(found: re.Match[str], at: Place) -> OwnedBy | None:
    """Recognise a driver that speaks in a card's name; one that gave it up again says so."""
    if re.search(r"unknown chipset|probe .*failed|unsupported|error -\d+|failed with error", found["what"]):
        return None
    return OwnedBy(place=at, address=found["address"], driver=_driver(found["driver"]))
