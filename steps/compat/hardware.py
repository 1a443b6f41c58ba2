"""The rules of the hardware guide, one function per finding code; what is not known is never judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

from steps.catalog import guide
from steps.compat.case import architecture_title
from steps.compat.setting import guest
from steps.detect.measures import cache, card_memory, cards, memory, short_name, storage
from steps.model.base import Param, Words, phrase
from steps.model.finding import Finding, Severity
from steps.model.hardware import Accelerator, Disk
from steps.model.machine import Machine, judged

Rule = Callable[[Machine], "Finding | None"]


def short(
    code: str, subject: str, source: str | None, because: tuple[Words, ...], severity: Severity = "warning", **params: Param
) -> Finding:
    """Return a finding of the hardware step: what falls short never stops an install."""
    return Finding(code=code, severity=severity, step="hardware", subject=subject, params=params, because=because, source=source)


def cpu_cores_low(machine: Machine) -> Finding | None:
    """Fewer cores than data loading for training wants."""
    wanted = guide.demand("cpu-cores")
    cores = machine.cpu.cores
    if cores is None or wanted.met(cores):
        return None
    because = (phrase("hardware.because.cores", cpu=machine.cpu.model or "CPU", cores=cores),)
    return short("cpu-cores-low", machine.cpu.model or "CPU", wanted.source, because, cores=cores, minimum=int(wanted.minimum))


def cpu_l3_small(machine: Machine) -> Finding | None:
    """Less last-level cache than the guide wants."""
    wanted = guide.demand("cpu-l3")
    size = machine.cpu.l3_bytes
    # A hypervisor makes up what its guests see of the cache.
    if size is None or wanted.met(size) or guest(machine):
        return None
    because = (phrase("hardware.because.l3", cpu=machine.cpu.model or "CPU", size=cache(size)),)
    return short("cpu-l3-small", machine.cpu.model or "CPU", wanted.source, because, size=cache(size), minimum=cache(int(wanted.minimum)))


def cpu_pcie_lanes_few(machine: Machine) -> Finding | None:
    """Fewer lanes than several cards want; one card alone is served by sixteen, so there it is no more than a remark."""
    wanted = guide.demand("cpu-lanes")
    lanes, count = machine.cpu.pcie_lanes, len(judged(machine))
    if lanes is None or wanted.met(lanes):
        return None
    cards_word = "hardware.because.cards" if count > 1 else "hardware.because.cards-one"
    because = (phrase("hardware.because.lanes", cpu=machine.cpu.model or "CPU", lanes=lanes), phrase(cards_word, count=count))
    severity: Severity = "warning" if count > 1 else "info"
    return short(
        "cpu-pcie-lanes-few", machine.cpu.model or "CPU", wanted.source, because, severity, lanes=lanes, minimum=int(wanted.minimum)
    )


def gpu_memory_small(machine: Machine) -> Finding | None:
    """At least one card has less memory than the guide wants; the smallest one is named."""
    wanted = guide.demand("gpu-memory")
    small = [card for card in judged(machine) if card.memory_bytes is not None and not wanted.met(card.memory_bytes)]
    if not small:
        return None
    least = min(small, key=lambda card: card.memory_bytes or 0)
    size = card_memory(least.memory_bytes or 0)
    because = _together(_card_fact(machine, card, card_memory(card.memory_bytes or 0)) for card in small)
    return short(
        "gpu-memory-small", short_name(least), wanted.source, because, gpu=short_name(least), size=size, minimum=memory(int(wanted.minimum))
    )


def gpu_architecture_old(machine: Machine) -> Finding | None:
    """At least one card is of an architecture before the guide's minimum."""
    rows = [(card, guide.old_architecture(card.vendor, card.architecture)) for card in judged(machine)]
    old = [(card, row) for card, row in rows if row is not None]
    if not old:
        return None
    first, row = old[0]
    because = _together(_card_fact(machine, card, architecture_title(card.architecture)) for card, _ in old)
    architecture = architecture_title(first.architecture)
    return short("gpu-architecture-old", short_name(first), row.source, because, gpu=short_name(first), architecture=architecture)


def gpu_no_nvlink(machine: Machine) -> Finding | None:
    """Several NVIDIA cards and no NVLink between any: said only where cards have none or a working driver shows none."""
    found = tuple(card for card in judged(machine) if card.vendor == "nvidia")
    if len(found) < 2:
        return None
    without = [(card, row) for card in found if (row := guide.without_nvlink(card)) is not None]
    if len(found) - len(without) < 2:
        first, row = without[0]
        word = "hardware.because.no-edge" if first.name in row.cards else "hardware.because.chip"
        because: tuple[Words, ...] = (phrase(word, gpu=short_name(first), chip=first.chip or ""),)
        return short("gpu-no-nvlink", cards(found), row.source, because, "info", gpus=cards(found))
    shown = {(one.a, one.b): one.kind for one in machine.links}
    pairs = list(combinations([machine.accelerators.index(card) for card in found], 2))
    known = machine.driver.state == "working" and machine.told.nvlink and all(pair in shown or pair[::-1] in shown for pair in pairs)
    if not known or any(kind.startswith("NV") for kind in shown.values()):
        return None
    because = _together(f"GPU {a} - GPU {b}: {shown.get((a, b), shown.get((b, a)))}" for a, b in pairs[:4])
    return short("gpu-no-nvlink", cards(found), None, because, "info", gpus=cards(found))


def memory_small(machine: Machine) -> Finding | None:
    """Less main memory than the guide wants."""
    wanted = guide.demand("memory")
    size = machine.memory.total_bytes
    if size is None or wanted.met(size):
        return None
    because = (phrase("hardware.because.memory-wsl" if machine.os.wsl else "hardware.because.memory", size=memory(size)),)
    return short("memory-small", memory(size), wanted.source, because, size=memory(size), minimum=memory(int(wanted.minimum)))


