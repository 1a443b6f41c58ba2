"""What `/etc/nccl.conf` will say, and the rules about it, one function per finding code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_interface
from itertools import combinations
from typing import Literal

from steps.catalog import guide, stack
from steps.detect.measures import cards, speed
from steps.model.base import Param, Words, phrase
from steps.model.finding import Finding, Patch, Severity
from steps.model.machine import Accelerator, Machine, Network, judged
from steps.model.profile import Profile

CONF = "/etc/nccl.conf"
AUTO = "auto"
"""The interface answer that leaves it to NCCL."""
Rule = Callable[[Machine, Profile], "Finding | None"]
Reason = Literal["loopback", "containers", "virtual-machines", "vpn", "kernel", "down"]
_NOISY = ("INFO", "TRACE")
_RDMA_DRIVERS = ("mlx4_en", "mlx5_core", "bnxt_en", "irdma", "qedr", "efa")


# --- the file -----------------------------------------------------------------------------------


def variables(machine: Machine, answers: Profile) -> Mapping[str, str]:
    """Return the variables that the answers come to, in the order of the file; empty when nothing was asked for.

    What a person wrote under `extra` goes before what follows from the other answers.
    """
    asked = answers.nccl
    said: dict[str, str] = {}
    if asked.interface and asked.interface != AUTO:
        said["NCCL_SOCKET_IFNAME"] = _exact(machine, asked.interface)
    if asked.infiniband == "off":
        said["NCCL_IB_DISABLE"] = "1"
    if asked.p2p == "off":
        said["NCCL_P2P_DISABLE"] = "1"
    if asked.gdr == "off":
        said["NCCL_NET_GDR_LEVEL"] = "LOC"
    if asked.debug:
        said["NCCL_DEBUG"] = asked.debug
    return {**said, **dict(sorted((asked.extra or {}).items()))}


def _exact(machine: Machine, interface: str) -> str:
    """Return the interface as NCCL wants it: a name is a prefix there, so `eth1` is written `=eth1` where `eth10` exists."""
    others = (one.name for one in machine.networks)
    return f"={interface}" if any(name != interface and name.startswith(interface) for name in others) else interface


def conf_text(machine: Machine, answers: Profile) -> str | None:
    """Return the text of the file, plain NAME=VALUE lines that every NCCL reads alike; `None` when nothing is asked for."""
    said = variables(machine, answers)
    return "".join(f"{name}={value}\n" for name, value in said.items()) if said else None


# --- interfaces ---------------------------------------------------------------------------------


def reason_against(network: Network) -> Reason | None:
    """Return why an interface reaches no other machine; `None` for a good one and for one that is not known."""
    if network.kind == "loopback":
        return "loopback"
    row = guide.virtual(network.name)
    if row is not None and network.kind in ("virtual", None):
        return row.what
    return "down" if network.up is False else None


def best_interface(machine: Machine) -> Network | None:
    """Return the fastest real card that is up; `None` when there is none."""
    real = [one for one in machine.networks if one.kind in ("ethernet", "infiniband") and one.up and reason_against(one) is None]
    return max(real, key=lambda one: one.speed_mbps or 0) if real else None


def misleading(machine: Machine) -> tuple[Network, ...]:
    """Return the interfaces that NCCL would take by itself and that reach no other machine: all such but loopback and Docker's bridge."""
    up = (one for one in machine.networks if one.up)
    return tuple(one for one in up if reason_against(one) not in (None, "down") and not one.name.startswith(("lo", "docker")))


def matching(machine: Machine, interface: str) -> tuple[Network, ...]:
    """Return the interfaces that a value of NCCL_SOCKET_IFNAME names; an excluding list names none."""
    if interface.startswith("^"):
        return ()
    exact = interface.startswith("=")
    names = tuple(name.strip() for name in interface.removeprefix("=").split(",") if name.strip())
    return tuple(one for one in machine.networks if (one.name in names if exact else one.name.startswith(names)))


def _chosen(machine: Machine, interface: str) -> tuple[Network, ...]:
    """Return what an interface answer means here: the card of that name alone, else all that it is a prefix of."""
    same = tuple(one for one in machine.networks if one.name == interface)
    return same or matching(machine, interface)


