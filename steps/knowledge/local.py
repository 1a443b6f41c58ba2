"""What the machine's own package manager offers, and answers put together; light, since every verb may ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps.catalog import stack
from steps.managers import offered
from steps.model.machine import Machine
from steps.model.offers import Offers

if TYPE_CHECKING:
    from steps.host.base import Host


def local(machine: Machine, host: Host) -> Offers:
    """Return what the machine's own package manager offers; no network is asked."""
    row = stack.distribution_of(machine.os.id, machine.os.version)
    manager = row.manager if row else None
    return Offers(here=offered.by(manager, host, named(row)))


def named(row: stack.Distribution | None) -> tuple[str, ...]:
    """Return every package that a plan could install from a repository, as the tables name it."""
    names: list[str] = ["nvidia-open", "cuda-drivers", "nvidia-container-toolkit", "datacenter-gpu-manager"]
    for variant in row.archive if row else ():
        patterns = row.archive_packages.get(variant) or row.archive_packages.get("*") or () if row else ()
        names += [pattern.format(variant=variant) for pattern in patterns]
    names += [cuda.package for cuda in stack.cudas().values()]
    names += [name for one in stack.cudnns() for name in (one.package, one.dev_package)]
    names += ["libnccl2", "libnccl-dev"]
    return tuple(dict.fromkeys(names))


def joined(*parts: Offers, asked: float | None) -> Offers:
    """Return the parts as one record; it bears a time only when the network said something."""
    here = next((part.here for part in parts if part.here is not None), None)
    added = next((part.added for part in parts if part.added is not None), None)
    wheels = {name: releases for part in parts for name, releases in (part.wheels or {}).items()}
    return Offers(here=here, added=added, wheels=wheels or None, asked=asked if wheels or added is not None else None)
