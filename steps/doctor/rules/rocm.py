"""AMD's cards: who may open /dev/kfd, which chips compute, and which builds have kernels for them."""

from __future__ import annotations

import re

from steps.doctor.events.cuda import NoDevices
from steps.doctor.events.nodes import DeviceNode
from steps.doctor.events.typed import Command
from steps.doctor.events.vendors import Gfx, Groups, KfdClosed, KfdUnsupported, NotInGroup, TensileMissing
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule

_NAMELESS = ("nogroup", "nobody")


def _closed(seen: Evidence, trouble: str) -> KfdClosed | None:
    return seen.first(KfdClosed, lambda event: event.trouble == trouble)


def _nameless(seen: Evidence) -> NotInGroup | None:
    """Return the word that the node's group is one without a number here."""
    return seen.first(NotInGroup, lambda event: event.group in _NAMELESS)


@rule("kfd-permission-groups")
def groups(seen: Evidence) -> Answer:
    """/dev/kfd says "permission denied", and the groups lack the one that may."""
    denied, told, nameless = _closed(seen, "permission"), seen.first(NotInGroup), _nameless(seen)
    if nameless is not None:
        return out(nameless)
    other = seen.first(KfdClosed, lambda event: event.trouble in ("memory", "invalid"))
    listed = seen.first(Groups)
    node = seen.first(DeviceNode, lambda event: event.name == "kfd" and not event.open and not event.place.in_container)
    if node is not None and not node.group_may and other is None:
        return found(CERTAIN if denied else LIKELY, node, denied, variant="node")
    if denied is None and told is None:
        apart = node is not None and listed is not None and listed.names[:1] != ("root",) and node.group not in listed.names
        if other is not None:
            return out(other)
        return found(LIKELY, node, listed) if apart else _left_out(seen)
    if listed is not None and "render" in listed.names and told is None:
        return found(POSSIBLE, denied, listed, variant="member")
    started = next((one for one in seen.commands("docker", "podman") if "--group-add" not in " ".join(one.words)), None)
    inside = any(event is not None and event.place.in_container for event in (denied, listed))
    sure = CERTAIN if told or listed or started else STRONG
    return found(sure, denied, told, listed, started, variant="container" if inside or started else "")


def _left_out(seen: Evidence) -> Answer:
    """A container got AMD's devices but not the group of their nodes, and its program sees no card."""
    blind, started = seen.first(NoDevices), next(filter(_without_group, seen.commands("docker", "podman")), None)
    node = seen.first(DeviceNode, lambda event: event.name.startswith("renderD") and event.group_may and not event.open)
    return found(LIKELY, started, node, blind, variant="container") if blind and started and node and node.group == "render" else None


def _without_group(command: Command) -> bool:
    """Return whether a container is started with /dev/kfd and with groups of which none can be the nodes'."""
    line = " ".join(command.words)
    groups = re.findall(r"--group-add[= ](\S+)", line)
    named = all(group in ("video", "audio", "users") for group in groups)
    return "/dev/kfd" in line and named and "--privileged" not in line


@rule("gpu-unsupported-by-kfd")
def unsupported(seen: Evidence) -> Answer:
    """The kernel says that the chip cannot compute."""
    said, closed = seen.first(KfdUnsupported), _closed(seen, "memory")
    if said is not None:
        return found(CERTAIN if closed else STRONG, said, closed, chip=said.chip or "?")
    if closed is not None:
        return found(LIKELY - 0.1, closed, variant="unsaid", chip="?")
    other = seen.first(KfdClosed)
    return out(other) if other is not None else None


@rule("container-userns-hides-kfd")
def user_namespace(seen: Evidence) -> Answer:
    """The device's group has no number inside the container."""
    nobody = seen.first(Groups, lambda event: "nogroup" in event.names)
    listed = re.search(r"^\S+ +\d+ \S+ (nogroup) .*kfd$", seen.host.run(("ls", "-l", "/dev/kfd")).stdout, re.MULTILINE)
    invalid, denied, told = _closed(seen, "invalid"), _closed(seen, "permission"), _nameless(seen)
    if denied is not None and told is not None:
        return found(STRONG, denied, told, nobody, variant="denied")
    if invalid is None:
        other = seen.first(KfdClosed)
        return out(other) if other is not None else None
    return found(CERTAIN if nobody or listed else LIKELY, invalid, nobody)


@rule("rocblas-lacks-gpu-kernels")
def rocblas(seen: Evidence) -> Answer:
    """The card computes, and rocBLAS brings no kernels for it."""
    missing = seen.first(TensileMissing)
    if missing is None:
        return None
    card = seen.first(Gfx)
    closed = seen.first(KfdClosed)
    if closed is not None:
        return out(closed)
    name = missing.gfx or (card.name if card else "?")
    return found(CERTAIN if name != "?" else LIKELY, missing, card, gfx=name)
