"""What gloo says, which PyTorch uses between processors."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses, spoken
from steps.doctor.events.nccl import CONNECT_REASONS, ConnectFailed, ConnectReason, of_bridge
from steps.doctor.told import Place


class LoopbackTaken(Event):
    """Gloo takes the loopback's address, as the name of the machine leads to no other; within one machine that is enough."""


@parses(r"Unable to resolve hostname to a \(local\) address\. Using the loopback address", "Using the loopback address")
def loopback_taken(found: re.Match[str], at: Place) -> LoopbackTaken:
    """Recognise PyTorch's warning."""
    return LoopbackTaken(place=at)


class MeshFailed(Event):
    """Gloo reaches no other rank: at an address of this machine itself, or without an error of a socket."""


@parses(
    r"Gloo connectFullMesh failed with \[[^\]]*\] (?:no error|[^\n]{0,40}SO_ERROR: "
    r"(?P<why>Connection refused|No route to host|Connection timed out|Network is unreachable), remote=\[(?P<address>[^\]]*)\])",
    "connectFullMesh failed",
)
def mesh_failed(found: re.Match[str], at: Place) -> MeshFailed | ConnectFailed:
    """Recognise the error of the mesh, which gives the reason before the address."""
    if not found["why"] or found["address"].startswith("127."):
        return MeshFailed(place=at)
    why = spoken(found["why"])
    reason: ConnectReason = next(named for words, named in CONNECT_REASONS if words in why)
    return ConnectFailed(place=at, address=found["address"], reason=reason, bridge=of_bridge(found["address"]))
