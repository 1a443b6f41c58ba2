"""The RDMA devices and their ports: InfiniBand and RoCE, with or without a network interface."""

from __future__ import annotations

import re

from steps.detect import bridges, pci
from steps.detect.pci import Device
from steps.detect.probes import Probes
from steps.model.hardware import InfinibandPort, Network

RDMA = "/sys/class/infiniband"


def infiniband(host: Probes, bus: tuple[Device, ...], networks: tuple[Network, ...]) -> tuple[InfinibandPort, ...]:
    """Return the ports by device and number, with the interface that hangs on the same PCI device; empty without RDMA devices."""
    devices = {device.address: device for device in bus}
    found: list[InfinibandPort] = []
    for device in host.listdir(RDMA) or ():
        at = f"{RDMA}/{device}"
        address = device_address(host, at)
        behind = devices.get(address or "")
        beside = [network.name for network in networks if address is not None and network.device == address]
        for port in host.listdir(f"{at}/ports") or ():
            if re.fullmatch(r"[0-9]{1,9}", port):
                state = (host.line(f"{at}/ports/{port}/state") or "").rpartition(":")[2].strip().lower()
                found.append(
                    InfinibandPort(
                        device=device,
                        port=int(port),
                        state=state or None,
                        link_layer=host.line(f"{at}/ports/{port}/link_layer"),
                        rate_mbps=_rate(host.line(f"{at}/ports/{port}/rate")),
                        address=address,
                        numa_node=behind.numa_node if behind else None,
                        interface=beside[0] if len(beside) == 1 else None,
                        bridges=bridges.above(behind, bus) if behind else (),
                    )
                )
    return tuple(found)


def device_address(host: Probes, at: str) -> str | None:
    """Return the PCI address behind a class device: by its `device` link, else by the way to itself."""
    for link in (f"{at}/device", at):
        parts = [part for part in (host.readlink(link) or "").split("/") if pci.ADDRESS.match(part)]
        if parts:
            return parts[-1]
    return None


def _rate(text: str | None) -> int | None:
    """Return the Mbit/s of `200 Gb/sec (4X HDR)`."""
    found = re.match(r"(\d{1,5}(?:\.\d{1,2})?) Gb/sec", text or "")
    return round(float(found[1]) * 1000) if found else None
