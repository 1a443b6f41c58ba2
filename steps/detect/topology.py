"""The drawn tree of sockets and accelerators."""

from __future__ import annotations

from steps.detect.measures import link, short_name
from steps.model.machine import Accelerator, Machine


def tree(machine: Machine) -> tuple[str, ...]:
    """Return the tree as lines of at most 39 cells, one root per NUMA node; empty without accelerators."""
    nodes: dict[int | None, list[int]] = {}
    for position, card in enumerate(machine.accelerators):
        nodes.setdefault(card.numa_node if (card.numa_node or 0) >= 0 else None, []).append(position)
    lines: list[str] = []
    for node in sorted(nodes, key=lambda one: -1 if one is None else one):
        lines.append("CPU" if node is None else f"CPU   NUMA node {node}")
        members = nodes[node]
        for position in members:
            branch = "└─" if position == members[-1] else "├─"
            lines.append(f"{branch} {_leaf(position, machine.accelerators[position])}"[:39])
    return tuple(lines)


def _leaf(position: int, card: Accelerator) -> str:
    """Return one card: its bus address, number and link."""
    address = (card.address or "").removeprefix("0000:").removesuffix(".0") or "-"
    name = short_name(card) if card.integrated else f"GPU {position}"
    return f"{address}  {name}  {link(card.pcie) or ''}".rstrip()


def links(machine: Machine) -> tuple[str, ...]:
    """Return the links between accelerators, one line for each pair: "0-1 NV4"; empty when they are not known."""
    return tuple(f"{one.a}-{one.b} {one.kind}" for one in machine.links)
