"""The card on its bus: absent, not started by its own firmware, without addresses, on a bad or a narrow link."""

from __future__ import annotations

import re

from steps.detect import ways
from steps.detect.machine import detect
from steps.detect.pci import DEVICES
from steps.doctor.events.bus import BandwidthLimited, BootFirmwareFailed, LinkError, RegionInvalid, WindowAssigned, WindowFailed
from steps.doctor.events.kernel import InitFailed
from steps.doctor.evidence import Evidence
from steps.doctor.facts.links import LinkSeen
from steps.doctor.rules.base import CERTAIN, LIKELY, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, Place, Told, fact

_START = "0x62:0x65"
"""The step at which the card's own firmware is waited for."""
_MANY = 3
"""Corrected errors that are more than chance; one now and then is normal."""
_SMALL = 1 << 20
"""Windows below this are an audio function's or a ROM's, not the memory of a GPU."""
_NEAR_A_CARD = ("pcieport", "nvidia", "amdgpu", "nouveau", "vfio-pci", "snd_hda_intel", "habanalabs", "pci")
"""Drivers of a card, of its sound function, and of the ports above it."""
_BUSY = 20.0
_AT_REST = 2.5
"""GT/s at which a link rests: that of PCIe's first generation."""
_FEW = 4
"""Lanes that are few for a card, whatever its slot has."""


@rule("gpu-boot-firmware-failed")
def boot_firmware(seen: Evidence) -> Answer:
    """The driver waited for the card's firmware in vain."""
    waited = seen.first(BootFirmwareFailed)
    failed = seen.first(InitFailed, lambda event: event.code == _START)
    if waited is None:
        return None
    return found(CERTAIN if failed else STRONG + 0.05, waited, failed, address=(failed.address if failed else None) or "?")


@rule("gpu-absent-from-pci")
def absent(seen: Evidence) -> Answer:
    """A list of NVIDIA's devices is empty, and nothing says that the machine has none."""
    here = next(iter(seen.cards.cards), None)
    if here is not None:
        return out(here)
    if seen.driver_answers:
        return None
    if seen.cards.none_listed:
        argv = next(" ".join(argv) for argv in seen.host.forms(lambda argv: argv[0] == "lspci" and "10de:" in " ".join(argv)))
        meant = _meant(seen)
        return found(STRONG if meant else LIKELY, fact("", argv, f"{argv}: -"), meant)
    meant = _meant(seen)
    if seen.cards.bus_seen and not _fragment(seen) and meant is not None and seen.smi.trouble in ("no-driver", "no-devices"):
        return found(LIKELY, fact("", "lspci", "lspci: no 10de:"), meant)
    return None


def _fragment(seen: Evidence) -> bool:
    """Return whether what was seen of the bus is too little to miss anything in it."""
    lists = seen.host.forms(lambda argv: argv[0] == "lspci")
    return seen.host.listdir(DEVICES) is None and sum(len(seen.host.run(argv).stdout.splitlines()) for argv in lists) < 8


def _meant(seen: Evidence) -> Told | None:
    """Return the sign that the machine has a card of NVIDIA's: its driver is installed, or was started earlier."""
    rows = seen.packages.driver("module", "tool", "library")
    lines = [line for line in seen.modules.dkms or () if line.module.startswith("nvidia")]
    return next(iter((*rows, *lines, *seen.modules.files[:1])) if seen.modules.files else iter((*rows, *lines)), None)


