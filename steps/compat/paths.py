"""The rules of the way to a card: what its links may do, what its bridges do to direct copies, which node it hangs on.

The speed of an idle link says nothing: the card lowers it to save power. It is judged of a card at work only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from steps.catalog import guide
from steps.compat.memory import once
from steps.compat.setting import guest, setting
from steps.detect import ways
from steps.detect.measures import short_name
from steps.model.base import Words
from steps.model.finding import Finding, Severity
from steps.model.hardware import Accelerator, Bridge, Network
from steps.model.machine import Machine, judged

_FULL_SPEED = ("P0", "P1", "P2")
_NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"


def _slotted(machine: Machine) -> tuple[Accelerator, ...]:
    """Return the judged cards that sit behind a link worth judging."""

    def found() -> tuple[Accelerator, ...]:
        return tuple(card for card in judged(machine) if guide.on_board(card.name) is None and not ways.cabled(machine, card))

    return once(machine, "slotted", found)


def _title(machine: Machine, card: Accelerator) -> str:
    return f"GPU {machine.accelerators.index(card)} {short_name(card)}"


def working(card: Accelerator) -> bool:
    """Return whether a card computes right now, so that its link has no reason to rest."""
    busy = card.utilization is not None and card.utilization >= guide.limit("busy").maximum
    return busy and card.performance_state in _FULL_SPEED


def pcie_link_below_max(machine: Machine) -> Finding | None:
    """A card at work whose link stays slower than both its ends can, or a card in a slot that can do less than the card."""
    if guest(machine):
        return None
    slots = [(card, ways.slowest(machine, card)) for card in _slotted(machine)]
    for card, ends in slots:
        most = ends.link.max_generation if ends and ends.link else card.pcie.max_generation if card.pcie else None
        now = card.pcie.generation if card.pcie else None
        if working(card) and now is not None and most is not None and now < most:
            because: tuple[Words, ...] = (f"{card.address}: Gen{now} / Gen{most}, {card.performance_state}, {card.utilization} %",)
            source = guide.limit("busy").source
            return setting("pcie-link-below-max", _title(machine, card), because, "warning", source, now=now, most=most)
    slow = [(card, ends, ends.link.max_generation) for card, ends in slots if ends is not None and ends.link is not None]
    if not slow:
        return None
    facts = [f"{named(ends)}: Gen{now}, {card.address}: Gen{ways.generation(card)}" for card, ends, now in slow]
    card, _, now = slow[0]
    because = ("; ".join(facts[:4]),)
    return setting("pcie-link-below-max", _title(machine, card), because, "info", None, now=now or 0, most=ways.generation(card))


def named(bridge: Bridge) -> str:
    """Return a bridge by its address and what chip it is."""
    return f"{bridge.address} ({bridge.pci_id})" if bridge.pci_id else bridge.address


def pcie_gen4_off(machine: Machine) -> Finding | None:
    """A port above a card is held at Gen3 or slower, though the port and what hangs on it can do Gen4."""
    if guest(machine):
        return None
    for card in _slotted(machine):
        way = ways.way(machine, card)
        # Ports lead down at even places (root port, switch port); between them stand the upper sides of switches.
        for place in range(0, len(way), 2):
            port = way[place]
            below = way[place + 1].link if place + 1 < len(way) else None
            able = (below.max_generation or 0) if below else ways.generation(card) if place + 1 == len(way) else 0
            held, can = port.target_generation, (port.link.max_generation or 0) if port.link else 0
            if held is not None and held < 4 <= min(can, able):
                because: tuple[Words, ...] = (f"{port.address}: Target Link Speed Gen{held}, LnkCap Gen{can}",)
                return setting("pcie-gen4-off", _title(machine, card), because, "warning", None, held=held, able=min(can, able))
    return None


def _pairs(machine: Machine) -> Iterator[tuple[Accelerator, Accelerator]]:
    """Yield the pairs of cards that could copy to each other directly."""
    able = [card for card in _slotted(machine) if guide.without_peers(card.name, card.architecture) is None]
    yield from combinations(able, 2)


def _redirecting(machine: Machine) -> tuple[frozenset[str], frozenset[str]]:
    """Return the ports between two cards that send copies up: below a shared switch, and between root ports."""
    known = {bridge.address: bridge for bridge in machine.bridges}
    detour: set[str] = set()
    checked: set[str] = set()
    for first, second in _pairs(machine):
        shared = set(first.bridges) & set(second.bridges)
        between = [address for address in (*first.bridges, *second.bridges) if address not in shared]
        found = {address for address in between if address in known and known[address].redirects}
        (detour if shared else checked).update(found)
    return frozenset(detour), frozenset(checked)


def detours(machine: Machine) -> frozenset[str]:
    """Return the ports that ACS makes a detour of, else those where it is only a check; empty where no two cards could copy directly."""
    detour, checked = _redirecting(machine)
    return detour or checked


def acs_on(machine: Machine) -> Finding | None:
    """Bridges send direct copies up to the processor: a detour below a shared switch, only a check where cards hang on root ports."""
    found = detours(machine)
    if guest(machine) or not found:
        return None
    because: tuple[Words, ...] = (f"ACSCtl ReqRedir+: {', '.join(sorted(found)[:6])}",)
    severity: Severity = "warning" if _redirecting(machine)[0] else "info"
    return setting("acs-on", "ACS", because, severity, _NCCL, count=len(found))


def sriov_off(machine: Machine) -> Finding | None:
    """Virtual machines are wanted here, and no device that could be split is."""
    sriov = machine.firmware.sriov
    wanted = machine.tools.get("libvirt") is not None or any(card.kernel_driver == "vfio-pci" for card in machine.accelerators)
    if guest(machine) or not wanted or sriov is None or not sriov.capable or sriov.enabled != 0:
        return None
    because: tuple[Words, ...] = (", ".join(f"{one.address}: 0 / {one.total} VF" for one in sriov.devices[:4]),)
    return setting("sriov-off", "SR-IOV", because, "info", None, count=len(sriov.capable))


def numa_misplaced(machine: Machine) -> Finding | None:
    """A card hangs on a node without memory or processors, or the fast network on another node than every card."""
    if guest(machine):
        return None
    bare = {one.node for one in machine.memory.nodes if one.bytes == 0 or one.threads == 0}
    lonely = [card for card in _slotted(machine) if card.numa_node in bare]
    if lonely:
        card = lonely[0]
        fact = next(one for one in machine.memory.nodes if one.node == card.numa_node)
        because: tuple[Words, ...] = (f"{card.address}: node {fact.node}, {(fact.bytes or 0) >> 30} GiB, {fact.threads} CPU",)
        return setting("numa-misplaced", _title(machine, card), because, "warning", None, first=_title(machine, card), node=fact.node)
    nodes = {card.numa_node for card in _slotted(machine)}
    fast = [network for network in machine.networks if _carries(network)]
    if not nodes or None in nodes or not fast or any(network.numa_node in nodes for network in fast):
        return None
    network = max(fast, key=lambda one: one.speed_mbps or 0)
    facts = (f"{network.name}: node {network.numa_node}", f"GPU: node {', '.join(str(node) for node in sorted(nodes, key=str))}")
    return setting("numa-misplaced", network.name, facts, "info", None, first=network.name, node=network.numa_node or 0)


_FAST_MBPS = 25_000


def _carries(network: Network) -> bool:
    """Return whether gradients would go over an interface: up, fast, and on a known node."""
    return network.up is True and (network.speed_mbps or 0) >= _FAST_MBPS and network.numa_node is not None
