"""The facts about one machine, shaped as the `detect` document of the contract.

`None` always means *not known*. Sizes are bytes, latencies microseconds, versions strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steps.model.base import Record
from steps.model.finding import Finding
from steps.model.offers import Offers

Vendor = Literal["nvidia", "amd", "intel", "habana", "other"]
DriverState = Literal["working", "absent", "not-loaded", "mismatch", "blocked", "failing", "unknown"]
Flavor = Literal["open", "proprietary"]
Origin = Literal["apt", "dnf", "runfile", "mixed"]


class Os(Record):
    """The installed system; `init` is the name of process 1, `container` and `virtualization` are "none" when ruled out."""

    id: str | None = None
    version: str | None = None
    codename: str | None = None
    name: str | None = None
    kernel: str | None = None
    arch: str | None = None
    glibc: str | None = None
    gcc: str | None = None
    init: str | None = None
    virtualization: str | None = None
    container: str | None = None
    wsl: bool | None = None


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


class Package(Record):
    """An installed package."""

    name: str
    version: str | None = None


class KernelModule(Record):
    """What one installed kernel has of NVIDIA's driver; `version` is `None` when there is no module for it, or it was not read."""

    kernel: str
    present: bool | None = None
    version: str | None = None
    flavor: Flavor | None = None
    signer: str | None = None
    """Who signed the module; `None` when nobody did, or that is not known."""
    dkms: str | None = None
    """DKMS's word: `added`, `built`, `installed`; `None` when DKMS knows nothing of this kernel."""
    headers: bool | None = None


class RunFile(Record):
    """A driver that NVIDIA's own installer (a `.run` file) wrote, and its uninstaller, which has no way back."""

    uninstaller: str
    files: tuple[str, ...] = ()
    """Files and folders that it is known to have written, the uninstaller too; of one that was replaced in part, not all are its own."""
    kept: tuple[str, ...] = ()
    """Names under which an earlier removal keeps such files for its undo."""


class Driver(Record):
    """The accelerator driver; `kernel_version` is of the loaded module, `library_version` of user space."""

    state: DriverState = "unknown"
    kernel_version: str | None = None
    library_version: str | None = None
    flavor: Flavor | None = None
    source: Origin | None = None
    cuda_max: str | None = None
    packages: tuple[Package, ...] = ()
    modules: tuple[KernelModule, ...] = ()
    """Per installed kernel, the newest last."""
    leftovers: tuple[str, ...] = ()
    """What NVIDIA's own installer left on disk."""
    run_file: RunFile | None = None
    """What its uninstaller would take away; `None` where there is no uninstaller."""
    nouveau: Literal["loaded", "blacklisted", "free"] | None = None
    """Whether the kernel's own driver holds cards, is kept out, or may come at the next boot."""
    stream: str | None = None
    """The module stream of dnf's that is enabled for NVIDIA's driver (`580-open`); `None` without one, or when not known."""
    fabric_manager: str | None = None
    """What systemd says of the service that joins NVSwitches (`active`, `failed` …); `None` without NVSwitches or when not known."""


class Toolkit(Record):
    """One CUDA (or ROCm) toolkit on disk."""

    version: str | None = None
    path: str | None = None
    source: str | None = None


class Library(Record):
    """One cuDNN or NCCL on disk."""

    version: str | None = None
    source: str | None = None


class Environment(Record):
    """One Python environment and the frameworks in it (distribution name → version)."""

    manager: str | None = None
    name: str | None = None
    path: str | None = None
    python: str | None = None
    frameworks: Mapping[str, str] = {}


class NcclFile(Record):
    """A configuration file that NCCL reads, as it stands."""

    path: str
    text: str


class Firewall(Record):
    """What decides about incoming connections; `open` are subnets and interfaces from which all of them are let in.

    `drops` is whether what no rule names is dropped; `None` when that is not known.
    """

    tool: Literal["ufw", "firewalld", "nftables", "iptables"]
    active: bool | None = None
    drops: bool | None = None
    open: tuple[str, ...] = ()


