# ruff: noqa: PTH115, PTH118, PTH123, PTH208
# Thousands of descriptors are looked at; pathlib would double what that costs.
"""Which processes hold an accelerator's device file open, as far as we may see."""

from __future__ import annotations

import contextlib
import os
import re

from steps.host.base import Result

_DEVICE = re.compile(r"/dev/(nvidia\d+|kfd|accel/accel\d+|hl\d+|nvidia-caps/nvidia-cap\d+)$")
_CONTAINERS = (("docker", "docker"), ("kubepods", "kubernetes"), ("libpod", "podman"), ("lxc", "lxc"), ("apptainer", "apptainer"))
_MOST_PROCESSES = 20_000


def holders(proc: str = "/proc") -> Result:
    """Return the processes as one JSON list; those of other users are seen by root only, and `partial` says so."""
    found: list[dict[str, object]] = []
    partial = False
    try:
        processes = [name for name in os.listdir(proc) if name.isdigit()][:_MOST_PROCESSES]
    except OSError:
        return Result()
    for process in processes:
        devices = _devices(f"{proc}/{process}/fd")
        if devices is None:
            partial = True
        elif devices:
            found.append(
                {
                    "pid": int(process),
                    "name": _text(f"{proc}/{process}/comm").strip() or None,
                    "devices": devices,
                    "container": _container(_text(f"{proc}/{process}/cgroup")),
                }
            )
    # A runner loads this module with its host, and never asks.
    import json

    return Result(stdout=json.dumps({"partial": partial, "users": found}) + "\n", status=0)


def _devices(folder: str) -> list[str] | None:
    """Return the device files a process holds; `None` when we may not look, nothing for one that ended meanwhile."""
    try:
        descriptors = os.listdir(folder)
    except PermissionError:
        return None
    except OSError:
        return []
    found: set[str] = set()
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            target = os.readlink(os.path.join(folder, descriptor))
            if _DEVICE.match(target):
                found.add(target)
    return sorted(found)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""


def _container(groups: str) -> str | None:
    """Return the kind of container that control groups name; `None` for a process outside."""
    return next((kind for word, kind in _CONTAINERS if word in groups), None)
