"""The hardware guide and the monitoring tools, as records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from steps.catalog.load import rows
from steps.catalog.versions import at_least
from steps.model.base import Record
from steps.model.hardware import Accelerator


class Demand(Record):
    """The least a machine should have of one thing; `tolerance` is the share by which nominal sizes fall short."""

    item: str
    minimum: float
    tolerance: float = 0.0
    source: str

    def met(self, value: float) -> bool:
        """Return whether `value` is enough."""
        return value >= self.minimum * (1 - self.tolerance)


class Limit(Record):
    """The most of one thing that does no harm."""

    item: str
    maximum: float
    source: str


class Goal(Record):
    """What a machine is wanted for, and how much each thing that is short matters for it."""

    id: str
    much: tuple[str, ...] = ()
    """Codes that matter more than usual: a warning."""
    some: tuple[str, ...] = ()
    """Codes that matter less than usual: a remark."""
    none: tuple[str, ...] = ()
    """Codes that do not matter: nothing is said."""


class Old(Record):
    """Architectures of one vendor that are older than the guide's minimum."""

    vendor: str
    architectures: tuple[str, ...]
    source: str


class NoNvlink(Record):
    """Chips and whole architectures without NVLink, and cards that leave out their chip's edge for it."""

    chips: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    source: str


class NoPeers(Record):
    """Cards of a brand whose driver offers no peer-to-peer copies over PCIe."""

    brand: str
    architectures: tuple[str, ...]
    source: str


class Gpudirect(Record):
    """Who is offered GPUDirect RDMA: not the brands in `without`; from `dma_buf_kernel` on it needs no module with open kernel modules."""

    without: tuple[str, ...]
    dma_buf_kernel: tuple[int, int]
    source: str


class FirewallTool(Record):
    """How a firewall is told to let a whole subnet in; SUBNET stands for it, CHAIN for the chain of nftables that decides."""

    tool: str
    command: str
    source: str


class NativeLink(Record):
    """The PCIe generation that the silicon of some architectures has."""

    architectures: tuple[str, ...]
    generation: int
    source: str


class OnBoard(Record):
    """Names of chips that sit beside their processor, and what joins the two: their PCIe link carries no data."""

    names: tuple[str, ...]
    link: str
    source: str


class Virtual(Record):
    """Prefixes of interface names that reach no other machine, and patterns of whole names."""

    prefixes: tuple[str, ...]
    names: tuple[str, ...] = ()
    what: Literal["containers", "virtual-machines", "vpn", "kernel"]


class LeftAlone(Record):
    """Prefixes of interface names that NCCL's own search leaves alone, and the first release that does; `None` where all do."""

    prefixes: tuple[str, ...]
    since: str | None = None
    source: str


class Picking(Record):
    """How NCCL looks for interfaces by itself: prefixes that it takes before all others, and the first release that wants a cable."""

    first: tuple[str, ...]
    running_since: str
    source: str
    ports: str
    """Where it is written that it takes active ports of RDMA devices only."""
    addresses: str
    """Where it is written which GID of a RoCE port it takes."""


class PeerLevel(Record):
    """Over which links of `nvidia-smi topo` NCCL copies directly by itself; with so few `cards` beside such a `processor` over any."""

    links: tuple[str, ...]
    processor: str
    cards: int
    source: str


class Newer(Record):
    """A command that works from a release of a program on; `program` is what `Machine.tools` calls it."""

    program: str
    since: str
    command: str
    source: str


class Tool(Record):
    """A monitoring or container tool and how it comes."""

    id: str
    key: str
    """Its profile key."""
    label: str
    how: Literal["python-tool", "service", "packages"]
    requirement: str | None = None
    """What `uv tool install` is given."""
    unit: str | None = None
    """The systemd unit that is enabled; of packages, once they are installed."""
    traps: tuple[str, ...] = ()
    """What to know before it is relied on, by its key in `monitoring.trap`."""
    scrape: tuple[str, ...] = ()
    """The lines by which Prometheus finds it."""
    packages: Mapping[str, tuple[str, ...]] = {}
    """Package names by distribution id; `{cuda}` is the driver's CUDA major. A distribution that is not named has none that we know of."""
    repository: bool = False
    """Whether the packages lie in NVIDIA's network repository."""
    gpus: tuple[str, ...] = ()
    """The vendors it is for; empty: it is of use without a GPU."""
    command: str
    """What a person types to use it."""
    newer: Newer | None = None
    """What they type where a program is known to be new enough."""
    source: str

    def command_with(self, versions: Mapping[str, str | None]) -> str:
        """Return what a person types with these versions of programs; what is not known counts as old."""
        have = versions.get(self.newer.program) if self.newer else None
        return self.newer.command if self.newer and have and at_least(have, self.newer.since) else self.command