@rule("pcie-link-errors")
def link_errors(seen: Evidence) -> Answer:
    """The port above the card reports errors of the data link again and again."""
    data = [event for event in seen.all(LinkError) if event.layer == "Data Link Layer" and event.corrected]
    strange = [event for event in data if event.driver is not None and event.driver not in _NEAR_A_CARD]
    named = [event for event in data if event.address and event not in strange]
    if len(strange) > len(named):
        # A disk's or a network card's link: the bits below its reports are no card's either.
        return out(strange[0])
    count = max(len(named), (seen.events.count(LinkError) if len(data) >= _MANY else len(data)) if not named else len(named))
    if count >= _MANY:
        elsewhere = _elsewhere(seen, named)
        return (
            out(elsewhere)
            if elsewhere
            else found(CERTAIN, *data[:3], port=named[0].address if named and named[0].address else "?", count=count)
        )
    # A report and the bit in the line below it are one error.
    told = named or data
    if len(told) > 1 or (told and _lost(seen)):
        return found(LIKELY, *told[:2], _lost(seen), port=(told[0].address or "?"), count=len(told))
    physical = [event for event in seen.all(LinkError) if event.layer == "Physical Layer" and event.corrected]
    if len(physical) >= 10 and not _elsewhere(seen, physical):
        return found(LIKELY, *physical[:3], port=physical[0].address or "?", count=len(physical))
    return None


def _lost(seen: Evidence) -> Told | None:
    return seen.nvml("lost", "no-handle")


def _elsewhere(seen: Evidence, errors: list[LinkError]) -> Fact | None:
    """Return the device that reports, where the tree of the bus says that no card hangs below it, else `None`."""
    from steps.detect import pci

    cards = [device for device in pci.devices(seen.host) if device.vendor in ("10de", "1002") and device.branch]
    ways = {address for device in cards for address in device.branch}
    strange = [event for event in errors if event.address]
    if not ways or any(event.address in ways for event in strange) or not strange:
        return None
    return fact(strange[0].address or "?", strange[0].place.source, strange[0].place.text)


@rule("bar-space-too-small")
def no_window(seen: Evidence) -> Answer:
    """A card or the bridge above it got no addresses."""
    invalid = seen.first(RegionInvalid)
    given = [(_window(event), event.place) for event in seen.all(WindowAssigned)]
    failed = [event for event in seen.all(WindowFailed) if not event.rom and not event.io and not _given(event, given)]
    gpus = {card.address for card in seen.cards.cards if card.address}
    mine = [event for event in failed if _concerns(event, gpus)]
    if invalid is None and not mine:
        return out(*failed[:1]) if failed else None
    if invalid is None and seen.driver_answers:
        return None
    return found(
        CERTAIN if invalid or _bridge(mine) or gpus & {event.address for event in mine} else STRONG,
        invalid,
        *mine[:3],
        address=mine[0].address if mine else "?",
    )


def _window(event: WindowFailed | WindowAssigned) -> tuple[str, int | None, bool]:
    """Return what tells a window from others of a device: a bridge has one for memory that may be fetched ahead."""
    return event.address, event.window, "pref" in event.place.text


def _given(event: WindowFailed, given: list[tuple[tuple[str, int | None, bool], Place]]) -> bool:
    """Return whether a window got its addresses later in the same log; those of virtual functions are nobody's who uses none."""
    later = (place for window, place in given if window == _window(event) and place.source == event.place.source)
    return "VF BAR" in event.place.text or any(place.order > event.place.order for place in later)


def _bridge(events: list[WindowFailed]) -> bool:
    return any(event.window is None or event.window >= 13 or "pcieport" in event.place.text for event in events)


def _concerns(event: WindowFailed, gpus: set[str]) -> bool:
    """Return whether a failed window is a card's memory or a bridge's, not only a sound function's few kilobytes."""
    if event.address in gpus or _bridge([event]):
        return True
    return event.address.endswith(".0") and (event.size is None or event.size >= _SMALL) and not gpus


