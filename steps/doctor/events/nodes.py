"""Listings of device nodes: who may open them."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class DeviceNode(Event):
    """A line of `ls -l` with a GPU's device; `name` is without folders, `open` whether everybody may read and write it."""

    name: str
    group: str
    open: bool
    group_may: bool


@parses(
    r"^(?:total \d+ )?c(?P<owner>[r-][w-]\S)(?P<mates>[r-][w-]\S)(?P<others>[r-][w-]\S)[.+@]? +\d+ +\S+ +(?P<group>\S+) +\d+, +\d+ [^\n]*?"
    r"(?P<name>nvidia(?:\d+|ctl|-uvm|-uvm-tools|-modeset)|kfd|renderD\d+)$",
    "nvidia", "kfd", "renderD",
)  # fmt: skip
def device_node(found: re.Match[str], at: Place) -> DeviceNode:
    """Recognise a node in the listing of itself or of its folder; MIG's capabilities, which are root's by design, are left out."""
    may = found["others"].startswith("rw")
    return DeviceNode(place=at, name=found["name"], group=found["group"], open=may, group_may=may or found["mates"].startswith("rw"))
