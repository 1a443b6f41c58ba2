"""The drawn tree: processors, the bridges that matter, accelerators and network devices below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from steps.catalog import devices
from steps.detect import ways
from steps.detect.measures import card_link, link, short_name, speed
from steps.model.base import Record
from steps.model.hardware import Accelerator, InfinibandPort, Network
from steps.model.machine import Machine

Kind = Literal["socket", "bridge", "gpu", "network"]
CELLS = 39
"""The width of a hint."""


class Node(Record):
    """One place in the tree; `narrow` says that data passes it on fewer lanes than the device below it could use."""

    kind: Kind
    place: str
    """The address of a device, or the name of a processor."""
    name: str = ""
    about: str = ""
    """What it is beside that, for where there is room."""
    link: str = ""
    narrow: bool = False
    children: tuple[Node, ...] = ()

    @property
    def text(self) -> str:
        """The node in one line: address, name, link, and a mark where it is narrow."""
        return self._line("")

    @property
    def wide(self) -> str:
        """The same with what the device is."""
        return self._line(self.about)

    def _line(self, about: str) -> str:
        return "  ".join(part for part in (self.place, self.name, about, self.link, "!" if self.narrow else "") if part)


def forest(machine: Machine, *, networks: bool = True) -> tuple[Node, ...]:
    """Return one root per NUMA node with what hangs below it; empty without accelerators and network devices.

    What names no node hangs below a root of its own, "CPU".
    """
    tree = _Tree(machine)
    wired = [one for one in machine.networks if one.kind in ("ethernet", "infiniband") and one.device is not None] if networks else []
    leaves = [
        *(_Leaf(_card(at, card), _node(card.numa_node), card.bridges) for at, card in enumerate(machine.accelerators)),
        *(_Leaf(_network(one), _node(one.numa_node), one.bridges) for one in wired),
        *(_Leaf(_port(one), _node(one.numa_node), one.bridges) for one in machine.infiniband if networks and _unseen(one)),
    ]
    members: dict[int | None, list[Node]] = {
        node: list(tree.below([leaf for leaf in leaves if leaf.numa == node], 0)) for node in dict.fromkeys(leaf.numa for leaf in leaves)
    }
    return tuple(
        Node(
            kind="socket",
            place="CPU" if node is None else f"CPU   NUMA node {node}",
            about=machine.cpu.model or "",
            children=tuple(members[node]),
        )
        for node in sorted(members, key=lambda one: -1 if one is None else one)
    )


def _node(number: int | None) -> int | None:
    """Return a node's number; the kernel writes -1 where it knows none."""
    return number if number is not None and number >= 0 else None


class _Leaf(NamedTuple):
    """A card or a network device, and where it hangs."""

    node: Node
    numa: int | None
    bridges: tuple[str, ...]


class _Tree:
    """Draws what hangs below a place: the bridges that cards share, and those where the way of a card becomes narrow."""

    def __init__(self, machine: Machine) -> None:
        self._bridges = {one.address: one for one in machine.bridges}
        found = (ways.narrowest(machine, card) for card in machine.accelerators if not card.integrated)
        self._narrow = {bridge.address for bridge in found if bridge is not None}

    def below(self, leaves: Sequence[_Leaf], depth: int) -> Iterable[Node]:
        """Yield what hangs below one place: the cards first, what shares a bridge together below it.

        A bridge that leads to one card only, or to no card, is left out: the device's own link says as much.
        """
        groups: dict[str, list[_Leaf]] = {}
        for leaf in leaves:
            groups.setdefault(leaf.bridges[depth] if depth < len(leaf.bridges) else leaf.node.place, []).append(leaf)
        for address, inside in groups.items():
            if all(depth >= len(leaf.bridges) or leaf.node.kind == "network" for leaf in inside):
                yield from (leaf.node for leaf in inside)
                continue
            children = tuple(self.below(inside, depth + 1))
            if address in self._narrow:
                # The port and the switch that hangs on it are the two ends of one link: one place to a reader.
                below = children[0] if len(children) == 1 and children[0].kind == "bridge" and not children[0].narrow else None
                yield self._bridge(address, below.children if below else children, inside[0].bridges[depth + 1 : depth + 2])
            elif len(children) == 1:
                # Of ports stacked on one another that all lead to the same cards, the last one stands for all.
                yield from children
            else:
                yield self._bridge(address, children)

    def _bridge(self, address: str, children: tuple[Node, ...], far: tuple[str, ...] = ()) -> Node:
        """Return a bridge with its own link, which is all that several cards have together; both ends of it must be able to."""
        ends = [bridge for one in (address, *far) if (bridge := self._bridges.get(one)) is not None]
        slow = min((end.link for end in ends if end.link is not None), key=lambda link: link.max_generation or 9, default=None)
        name = next((name for end in reversed(ends) if (name := devices.bridge_name(end.pci_id))), "PCIe bridge")
        narrow = address in self._narrow
        return Node(kind="bridge", place=_short(address), name=name, link=link(slow) or "", narrow=narrow, children=children)


def _card(position: int, card: Accelerator) -> Node:
    """Return one card with its number, link and whether that is narrower than the card."""
    narrow = ways.narrow(card)
    said = card_link(card) or ""
    if narrow and card.pcie is not None:
        said = f"{said}/{card.pcie.max_width}"
    name = short_name(card) if card.integrated else f"GPU {position}"
    about = "" if card.integrated else short_name(card)
    return Node(kind="gpu", place=_short(card.address), name=name, about=about, link=said, narrow=narrow)


def _network(network: Network) -> Node:
    """Return one network device with its interface and speed."""
    rate = speed(network.speed_mbps) if network.speed_mbps and network.speed_mbps > 0 else ""
    return Node(kind="network", place=_short(network.device), name=network.name, about=network.driver or "", link=rate)


def _unseen(port: InfinibandPort) -> bool:
    """Return whether a port of an RDMA device has a place and no network interface to stand for it."""
    return port.address is not None and port.interface is None


def _port(port: InfinibandPort) -> Node:
    """Return one port of an RDMA device with its speed."""
    rate = speed(port.rate_mbps) if port.rate_mbps else ""
    return Node(kind="network", place=_short(port.address), name=port.device, about=port.link_layer or "", link=rate)


def _short(address: str | None) -> str:
    """Return an address without what is the same on most machines; "" for what has none, as in WSL2 and on a Jetson."""
    return (address or "").removeprefix("0000:").removesuffix(".0")


def drawn(roots: Sequence[Node], cells: int = CELLS) -> tuple[str, ...]:
    """Return the tree as lines of at most `cells` characters."""
    lines: list[str] = []
    for root in roots:
        wide = cells > CELLS
        lines.append(root.wide if wide else root.text)
        lines += _branches(root.children, "", wide=wide)
    return tuple(line[:cells] for line in lines)


def _branches(nodes: Sequence[Node], before: str, *, wide: bool) -> Iterable[str]:
    """Yield the lines of nodes that stand side by side, each with what is below it."""
    for node in nodes:
        last = node is nodes[-1]
        yield f"{before}{'└─' if last else '├─'} {node.wide if wide else node.text}"
        yield from _branches(node.children, before + ("   " if last else "│  "), wide=wide)


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
