"""Several machines as one: do they agree, do they lie in one network, and do the ranks' connections get through.

Each machine is asked over ssh, as the person would reach it; the first one named is where the ranks meet.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from typing import TYPE_CHECKING, Any

from steps import resources
from steps.compat.interfaces import reason_against
from steps.model.base import Record, phrase
from steps.model.hardware import Network
from steps.model.verdict import Rung

if TYPE_CHECKING:
    from steps.host.base import Host

SKEW = 5.0
"""Seconds between two clocks from which on logs and certificates do not agree any more."""
PORT = 29500
"""torchrun's own default port; the trial takes the ones behind it."""
_SECONDS = 4.0


class Node(Record):
    """What one machine says of itself; `trouble` is why it could not be asked."""

    name: str
    networks: tuple[Network, ...] = ()
    clock: float | None = None
    """How far its clock is ahead of ours, in seconds."""
    driver: str | None = None
    versions: Mapping[str, str] = {}
    trouble: str = ""


class Meeting(Record):
    """The addresses, one a machine, by which the ranks reach each other, and the interface of each."""

    addresses: tuple[str, ...]
    interfaces: tuple[str, ...]
    subnet: str


def look(
    host: Host, names: tuple[str, ...], interface: str | None, python: str | None, now: float
) -> tuple[tuple[Rung, ...], Meeting | None]:
    """Return the rungs of the machines `names`, and where they meet; `None` when no network holds them all.

    `interface` is the one asked for, `python` the interpreter of the environment (the same path on every machine), `now` our clock.
    """
    with ThreadPoolExecutor(max_workers=8) as pool:
        nodes = tuple(pool.map(lambda name: _ask(host, name, python, now), names))
    silent = [node for node in nodes if node.trouble]
    if silent:
        reason = phrase("verify.because.node-silent", name=silent[0].name, text=silent[0].trouble)
        skipped = phrase("verify.because.after", rung="nodes")
        return (Rung(id="nodes", state="failed", because=reason), *(Rung(id=one, state="skipped", because=skipped) for one in _LATER)), None
    meeting = meet(nodes, interface)
    rungs = [
        Rung(
            id="nodes",
            state="passed",
            because=phrase("verify.because.nodes-answer"),
            detail=phrase("verify.detail.nodes", count=len(nodes)),
        )
    ]
    rungs += [agree(nodes), clocks(nodes), subnets(nodes, meeting, interface)]
    if meeting is None:
        rungs.append(Rung(id="node-ports", state="skipped", because=phrase("verify.because.after", rung="node-subnet")))
    else:
        rungs.append(_ports(host, nodes, meeting))
    return tuple(rungs), meeting


_LATER = ("node-versions", "node-clock", "node-subnet", "node-ports")


# --- asking ---------------------------------------------------------------------------------------


def _ssh(name: str, *argv: str) -> tuple[str, ...]:
    """Return the command that runs our program on another machine; ssh hands words to a shell there, so each is quoted."""
    program = resources.read_text("training", "node.py")
    far = shlex.join(("python3", "-I", "-c", program, *argv))
    return ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", name, far)


def _ask(host: Host, name: str, python: str | None, now: float) -> Node:
    """Return what one machine says."""
    result = host.run(_ssh(name, "facts", *((python,) if python else ())), timeout=45.0)
    try:
        told = json.loads(result.stdout.strip().splitlines()[-1]) if result.stdout.strip() else None
    except ValueError:
        told = None
    if not isinstance(told, dict):
        words = next((line.strip() for line in reversed(result.stderr.splitlines()) if line.strip()), "")
        return Node(name=name, trouble=words[:200] or f"status {result.status}")
    clock, versions = told.get("clock"), told.get("versions")
    return Node(
        name=name,
        networks=_networks(told.get("interfaces")),
        clock=clock - now if isinstance(clock, int | float) else None,
        driver=told["driver"] if isinstance(told.get("driver"), str) else None,
        versions={str(key): str(value) for key, value in versions.items()} if isinstance(versions, dict) else {},
    )


def _networks(told: Any) -> tuple[Network, ...]:
    """Return the interfaces that `ip -j addr` listed; its shape is another machine's word and is not trusted."""
    found = []
    for entry in told if isinstance(told, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("ifname"), str):
            continue
        name, flags = entry["ifname"], entry.get("flags")
        listed = entry.get("addr_info")
        addresses = tuple(
            f"{one['local']}/{one['prefixlen']}"
            for one in (listed if isinstance(listed, list) else ())
            if isinstance(one, dict) and isinstance(one.get("local"), str) and isinstance(one.get("prefixlen"), int)
        )
        up = "UP" in flags and "NO-CARRIER" not in flags if isinstance(flags, list) else None
        found.append(Network(name=name, kind="loopback" if name == "lo" else None, up=up, addresses=addresses))
    return tuple(found)


# --- judging --------------------------------------------------------------------------------------


def _usable(node: Node, interface: str | None) -> list[tuple[str, IPv4Interface | IPv6Interface]]:
    """Return the addresses by which others may reach a machine, those of an interface that was asked for first, and IPv4 before IPv6."""
    found: list[tuple[str, IPv4Interface | IPv6Interface]] = []
    for network in node.networks:
        if reason_against(network) is not None:
            continue
        for text in network.addresses:
            try:
                address = ip_interface(text)
            except ValueError:
                continue
            if not address.is_link_local and not address.is_loopback:
                found.append((network.name, address))
    return sorted(found, key=lambda one: (one[0] != interface, one[1].version))


