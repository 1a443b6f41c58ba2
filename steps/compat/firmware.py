"""The rules of the BIOS checklist, one function per finding code.

A link's generation is never judged from an idle machine: an idle card shows Gen1 to save power. Its width does not fall then.
"""

from __future__ import annotations

from itertools import combinations

from steps.catalog import guide
from steps.compat import paths, power
from steps.compat.setting import Rule, guest, setting
from steps.detect import ways
from steps.detect.measures import short_name
from steps.model.base import Words, phrase
from steps.model.finding import Finding, Severity
from steps.model.hardware import Accelerator, IdleState
from steps.model.machine import Machine, judged

SLOW_GOVERNORS = ("powersave", "conservative", "ondemand", "schedutil")


def resizable(machine: Machine) -> tuple[Accelerator, ...]:
    """Return the judged cards that offer a resizable window: NVIDIA's do from Ampere on."""
    return tuple(card for card in judged(machine) if guide.old_architecture(card.vendor, card.architecture) is None)


def resizable_bar_off(machine: Machine) -> Finding | None:
    """The processor reaches only a window of a card's memory, and the card could do better."""
    found = resizable(machine)
    if machine.firmware.resizable_bar is not False or guest(machine) or not found:
        return None
    # The machine's word may come from another, older card.
    seen = [card for card in found if card.bar1_bytes is not None and not _reached_whole(card)]
    if not seen and any(card.bar1_bytes is not None for card in found):
        return None
    because = (", ".join(f"{card.address} {short_name(card)}: BAR1 = {(card.bar1_bytes or 0) >> 20} MB" for card in seen),)
    window = f"{min(card.bar1_bytes or 0 for card in seen) >> 20} MB" if seen else "256 MB"
    return setting("resizable-bar-off", "Resizable BAR", because, window=window)


def _reached_whole(card: Accelerator) -> bool:
    """Whether the window is as large as the card's memory, or nearly: some of the memory is never shown."""
    return card.bar1_bytes is not None and card.memory_bytes is not None and card.bar1_bytes >= card.memory_bytes * 3 // 4


def above_4g_off(machine: Machine) -> Finding | None:
    """Large card memory cannot be mapped."""
    if machine.firmware.above_4g is not False or guest(machine) or not judged(machine):
        return None
    return setting("above-4g-off", "Above 4G Decoding", (phrase("firmware.because.bars-low"),))


def reduced(machine: Machine) -> tuple[Accelerator, ...]:
    """Return the judged cards with fewer lanes than they could use."""
    return tuple(card for card in judged(machine) if ways.narrow(card) and not ways.as_made(machine, card))


def pcie_width_reduced(machine: Machine) -> Finding | None:
    """A card has fewer lanes than it could use; half of them is a common way to share a processor's lanes."""
    narrow = reduced(machine)
    if not narrow or guest(machine):
        return None
    worst = min(narrow, key=lambda card: card.pcie.width or 0 if card.pcie else 0)
    width = (worst.pcie.width if worst.pcie else None) or 0
    wanted = (worst.pcie.max_width if worst.pcie else None) or 0
    because: list[Words] = [
        ", ".join(f"{card.address} {short_name(card)}: ×{card.pcie.width} / ×{card.pcie.max_width}" for card in narrow if card.pcie)
    ]
    bridges = {bridge.address: bridge for card in narrow if (bridge := ways.narrowest(machine, card)) is not None}
    if bridges:
        said = (f"{paths.named(one)}: ×{one.link.width or '?'} / ×{one.link.max_width or '?'}" for one in bridges.values() if one.link)
        because.append(phrase("firmware.because.narrow", bridges=", ".join(said)))
    severity: Severity = "info" if width * 2 >= wanted else "warning"
    number = machine.accelerators.index(worst)
    subject = f"GPU {number} {short_name(worst)}"
    return setting("pcie-width-reduced", subject, tuple(because), severity, number=number, width=width, wanted=wanted)


