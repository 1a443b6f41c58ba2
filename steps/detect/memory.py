"""Main memory: how much, and whether it corrects errors."""

from __future__ import annotations

import re

from steps.detect.probes import Probes
from steps.model.machine import Memory

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
    )


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