def on_interface(machine: Machine, network: Network) -> Finding | None:
    """Return what forbids one interface; `None` when nothing does."""
    reason = reason_against(network)
    if reason is None:
        return None
    because: tuple[Words, ...] = (phrase(f"nccl.because.{reason}", name=network.name),)
    code = "nccl-interface-down" if reason == "down" else "nccl-interface-virtual"
    return _said(code, network.name, because, "error", fix=_instead(machine), name=network.name, instead=_named(machine))


def _instead(machine: Machine) -> Patch | None:
    """Return the patch that takes the best interface."""
    best = best_interface(machine)
    return {"nccl.interface": best.name} if best else None


def _named(machine: Machine) -> str:
    """Return the best interface in names, with its speed where that is known."""
    best = best_interface(machine)
    if best is None:
        return "-"
    return f"{best.name} ({speed(best.speed_mbps)})" if best.speed_mbps else best.name


# --- rules --------------------------------------------------------------------------------------


def _said(
    code: str,
    subject: str,
    because: tuple[Words, ...],
    severity: Severity,
    *,
    fix: Patch | None = None,
    source: str | None = None,
    **params: Param,
) -> Finding:
    return Finding(code=code, severity=severity, step="nccl", subject=subject, params=params, because=because, fix=fix, source=source)


def interface_missing(machine: Machine, answers: Profile) -> Finding | None:
    """The named interface does not exist here."""
    wanted = answers.nccl.interface
    if not wanted or wanted == AUTO or wanted.startswith("^") or not machine.networks or _chosen(machine, wanted):
        return None
    because: tuple[Words, ...] = (phrase("nccl.because.interfaces", names=", ".join(one.name for one in machine.networks[:6])),)
    return _said("nccl-interface-missing", wanted, because, "error", fix=_instead(machine), name=wanted, instead=_named(machine))


def interface_ruled_out(machine: Machine, answers: Profile) -> Finding | None:
    """The named interface is virtual, the loopback, or down."""
    found = _chosen(machine, answers.nccl.interface) if answers.nccl.interface else ()
    if any(reason_against(one) is None for one in found):
        return None
    return next((finding for one in found if (finding := on_interface(machine, one))), None)


def subnets_differ(machine: Machine, answers: Profile) -> Finding | None:
    """The answer names several cards of several subnets; NCCL uses them all and its peers may not answer on some."""
    found = [one for one in _chosen(machine, answers.nccl.interface) if one.up] if answers.nccl.interface else []
    subnets = {one.name: _subnets(one) for one in found}
    apart = any(a and b and not a & b for a, b in combinations(subnets.values(), 2))
    if not apart:
        return None
    because: tuple[Words, ...] = tuple(f"{name}: {', '.join(sorted(nets))}" for name, nets in subnets.items() if nets)
    return _said("nccl-subnets-differ", answers.nccl.interface or "", because, "warning", fix=_instead(machine), names=", ".join(subnets))


def _subnets(network: Network) -> set[str]:
    """Return the IPv4 subnets of an interface whose prefix lengths are known."""
    return {str(ip_interface(one).network) for one in network.addresses if "/" in one and ":" not in one}


def no_infiniband(machine: Machine, answers: Profile) -> Finding | None:
    """No InfiniBand or RoCE device: NCCL falls back to sockets by itself."""
    wanted = answers.nccl.infiniband == "auto"
    if not machine.networks or rdma(machine) or not (wanted or len(judged(machine)) > 1) or answers.nccl.infiniband == "off":
        return None
    because: tuple[Words, ...] = (phrase("nccl.because.no-infiniband"),)
    return _said("nccl-no-infiniband", "InfiniBand", because, "info", source=_variable_source("NCCL_IB_DISABLE"))


def rdma(machine: Machine) -> tuple[Network, ...]:
    """Return the interfaces that InfiniBand or RoCE may run on."""
    return tuple(one for one in machine.networks if one.kind == "infiniband" or one.driver in _RDMA_DRIVERS)


