"""How the accelerators of a machine reach each other."""

from __future__ import annotations

import re

from steps.detect.pci import Device
from steps.detect.probes import Probes
from steps.model.hardware import Accelerator, Link

TOPOLOGY = ("nvidia-smi", "topo", "-m")
NVLINK = ("nvidia-smi", "nvlink", "--status")
_MOST_CARDS = 128
"""The pairs of more cards are not worked out: no machine has so many, and a made-up capture would cost minutes."""
_KIND = re.compile(r"^(NV\d+|PIX|PXB|PHB|NODE|SYS)$")


def links(host: Probes, accelerators: tuple[Accelerator, ...], bus: tuple[Device, ...], *, ask: bool) -> tuple[Link, ...]:
    """Return every pair; by the driver's own matrix where it can be had, else by the way through the PCI tree."""
    judged = [position for position, card in enumerate(accelerators) if not card.integrated]
    nvidia = [position for position in judged if accelerators[position].vendor == "nvidia"]
    found: dict[tuple[int, int], str] = {}
    if len(nvidia) > 1 and ask:
        # nvidia-smi numbers the cards in the order of their addresses.
        for (first, second), kind in matrix(host.run(TOPOLOGY, timeout=20).stdout).items():
            if second < len(nvidia):
                found[nvidia[first], nvidia[second]] = kind
        counts = _running(host)
        if len(nvidia) == 2 and len(counts) == 2 and counts[0] == counts[1] > 0:
            # Two cards with as many running links each have no other end for them.
            found[nvidia[0], nvidia[1]] = f"NV{counts[0]}"
    branches = {device.address: device for device in bus}
    for order, first in enumerate(judged if len(judged) <= _MOST_CARDS else ()):
        for second in judged[order + 1 :]:
            ends = [branches.get(accelerators[position].address or "") for position in (first, second)]
            way = found.get((first, second)) or _way(ends[0], ends[1])
            if way is not None:
                found[first, second] = way
    return tuple(Link(a=first, b=second, kind=kind) for (first, second), kind in sorted(found.items()))


def joins_told(host: Probes, cards: int) -> bool:
    """Return whether the driver said which of so many cards NVLink joins; the ways through the PCI tree do not show it."""
    counts = _running(host)
    # Which of several cards are joined by links that run, their numbers do not tell.
    told = len(counts) == cards and (not any(counts) or (cards == 2 and counts[0] == counts[1]))
    return cards > 1 and (told or bool(matrix(host.run(TOPOLOGY, timeout=20).stdout)))


def _running(host: Probes) -> list[int]:
    """Return how many NVLinks of each card run, in the order of addresses; empty where nobody recorded it, for the matrix tells more."""
    text = host.run(NVLINK).stdout if NVLINK in host.host.recorded() else ""
    return [len(re.findall(r"Link \d+: [\d.]+ GB/s", card)) for card in re.split(r"^GPU \d+: ", text, flags=re.MULTILINE)[1:]]


def matrix(text: str) -> dict[tuple[int, int], str]:
    """Return the upper half of the GPU part of `nvidia-smi topo -m`."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.split() for line in text.splitlines() if re.match(r"^\s*GPU\d+\s", line)]
    rows = [line for line in lines if len(line) > 1 and (line[1] == "X" or _KIND.match(line[1]))]
    heading = next((line for line in lines if line not in rows), [])
    columns = sum(1 for cell in heading if re.fullmatch(r"GPU\d+", cell)) or len(rows)
    found: dict[tuple[int, int], str] = {}
    for row in rows:
        first = int(row[0][3:])
        for second, cell in enumerate(row[1 : columns + 1]):
            if second > first and _KIND.match(cell):
                found[first, second] = cell
    return found


def _way(first: Device | None, second: Device | None) -> str | None:
    """Return the distance through the PCI tree in nvidia-smi's words; `None` where a place is not known."""
    if first is None or second is None or not first.branch or not second.branch:
        return None
    shared = 0
    for left, right in zip(first.branch, second.branch, strict=False):
        if left != right:
            break
        shared += 1
    if shared:
        # Above each card stands at least its own port; a shared switch with nothing else between is one bridge away.
        return "PIX" if len(first.branch) - shared <= 2 and len(second.branch) - shared <= 2 else "PXB"
    if first.branch[0][:7] == second.branch[0][:7]:
        return "PHB"
    if first.numa_node is None or second.numa_node is None:
        return None
    return "NODE" if first.numa_node == second.numa_node else "SYS"
