"""Who may open the GPU's devices, and who may do more than read."""

from __future__ import annotations

import re

from steps.doctor.events.containers import CountersForbidden, Denied, OperationRefused, ReadingTold
from steps.doctor.events.nodes import DeviceNode
from steps.doctor.evidence import Evidence
from steps.doctor.facts.params import PARAMS, counters_for_root
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.rules.container import inside, started
from steps.doctor.told import Fact, Told, fact


def _closed_node(seen: Evidence) -> Told | None:
    """Return a device node that is not for everybody, or the setting that makes it so."""
    node = seen.first(DeviceNode, lambda event: event.name.startswith("nvidia") and not event.open)
    if node is not None:
        return node
    for argv, text in seen.nodes:
        line = next((line for line in text.splitlines() if re.match(r"crw.{5}-", line) and "/dev/nvidia" in line), None)
        if line:
            return fact("0660", " ".join(argv), line)
    setting = next((one for one in seen.modules.settings if re.search(r"NVreg_DeviceFileMode=0?6[0-6]0\b", one.rest)), None)
    return fact("0660", setting.place.source, setting.place.text) if setting is not None else None


def _open_node(seen: Evidence) -> Told | None:
    node = seen.first(DeviceNode, lambda event: event.name.startswith("nvidia") and event.open and not event.place.in_container)
    if node is not None:
        return node
    for argv, text in seen.nodes:
        line = next((line for line in text.splitlines() if re.match(r"crw.rw.rw.", line)), None)
        if line:
            return fact("0666", " ".join(argv), line)
    return None


def _rootless(seen: Evidence) -> Fact | None:
    """Return the command of a container engine that runs without root, as another user or with a group of its own."""
    command = started(seen)
    if command is None or re.search(r"(?:^|\$ *)sudo ", command.place.text):
        return None
    words = command.value.split()
    user = any(word in ("-u", "--user", "--userns") or word.startswith(("--user", "--group-add", "-u")) for word in words)
    return command if words[0].endswith("podman") or user else None


@rule("device-nodes-restricted")
def restricted(seen: Evidence) -> Answer:
    """The nodes are for a group that this user is not in."""
    error = seen.nvml("no-permission")
    if error is None:
        return None
    node = _closed_node(seen)
    beyond = seen.first(ReadingTold) or seen.first(OperationRefused)
    if beyond is not None:
        return out(beyond)
    if _rootless(seen) is not None or inside(seen, error):
        return found(POSSIBLE - 0.1, error, node)
    opened = _open_node(seen)
    if node is None and opened is not None:
        return out(opened)
    return found(CERTAIN if node else LIKELY - 0.05, error, node)


@rule("selinux-blocks-gpu-device")
def selinux(seen: Evidence) -> Answer:
    """SELinux enforces, and denied a container the device."""
    denied, error = seen.first(Denied), seen.nvml("no-permission", "unknown-error")
    mode = seen.host.run(("getenforce",)).stdout.strip()
    if mode in ("Permissive", "Disabled"):
        return out(fact(mode, "getenforce"))
    if denied is None:
        return _unrecorded(seen, mode)
    return found(CERTAIN if error or mode == "Enforcing" else STRONG, denied, error, fact(mode, "getenforce") if mode else None)


def _unrecorded(seen: Evidence, mode: str) -> Answer:
    """Return how likely it is without a record: root in a container is refused what the nodes allow, where SELinux is the custom."""
    error = seen.nvml("no-permission")
    if error is None or not inside(seen, error) or _rootless(seen) is not None:
        return None
    if mode == "Enforcing":
        return found(LIKELY, error, fact(mode, "getenforce"))
    custom = {seen.system.id, *seen.system.like} & {"rhel", "fedora"}
    return found(POSSIBLE, error) if custom else None


@rule("rootless-container-loses-group")
def rootless(seen: Evidence) -> Answer:
    """A container without root lost the group that may open the nodes."""
    error, command = seen.nvml("no-permission"), _rootless(seen)
    if error is None or command is None:
        return None
    node = _closed_node(seen)
    if seen.has(Denied):
        return out(seen.first(Denied))
    opened = _open_node(seen)
    if node is None and opened is not None:
        return out(opened)
    return found(CERTAIN if node else LIKELY, error, command, node)


@rule("operation-needs-admin-rights")
def admin_only(seen: Evidence) -> Answer:
    """Reading works, and what only root may do was refused."""
    forbidden = seen.first(CountersForbidden)
    if forbidden is not None:
        told = fact("1", PARAMS, "RmProfilingAdminOnly: 1") if counters_for_root(seen.host) else None
        return found(CERTAIN, forbidden, told, variant="counters")
    refused = seen.first(OperationRefused)
    error, read = seen.nvml("no-permission"), seen.first(ReadingTold)
    if refused is not None:
        return found(STRONG, refused, read)
    if error is None or read is None:
        return None
    return found(STRONG, error, read)