class IdleUnit(Record):
    """Packages whose unit of the persistence daemon leaves the mode off, and the drop-in that turns it on."""

    os: tuple[str, ...]
    sources: tuple[str, ...]
    """Where a driver with such packages comes from."""
    packages: tuple[str, ...]
    """How the names of such packages begin."""
    path: str
    text: str
    source: str

    def is_with(self, package: str) -> bool:
        """Return whether a package is, or brings along, one with such a unit."""
        return package.startswith(self.packages)


def idle_unit() -> IdleUnit:
    """Return which packages leave persistence mode off, and what turns it on."""
    (row,) = rows("monitoring.toml", "idle_unit", IdleUnit)
    return row


def demand(item: str) -> Demand:
    """Return the demand on one measure."""
    found: tuple[Demand, ...] = rows("guide.toml", "demand", Demand)
    return next(row for row in found if row.item == item)


def limit(item: str) -> Limit:
    """Return the limit of one measure."""
    found: tuple[Limit, ...] = rows("guide.toml", "limit", Limit)
    return next(row for row in found if row.item == item)


def old_architecture(vendor: str, architecture: str | None) -> Old | None:
    """Return the row that calls an architecture old; `None` for a new or unknown one."""
    return next((row for row in rows("guide.toml", "old", Old) if row.vendor == vendor and architecture in row.architectures), None)


def without_nvlink(card: Accelerator) -> NoNvlink | None:
    """Return the row that says a card has no NVLink; `None` when it may have one or is not known."""
    found = rows("guide.toml", "nvlink", NoNvlink)
    return next((row for row in found if card.chip in row.chips or card.architecture in row.architectures or card.name in row.cards), None)


def without_peers(name: str | None, architecture: str | None) -> NoPeers | None:
    """Return the row that says a card has no P2P over PCIe; `None` when it may have it or is not known."""
    found = rows("guide.toml", "p2p", NoPeers)
    return next((row for row in found if name is not None and row.brand in name and architecture in row.architectures), None)


def gpudirect() -> Gpudirect:
    """Return what GPUDirect RDMA needs."""
    (row,) = rows("guide.toml", "gpudirect", Gpudirect)
    return row


def firewall(tool: str) -> FirewallTool:
    """Return how one firewall is opened."""
    return next(row for row in rows("guide.toml", "firewall", FirewallTool) if row.tool == tool)


def native_link(architecture: str | None) -> NativeLink | None:
    """Return what the silicon of an architecture can; `None` when no source says so."""
    return next((row for row in rows("guide.toml", "native_link", NativeLink) if architecture in row.architectures), None)


def on_board(name: str | None) -> OnBoard | None:
    """Return the row of a chip that sits beside its processor, without a slot; `None` for a card, and for a chip without a name."""
    words = set(re.findall(r"\w+", name or ""))
    return next((row for row in rows("guide.toml", "on_board", OnBoard) if words & set(row.names)), None)


def virtual(interface: str) -> Virtual | None:
    """Return the row that explains a virtual interface by its name; `None` for any other name."""
    found = rows("guide.toml", "virtual", Virtual)
    return next(
        (row for row in found if interface.startswith(row.prefixes) or any(re.fullmatch(one, interface) for one in row.names)), None
    )


def left_alone() -> tuple[LeftAlone, ...]:
    """Return which interfaces NCCL does not take by itself."""
    return rows("guide.toml", "left_alone", LeftAlone)


def picking() -> Picking:
    """Return how NCCL looks for interfaces."""
    (row,) = rows("guide.toml", "picking", Picking)
    return row


def peer_level() -> PeerLevel:
    """Return how far NCCL copies directly."""
    (row,) = rows("guide.toml", "peer_level", PeerLevel)
    return row


def goals() -> tuple[Goal, ...]:
    """Return what a machine can be wanted for, in the order of the options."""
    return rows("guide.toml", "goal", Goal)


def goal(id: str) -> Goal:
    """Return one goal."""
    return next(row for row in goals() if row.id == id)


def tools() -> tuple[Tool, ...]:
    """Return the monitoring and container tools in the order of the screen."""
    return rows("monitoring.toml", "tool", Tool)
