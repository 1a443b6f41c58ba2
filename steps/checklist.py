"""What each item of the BIOS checklist measures by itself, and which items only eyes can see."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from steps.compat import firmware as rules
from steps.compat.setting import guest
from steps.detect.measures import card_memory, short_name
from steps.model.base import Record, Words, phrase
from steps.model.choice import Mark
from steps.model.hardware import PowerLimit
from steps.model.machine import Machine, judged

_MOST = 4
"""Facts of one kind that an item shows."""


class Seen(Record):
    """What was measured of one item; a mark of "unknown" asks for the person's eyes."""

    mark: Mark
    tag: Words
    measured: tuple[Words, ...] = ()


def seen(machine: Machine, item: str) -> Seen:
    """Return what was measured of one item; in a guest the host's firmware decides and nothing applies."""
    if guest(machine) and item not in ("boot-mode", "secure-boot", "numa", "governor"):
        return Seen(mark="info", tag=phrase("firmware.tag.host"), measured=(phrase("firmware.measured.guest"),))
    return PROBES[item](machine)


def _resizable_bar(machine: Machine) -> Seen:
    """Return whether the whole memory of the cards can be seen at once, by those that offer it."""
    if machine.firmware.resizable_bar is False and not rules.resizable(machine):
        return Seen(mark="info", tag=phrase("firmware.tag.not-offered"), measured=_bars(machine))
    return _switch(machine.firmware.resizable_bar, _bars(machine))


def _above_4g(machine: Machine) -> Seen:
    """Return whether card memory is mapped above 4 GB."""
    return _switch(machine.firmware.above_4g, ())


def _switch(on: bool | None, measured: tuple[Words, ...]) -> Seen:
    """Return a switch as on, off, or for the eyes."""
    if on is None:
        return by_eye()
    return Seen(mark="good" if on else "catch", tag=phrase("firmware.tag.on") if on else phrase("firmware.tag.off"), measured=measured)


def by_eye() -> Seen:
    """Return what stands for an item that no probe could read."""
    return Seen(mark="unknown", tag=phrase("firmware.tag.by-eye"))


def _bars(machine: Machine) -> tuple[Words, ...]:
    """Return the memory window of each judged card."""
    return _first(f"BAR1 {card.address} = {card_memory(card.bar1_bytes)}" for card in judged(machine) if card.bar1_bytes)


def _first(facts: Iterable[str]) -> tuple[Words, ...]:
    """Return the first facts, and how many more there are: a machine with eight cards has eight of each."""
    told = tuple(facts)
    return told if len(told) <= _MOST else (*told[: _MOST - 1], phrase("firmware.measured.more", count=len(told) - _MOST + 1))


def _generation(machine: Machine) -> Seen:
    """Return what the links can do; what they do now is seen under load only."""
    able = [(card, card.pcie.max_generation) for card in judged(machine) if card.pcie and card.pcie.max_generation]
    if not judged(machine):
        return Seen(mark="info", tag=phrase("firmware.tag.no-gpu"))
    if not able:
        return by_eye()
    least = min(generation for _, generation in able)
    measured = _first(f"{card.address} {short_name(card)}: Gen{generation}" for card, generation in able)
    return Seen(
        mark="good" if least >= 4 else "info",
        tag=phrase("firmware.tag.able", generation=least),
        measured=(*measured, phrase("firmware.measured.idle")),
    )


def _width(machine: Machine) -> Seen:
    """Return how many lanes the cards have now."""
    links = [(card, card.pcie.width, card.pcie.max_width) for card in judged(machine) if card.pcie and card.pcie.width]
    if not judged(machine):
        return Seen(mark="info", tag=phrase("firmware.tag.no-gpu"))
    if not links:
        return by_eye()
    measured = _first(f"{card.address} {short_name(card)}: ×{width} / ×{most or '?'}" for card, width, most in links)
    return Seen(mark="good", tag=f"×{min(width for _, width, _ in links)}", measured=measured)


def _sleep(machine: Machine) -> Seen:
    """Return how long the deepest allowed sleep takes to wake from."""
    state = rules.deepest(machine)
    if state is None and machine.cpu.idle_driver == "none":
        return Seen(mark="good", tag=phrase("firmware.tag.none"), measured=("cpuidle: none",))
    if state is None:
        return by_eye()
    states = tuple(f"{one.name}: {one.latency_us} µs" for one in machine.cpu.idle_states or () if one.latency_us)[-4:]
    return Seen(mark="good", tag=f"{state.latency_us} µs", measured=states)


def _virtual_functions(machine: Machine) -> Seen:
    """Return whether devices are split; only virtual machines want that."""
    sriov = machine.firmware.sriov
    if sriov is None:
        return Seen(mark="info", tag=phrase("firmware.tag.not-needed"))
    measured: Words = phrase("firmware.measured.sriov", capable=len(sriov.capable), enabled=sriov.enabled or 0)
    tag = phrase("firmware.tag.on") if sriov.enabled else phrase("firmware.tag.not-needed")
    return Seen(mark="info", tag=tag, measured=(measured,))


def _iommu(machine: Machine) -> Seen:
    """Return whether the IOMMU translates for the cards: a system may mix kinds of groups, and those of the cards decide."""
    kinds = ", ".join(f"{kind}: {count}" for kind, count in (machine.firmware.iommu_groups or {}).items())
    free = machine.firmware.iommu == "on" and judged(machine) and rules.translated(machine) is False
    seen = _known("passthrough" if free else machine.firmware.iommu, "iommu")
    return msgspec.structs.replace(seen, measured=(kinds,)) if kinds else seen


