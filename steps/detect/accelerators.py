"""The GPUs and other accelerators: found on the PCI bus, named by tables, completed by a working driver."""

from __future__ import annotations

import re
from collections import Counter

from steps.catalog import devices as catalog
from steps.detect import bridges, pci, power, unplaced
from steps.detect.pci import Device
from steps.detect.probes import Probes
from steps.detect.smi import Smi
from steps.detect.smi_values import SmiGpu
from steps.model.hardware import Accelerator, PcieLink, Vendor
from steps.model.software import Os

_VENDORS: dict[str, Vendor] = {"10de": "nvidia", "1002": "amd", "8086": "intel", "1da3": "habana"}
_DISPLAY = ("0300", "0302", "0380")
_COMPUTE = "1200"


def accelerators(host: Probes, bus: tuple[Device, ...], smi: Smi, *, os: Os) -> tuple[Accelerator, ...]:
    """Return every GPU and accelerator; management controllers that only paint a console are not among them."""
    cards = [device for device in bus if _is_accelerator(device)]
    told = _told_by(cards, smi)
    found = tuple(_accelerator(host, pci.detailed(host, device), bus, told.get(device.address) or SmiGpu(), os) for device in cards)
    return found if any(card.vendor == "nvidia" for card in found) else found + unplaced.cards(host, smi, os=os)


def _is_accelerator(device: Device) -> bool:
    if device.vendor == "1da3":
        return True
    if device.kind[:4] == _COMPUTE:
        return device.vendor != "8086" or catalog.accelerator(device.pci_id) is not None
    return device.vendor in _VENDORS and device.kind[:4] in _DISPLAY


def _accelerator(host: Probes, device: Device, bus: tuple[Device, ...], told: SmiGpu, os: Os) -> Accelerator:
    vendor = _VENDORS.get(device.vendor, "other")
    row, other = catalog.gpu(device.pci_id), catalog.accelerator(device.pci_id)
    limit, fan = power.of_amd_card(host, device.address) if vendor == "amd" else (None, None)
    return Accelerator(
        address=device.address,
        vendor=vendor,
        pci_id=device.pci_id if device.device else None,
        name=_name(host, device, told),
        chip=row.chip if row else other.chip if other else None,
        architecture=row.architecture if row else other.architecture if other else None,
        compute_capability=told.compute_capability or (row.compute_capability if row else None),
        gfx=other.gfx if other else None,
        memory_bytes=told.memory_bytes or _amd_memory(host, device) or _nominal_memory(device, row, os),
        kernel_driver=device.driver,
        pcie=_link(device, told),
        bar1_bytes=_bar1(vendor, device) or told.bar1_bytes,
        numa_node=device.numa_node,
        integrated=_integrated(device, bus),
        sriov=device.sriov,
        ecc=told.ecc,
        mig=told.mig,
        bridges=bridges.above(device, bus),
        utilization=told.utilization,
        performance_state=told.performance_state,
        power=told.power or limit,
        fan_percent=told.fan_percent if told.fan_percent is not None else fan,
        slowed=told.slowed or (),
    )


def _told_by(cards: list[Device], smi: Smi) -> dict[str, SmiGpu]:
    """Return by address what nvidia-smi says; where it leaves out the PCI domain, the rest of the address must fit one card only."""
    exact = {gpu.address: gpu for gpu in reversed(smi.gpus) if gpu.address}
    nvidia = [card.address for card in cards if card.vendor == "10de"]
    alike = Counter(address[5:] for address in nvidia)
    known = set(nvidia)
    short: dict[str, list[SmiGpu]] = {}
    for gpu in smi.gpus:
        if gpu.address and gpu.address not in known:
            short.setdefault(gpu.address[5:], []).append(gpu)
    found = {card.address: exact[card.address] for card in cards if card.address in exact}
    for address in nvidia:
        candidates = short.get(address[5:], [])
        if address not in found and len(candidates) == 1 and alike[address[5:]] == 1:
            found[address] = candidates[0]
    return found


def _name(host: Probes, device: Device, told: SmiGpu) -> str | None:
    """Return the name by the driver, else by the tables, else as lspci prints it."""
    if told.name:
        return told.name
    information = host.read(f"/proc/driver/nvidia/gpus/{device.address}/information") or ""
    model = re.search(r"^Model:\s*(\S.*?)\s*$", information, re.MULTILINE)
    if model and model[1] not in ("Unknown", "N/A"):
        return model[1]
    lent = catalog.slice_of(device.pci_id, device.subsystem)
    if lent is not None:
        return lent.name
    row = catalog.gpu(device.pci_id) or catalog.accelerator(device.pci_id)
    return catalog.amd_name(device.pci_id, device.revision) or (row.name if row else device.name)


def _amd_memory(host: Probes, device: Device) -> int | None:
    return host.number(f"{pci.DEVICES}/{device.address}/mem_info_vram_total") if device.vendor == "1002" else None


_BOARD_NUMBER = re.compile(r"\bPG\d{3}\b")
"""A name that says which board it is, not which product."""


def _nominal_memory(device: Device, row: catalog.GpuRow | None, os: Os) -> int | None:
    """Return the memory that the tables know for a card, where all names of its id have the same.

    A slice of a card that a hypervisor lends has the card's id and less memory; one that no table knows may be any.
    """
    lent = catalog.slice_of(device.pci_id, device.subsystem)
    if lent is not None:
        return lent.gib << 30
    if row is None or os.virtualization != "none":
        return None
    sizes = {catalog.memory_gib(name) for name in row.name.split(" / ") if not _BOARD_NUMBER.search(name)}
    size = sizes.pop() if len(sizes) == 1 else None
    return None if size is None else size << 30


def _link(device: Device, told: SmiGpu) -> PcieLink | None:
    """Return the link that the bus shows, its gaps filled by the driver; `None` when neither knows anything."""
    fields = {
        field: getattr(device.link, field) if getattr(device.link, field) is not None else getattr(told.link, field)
        for field in PcieLink.__struct_fields__
    }
    return PcieLink(**fields) if any(value is not None for value in fields.values()) else None


def _bar1(vendor: str, device: Device) -> int | None:
    """Return the size of the window onto the card's memory: NVIDIA's second, AMD's first, the largest of the others."""
    if vendor == "amd":
        return device.bars[0] or None if device.bars else None
    if vendor != "nvidia":
        return max(device.bars, default=0) or None
    # A register window of 64 bits takes two places, so the next one moves up.
    return next((size for size in device.bars[1:3] if size), None)


def _integrated(device: Device, bus: tuple[Device, ...]) -> bool:
    """Return whether the GPU is part of the processor: Intel's sit on bus 0, AMD's are known by id."""
    if device.vendor == "8086":
        return device.address.split(":")[1] == "00"
    row = catalog.accelerator(device.pci_id)
    return row is not None and row.integrated == "yes"
