"""The network interfaces as the ranks see them: which reach other machines, which is the best, which NCCL would take by itself."""

from __future__ import annotations

from ipaddress import ip_interface
from typing import Literal

from steps.catalog import guide
from steps.catalog.versions import at_least
from steps.model.hardware import Network
from steps.model.machine import Machine

Reason = Literal["loopback", "containers", "virtual-machines", "vpn", "kernel", "down", "member", "no-address"]
_REAL = ("ethernet", "infiniband")


def reason_against(network: Network, beside: tuple[Network, ...] = ()) -> Reason | None:
    """Return why an interface reaches no other machine; `None` for a good one and for one that is not known.

    `beside` are all interfaces of the machine: where some have addresses, one without is known to have none.
    """
    if network.kind == "loopback":
        return "loopback"
    row = guide.virtual(network.name)
    if row is not None and network.kind in ("virtual", None) and not network.carriers:
        return row.what
    if network.up is False:
        return "down"
    if not network.addresses and any(one.addresses for one in beside):
        return "member" if network.master is not None else "no-address"
    return None


def real(network: Network) -> bool:
    """Return whether an interface is a card, or a bond, team or bridge over cards."""
    return network.kind in _REAL or bool(network.carriers)


def speed(machine: Machine, network: Network) -> int | None:
    """Return an interface's speed; of a bond or bridge that does not say, the fastest of the cards below; `None` when it is not known."""
    below = (one.speed_mbps or 0 for one in machine.networks if one.name in network.carriers)
    return network.speed_mbps or max(below, default=0) or None


def best_interface(machine: Machine) -> Network | None:
    """Return the fastest real interface that is up and can be reached; `None` when there is none.

    One that has an address of a network goes before one that gave itself a link-local one.
    """
    found = [one for one in machine.networks if real(one) and one.up and reason_against(one, machine.networks) is None]
    return max(found, key=lambda one: (of_a_network(one), speed(machine, one) or 0)) if found else None


def of_a_network(network: Network) -> bool:
    """Whether an interface has an address that somebody gave it."""
    for text in network.addresses:
        try:
            if not ip_interface(text).is_link_local:
                return True
        except ValueError:
            continue
    return False


def picked(machine: Machine, nccl: str | None = None) -> tuple[Network, ...]:
    """Return the interfaces that NCCL takes by itself: those with an address, and where some are called like InfiniBand's only these.

    `nccl` is the release that will run: newer ones leave more alone. When it is not known, what an older one takes counts.
    """
    picking = guide.picking()
    cabled = nccl is not None and at_least(nccl, picking.running_since)
    known = any(one.addresses for one in machine.networks)
    with_address = [one for one in machine.networks if (one.addresses or not known) and (one.up or (one.addresses and not cabled))]
    rows = (row for row in guide.left_alone() if row.since is None or (nccl is not None and at_least(nccl, row.since)))
    alone = tuple(prefix for row in rows for prefix in row.prefixes)
    first = tuple(one for one in with_address if goes_first(one))
    return first or tuple(one for one in with_address if not one.name.startswith(alone))


def misleading(machine: Machine, nccl: str | None = None) -> tuple[Network, ...]:
    """Return the interfaces that NCCL takes by itself and that reach no other machine: virtual ones, and those without a cable.

    Where another has an address of a network, so do those whose only address is link-local: a BMC's USB network, a port nobody set up.
    """
    networked = _networked(machine)
    return tuple(one for one in picked(machine, nccl) if _leads_nowhere(machine, one, networked=networked))


def _leads_nowhere(machine: Machine, network: Network, *, networked: bool) -> bool:
    reason = reason_against(network, machine.networks)
    local = networked and bool(network.addresses) and not of_a_network(network)
    return local or reason not in (None, "member", "no-address")


def goes_first(network: Network) -> bool:
    """Return whether NCCL takes an interface before all others, for its name."""
    return network.name.startswith(guide.picking().first)


def _networked(machine: Machine) -> bool:
    """Whether an interface that reaches other machines has an address of a network."""
    best = best_interface(machine)
    return best is not None and of_a_network(best)


def matching(machine: Machine, interface: str) -> tuple[Network, ...]:
    """Return the interfaces that a value of NCCL_SOCKET_IFNAME names; an excluding list names none."""
    if interface.startswith("^"):
        return ()
    exact = interface.startswith("=")
    # A port may stand behind a name; blanks are a part of it.
    names = tuple(name.partition(":")[0] for name in interface.removeprefix("=").split(",") if name)
    return tuple(one for one in machine.networks if (one.name in names if exact else one.name.startswith(names)))
