"""The PCI bridges between the processor and the accelerators: how fast each may go, and what it does with direct copies."""

from __future__ import annotations

from steps.detect import configuration, pci
from steps.detect.configuration import Configuration
from steps.detect.pci import Device
from steps.detect.probes import Probes
from steps.model.hardware import Accelerator, Bridge, PcieLink

_NVSWITCH = "0680"


def above(device: Device, bus: tuple[Device, ...]) -> tuple[str, ...]:
    """Return the addresses of the bridges above a device, the root port first."""
    known = {other.address for other in bus}
    return tuple(address for address in device.branch[:-1] if address in known)


def bridges(host: Probes, cards: tuple[Accelerator, ...], bus: tuple[Device, ...]) -> tuple[Bridge, ...]:
    """Return the bridges above the accelerators that are not part of the processor, by address."""
    wanted = {address for card in cards if not card.integrated for address in card.bridges}
    devices = [device for device in bus if device.address in wanted]
    printed = _printed(host) if devices else {}
    return tuple(_bridge(host, device, printed.get(device.address)) for device in devices)


def _bridge(host: Probes, device: Device, printed: Configuration | None) -> Bridge:
    seen = pci.detailed(host, device)
    told = configuration.from_bytes(host.read_bytes(f"{pci.DEVICES}/{device.address}/config") or b"")
    printed = printed or Configuration()
    return Bridge(
        address=device.address,
        pci_id=device.pci_id if device.device else None,
        link=seen.link if seen.link != PcieLink() else None,
        target_generation=told.target_generation or printed.target_generation,
        redirects=told.redirects if told.redirects is not None else printed.redirects,
        isolation=told.isolation if told.isolation is not None else printed.isolation,
    )


def _printed(host: Probes) -> dict[str, Configuration]:
    """Return what a capture's lspci shows; a machine itself is read by bytes, which lspci could not see more of either."""
    found: dict[str, Configuration] = {}
    for argv in host.host.recorded():
        if argv[0] == "lspci" and any(part.startswith("-") and "vv" in part for part in argv):
            found.update(configuration.from_lspci(host.run(argv).stdout))
    return found


def nvswitches(bus: tuple[Device, ...]) -> tuple[str, ...]:
    """Return the addresses of NVIDIA's NVSwitch chips: bridges of its own that are no PCI bridges."""
    return tuple(device.address for device in bus if device.vendor == "10de" and device.kind[:4] == _NVSWITCH)
