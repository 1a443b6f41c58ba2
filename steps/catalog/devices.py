"""Accelerators and processors by what the hardware calls itself."""

from __future__ import annotations

import re
from functools import cache

import msgspec

from steps import resources
from steps.catalog.load import CatalogError, lines, rows
from steps.model.base import Record


class GpuRow(Record):
    """One NVIDIA PCI device; `last_driver_branch` absent means still supported, `open_modules` is no, optional or required."""

    device: str
    name: str
    chip: str | None = None
    architecture: str | None = None
    compute_capability: str | None = None
    last_driver_branch: str | None = None
    open_modules: str | None = None
    confidence: str | None = None
    source: str | None = None


class AcceleratorRow(Record):
    """One accelerator of another vendor (PCI vendor and device)."""

    vendor: str
    device: str
    name: str
    chip: str | None = None
    architecture: str | None = None
    gfx: str | None = None
    integrated: str | None = None
    confidence: str | None = None
    source: str | None = None


class MemoryRow(Record):
    """Cards that were sold with one size of memory only."""

    gib: int
    names: tuple[str, ...]
    confidence: str | None = None
    source: str


class SliceRow(Record):
    """Slices of an NVIDIA device (vGPU): their subsystem ids follow one another from `first` on, in the order of `profiles`."""

    device: str
    first: str
    name: str
    profiles: str
    source: str


class Slice(Record):
    """One slice by the name that its driver will give it; `gib` is the card memory in it."""

    name: str
    gib: int


class BridgeRow(Record):
    """One PCI bridge that is a chip with a name: a switch, a chipset."""

    vendor: str
    device: str
    name: str
    source: str


class AmdNameRow(Record):
    """The product that one of AMD's devices is by its revision, where several are sold under one device id."""

    device: str
    revision: str
    name: str
    source: str


class CpuRow(Record):
    """Processors whose model name matches: PCIe lanes of one socket, and L3 of one socket where all of them have the same."""

    model: str
    pcie_lanes: int | None = None
    chipset_lanes: int = 0
    """How many of the lanes join the chipset, as far as we know: they serve no card."""
    l3_mib: float | None = None
    together: bool = False
    """Whether sockets add up; in two-socket EPYC machines lanes join the sockets, so the sum is not known."""
    source: str


@cache
def _indexed(file: str, keys: int) -> dict[str, list[str]]:
    """Return the lines of a table by their first cells, unconverted: a machine needs a few of thousands of rows."""
    head, *body = resources.read_text("data", file).splitlines()
    found = {"": head.split("\t")}
    for line in body:
        cells = line.split("\t")
        found[":".join(cells[:keys])] = cells
    return found


def _row(file: str, keys: int, key: str, record: type[msgspec.Struct]) -> msgspec.Struct | None:
    table = _indexed(file, keys)
    cells = table.get(key) if key else None
    if cells is None:
        return None
    try:
        return msgspec.convert({name: cell for name, cell in zip(table[""], cells, strict=True) if cell}, record)
    except (msgspec.ValidationError, ValueError) as error:
        raise CatalogError(f"{file}: {key}: {error}") from error


@cache
def gpu(pci_id: str) -> GpuRow | None:
    """Return what is known of an NVIDIA device (`10de:2684`), or `None`."""
    vendor, _, device = pci_id.lower().partition(":")
    found = _row("gpus.tsv", 1, device, GpuRow) if vendor == "10de" else None
    return found if isinstance(found, GpuRow) else None


@cache
def accelerator(pci_id: str) -> AcceleratorRow | None:
    """Return what is known of another vendor's device (`1002:74a1`), or `None`."""
    found = _row("accelerators.tsv", 2, pci_id.lower(), AcceleratorRow)
    return found if isinstance(found, AcceleratorRow) else None


def amd_name(pci_id: str, revision: str | None) -> str | None:
    """Return the product that AMD's driver calls a device (`1002:744c`) of this revision (`c8`); `None` where no table says."""
    vendor, _, device = pci_id.lower().partition(":")
    found = _row("amd_names.tsv", 2, f"{device}:{revision}", AmdNameRow) if vendor == "1002" and revision else None
    return found.name if isinstance(found, AmdNameRow) else None


