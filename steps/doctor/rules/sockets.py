"""Sockets between ranks: the address that is told, the interface that is taken, and a wall on the way."""

from __future__ import annotations

import re

from steps.doctor.events.gloo import LoopbackTaken, MeshFailed
from steps.doctor.events.nccl import ConnectFailed, ConnectUnnamed, Interfaces, NoInterface, SocketUsed
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, WEAK, Answer, found, out, rule
from steps.doctor.told import Fact, fact


@rule("nccl-advertises-container-address")
def container_address(seen: Evidence) -> Answer:
    """Ranks are told an address that exists inside one container engine only."""
    failed = seen.first(ConnectFailed, lambda event: event.bridge)
    if failed is None:
        real = seen.first(ConnectFailed)
        return out(real) if real is not None else None
    started = next(
        (one for one in seen.commands("docker", "podman", "nerdctl") if not re.search(r"--net(?:work)?[= ]host", " ".join(one.words))), None
    )
    return found(CERTAIN if started is not None else STRONG, failed, started, address=failed.address)


def _interfaces(seen: Evidence) -> Interfaces | Fact | None:
    """Return what NCCL_SOCKET_IFNAME says, in the environment or in a log."""
    text = seen.host.run(("env",)).stdout
    line = re.search(r"^NCCL_SOCKET_IFNAME=(.*)$", text, re.MULTILINE)
    return fact(line[1], "env", line[0]) if line else seen.first(Interfaces)


def _astray(seen: Evidence) -> SocketUsed | LoopbackTaken | None:
    """Return an interface that leads to no other node, where what failed may be a connection to it."""
    named = seen.first(ConnectFailed)
    if named is None and not seen.has(ConnectUnnamed):
        return None
    if named is not None and not named.address.lower().startswith(("fe80:", "127.")):
        return None
    return seen.first(SocketUsed, lambda event: event.local) or seen.first(LoopbackTaken)


@rule("nccl-wrong-interface")
def wrong_interface(seen: Evidence) -> Answer:
    """Ranks knock where nobody listens, or there is no interface to listen on."""
    none = seen.first(NoInterface)
    named = _interfaces(seen)
    if none is not None:
        return found(STRONG, none, named, variant="none")
    failed = seen.first(ConnectFailed, lambda event: not event.bridge)
    astray = _astray(seen)
    mesh, loopback = seen.first(MeshFailed), seen.first(LoopbackTaken)
    if failed is None and astray is None and mesh is not None:
        return found(STRONG if loopback else LIKELY - 0.1, mesh, loopback, named, variant="gloo")
    if astray is not None:
        at = failed.address if failed is not None else astray.name if isinstance(astray, SocketUsed) else "?"
        return found(STRONG, astray, failed or seen.first(ConnectUnnamed), named, address=at)
    if failed is None:
        inside, unnamed = seen.first(ConnectFailed), seen.first(ConnectUnnamed)
        if inside is None and unnamed is not None:
            return found(LIKELY - 0.1 if unnamed.reason == "refused" else WEAK, unnamed, named, address="?")
        return out(inside) if inside is not None else None
    if failed.reason in ("no-route", "timeout"):
        return found(WEAK, failed, named, address=failed.address)
    certain = named is None or named.value.startswith("^")
    return found(LIKELY + 0.1 if certain else POSSIBLE, failed, named, address=failed.address)


@rule("firewall-blocks-nccl")
def firewalled(seen: Evidence) -> Answer:
    """The host is there, and something on the way rejects or swallows the port."""
    astray = _astray(seen)
    if astray is not None:
        return out(astray)
    failed = seen.first(ConnectFailed, lambda event: not event.bridge and event.reason in ("no-route", "timeout", "unreachable"))
    if failed is None:
        other, unnamed = seen.first(ConnectFailed), seen.first(ConnectUnnamed, lambda event: event.reason != "refused")
        if other is None and unnamed is not None:
            sure = LIKELY if unnamed.reason == "no-route" else POSSIBLE
            return found(sure, unnamed, _wall(seen), address="?", reason=unnamed.reason)
        return out(other) if other is not None else None
    wall = _wall(seen)
    if wall is not None and wall.value == "inactive":
        return found(POSSIBLE, failed, wall, address=failed.address, reason=failed.reason)
    sure = {"no-route": STRONG, "timeout": LIKELY}.get(failed.reason, POSSIBLE)
    return found(CERTAIN if wall is not None and sure > POSSIBLE else sure, failed, wall, address=failed.address, reason=failed.reason)


def _wall(seen: Evidence) -> Fact | None:
    """Return whether a firewall runs ("active", "inactive"), by any tool that was asked."""
    asked = (("ufw", "status"), ("ufw", "status", "verbose"), ("systemctl", "is-active", "firewalld"), ("firewall-cmd", "--state"))
    for argv in asked:
        text = seen.host.run(argv).text.strip()
        word = re.search(r"\b(active|inactive|running|not running)\b", text)
        if word:
            return fact("active" if word[1] in ("active", "running") else "inactive", " ".join(argv), text.partition("\n")[0])
    return None
