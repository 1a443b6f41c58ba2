"""A machine in a few words, for headings."""

from __future__ import annotations

import re
from collections import Counter

from steps.model.machine import Machine, judged

_SHORTER = re.compile(r"\b(NVIDIA|AMD|Intel(?:\(R\))?|GeForce|Tesla|Instinct|Habana Labs|Graphics|GPU)\s+|\s+(Generation|GPU)\b")


def short_name(name: str) -> str:
    """Return a device's name without the words that every name of its kind has: `RTX 4090`, `MI300X`, `A100-SXM4-40GB`."""
    # Devices that share an id share a row: the first of "A100-SXM4-40GB / A100-PG509-200" stands for both.
    return _SHORTER.sub("", name.partition(" / ")[0]).strip() or name


def gpu_line(machine: Machine) -> str:
    """Return the accelerators that choices are made for (`4× RTX 4090`, `RTX 5090 + RTX 3090 Ti`); "" when there are none."""
    counted = Counter(short_name(card.name or card.chip or card.pci_id or "?") for card in judged(machine))
    return " + ".join(name if count == 1 else f"{count}× {name}" for name, count in counted.items())


def os_line(machine: Machine) -> str:
    """Return the distribution as people say it (`Ubuntu 22.04.4`, `Debian 12`); "" when not known."""
    name = machine.os.name or " ".join(part for part in (machine.os.id, machine.os.version) if part)
    return re.sub(r"\s+(LTS|GNU/Linux)\b|\s*\(.*?\)", "", name).strip()


def cards_of(told: str, machine: Machine) -> int | None:
    """Return how many accelerators a headline names: 0 where it is that of this system without any, `None` where it does not say."""
    cards, dot, _ = told.partition(" · ")
    if not dot:
        return 0 if told and told == os_line(machine) else None
    return sum(int(many[1]) if (many := re.match(r"(\d+)× ", part)) else 1 for part in cards.split(" + "))


def headline(machine: Machine) -> str:
    """Return both: `4× RTX 4090 · Ubuntu 22.04.4`."""
    return " · ".join(part for part in (gpu_line(machine), os_line(machine)) if part)
