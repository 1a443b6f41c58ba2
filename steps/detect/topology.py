"""The drawn tree: processors, the bridges that matter, accelerators and network devices below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from steps.detect import ways
from steps.detect.measures import card_link, link, short_name, speed
from steps.model.base import Record
from steps.model.machine import Accelerator, Machine, Network

Kind = Literal["socket", "bridge", "gpu", "network"]
CELLS = 39
"""The width of a hint."""


class Node(Record):
    """One place in the tree; `narrow` says that data passes it on fewer lanes than the device below it could use."""

    kind: Kind
    place: str
    """The address of a device, or the name of a processor."""
    name: str = ""
    link: str = ""
    narrow: bool = False
    children: tuple[Node, ...] = ()

    @property
    def text(self) -> str:
        """The node in one line: address, name, link, and a mark where it is narrow."""
        return "  ".join(part for part in (self.place, self.name, self.link, "!" if self.narrow else "") if part)


def forest(machine: Machine, *, networks: bool = True) -> tuple[Node, ...]:
    """Return one root per NUMA node with what hangs below it; empty without accelerators and network devices.

    What names no node hangs below a root of its own, "CPU".
    """
    members: dict[int | None, list[Node]] = {}
    tree = _Tree(machine)
    for node in dict.fromkeys(_node(card.numa_node) for card in machine.accelerators):
        positions = [at for at, card in enumerate(machine.accelerators) if _node(card.numa_node) == node]
        members[node] = list(tree.below(positions, 0))
    for network in machine.networks if networks else ():
        if network.kind in ("ethernet", "infiniband") and network.device is not None:
            members.setdefault(_node(network.numa_node), []).append(_network(network))
    return tuple(
        Node(kind="socket", place="CPU" if node is None else f"CPU   NUMA node {node}", children=tuple(members[node]))
        for node in sorted(members, key=lambda one: -1 if one is None else one)
    )


def _node(number: int | None) -> int | None:
    """Return a node's number; the kernel writes -1 where it knows none."""
    return number if number is not None and number >= 0 else None


class _Tree:
    """Draws what hangs below a place: the bridges that cards share, and those where the way of a card becomes narrow."""

    def __init__(self, machine: Machine) -> None:
        self._cards = machine.accelerators
        self._bridges = {one.address: one for one in machine.bridges}
        found = (ways.narrowest(machine, card) for card in machine.accelerators if not card.integrated)
        self._narrow = {bridge.address for bridge in found if bridge is not None}

    def below(self, positions: Sequence[int], depth: int) -> Iterable[Node]:
        """Yield the cards below one place, those that share a bridge together below it.

        A bridge that leads to one card only is left out, unless the way narrows there: the card's own link says as much.
        """
        groups: dict[str, list[int]] = {}
        for position in positions:
            above = self._cards[position].bridges
            if depth >= len(above):
                yield _card(position, self._cards[position])
            else:
                groups.setdefault(above[depth], []).append(position)
        for address, inside in groups.items():
            children = tuple(self.below(inside, depth + 1))
            if address in self._narrow:
                # The port and the switch that hangs on it are the two ends of one link: one place to a reader.
                below = children[0] if len(children) == 1 and children[0].kind == "bridge" and not children[0].narrow else None
                yield self._bridge(address, below.children if below else children, self._cards[inside[0]].bridges[depth + 1 : depth + 2])
            elif len(children) == 1:
                # Of ports stacked on one another that all lead to the same cards, the last one stands for all.
                yield from children
            else:
                yield self._bridge(address, children)

    def _bridge(self, address: str, children: tuple[Node, ...], far: tuple[str, ...] = ()) -> Node:
        """Return a bridge with its own link, which is all that several cards have together; both ends of it must be able to."""
        ends = [bridge.link for one in (address, *far) if (bridge := self._bridges.get(one)) is not None and bridge.link is not None]
        said = link(min(ends, key=lambda end: end.max_generation or 9, default=None)) or ""
        return Node(kind="bridge", place=_short(address), name="PCIe bridge", link=said, narrow=address in self._narrow, children=children)


def _card(position: int, card: Accelerator) -> Node:
    """Return one card with its number, link and whether that is narrower than the card."""
    narrow = ways.narrow(card)
    said = card_link(card) or ""
    if narrow and card.pcie is not None:
        said = f"{said}/{card.pcie.max_width}"
    name = short_name(card) if card.integrated else f"GPU {position}"
    return Node(kind="gpu", place=_short(card.address), name=name, link=said, narrow=narrow)


def _network(network: Network) -> Node:
    """Return one network device with its interface and speed."""
    rate = speed(network.speed_mbps) if network.speed_mbps and network.speed_mbps > 0 else ""
    return Node(kind="network", place=_short(network.device), name=network.name, link=rate)


def _short(address: str | None) -> str:
    """Return an address without what is the same on most machines, "-" for none."""
    return (address or "").removeprefix("0000:").removesuffix(".0") or "-"


def drawn(roots: Sequence[Node], cells: int = CELLS) -> tuple[str, ...]:
    """Return the tree as lines of at most `cells` characters."""
    lines: list[str] = []
    for root in roots:
        lines.append(root.text[:cells])
        lines += [line[:cells] for line in _branches(root.children, "")]
    return tuple(lines)


def _branches(nodes: Sequence[Node], before: str) -> Iterable[str]:
    """Yield the lines of nodes that stand side by side, each with what is below it."""
    for node in nodes:
        last = node is nodes[-1]
        yield f"{before}{'└─' if last else '├─'} {node.text}"
        yield from _branches(node.children, before + ("   " if last else "│  "))


def tree(machine: Machine) -> tuple[str, ...]:
    """Return the accelerators' tree as lines of at most 39 cells, one root per NUMA node; empty without accelerators."""
    return drawn(forest(machine, networks=False))


def links(machine: Machine) -> tuple[str, ...]:
    """Return the links between accelerators, one line for each pair: "0-1 NV4"; empty when they are not known."""
    return tuple(f"{one.a}-{one.b} {one.kind}" for one in machine.links)


def matrix(machine: Machine) -> tuple[tuple[str, ...], ...]:
    """Return the pairs as a table with a heading row and column, "-" on the diagonal, "?" where a pair is not known; else empty."""
    kinds = {frozenset((one.a, one.b)): one.kind for one in machine.links}
    numbers = sorted({number for pair in kinds for number in pair})
    if not numbers:
        return ()
    heading = ("", *(f"GPU {number}" for number in numbers))
    rows = ((f"GPU {row}", *("-" if row == column else kinds.get(frozenset((row, column)), "?") for column in numbers)) for row in numbers)
    return (heading, *rows)
