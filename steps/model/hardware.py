"""The parts of a machine: processor, memory, disks, network, buses and cards. `None` means that something is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steps.model.base import Record

Vendor = Literal["nvidia", "amd", "intel", "habana", "other"]


class SriovDevice(Record):
    """One device that can split itself, and its virtual functions now."""

    address: str
    total: int | None = None
    enabled: int | None = None


class FirmwareSriov(Record):
    """Devices that can split themselves, and how many virtual functions exist now."""

    capable: tuple[str, ...] = ()
    enabled: int | None = None
    devices: tuple[SriovDevice, ...] = ()


class Firmware(Record):
    """The board and what its BIOS set."""

    vendor: str | None = None
    board: str | None = None
    product: str | None = None
    bios_version: str | None = None
    bios_date: str | None = None
    uefi: bool | None = None
    secure_boot: Literal["enabled", "disabled", "setup", "unsupported"] | None = None
    iommu: Literal["on", "passthrough", "off"] | None = None
    above_4g: bool | None = None
    resizable_bar: bool | None = None
    sriov: FirmwareSriov | None = None
    enrolled_keys: tuple[str, ...] | None = None
    """Names of the keys that the machine's owner enrolled (MOK); `None` when they could not be listed."""
    queued_keys: tuple[str, ...] | None = None
    """Names of the keys that wait for somebody at the console at the next boot; `None` when they could not be listed."""
    iommu_groups: Mapping[str, int] | None = None
    """Groups by the kind of their domain (`DMA-FQ`, `identity`); empty where the kernel does not tell the kind."""


class IdleState(Record):
    """One C-state as the kernel spells it."""

    name: str
    latency_us: int | None = None
    enabled: bool | None = None


class Cpu(Record):
    """All processors together; `pcie_lanes` counts the lanes of the whole machine as makers list them."""

    model: str | None = None
    vendor: str | None = None
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None
    l3_bytes: int | None = None
    numa_nodes: int | None = None
    pcie_lanes: int | None = None
    governor: str | None = None
    idle_driver: str | None = None
    idle_states: tuple[IdleState, ...] | None = None


class MemoryNode(Record):
    """One NUMA node: the memory and the processors (threads) on it."""

    node: int
    bytes: int | None = None
    threads: int | None = None


class Memory(Record):
    """Main memory."""

    total_bytes: int | None = None
    ecc: bool | None = None
    type: str | None = None
    modules: int | None = None
    nodes: tuple[MemoryNode, ...] = ()


class Disk(Record):
    """One whole disk."""

    name: str
    model: str | None = None
    bytes: int | None = None
    tier: Literal["nvme", "ssd", "hdd", "external", "virtual", "raid"] | None = None


class Network(Record):
    """One network interface; `speed_mbps` is in Mbit/s."""

    name: str
    driver: str | None = None
    kind: Literal["ethernet", "infiniband", "wifi", "virtual", "loopback"] | None = None
    up: bool | None = None
    speed_mbps: int | None = None
    addresses: tuple[str, ...] = ()
    device: str | None = None
    """The PCI address of the device behind it; `None` for one without."""
    numa_node: int | None = None
    bridges: tuple[str, ...] = ()
    """The bridges above that device, the root port first."""
    master: str | None = None
    """The bond, team or bridge that it belongs to; `None` for one that stands alone, and where that is not known."""
    carriers: tuple[str, ...] = ()
    """The cards below a bond, team or bridge."""


class InfinibandPort(Record):
    """One port of an RDMA device; `interface` is its network interface, `None` where it has none or that is not known."""

    device: str
    port: int
    state: str | None = None
    link_layer: str | None = None
    rate_mbps: int | None = None
    address: str | None = None
    numa_node: int | None = None
    interface: str | None = None
    bridges: tuple[str, ...] = ()
    """Addresses of the bridges above it, the root port first."""


class PcieLink(Record):
    """The link of a device now and at most (generation 1–6, width in lanes)."""

    generation: int | None = None
    max_generation: int | None = None
    width: int | None = None
    max_width: int | None = None


class Bridge(Record):
    """One PCI bridge above an accelerator; its link is the one that it leads up to, seen from a port, down to the device.

    `target_generation` is the speed that firmware or kernel allow the port, `redirects` whether ACS sends the traffic
    between devices below it up to the processor. Both stand in configuration space, which only root reads.
    """

    address: str
    pci_id: str | None = None
    link: PcieLink | None = None
    target_generation: int | None = None
    redirects: bool | None = None
    isolation: int | None = None
    """The whole ACS control word."""


class Sriov(Record):
    """Virtual functions of one device."""

    total: int | None = None
    enabled: int | None = None


class PowerLimit(Record):
    """How much power a part may draw, in watts: now, as its maker set it, and at most; a default that is not shown is `None`."""

    watts: float
    default: float | None = None
    most: float | None = None


class Fan(Record):
    """One fan of the board; `rpm` is turns a minute, 0 also where nothing is plugged in."""

    name: str
    chip: str | None = None
    rpm: int | None = None


class Power(Record):
    """What the board sets about power and cooling, as far as the system sees it; empty where it shows nothing."""

    profile: str | None = None
    """The firmware's power profile: `low-power`, `quiet`, `balanced`, `performance` …"""
    packages: tuple[PowerLimit, ...] = ()
    """The lasting limit of each processor package."""
    fans: tuple[Fan, ...] = ()


class Accelerator(Record):
    """One GPU or other accelerator; `kernel_driver` is what is bound to it, `None` when nothing is."""

    address: str | None = None
    vendor: Vendor
    pci_id: str | None = None
    name: str | None = None
    chip: str | None = None
    architecture: str | None = None
    compute_capability: str | None = None
    gfx: str | None = None
    memory_bytes: int | None = None
    kernel_driver: str | None = None
    pcie: PcieLink | None = None
    bar1_bytes: int | None = None
    numa_node: int | None = None
    integrated: bool = False
    sriov: Sriov | None = None
    ecc: bool | None = None
    mig: bool | None = None
    bridges: tuple[str, ...] = ()
    """Addresses of the bridges above it, the root port first; they are described in `Machine.bridges`."""
    utilization: int | None = None
    """Per cent of time that it computed just now."""
    performance_state: str | None = None
    """`P0` is full speed, `P8` and above idle."""
    power: PowerLimit | None = None
    fan_percent: int | None = None
    """How fast its fan turns; `None` for a card without one."""
    slowed: tuple[str, ...] = ()
    """Why its hardware slows it down now: `thermal`, `power-brake`; empty where it does not, or nobody says."""


class Link(Record):
    """How accelerators `a` and `b` (positions in `Machine.accelerators`) reach each other."""

    a: int
    b: int
    kind: str
