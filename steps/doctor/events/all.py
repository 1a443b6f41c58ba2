"""Every parser there is, and the reader that knows them."""

from __future__ import annotations

from functools import cache

from steps.doctor.events import (
    builds,
    bus,
    complaints,
    containers,
    cuda,
    dkms,
    driver_files,
    faults,
    gloo,
    heat,
    kernel,
    libraries,
    loads,
    mends,
    nccl,
    nodes,
    nvml,
    outcomes,
    ownership,
    packages,
    peers,
    proxies,
    python,
    repositories,
    rpm,
    runs,
    signatures,
    typed,
    vendors,
)
from steps.doctor.events.base import Events, Parser, parsers_of
from steps.doctor.events.reading import Reader


@cache
def parsers() -> tuple[Parser, ...]:
    """Return the parsers of all origins."""
    return parsers_of(
        builds, bus, complaints, containers, cuda, dkms, driver_files, faults, gloo, heat, kernel, libraries, loads, mends, nccl, nodes,
        nvml, outcomes, ownership, packages, peers, proxies, python, repositories, rpm, runs, signatures, typed, vendors,
    )  # fmt: skip


def reader() -> Reader:
    """Return a reader with no events yet."""
    return Reader(parsers(), Events())
