"""Repairs of a single card: who uses it, its reset, who may open it, and what its kernels run as."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.catalog.repairs import overrides
from steps.doctor.diagnosis import Step
from steps.doctor.events.faults import Xid
from steps.doctor.events.nodes import DeviceNode
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import Plan, person, proof, repairs, run
from steps.doctor.rules.base import Candidate
from steps.model.base import phrase

_SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm")
"""The nodes that every program on any card opens."""


def users(seen: Evidence, key: str) -> Step:
    """Return the look at who uses the cards, whichever it is."""
    nodes = tuple(path for path in sorted(seen.host.glob("/dev/nvidia*")) if re.fullmatch(r"/dev/nvidia(\d+|ctl|-uvm)", path))
    return person(key, "fuser", "-v", *(nodes or _SHARED))


def resets(seen: Evidence, candidate: Candidate, key: str) -> tuple[Step, ...]:
    """Return the reset of each card that the facts name, or of the only one; a person's where it is not known which."""
    found = tuple(dict.fromkeys(_addresses(seen, candidate)))
    if not found:
        return (person(key, "nvidia-smi", "--gpu-reset", "-i", "ADDRESS"),)
    return tuple(run(key, "nvidia-smi", "--gpu-reset", "-i", address, live=True) for address in found)


def _addresses(seen: Evidence, candidate: Candidate) -> Iterator[str]:
    """Yield the addresses on the bus of the cards that it is about, as nvidia-smi takes them."""
    named = [told.address for told in candidate.facts if isinstance(told, Xid)]
    only = [card.address for card in seen.cards.cards if card.address]
    for text in named or (only if len(seen.cards.cards) == 1 else ()):
        if address := _address(text):
            yield address


def _address(text: str) -> str | None:
    """Return an address on the bus as nvidia-smi takes it; `None` for what is none."""
    whole = re.fullmatch(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?", text.lower())
    return f"{(whole[1] or '0000')[-4:]}:{whole[2]}{whole[3] or '.0'}" if whole else None


@repairs("mig-enabled-without-instances")
def instances(seen: Evidence, candidate: Candidate) -> Plan:
    """Return one instance of each card that is split into nothing; a person's where it was not seen which card that is.

    It has no way back: which instance comes of it is known only then, and without its number all of a card's would go.
    """
    split = [one for one in seen.readings if one.active("MIG Mode/Current")]
    cards = [_address(one.address or "") for one in split if (told := one.at("MIG Devices")) is not None and told.value == "None"]
    known = tuple(dict.fromkeys(address for address in cards if address))
    steps = tuple(run("mig-instances", *_mig(one), live=True, stays=phrase("repair.undo.instances", address=one)) for one in known)
    return Plan(steps=steps or (person("mig-instances", *_mig("ADDRESS")),), verify=proof("list"))


def _mig(address: str) -> tuple[str, ...]:
    return ("nvidia-smi", "mig", "-i", address, "-cgi", "0", "-C")


@repairs("device-nodes-restricted")
def into_group(seen: Evidence, candidate: Candidate) -> Plan:
    """Return the way into the group that has the nodes, by the line that shows them; which it is has to be looked at otherwise."""
    node = next((told for told in candidate.facts if isinstance(told, DeviceNode)), None)
    group = node.group if node is not None else None
    if group is None or not re.fullmatch(r"[a-z_][\w-]*", group) or group == "root":
        # In root's group nobody belongs: the driver makes the nodes so, by its module's options.
        look = person("node-group", "ls", "-l", "/dev/nvidiactl")
        return Plan(steps=(look,), verify=proof("list"))
    join = person("node-group-join", "usermod", "--append", "--groups", group, "USER", group=group)
    return Plan(steps=(join, person("log-in-again")), verify=proof("list"))


@repairs("rocblas-lacks-gpu-kernels")
def as_relative(seen: Evidence, candidate: Candidate) -> Plan:
    """Return a build for the card; where it has a relative with kernels, the variable that names that one."""
    gfx = str(candidate.params.get("gfx", ""))
    row = next((one for one in overrides() if gfx.startswith(one.family) and gfx != one.relative), None)
    build = person("rocm-build-for-card")
    if row is None:
        return Plan(steps=(build,), verify=proof("rocm"))
    told = person("gfx-override", "env", f"HSA_OVERRIDE_GFX_VERSION={row.version}", "PROGRAM", relative=row.relative)
    return Plan(steps=(build, told), verify=proof("rocm"))
