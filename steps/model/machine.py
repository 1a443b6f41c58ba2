"""The facts about one machine, shaped as the `detect` document of the contract.

`None` always means *not known*. Sizes are bytes, latencies microseconds, versions strings.
"""

from __future__ import annotations

from collections.abc import Mapping

from steps.model.base import Record
from steps.model.finding import Finding
from steps.model.hardware import (
    Accelerator,
    Bridge,
    Cpu,
    Disk,
    Firmware,
    InfinibandPort,
    Link,
    Memory,
    Network,
    Power,
)
from steps.model.offers import Offers
from steps.model.software import (
    BootEntry,
    Driver,
    Environment,
    GpuUser,
    Library,
    Os,
    Ranks,
    Told,
    Toolkit,
)


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
