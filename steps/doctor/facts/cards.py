"""The NVIDIA cards that anything names: the bus, nvidia-smi, or a message with a device id."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.catalog import devices as catalog
from steps.catalog.devices import GpuRow
from steps.detect import pci
from steps.detect.probes import Probes
from steps.detect.smi import Smi
from steps.doctor.told import Place, Told
from steps.model.base import Record


class Card(Told):
    """One card; `row` is what the tables know of it, `None` for one that they do not name."""

    address: str | None = None
    pci_id: str | None = None
    name: str | None = None
    driver: str | None = None
    """Who drives it now; `None` for nobody, or when that was not seen (`driver_known`)."""
    driver_known: bool = False
    row: GpuRow | None = None

    @property
    def architecture(self) -> str | None:
        """Return the architecture in lower case, or `None`."""
        return self.row.architecture if self.row else None


class Cards(Record):
    """The cards that are known, and whether the bus was looked at for NVIDIA's."""

    cards: tuple[Card, ...] = ()
    bus_seen: bool = False
    none_listed: bool = False
    """Whether a list of NVIDIA's devices came back empty."""


def cards(host: Probes, smi: Smi) -> Cards:
    """Return the cards of a machine: from the bus, else as nvidia-smi names them."""
    found = [_of_bus(device) for device in pci.devices(host) if device.vendor == "10de" and device.kind[:4] in ("0300", "0302", "")]
    if not found:
        found = [*_loosely(host)]
    if not found:
        source = "nvidia-smi"
        found = [
            Card(
                place=Place(source=source, text=gpu.name or gpu.cut_name or gpu.address or ""),
                address=gpu.address,
                name=gpu.name,
                row=_row(None, gpu.name),
            )
            for gpu in smi.gpus
        ]
    only = host.forms(lambda argv: argv[0] == "lspci" and "10de:" in " ".join(argv))
    empty = any(host.run(argv).status in (0, None) and not host.run(argv).text.strip() for argv in only)
    return Cards(cards=tuple(found), bus_seen=pci.seen(host), none_listed=empty and not found)


def _of_bus(device: pci.Device) -> Card:
    pci_id = device.pci_id if device.device else None
    row = _row(pci_id, device.name)
    text = " ".join(part for part in (device.address, device.name or (row.name if row else None), f"[{device.pci_id}]") if part)
    source = "lspci" if device.name else f"{pci.DEVICES}/{device.address}"
    name = row.name if row else device.name
    return Card(
        place=Place(source=source, text=text), address=device.address, pci_id=pci_id, name=name, driver=device.driver,
        driver_known=device.driver_known, row=row,
    )  # fmt: skip


def of_name(name: str, place: Place) -> Card:
    """Return the card of a name that a program printed."""
    return Card(place=place, name=name, row=_row(None, name))


_IN_BRACKETS = re.compile(r"NVIDIA Corporation (?P<chip>\S+) \[(?P<name>[^\]]+)\]")


def _row(pci_id: str | None, name: str | None) -> GpuRow | None:
    found = catalog.gpu(pci_id) if pci_id else None
    if found is None and name:
        bracketed = _IN_BRACKETS.search(name)
        found = catalog.gpu_by_name(bracketed["name"] if bracketed else re.sub(r"^NVIDIA Corporation ", "", name))
    return found


def _loosely(host: Probes) -> Iterator[Card]:
    """Yield the cards of an lspci whose lines were cut: a device id, or a name in brackets, is enough."""
    usual = (("lspci", "-nn"),) if host.listdir(pci.DEVICES) is None else ()
    for argv in host.forms(lambda argv: argv[0] == "lspci", *usual):
        text = host.run(argv).text
        named = [found for found in _IN_BRACKETS.finditer(text) if "Audio" not in found[0]]
        ids = [found[0].lower() for found in re.finditer(r"\b10de:[0-9a-fA-F]{4}\b", text)]
        for position, pci_id in enumerate(dict.fromkeys(ids)):
            if (row := catalog.gpu(pci_id)) is not None:
                line = named[position][0] if position < len(named) else pci_id
                yield Card(place=Place(source=" ".join(argv), text=line), pci_id=pci_id, name=row.name, row=row)
        if not ids:
            for found in named:
                yield Card(place=Place(source=" ".join(argv), text=found[0]), name=found["name"], row=_row(None, found[0]))
