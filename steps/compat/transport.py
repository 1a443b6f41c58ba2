"""How data goes between the ranks: from card to card, from card to network card, and what of the system stands in the way."""

from __future__ import annotations

from ipaddress import ip_interface, ip_network
from itertools import combinations
from typing import Literal

from steps.catalog import guide
from steps.compat.interfaces import best_interface
from steps.compat.nccl_conf import stated, variable_source, variables
from steps.compat.nccl_said import said
from steps.compat.setting import guest
from steps.detect.measures import cards, storage
from steps.model.base import Record, Words, phrase
from steps.model.finding import Finding
from steps.model.hardware import Accelerator, InfinibandPort, Network
from steps.model.machine import Machine, judged
from steps.model.profile import Profile
from steps.model.software import Firewall

Way = Literal["nvlink", "pcie", "detour", "memory", "unknown"]
Reason = Literal["policy", "iommu", "acs", "processor", "sockets"]
_RDMA_DRIVERS = ("mlx4_core", "mlx4_en", "mlx5_core", "bnxt_en", "qede")
"""Drivers of interfaces whose cards may do RDMA."""
_CROSSED = ("PHB", "NODE", "SYS")
"""Links over the processor."""
SHM = "/dev/shm"  # noqa: S108  # where NCCL puts it
_TROUBLE = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"


# --- card to card ---------------------------------------------------------------------------------


class Pair(Record):
    """How two cards (positions in `Machine.accelerators`) copy to each other, as far as the facts say; the proof measures it."""

    a: int
    b: int
    kind: str | None = None
    """The link as `nvidia-smi topo` spells it; `None` when it is not known."""
    way: Way
    reason: Reason | None = None


def pairs(machine: Machine) -> tuple[Pair, ...]:
    """Return every pair of NVIDIA cards that are judged."""
    found = [at for at, card in enumerate(machine.accelerators) if card in judged(machine) and card.vendor == "nvidia"]
    kinds = {frozenset((one.a, one.b)): one.kind for one in machine.links}
    return tuple(_pair(machine, a, b, kinds.get(frozenset((a, b)))) for a, b in combinations(found, 2))


def _pair(machine: Machine, a: int, b: int, kind: str | None) -> Pair:
    first, second = machine.accelerators[a], machine.accelerators[b]
    way, reason = _way(machine, first, second, kind)
    return Pair(a=a, b=b, kind=kind, way=way, reason=reason)


def _way(machine: Machine, first: Accelerator, second: Accelerator, kind: str | None) -> tuple[Way, Reason | None]:
    """Return how two cards reach each other, the strongest reason first."""
    if (kind or "").startswith("NV"):
        return "nvlink", None
    if any(guide.without_peers(card.name, card.architecture) is not None for card in (first, second)):
        return "memory", "policy"
    if guest(machine) or _may_be_joined(machine, first, second):
        return "unknown", None
    if machine.firmware.iommu == "on":
        return "detour", "iommu"
    if _redirected(machine, first, second):
        return "detour", "acs"
    return _by_level(machine, kind)


def _may_be_joined(machine: Machine, *cards: Accelerator) -> bool:
    """Whether NVLink may join cards and the driver did not say: their way through the PCI tree tells nothing then."""
    return not machine.told.nvlink and all(guide.without_nvlink(card) is None for card in cards)


def _by_level(machine: Machine, kind: str | None) -> tuple[Way, Reason | None]:
    """Return how NCCL copies over a link that nothing stands in the way of: by itself it goes over switches, not over a processor."""
    level = guide.peer_level()
    if kind in level.links:
        return "pcie", None
    if kind not in _CROSSED:
        return "unknown", None
    if sum(card.vendor == "nvidia" for card in judged(machine)) > level.cards:
        return "memory", "processor"
    if machine.cpu.vendor is None:
        return "unknown", None
    if machine.cpu.vendor != level.processor:
        return "memory", "processor"
    return ("unknown", "sockets") if kind == "SYS" else ("pcie", None)


def _redirected(machine: Machine, first: Accelerator, second: Accelerator) -> bool:
    """Whether a bridge between two cards below one switch sends their copies up to the processor."""
    shared = set(first.bridges) & set(second.bridges)
    between = (set(first.bridges) | set(second.bridges)) - shared
    return bool(shared) and any(bridge.redirects for bridge in machine.bridges if bridge.address in between)


def groups(found: tuple[Pair, ...]) -> tuple[tuple[str, Pair], ...]:
    """Return the pairs in groups that go the same way: their names ("0-1 0-2", or "" for all of them), and one of them."""
    kinds: dict[tuple[str | None, Way, Reason | None], list[Pair]] = {}
    for pair in found:
        kinds.setdefault((pair.kind, pair.way, pair.reason), []).append(pair)
    if len(kinds) == 1:
        return (("", found[0]),)
    return tuple(
        (" ".join(f"{pair.a}-{pair.b}" for pair in same[:6]) + (" …" if len(same) > 6 else ""), same[0]) for same in kinds.values()
    )


