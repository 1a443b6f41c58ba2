"""What runs on a machine: system, driver, toolkits, environments, and who uses the cards. `None` means that something is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steps.model.base import Record

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
    """Files and folders that it is known to have written, the uninstaller too; root may read of more in its list.

    Of a driver that was replaced in part, not all are its own.
    """
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
    chain: str | None = None
    """Of nftables: the chain that decides, by family, table and name."""


class Ranks(Record):
    """What the ranks of a training run meet on this machine beside cards and interfaces."""

    shm_bytes: int | None = None
    """The most that /dev/shm may hold."""
    memlock: int | Literal["unlimited"] | None = None
    """How many bytes a process may lock."""
    firewall: Firewall | None = None
    """`None` when there is none, or nothing told of it."""
    files: tuple[NcclFile, ...] = ()
    kept: Mapping[str, Literal["unreadable", "encoding"]] = {}
    """Files of NCCL's that must not be written over: what stands in them could not be read, or not as UTF-8, and would be lost."""
    rdma: bool | None = None
    """Whether the kernel has RDMA devices."""
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
