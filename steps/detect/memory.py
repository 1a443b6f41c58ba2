"""Main memory: how much, and whether it corrects errors."""

from __future__ import annotations

import re

from steps.detect.cpu import span
from steps.detect.probes import Probes
from steps.model.hardware import Memory, MemoryNode

_NODES = "/sys/devices/system/node"

ASKED = (("dmidecode", "-t", "memory"),)


def memory(host: Probes) -> Memory:
    """Return the facts about main memory; type and modules come from DMI, which only root may read."""
    total = re.search(r"^MemTotal:\s*(\d{1,15}) kB", host.read("/proc/meminfo") or "", re.MULTILINE)
    told = host.first(("dmidecode", "-t", "memory"), ("dmidecode", "-t", "17")).stdout
    modules = _modules(told)
    return Memory(
        total_bytes=int(total[1]) << 10 if total else None,
        ecc=_ecc(host, told, modules),
        type=_kind(modules),
        modules=len(modules) if modules else None,
        nodes=_nodes(host),
    )


def _nodes(host: Probes) -> tuple[MemoryNode, ...]:
    """Return the NUMA nodes with what hangs on each; a node without memory or without processors is one too."""
    found: list[MemoryNode] = []
    for name in host.listdir(_NODES) or ():
        if not re.fullmatch(r"node\d{1,4}", name):
            continue
        total = re.search(r"MemTotal:\s*(\d{1,15}) kB", host.read(f"{_NODES}/{name}/meminfo") or "")
        threads = host.read(f"{_NODES}/{name}/cpulist")
        found.append(
            MemoryNode(
                node=int(name[4:]), bytes=int(total[1]) << 10 if total else None, threads=None if threads is None else span(threads.strip())
            )
        )
    return tuple(sorted(found, key=lambda one: one.node))


def _modules(told: str) -> list[str]:
    """Return DMI's blocks of the modules that are plugged in."""
    blocks = re.split(r"\n\s*\n", told)
    return [block for block in blocks if re.search(r"^Memory Device$\n(?:.*\n)*?\s*Size: \d+", block, re.MULTILINE)]


def _kind(modules: list[str]) -> str | None:
    kinds = {found[1] for block in modules if (found := re.search(r"^\s*Type: (\S+)", block, re.MULTILINE))} - {"Unknown", "Other", "<OUT"}
    return kinds.pop() if len(kinds) == 1 else None


def _ecc(host: Probes, told: str, modules: list[str]) -> bool | None:
    """Return whether errors are corrected: what the board says it does, else a controller that counts them."""
    kinds = set(re.findall(r"^\s*Error Correction Type: (.+?)\s*$", told, re.MULTILINE)) - {"Unknown", "Other", "<OUT OF SPEC>"}
    if kinds:
        return kinds != {"None"}
    if host.glob("/sys/devices/system/edac/mc/mc[0-9]*/mc_name"):
        return True
    return None