def meet(nodes: tuple[Node, ...], interface: str | None) -> Meeting | None:
    """Return a network in which every machine has an address, on `interface` if that can be; `None` without one."""
    usable = [_usable(node, interface) for node in nodes]
    for _, first in usable[0] if usable else ():
        chosen = [next((one for one in mine if one[1].network == first.network), None) for mine in usable]
        picked = [one for one in chosen if one is not None]
        # The same address on two machines is a network that each has for itself: of a bridge, of a BMC.
        if len({address.ip for _, address in picked}) == len(nodes):
            return Meeting(
                addresses=tuple(str(address.ip) for _, address in picked),
                interfaces=tuple(name for name, _ in picked),
                subnet=str(first.network),
            )
    return None


def agree(nodes: tuple[Node, ...]) -> Rung:
    """Whether driver and frameworks are the same everywhere."""
    for what in ("driver", *sorted({name for node in nodes for name in node.versions})):
        told = {node.name: node.driver if what == "driver" else node.versions.get(what) for node in nodes}
        if len(set(told.values())) > 1:
            shown = ", ".join(f"{name}: {version or '-'}" for name, version in told.items())
            return Rung(id="node-versions", state="failed", because=phrase("verify.because.node-differs", what=what, told=shown))
    known = nodes[0].versions.get("torch") or nodes[0].driver or ""
    return Rung(id="node-versions", state="passed", because=phrase("verify.because.node-same"), detail=known)


def clocks(nodes: tuple[Node, ...]) -> Rung:
    """Whether the clocks agree well enough."""
    known = [node.clock for node in nodes if node.clock is not None]
    if len(known) < len(nodes):
        return Rung(id="node-clock", state="skipped", because=phrase("verify.because.node-clock-unknown"))
    apart = max(known) - min(known)
    state = phrase("verify.because.node-clock", seconds=f"{apart:.1f}")
    return Rung(id="node-clock", state="passed" if apart <= SKEW else "failed", because=state, value=apart, unit="s", expected=SKEW)


def subnets(nodes: tuple[Node, ...], meeting: Meeting | None, interface: str | None) -> Rung:
    """Whether all machines lie in one network, and on the interface that was asked for."""
    if meeting is None:
        shown = "; ".join(f"{node.name}: {', '.join(str(address) for _, address in _usable(node, interface)) or '-'}" for node in nodes)
        return Rung(id="node-subnet", state="failed", because=phrase("verify.because.node-apart", told=shown))
    if interface and any(name != interface for name in meeting.interfaces):
        told = ", ".join(f"{node.name}: {name}" for node, name in zip(nodes, meeting.interfaces, strict=True))
        return Rung(id="node-subnet", state="failed", because=phrase("verify.because.node-other-interface", interface=interface, told=told))
    return Rung(
        id="node-subnet", state="passed", because=phrase("verify.because.node-subnet", subnet=meeting.subnet), detail=meeting.interfaces[0]
    )


def _ports(host: Host, nodes: tuple[Node, ...], meeting: Meeting) -> Rung:
    """Whether every machine reaches every other one on a port that nobody opened for it, both ways."""
    for at, one in enumerate(nodes):
        for other in range(len(nodes)):
            if other == at:
                continue
            said = _knock(host, nodes[other].name, one.name, meeting.addresses[at], PORT + 1 + at * len(nodes) + other)
            if said is not None:
                params = {"one": nodes[other].name, "other": one.name, "address": meeting.addresses[at]}
                return Rung(id="node-ports", state="failed", because=phrase(f"verify.because.node-{said}", **params))
    return Rung(id="node-ports", state="passed", because=phrase("verify.because.node-ports", count=len(nodes) * (len(nodes) - 1)))


def _knock(host: Host, source: str, target: str, address: str, port: int) -> str | None:
    """Let one machine listen and another knock; return what stands in the way: "firewall", "unreachable", "port-taken" or "refused"."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        heard = pool.submit(host.run, _ssh(target, "listen", address, str(port), str(_SECONDS)), timeout=30.0)
        said = host.run(_ssh(source, "connect", address, str(port), str(_SECONDS)), timeout=30.0).stdout.strip()
        listened = heard.result().stdout.strip()
    if said == "reached" and listened == "heard":
        return None
    if listened.endswith("EADDRINUSE"):
        return "port-taken"
    if said.endswith(("EHOSTUNREACH", "ETIMEDOUT", "ECONNREFUSED", "EACCES", "EPERM")):
        return "firewall"
    return "unreachable"


# --- starting -------------------------------------------------------------------------------------


def launch_line(meeting: Meeting, rank: int, processes: int, script: str) -> tuple[str, ...]:
    """Return what is typed on machine `rank` (0 is where the ranks meet) to start one job over all of them."""
    return (
        "env", f"NCCL_SOCKET_IFNAME={meeting.interfaces[rank]}", f"GLOO_SOCKET_IFNAME={meeting.interfaces[rank]}",
        "torchrun", "--nnodes", str(len(meeting.addresses)), "--nproc-per-node", str(processes), "--node-rank", str(rank),
        "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{_in_brackets(meeting.addresses[0])}:{PORT}", script,
    )  # fmt: skip


def _in_brackets(address: str) -> str:
    """Return an address as a port may follow it."""
    return f"[{address}]" if ":" in address else address