def memory_gib(name: str) -> int | None:
    """Return the memory that a card of this name was always sold with, by the name itself or by the table; else `None`."""
    said = re.search(r"\b(\d{1,3}) ?GB\b", name)
    if said:
        return int(said[1])
    return next((row.gib for row in rows("gpu_memory.toml", "memory", MemoryRow) if name in row.names), None)


def bridge_name(pci_id: str | None) -> str | None:
    """Return the name of a switch or a chipset; `None` for ports of processors and what no table knows."""
    found = _row("bridges.tsv", 2, (pci_id or "").lower(), BridgeRow)
    return found.name if isinstance(found, BridgeRow) else None


def slice_of(pci_id: str, subsystem: str | None) -> Slice | None:
    """Return what a hypervisor lends under a device's id and a subsystem's (`10de:14bb`); `None` for a whole card."""
    vendor, _, device = pci_id.lower().partition(":")
    owner, _, number = (subsystem or "").lower().partition(":")
    if vendor != "10de" or owner != "10de":
        return None
    for row in lines("vgpus.tsv", SliceRow):
        profiles = row.profiles.split()
        place = int(number, 16) - int(row.first, 16)
        if row.device == device and 0 <= place < len(profiles):
            profile = profiles[place]
            # "4Q" has 4 GB; "3-20C" is three compute slices with 20 GB.
            size = re.match(r"\d+", profile.rpartition("-")[2])
            return Slice(name=f"{row.name}-{profile}", gib=int(size[0])) if size else None
    return None


def gpu_by_name(name: str) -> GpuRow | None:
    """Return the row that all NVIDIA devices of that name agree on (chip, architecture, compute capability), else `None`."""
    wanted = squashed(name)
    found = [gpu(f"10de:{device}") for device, cells in _indexed("gpus.tsv", 1).items() if device and squashed(cells[1]) == wanted]
    return _agreed([row for row in found if row is not None])


_CUT = len("...")


def gpu_by_beginning(beginning: str, gib: int | None) -> GpuRow | None:
    """Return what all devices agree on whose names begin so and are too long for the place where one was cut, else `None`.

    Those that were always sold with another size of memory are none of them. The name is a whole one where only one is left.
    """
    maker = "" if beginning.startswith("NVIDIA") else "NVIDIA "
    found: list[GpuRow] = []
    for device, cells in _indexed("gpus.tsv", 1).items():
        for name in cells[1].split(" / ") if device else ():
            whole = name.removeprefix(maker)
            row = gpu(f"10de:{device}") if whole.startswith(beginning) and len(whole) > len(beginning) + _CUT else None
            if row is not None and (gib is None or memory_gib(name) in (None, gib)):
                found.append(msgspec.structs.replace(row, name=name))
    agreed, names = _agreed(found), {row.name for row in found}
    return agreed if agreed is None or len(names) == 1 else msgspec.structs.replace(agreed, name=f"{beginning} …")


def _agreed(told: list[GpuRow]) -> GpuRow | None:
    """Return the first of some rows without the chip where they differ in that, `None` where they differ in what counts."""
    if not told or len({(row.architecture, row.compute_capability) for row in told}) != 1:
        return None
    return told[0] if len({row.chip for row in told}) == 1 else msgspec.structs.replace(told[0], chip=None)


_VENDOR_WORDS = re.compile(r"\b(nvidia|geforce|tesla|quadro|graphics|gpu)\b|[^a-z0-9]+")


def squashed(name: str) -> str:
    """Return a device name without vendor words, for comparing."""
    return _VENDOR_WORDS.sub("", name.lower())


@cache
def cpu(model: str) -> CpuRow | None:
    """Return what is known of a processor by the model name that the kernel prints, or `None`."""
    # Every pattern begins with the family's word; compiling those of other families costs more than all the rest.
    # Capitals say nothing: the fifth Xeons call themselves "INTEL(R) XEON(R) PLATINUM 8570".
    families = set(re.findall(r"\w+", model.lower()))
    likely = (row for row in rows("cpus.toml", "cpu", CpuRow) if row.model.partition(" ")[0].partition("\\")[0].lower() in families)
    return next((row for row in likely if re.search(row.model, model, re.IGNORECASE)), None)