def memory_no_ecc(machine: Machine) -> Finding | None:
    """Main memory does not correct errors."""
    if machine.memory.ecc is not False or guest(machine):
        return None
    because = (phrase("hardware.because.no-ecc", type=machine.memory.type or "RAM"),)
    return short("memory-no-ecc", machine.memory.type or "RAM", guide.demand("memory").source, because, "info")


def storage_no_nvme(machine: Machine) -> Finding | None:
    """No NVMe disk of the size a system wants."""
    wanted = guide.demand("nvme")
    if not _tiers_known(machine) or wanted.met(_bytes(machine, "nvme")):
        return None
    size = storage(_bytes(machine, "nvme"))
    return short("storage-no-nvme", "NVMe", wanted.source, _disk_facts(machine), size=size, minimum=storage(int(wanted.minimum)))


def storage_no_data_tier(machine: Machine) -> Finding | None:
    """No fast space for data: SSDs, and what NVMe disks have beyond the system's share."""
    wanted = guide.demand("data-tier")
    if not _tiers_known(machine) or wanted.met(data_bytes(machine)):
        return None
    size = storage(data_bytes(machine))
    because = (*_disk_facts(machine), *_system_share(machine))
    return short("storage-no-data-tier", "SSD", wanted.source, because, size=size, minimum=storage(int(wanted.minimum)))


def storage_no_backup_tier(machine: Machine) -> Finding | None:
    """No large slow space for what must not be lost."""
    wanted = guide.demand("archive-tier")
    if not _tiers_known(machine) or wanted.met(archive_bytes(machine)):
        return None
    size = storage(archive_bytes(machine))
    return short("storage-no-backup-tier", "HDD", wanted.source, _disk_facts(machine), size=size, minimum=storage(int(wanted.minimum)))


def no_accelerator(machine: Machine) -> Finding | None:
    """No accelerator at all on the bus."""
    unknown = any(gap.step == "hardware" and gap.code in ("unknown-hardware", "accelerators-unknown") for gap in machine.gaps)
    # NVIDIA's on a system on a chip is a part of the processor and computes all the same.
    if unknown or any(not card.integrated or card.vendor == "nvidia" for card in machine.accelerators):
        return None
    because: tuple[Words, ...] = (phrase("hardware.because.no-pci"),)
    if machine.accelerators:
        because = _together(_card_fact(machine, card, "integrated") for card in machine.accelerators)
    return short("no-accelerator", "GPU", None, because)


RULES: tuple[Rule, ...] = (
    no_accelerator,
    gpu_architecture_old,
    gpu_memory_small,
    gpu_no_nvlink,
    cpu_cores_low,
    cpu_l3_small,
    cpu_pcie_lanes_few,
    memory_small,
    memory_no_ecc,
    storage_no_nvme,
    storage_no_data_tier,
    storage_no_backup_tier,
)


def judge_hardware(machine: Machine) -> tuple[Finding, ...]:
    """Return every finding of the hardware guide."""
    return tuple(found for rule in RULES if (found := rule(machine)) is not None)


_WORTH_NAMING = 100_000_000_000
"""Below this, what an NVMe disk has beyond the system's share is its maker's rounding."""


def data_bytes(machine: Machine) -> int:
    """Return the fast space for data: all SSDs, and NVMe beyond the system's share."""
    spare = _bytes(machine, "nvme") - int(guide.demand("nvme").minimum)
    return _bytes(machine, "ssd") + (spare if spare >= _WORTH_NAMING else 0)


def archive_bytes(machine: Machine) -> int:
    """Return the slow space: hard disks, and what is plugged in from outside."""
    return _bytes(machine, "hdd") + _bytes(machine, "external")


def _tiers_known(machine: Machine) -> bool:
    """Whether every disk says what it is: behind a RAID controller or a hypervisor nobody knows."""
    kinds = {disk.tier for disk in machine.disks}
    return bool(machine.disks) and kinds <= {"nvme", "ssd", "hdd", "external"} and all(disk.bytes for disk in machine.disks)


def _bytes(machine: Machine, tier: str) -> int:
    """Return the space of all disks of one tier."""
    return sum(disk.bytes or 0 for disk in machine.disks if disk.tier == tier)


def _disk_facts(machine: Machine) -> tuple[Words, ...]:
    """Return the disks as facts."""
    return _together(f"{disk.name} {_disk_kind(disk)} {storage(disk.bytes or 0)}" for disk in machine.disks[:6])


def _system_share(machine: Machine) -> tuple[Words, ...]:
    """Return what of the NVMe disks counts for the system and so not for data; nothing without such disks."""
    share = min(_bytes(machine, "nvme"), int(guide.demand("nvme").minimum))
    return (phrase("hardware.because.share", size=storage(share)),) if share else ()


def _disk_kind(disk: Disk) -> str:
    """Return a disk's tier in capitals as it is written on the box."""
    return {"nvme": "NVMe", "ssd": "SSD", "hdd": "HDD"}.get(disk.tier or "", disk.tier or "?")


def _together(facts: Iterable[str]) -> tuple[Words, ...]:
    """Return facts that stand side by side as one: a list of reasons is a chain, each following from the one before."""
    return (", ".join(facts),)


def _card_fact(machine: Machine, card: Accelerator, said: str) -> str:
    """Return one fact about one card."""
    id = f" ({card.pci_id})" if card.pci_id and card.pci_id != short_name(card) else ""
    return f"GPU {machine.accelerators.index(card)} {short_name(card)}{id}: {said}"