def p2p_unsupported(machine: Machine, answers: Profile) -> Finding | None:
    """Several cards whose driver offers no direct copies; NCCL goes through host memory."""
    found = tuple(card for card in judged(machine) if card.vendor == "nvidia")
    row = no_peers(machine, found)
    if len(found) < 2 or row is None:
        return None
    because: tuple[Words, ...] = (phrase("nccl.because.p2p", gpus=cards(found), architecture=(found[0].architecture or "").capitalize()),)
    return said("nccl-p2p-unsupported", cards(found), because, "info", source=row.source, gpus=cards(found))


def no_peers(machine: Machine, found: tuple[Accelerator, ...]) -> guide.NoPeers | None:
    """Return the row that says why these cards do not copy directly; `None` when one may, or when NVLink joins them."""
    rows = [guide.without_peers(card.name, card.architecture) for card in found]
    joined = any(one.kind.startswith("NV") for one in machine.links)
    return None if joined or not rows or any(row is None for row in rows) else rows[0]


# --- card to network card -------------------------------------------------------------------------


def rdma(machine: Machine) -> tuple[Network, ...]:
    """Return the interfaces that InfiniBand or RoCE may run on.

    Where nobody looked at the kernel's RDMA devices, a card's driver tells that it may be one.
    """
    named = {port.interface for port in machine.infiniband if port.interface}
    drivers = () if machine.ranks.rdma is False else _RDMA_DRIVERS
    return tuple(one for one in machine.networks if one.kind == "infiniband" or one.driver in drivers or one.name in named)


def has_rdma(machine: Machine) -> bool:
    """Whether there is an RDMA device, with or without an interface."""
    return bool(machine.infiniband or rdma(machine))


def no_infiniband(machine: Machine, answers: Profile) -> Finding | None:
    """No InfiniBand or RoCE device: NCCL falls back to sockets by itself."""
    wanted = answers.nccl.infiniband == "auto"
    if not machine.networks or has_rdma(machine) or not (wanted or len(judged(machine)) > 1) or answers.nccl.infiniband == "off":
        return None
    because: tuple[Words, ...] = (phrase("nccl.because.no-infiniband"),)
    return said("nccl-no-infiniband", "InfiniBand", because, "info", source=variable_source("NCCL_IB_DISABLE"))


def infiniband_down(machine: Machine, answers: Profile) -> Finding | None:
    """There are RDMA devices, and none of their ports is active: NCCL passes them by and takes sockets, without a word."""
    ports = machine.infiniband
    if answers.nccl.infiniband == "off" or not ports or any(port.state in (None, "active") for port in ports):
        return None
    because: tuple[Words, ...] = tuple(f"{port.device} port {port.port}: {port.state}" for port in ports[:4])
    # A port that waits for its subnet has a cable: somebody wants it.
    wanted = answers.nccl.infiniband == "auto" or any(port.state != "down" for port in ports)
    severity: Literal["warning", "info"] = "warning" if wanted else "info"
    return said("nccl-infiniband-down", ports[0].device, because, severity, source=guide.picking().ports, count=len(ports))


def roce_unaddressed(machine: Machine, answers: Profile) -> Finding | None:
    """A RoCE port that is active and whose interface has no IPv4 address: NCCL takes a link-local GID there, which no router passes on.

    One whose address lies on a bond or VLAN above it has that address's GID.
    """
    if answers.nccl.infiniband == "off" or "NCCL_IB_GID_INDEX" in stated(machine, answers):
        return None
    beside = {one.name: one for one in machine.networks}
    carrying = {name for one in machine.networks for name in one.carriers}
    bare = [port for port in machine.infiniband if port.link_layer == "Ethernet" and port.state == "active" and port.interface in beside]
    bare = [port for port in bare if port.interface not in carrying and not subnets_of(beside[port.interface or ""])]
    if not bare or not any(subnets_of(one) for one in machine.networks):
        return None
    because: tuple[Words, ...] = tuple(f"{port.device}: {port.interface}" for port in bare[:4])
    severity: Literal["warning", "info"] = "warning" if answers.nccl.infiniband == "auto" else "info"
    names = ", ".join(port.interface or "" for port in bare[:4])
    return said("nccl-roce-no-address", bare[0].device, because, severity, source=guide.picking().addresses, names=names)


def near(machine: Machine, port: InfinibandPort) -> tuple[int, ...]:
    """Return the cards that hang below one PCIe switch with a port's device: only these copies stay off the processor."""
    below = set(port.bridges[1:])
    return tuple(at for at, card in enumerate(machine.accelerators) if card in judged(machine) and below & set(card.bridges[1:]))