def _acs(machine: Machine) -> Seen:
    """Return whether bridges send copies between cards up to the processor; their registers are root's."""
    if len(judged(machine)) < 2:
        return Seen(mark="info", tag=phrase("firmware.tag.not-needed"))
    known = [one for one in machine.bridges if one.redirects is not None]
    if not known:
        return Seen(mark="unknown", tag=phrase("firmware.tag.by-eye"), measured=(phrase("firmware.measured.root"),))
    on = [one.address for one in known if one.redirects]
    tag = phrase("firmware.tag.on") if on else phrase("firmware.tag.off")
    return Seen(mark="info" if on else "good", tag=tag, measured=(", ".join(on[:4]),) if on else ())


def _boot_mode(machine: Machine) -> Seen:
    """Return how the machine was started; the old way (CSM) hides large card memory from the BIOS."""
    uefi = machine.firmware.uefi
    if uefi is None:
        return by_eye()
    return Seen(mark="good" if uefi else "info", tag="UEFI" if uefi else "CSM/BIOS")


def _secure_boot(machine: Machine) -> Seen:
    """Return whether only signed modules are loaded."""
    return _known(machine.firmware.secure_boot, "secure-boot")


def _known(value: str | None, item: str) -> Seen:
    """Return a value that the kernel names."""
    if value is None:
        return by_eye()
    calm = value in ("off", "passthrough", "disabled", "unsupported")
    return Seen(mark="good" if calm else "info", tag=phrase(f"firmware.value.{item}.{value}"))


def _ecc(machine: Machine) -> Seen:
    """Return whether memory corrects errors."""
    if machine.memory.ecc is None:
        return by_eye()
    measured = (machine.memory.type,) if machine.memory.type else ()
    on = machine.memory.ecc
    return Seen(
        mark="good" if on else "info", tag=phrase("firmware.tag.on") if on else phrase("firmware.tag.none-fitted"), measured=measured
    )


def _numa(machine: Machine) -> Seen:
    """Return the memory nodes, and which card hangs on which."""
    nodes = machine.cpu.numa_nodes
    if nodes is None:
        return by_eye()
    cards = _first(
        f"{card.address}: node {card.numa_node}" for card in judged(machine) if card.numa_node is not None and card.numa_node >= 0
    )
    tag = phrase("firmware.tag.one-node") if nodes == 1 else phrase("firmware.tag.nodes", count=nodes)
    return Seen(mark="good" if nodes == 1 else "info", tag=tag, measured=cards if nodes > 1 else ())


def _governor(machine: Machine) -> Seen:
    """Return who decides the clock."""
    governor = machine.cpu.governor
    if governor is None:
        return Seen(mark="info", tag=phrase("firmware.tag.host")) if guest(machine) else by_eye()
    return Seen(mark="good" if governor == "performance" else "info", tag=governor[:11])


def _power(machine: Machine) -> Seen:
    """Return the power limits and fans that the system sees; the board's own are seen in its BIOS where none are shown here."""
    cards = [(card, card.power) for card in judged(machine) if card.power is not None]
    measured = [*_first(f"{card.address}: {_limit(limit)}" for card, limit in cards)]
    measured += [f"CPU: {_limit(limit)}" for limit in machine.power.packages][:2]
    measured += [f"platform_profile: {machine.power.profile}"] if machine.power.profile else []
    turning = [f"{fan.name} {fan.rpm}/min" for fan in machine.power.fans if fan.rpm]
    turning += [f"{card.address} {card.fan_percent} %" for card in judged(machine) if card.fan_percent is not None]
    measured += [", ".join(turning[:4])] if turning else []
    if not measured:
        return by_eye()
    least = min((limit.watts for _, limit in cards), default=None)
    tag: Words = phrase("firmware.tag.seen") if least is None else f"{least:.0f} W"
    return Seen(mark="good", tag=tag, measured=tuple(measured))


def _limit(limit: PowerLimit) -> str:
    """Return a limit with its maker's, where that is told: "250 W / 350 W"."""
    return f"{limit.watts:.0f} W" if limit.default is None else f"{limit.watts:.0f} W / {limit.default:.0f} W"


PROBES: dict[str, Callable[[Machine], Seen]] = {
    "resizable-bar": _resizable_bar,
    "above-4g": _above_4g,
    "pcie-generation": _generation,
    "pcie-width": _width,
    "c-states": _sleep,
    "sr-iov": _virtual_functions,
    "iommu": _iommu,
    "acs": _acs,
    "boot-mode": _boot_mode,
    "secure-boot": _secure_boot,
    "ecc": _ecc,
    "numa": _numa,
    "governor": _governor,
    "power": _power,
}
"""The checklist in the order of the screen."""

CODES: dict[str, tuple[str, ...]] = {
    "resizable-bar": ("resizable-bar-off",),
    "above-4g": ("above-4g-off",),
    "pcie-generation": ("pcie-gen4-off", "pcie-link-below-max"),
    "pcie-width": ("pcie-width-reduced",),
    "c-states": ("c-states-deep",),
    "sr-iov": ("sriov-off",),
    "iommu": ("iommu-breaks-p2p",),
    "acs": ("acs-on",),
    "secure-boot": ("secure-boot-unsigned-module",),
    "numa": ("numa-misplaced",),
    "governor": ("governor-not-performance",),
    "power": ("gpu-slowed-down", "gpu-power-limited", "power-profile-low"),
}
"""The findings that belong to an item, the gravest first."""


def still_wrong(machine: Machine, items: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the items that a rule still finds fault with; what no rule measures is not among them."""
    found = {one.code for one in rules.judge_firmware(machine) if one.severity in ("error", "warning")}
    return tuple(item for item in items if found & set(CODES.get(item, ())))