@rule("pcie-link-below-capability")
def below(seen: Evidence) -> Answer:
    """Fewer lanes than both ends can have, or a low speed while the card works."""
    narrow = next(iter(_narrow(seen)), None)
    if narrow is not None:
        most = f"x{narrow.most_width}" if narrow.most_width else "?"
        return found(CERTAIN - 0.05, narrow, now=f"x{narrow.width}", most=most, address=narrow.address or "?", variant="width")
    slow = next((link for link in seen.links if link.slow and (busy := _load(seen, link)) is not None and busy >= _BUSY), None)
    if slow is not None:
        return found(STRONG, slow, now=f"{slow.speed:g} GT/s", most=f"{slow.most_speed:g} GT/s", address=slow.address or "?")
    gpus = {card.address for card in seen.cards.cards if card.address}
    narrowed = (event for event in seen.all(BandwidthLimited) if event.width < event.able_width and event.width <= _FEW)
    limited = next((event for event in narrowed if event.address in gpus or not gpus), None)
    if limited is not None:
        return found(LIKELY, limited, now=f"x{limited.width}", most=f"x{limited.able_width}", address=limited.address, variant="width")
    return None


def _narrow(seen: Evidence) -> list[LinkSeen]:
    """Return the links that lost lanes which the board gave them."""
    found = [link for link in seen.links if link.narrow and not _wired(link) and not _joined(seen, link)]
    if not any(link.place.source not in seen.handed for link in found):
        return found
    machine = detect(seen.host.host)
    made = {card.address for card in machine.accelerators if ways.as_made(machine, card)}
    # Programs write the domain with four digits and with eight.
    return [link for link in found if link.place.source in seen.handed or (link.address or "").lower()[-12:] not in made]


def _load(seen: Evidence, link: LinkSeen) -> float | None:
    """Return how busy the card of a link is, in per cent: as the same answer tells, or another one of nvidia-smi's; `None` if none does.

    What the bus tells does not say what the slot can: there only the speed of rest counts as too low for a card that works.
    """
    if link.busy is not None or link.speed is None or link.speed > _AT_REST:
        return link.busy
    told = [gpu for gpu in seen.smi.gpus if gpu.utilization is not None]
    mine = next((gpu for gpu in told if link.address and gpu.address == link.address), None)
    if mine is None and len(told) == 1 and len({other.address for other in seen.links if other.address}) <= 1:
        mine = told[0]
    return float(mine.utilization) if mine is not None and mine.utilization is not None else None


def _wired(link: LinkSeen) -> bool:
    """Return whether the slot has no more lanes: then it is as the board was made, unless there are very few."""
    return link.lanes_above is not None and link.width is not None and link.lanes_above <= link.width and link.width > _FEW


def _joined(seen: Evidence, link: LinkSeen) -> bool:
    """Return whether the card is a chip joined to its processor, whose PCIe link carries no data of it."""
    return link.width == 1 and any(re.search(r"\b(?:GB?10|GH200|GB[23]00)\b", card.name or "") for card in seen.cards.cards)


@rule("pcie-lower-speed-is-normal")
def lower_is_normal(seen: Evidence) -> Answer:
    """A lower speed at full width without load, or a limit in the bridge that all cards share."""
    narrow = _narrow(seen)
    if narrow:
        return out(narrow[0])
    if any(link.place.source.startswith("/sys/") for link in seen.links):
        # The whole machine was looked at, and nobody wondered about its links.
        return None
    slow = [link for link in seen.links if link.slow]
    if any((busy := _load(seen, link)) is not None and busy >= _BUSY for link in slow):
        return None
    limited = seen.all(BandwidthLimited)
    full = [event for event in limited if event.width >= event.able_width]
    first = next(iter(limited), None)
    if first is not None and len(full) == len(limited) and len({event.speed for event in limited}) == 1:
        bridges = all(event.at != event.address for event in limited)
        if bridges and not seen.has(LinkError):
            return found(STRONG if len(limited) > 1 else LIKELY, *limited[:3], variant="bridge", at=first.at)
    if slow:
        return found(STRONG, slow[0], now=f"{slow[0].speed:g} GT/s", most=f"{slow[0].most_speed:g} GT/s")
    return None