class Ranks(Record):
    """What the ranks of a training run meet on this machine beside cards and interfaces."""

    shm_bytes: int | None = None
    """The most that /dev/shm may hold."""
    memlock: int | Literal["unlimited"] | None = None
    """How many bytes a process may lock."""
    firewall: Firewall | None = None
    """`None` when there is none, or nothing told of it."""
    files: tuple[NcclFile, ...] = ()
    peermem: bool | None = None
    """Whether the module is loaded by which InfiniBand cards reach GPU memory."""


class GpuUser(Record):
    """A process that holds a GPU's device file open now; `container` is the kind of container it runs in."""

    pid: int
    name: str | None = None
    devices: tuple[str, ...] = ()
    container: str | None = None


class Told(Record):
    """What the installed system was told about its hardware, to be planned with; no part of the `detect` document."""

    loader: str | None = None
    """What makes the boot menu, an id of `linux.toml`; `None` when not known."""
    parameters: tuple[str, ...] | None = None
    """The running kernel's command line."""
    systemd: bool | None = None
    kernels: tuple[str, ...] = ()
    """The kernels in /boot, by release."""
    preference: str | None = None
    """What the processors were told to prefer, where they choose their clock themselves (`performance`, `balance_power` …)."""
    governors: tuple[str, ...] | None = None
    """The services that set the governor and start at boot, ids of `linux.toml`; `None` when nobody could look."""
    domains: Mapping[str, str] = {}
    """What the IOMMU does with a card (`identity`, `DMA-FQ` …) by its address, where the kernel tells."""
    texts: Mapping[str, str] = {}
    """The files that a plan would edit, as they are now."""
    names: tuple[str, ...] = ()
    """What the board and the machine call themselves, maker's names first: the rows of `boards.toml` are found by them."""
    portable: bool = False
    """Whether its case says that it is a laptop or a tablet."""
    nvlink: bool = False
    """Whether the driver said which cards NVLink joins; else `Machine.links` are ways through the PCI tree, which do not show it."""


class BootEntry(Record):
    """One kernel that the boot loader may start; `default` says that it starts by itself."""

    kernel: str | None = None
    title: str = ""
    default: bool = False
    options: str = ""
    initramfs: str | None = None


class Machine(Record):
    """Everything that is known about a machine."""

    os: Os = Os()
    firmware: Firmware = Firmware()
    cpu: Cpu = Cpu()
    memory: Memory = Memory()
    power: Power = Power()
    disks: tuple[Disk, ...] = ()
    networks: tuple[Network, ...] = ()
    accelerators: tuple[Accelerator, ...] = ()
    links: tuple[Link, ...] = ()
    bridges: tuple[Bridge, ...] = ()
    nvswitches: tuple[str, ...] = ()
    infiniband: tuple[InfinibandPort, ...] = ()
    ranks: Ranks = Ranks()
    users: tuple[GpuUser, ...] | None = None
    """Who uses the accelerators now, as far as we may see; `None` when nobody looked."""
    driver: Driver = Driver()
    toolkits: tuple[Toolkit, ...] = ()
    cudnn: tuple[Library, ...] = ()
    nccl: tuple[Library, ...] = ()
    environments: tuple[Environment, ...] = ()
    tools: Mapping[str, str | None] = {}
    gaps: tuple[Finding, ...] = ()
    """What could not be known, and why."""
    library_path: tuple[str, ...] | None = None
    """The folders in LD_LIBRARY_PATH; no part of the `detect` document."""
    headers: bool | None = None
    """Whether the headers of the running kernel are here; no part of the `detect` document."""
    held: tuple[str, ...] | None = None
    """The packages that the package manager was told to leave alone; no part of the `detect` document."""
    told: Told = Told()
    """No part of the `detect` document."""
    boot: tuple[BootEntry, ...] | None = None
    """What the boot loader's menu holds; `None` when it could not be read. No part of the `detect` document."""
    offers: Offers | None = None
    """What can be had from here; asked for after the machine is known, and no part of the `detect` document."""


def judged(machine: Machine) -> tuple[Accelerator, ...]:
    """Return the accelerators that choices are made for: the discrete ones of the machine's one vendor.

    NVIDIA goes before AMD, AMD before Habana; integrated GPUs and other vendors are never judged.
    """
    for vendor in ("nvidia", "amd", "habana"):
        found = tuple(a for a in machine.accelerators if a.vendor == vendor and not a.integrated)
        if found:
            return found
    return ()