def gdr_unavailable(machine: Machine, answers: Profile) -> Finding | None:
    """Network cards cannot reach GPU memory: there is none that could, the cards are not offered it, or the module is missing."""
    found = tuple(card for card in judged(machine) if card.vendor == "nvidia")
    if answers.nccl.gdr == "off" or not machine.networks or not found:
        return None
    if not has_rdma(machine):
        because: tuple[Words, ...] = (phrase("nccl.because.no-infiniband"),)
        return said("nccl-gdr-unavailable", "GPUDirect RDMA", because, "info", reason="card") if answers.nccl.gdr == "auto" else None
    rule = guide.gpudirect()
    if all(any(brand in (card.name or "") for brand in rule.without) for card in found):
        offered: tuple[Words, ...] = (phrase("nccl.because.geforce", gpus=cards(found)),)
        return said("nccl-gdr-unavailable", cards(found), offered, "info", source=rule.source, reason="brand")
    if machine.ranks.peermem is False and machine.driver.state == "working" and not _dma_buf(machine, rule):
        facts = (phrase("nccl.because.peermem"),)
        return said("nccl-gdr-unavailable", "nvidia-peermem", facts, "info", source=rule.source, reason="module")
    return None


def _dma_buf(machine: Machine, rule: guide.Gpudirect) -> bool:
    """Whether the kernel hands GPU memory to network cards by itself, so that no module is needed; not known counts as yes."""
    if machine.driver.flavor == "proprietary":
        return False
    parts = (machine.os.kernel or "").split(".")[:2]
    if len(parts) < 2 or not all(part.isdigit() for part in parts):
        return True
    return (int(parts[0]), int(parts[1])) >= rule.dma_buf_kernel


# --- what the system allows ------------------------------------------------------------------------


def shm_small(machine: Machine, answers: Profile) -> Finding | None:
    """Shared memory that ends during the first collective of several ranks."""
    size, least = machine.ranks.shm_bytes, guide.demand("shm")
    if size is None or least.met(size) or len(judged(machine)) < 2:
        return None
    shown = storage(size)
    because: tuple[Words, ...] = (f"{SHM}: {shown}",)
    contained = machine.os.container not in (None, "none")
    place = "container" if contained else "host"
    return said("nccl-shm-small", SHM, because, "warning", source=least.source, size=shown, where=place)


def memlock_low(machine: Machine, answers: Profile) -> Finding | None:
    """A limit on locked memory: RDMA devices lock every buffer that they register, and NVIDIA asks for no limit."""
    limit = machine.ranks.memlock
    if limit is None or limit == "unlimited" or not has_rdma(machine) or answers.nccl.infiniband == "off":
        return None
    because: tuple[Words, ...] = (f"ulimit -l: {limit >> 10} KiB",)
    return said("nccl-memlock-low", "ulimit -l", because, "warning", source=_TROUBLE, size=f"{limit >> 10} KiB")


def firewall(machine: Machine, answers: Profile) -> Finding | None:
    """Incoming connections that no rule names are dropped, and the ranks' subnet is not named: ranks of other machines cannot connect."""
    wall = machine.ranks.firewall
    if wall is None or wall.active is False or wall.drops is False:
        return None
    carrier = _carrier(machine, answers)
    if carrier is None or _lets_in(wall, carrier):
        return None
    subnets = subnets_of(carrier)
    subnet = min(subnets) if subnets else None
    command = guide.firewall(wall.tool).command
    fact = phrase("nccl.because.firewall", tool=wall.tool, name=carrier.name)
    # On one machine the ranks reach each other over the loopback, which no firewall of these closes.
    severity: Literal["warning", "info"] = "warning" if answers.nccl.interface and wall.drops else "info"
    return said(
        "nccl-firewall",
        wall.tool,
        (fact, *sorted(subnets)),
        severity,
        source=_TROUBLE,
        tool=wall.tool,
        name=carrier.name,
        command=command.replace("SUBNET", subnet or "SUBNET").replace("CHAIN", wall.chain or "CHAIN"),
    )


def _carrier(machine: Machine, answers: Profile) -> Network | None:
    """Return the interface that the ranks will talk over: the one asked for, else the fastest that is up."""
    asked = variables(machine, answers).get("NCCL_SOCKET_IFNAME", "").lstrip("=")
    named = next((one for one in machine.networks if one.name == asked), None)
    return named or best_interface(machine)


def subnets_of(network: Network) -> frozenset[str]:
    """Return the IPv4 subnets of an interface whose prefix lengths are known."""
    found: set[str] = set()
    for one in network.addresses:
        if "/" in one and ":" not in one:
            try:
                found.add(str(ip_interface(one).network))
            except ValueError:
                continue
    return frozenset(found)


def _lets_in(wall: Firewall, network: Network) -> bool:
    """Whether a rule lets in all that comes over an interface or from the whole of its subnet."""
    if network.name in wall.open:
        return True
    for opened in wall.open:
        try:
            allowed = ip_network(opened, strict=False)
        except ValueError:
            continue
        if any(ip_network(subnet).subnet_of(allowed) for subnet in subnets_of(network) if allowed.version == 4):  # type: ignore[arg-type]
            return True
    return False