def gdr_unavailable(machine: Machine, answers: Profile) -> Finding | None:
    """GPUDirect was asked for and there is no network card that could do it."""
    if answers.nccl.gdr != "auto" or not machine.networks or rdma(machine):
        return None
    return _said("nccl-gdr-unavailable", "GPUDirect RDMA", (phrase("nccl.because.no-infiniband"),), "info")


def p2p_unsupported(machine: Machine, answers: Profile) -> Finding | None:
    """Several cards whose driver offers no direct copies; NCCL goes through host memory."""
    found = tuple(card for card in judged(machine) if card.vendor == "nvidia")
    row = no_peers(machine, found)
    if len(found) < 2 or row is None:
        return None
    because: tuple[Words, ...] = (phrase("nccl.because.p2p", gpus=cards(found), architecture=(found[0].architecture or "").capitalize()),)
    return _said("nccl-p2p-unsupported", cards(found), because, "info", source=row.source, gpus=cards(found))


def no_peers(machine: Machine, found: tuple[Accelerator, ...]) -> guide.NoPeers | None:
    """Return the row that says why these cards do not copy directly; `None` when one may, or when NVLink joins them."""
    rows = [guide.without_peers(card.name, card.architecture) for card in found]
    joined = any(one.kind.startswith("NV") for one in machine.links)
    return None if joined or not rows or any(row is None for row in rows) else rows[0]


def debug_noisy(machine: Machine, answers: Profile) -> Finding | None:
    """The log level is one for diagnosis."""
    level = variables(machine, answers).get("NCCL_DEBUG", "").upper()
    if level not in _NOISY:
        return None
    fix: Patch = {"nccl.debug": "WARN"} if answers.nccl.debug == level else {"nccl.extra": _without(answers, "NCCL_DEBUG") or None}
    source = _variable_source("NCCL_DEBUG")
    return _said("nccl-debug-noisy", f"NCCL_DEBUG={level}", (f"NCCL_DEBUG={level}",), "warning", fix=fix, source=source, level=level)


def unknown_variable(machine: Machine, answers: Profile) -> Finding | None:
    """A name that no NCCL of the tables reads."""
    unknown = [name for name in answers.nccl.extra or {} if name not in stack.nccl_variables()]
    if not unknown:
        return None
    because: tuple[Words, ...] = tuple(f"{name}={(answers.nccl.extra or {})[name]}" for name in unknown)
    fix: Patch = {"nccl.extra": _without(answers, *unknown) or None}
    return _said("nccl-unknown-variable", unknown[0], because, "warning", fix=fix, name=unknown[0])


def inline_comment(machine: Machine, answers: Profile) -> Finding | None:
    """A value that carries a comment, a line break or a blank at its end: NCCL would take all of it for the value."""
    extra = answers.nccl.extra or {}
    wrong = {name: value for name, value in extra.items() if "#" in value or value != value.strip() or not value.isprintable()}
    if not wrong:
        return None
    name, value = next(iter(wrong.items()))
    cleaned = {one: text.split("#")[0].split("\n")[0].strip() if one in wrong else text for one, text in extra.items()}
    rule = next((row for row in stack.nccl_rules() if row.name == "comments_inline"), None)
    because: tuple[Words, ...] = (f"{name}={value!r}",)
    source = rule.source if rule else None
    return _said("nccl-inline-comment", name, because, "error", fix={"nccl.extra": cleaned}, source=source, name=name, value=repr(value))


def _without(answers: Profile, *names: str) -> dict[str, str]:
    """Return the extra variables but for some."""
    return {name: value for name, value in (answers.nccl.extra or {}).items() if name not in names}


def _variable_source(name: str) -> str | None:
    """Return where a variable is described."""
    row = stack.nccl_variables().get(name)
    return row.source if row else None


RULES: tuple[Rule, ...] = (
    interface_missing,
    interface_ruled_out,
    subnets_differ,
    inline_comment,
    unknown_variable,
    debug_noisy,
    p2p_unsupported,
    no_infiniband,
    gdr_unavailable,
)


def judge_nccl(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return every finding about how the ranks will talk to each other."""
    return tuple(found for rule in RULES if (found := rule(machine, answers)) is not None)