def c_states_deep(machine: Machine) -> Finding | None:
    """The processor may fall asleep deeper than small transfers like."""
    allowed = guide.limit("idle-latency")
    deep = [one for one in machine.cpu.idle_states or () if one.enabled and (one.latency_us or 0) > allowed.maximum]
    if not deep or guest(machine):
        return None
    state = max(deep, key=lambda one: one.latency_us or 0)
    because = (", ".join(f"{one.name}: {one.latency_us} µs" for one in deep),)
    return setting("c-states-deep", state.name, because, source=allowed.source, state=state.name, latency=state.latency_us or 0)


def deepest(machine: Machine) -> IdleState | None:
    """Return the deepest sleep that is allowed; `None` when none is known."""
    known = [one for one in machine.cpu.idle_states or () if one.enabled is not False and one.latency_us is not None]
    return max(known, key=lambda one: one.latency_us or 0) if known else None


def governor_not_performance(machine: Machine) -> Finding | None:
    """The clock is not held high."""
    governor = machine.cpu.governor
    if governor not in SLOW_GOVERNORS or guest(machine):
        return None
    return setting("governor-not-performance", str(governor), (f"scaling_governor = {governor}",), "info", governor=str(governor))


def translated(machine: Machine) -> bool | None:
    """Return whether the IOMMU translates for one of the judged cards; `None` when not known.

    A system may mix: after `iommu=pt` some devices keep a translated domain, and without it some have none. What counts is the cards' own.
    """
    kinds = [machine.told.domains.get(card.address or "") for card in judged(machine)]
    if kinds and None not in kinds:
        return any(kind != "identity" for kind in kinds)
    return None if machine.firmware.iommu is None else machine.firmware.iommu == "on"


def iommu_breaks_p2p(machine: Machine) -> Finding | None:
    """An IOMMU that translates stands between cards that could copy directly."""
    found = judged(machine)
    offered = [card for card in found if guide.without_peers(card.name, card.architecture) is None]
    if not translated(machine) or guest(machine) or len(offered) < 2 or _joined(machine):
        return None
    kinds = ", ".join(dict.fromkeys(machine.told.domains.values()))
    because = (kinds or phrase("firmware.because.iommu"), phrase("firmware.because.cards", count=len(found)))
    return setting(
        "iommu-breaks-p2p", "IOMMU", because, source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
    )


def _joined(machine: Machine) -> bool:
    """Whether no copy meets the IOMMU: NVLink joins every pair of the judged cards, and no fast network could reach them.

    Beside a Grace the network's copies go through its own translation, which has to stay on.
    """
    if (machine.infiniband or any(one.kind == "infiniband" for one in machine.networks)) and machine.os.arch != "aarch64":
        return False
    places = {machine.accelerators.index(card) for card in judged(machine)}
    kinds = {frozenset((one.a, one.b)): one.kind for one in machine.links}
    return all(kinds.get(frozenset(pair), "").startswith("NV") for pair in combinations(places, 2))


def secure_boot_unsigned_module(machine: Machine) -> Finding | None:
    """Secure Boot keeps the driver's module out; said of a module that was refused, a planned one is the driver step's."""
    if machine.firmware.secure_boot != "enabled" or machine.driver.state != "blocked":
        return None
    return setting("secure-boot-unsigned-module", "Secure Boot", (phrase("firmware.because.blocked"),), "error")


RULES: tuple[Rule, ...] = (
    resizable_bar_off,
    above_4g_off,
    paths.pcie_gen4_off,
    paths.pcie_link_below_max,
    pcie_width_reduced,
    c_states_deep,
    iommu_breaks_p2p,
    paths.acs_on,
    paths.numa_misplaced,
    paths.sriov_off,
    secure_boot_unsigned_module,
    power.gpu_slowed_down,
    power.gpu_power_limited,
    power.power_profile_low,
    governor_not_performance,
)


def judge_firmware(machine: Machine) -> tuple[Finding, ...]:
    """Return every finding of the BIOS checklist."""
    return tuple(found for rule in RULES if (found := rule(machine)) is not None)
