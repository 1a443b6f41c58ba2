"""The way from the processor to a card: which links it has, where it is narrow or slow, and how many lanes there are for all.

A link's width does not fall while the card rests; its speed does, so of that only what the ends can do counts here.
"""

from __future__ import annotations

from steps.catalog import devices, guide
from steps.model.base import Record
from steps.model.hardware import Accelerator, Bridge
from steps.model.machine import Machine


def way(machine: Machine, card: Accelerator) -> tuple[Bridge, ...]:
    """Return the bridges above a card, the root port first; empty where one of them is not described."""
    known = {bridge.address: bridge for bridge in machine.bridges}
    found = tuple(known[address] for address in card.bridges if address in known)
    return found if len(found) == len(card.bridges) else ()


def cabled(machine: Machine, card: Accelerator) -> bool:
    """Return whether a card sits in a box at the end of a Thunderbolt cable, which has four lanes and says of its speed what it likes."""
    known = {bridge.address: bridge.pci_id for bridge in machine.bridges}
    return any("Thunderbolt" in (devices.bridge_name(known.get(address)) or "") for address in card.bridges)


_FEW = 4
"""A laptop's maker gives its card half the lanes, or a quarter; fewer are a fault there too."""


def as_made(machine: Machine, card: Accelerator) -> bool:
    """Return whether a card has as few lanes as its maker or a hypervisor gives it: in a laptop, at the end of a cable, in a guest."""
    width = (card.pcie.width if card.pcie else None) or 0
    guest = machine.os.virtualization not in (None, "none")
    return guest or cabled(machine, card) or (machine.told.portable and width >= _FEW)


def generation(card: Accelerator) -> int:
    """Return the PCIe generation that a card's silicon has, else what it says of itself; 0 when neither is known.

    Behind a slower port a card calls that port's speed its own.
    """
    row = guide.native_link(card.architecture)
    return max(row.generation if row else 0, (card.pcie.max_generation if card.pcie else None) or 0)


def narrow(card: Accelerator) -> bool:
    """Return whether a card has fewer lanes than it could use; one that sits beside its processor has no slot to speak of."""
    link = card.pcie
    if link is None or link.width is None or link.max_width is None or guide.on_board(card.name) is not None:
        return False
    return link.width < link.max_width


def narrowest(machine: Machine, card: Accelerator) -> Bridge | None:
    """Return the bridge where the way becomes as narrow as it is, seen from the processor; `None` for a card that has its lanes."""
    if not narrow(card) or card.pcie is None:
        return None
    known = [(bridge.link.width or bridge.link.max_width, bridge) for bridge in way(machine, card) if bridge.link]
    found = [(width, bridge) for width, bridge in known if width is not None and width < (card.pcie.max_width or 0)]
    return min(found, key=lambda one: one[0])[1] if found else None


def slowest(machine: Machine, card: Accelerator) -> Bridge | None:
    """Return the bridge above a card that can do least, and less than the card; `None` when none can or that is not known."""
    known = [(bridge.link.max_generation, bridge) for bridge in way(machine, card) if bridge.link and bridge.link.max_generation]
    least = min(known, key=lambda one: one[0], default=None)
    return least[1] if least is not None and least[0] < generation(card) else None


class Lanes(Record):
    """The processor's lanes as its maker counts them, those that join the chipset among them, and what would use them."""

    all: int
    chipset: int = 0
    cards: int
    disks: int

    @property
    def short(self) -> int:
        """How many lanes too few there are for cards and NVMe disks together."""
        return max(0, self.cards + self.disks - (self.all - self.chipset))


def lanes(machine: Machine) -> Lanes | None:
    """Return the budget: sixteen for a card or what it has, four for a disk; `None` where the processor's lanes are not known."""
    if machine.cpu.pcie_lanes is None:
        return None
    row = devices.cpu(machine.cpu.model) if machine.cpu.model else None
    slotted = (card for card in machine.accelerators if not card.integrated and guide.on_board(card.name) is None)
    return Lanes(
        all=machine.cpu.pcie_lanes,
        chipset=row.chipset_lanes * (machine.cpu.sockets or 1) if row else 0,
        cards=sum((card.pcie.max_width if card.pcie else None) or 16 for card in slotted),
        disks=4 * sum(disk.tier == "nvme" for disk in machine.disks),
    )
