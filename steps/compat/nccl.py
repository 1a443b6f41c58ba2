"""The rules of the NCCL step, one function per finding code: here those about interfaces, beside them the file's and the transport's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from steps.compat import nccl_conf, transport
from steps.compat.interfaces import Reason, best_interface, matching, reason_against
from steps.compat.interfaces import speed as carried
from steps.compat.nccl_said import said
from steps.detect.measures import speed
from steps.model.base import Words, phrase
from steps.model.finding import Finding, Patch
from steps.model.hardware import Network
from steps.model.machine import Machine
from steps.model.profile import Profile

Rule = Callable[[Machine, Profile], "Finding | None"]


_GROUPS: dict[Reason, str] = {"down": "down", "member": "without-address", "no-address": "without-address"}
"""The findings of the reasons that are not a virtual interface's."""

# --- interfaces ---------------------------------------------------------------------------------


def asked(machine: Machine, answers: Profile) -> str | None:
    """Return the value of NCCL_SOCKET_IFNAME that NCCL will read, asked for or standing in the file; `None` when it is left to NCCL.

    A value that carries more than names is left to the rule of the file.
    """
    value = nccl_conf.stated(machine, answers).get("NCCL_SOCKET_IFNAME")
    return value if value and value.strip() == value and "#" not in value and value.isprintable() else None


def on_interface(machine: Machine, network: Network, answers: Profile | None = None) -> Finding | None:
    """Return what forbids one interface; `None` when nothing does."""
    reason = reason_against(network, machine.networks)
    if reason is None:
        return None
    because: tuple[Words, ...] = (phrase(f"nccl.because.{reason}", name=network.name, master=network.master or "?"),)
    code = f"nccl-interface-{_GROUPS.get(reason, 'virtual')}"
    return said(
        code, network.name, because, "error", fix=_instead(machine, answers or Profile()), name=network.name, instead=_named(machine)
    )


def _instead(machine: Machine, answers: Profile) -> Patch | None:
    """Return the patch that takes the best interface, also over a variable that a person wrote out."""
    best = best_interface(machine)
    if best is None:
        return None
    extra = {name: value for name, value in (answers.nccl.extra or {}).items() if name != "NCCL_SOCKET_IFNAME"}
    return {"nccl.interface": best.name, **({"nccl.extra": extra or None} if extra != (answers.nccl.extra or {}) else {})}


def _named(machine: Machine) -> str:
    """Return the best interface in names, with its speed where that is known."""
    best = best_interface(machine)
    if best is None:
        return "-"
    known = carried(machine, best)
    return f"{best.name} ({speed(known)})" if known else best.name


# --- rules --------------------------------------------------------------------------------------


def interface_missing(machine: Machine, answers: Profile) -> Finding | None:
    """The named interface does not exist here."""
    wanted = asked(machine, answers)
    if wanted is None or wanted.startswith("^") or not machine.networks or matching(machine, wanted):
        return None
    because: tuple[Words, ...] = (phrase("nccl.because.interfaces", names=", ".join(one.name for one in machine.networks[:6])),)
    name = wanted.removeprefix("=")
    return said("nccl-interface-missing", name, because, "error", fix=_instead(machine, answers), name=name, instead=_named(machine))


def interface_ruled_out(machine: Machine, answers: Profile) -> Finding | None:
    """The named interface is virtual, the loopback, or down."""
    found = matching(machine, asked(machine, answers) or "^")
    if any(reason_against(one, machine.networks) is None for one in found):
        return None
    return next((finding for one in found if (finding := on_interface(machine, one, answers))), None)


def subnets_differ(machine: Machine, answers: Profile) -> Finding | None:
    """The value names several cards of several subnets; NCCL uses them all and its peers may not answer on some."""
    wanted = asked(machine, answers) or "^"
    found = [one for one in matching(machine, wanted) if one.up]
    subnets = {one.name: transport.subnets_of(one) for one in found}
    apart = any(a and b and not a & b for a, b in combinations(subnets.values(), 2))
    if not apart:
        return None
    because: tuple[Words, ...] = tuple(f"{name}: {', '.join(sorted(nets))}" for name, nets in subnets.items() if nets)
    return said("nccl-subnets-differ", wanted, because, "warning", fix=_instead(machine, answers), names=", ".join(subnets))


RULES: tuple[Rule, ...] = (
    interface_missing,
    interface_ruled_out,
    subnets_differ,
    nccl_conf.inline_comment,
    nccl_conf.line_misread,
    nccl_conf.file_kept,
    nccl_conf.line_ignored,
    nccl_conf.unknown_variable,
    nccl_conf.debug_noisy,
    nccl_conf.user_file_first,
    transport.shm_small,
    transport.memlock_low,
    transport.firewall,
    transport.p2p_unsupported,
    transport.no_infiniband,
    transport.infiniband_down,
    transport.roce_unaddressed,
    transport.gdr_unavailable,
)


def judge_nccl(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return every finding about how the ranks will talk to each other."""
    return tuple(found for rule in RULES if (found := rule(machine, answers)) is not None)
