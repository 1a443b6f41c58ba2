"""The owner's keys for modules, as mokutil lists them: those that the firmware accepts, and those that wait for the next boot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steps.detect.probes import Probes
    from steps.host.base import Host

_ENROLLED = ("mokutil", "--list-enrolled")
_QUEUED = ("mokutil", "--list-new")


def enrolled(host: Probes, uefi: bool | None) -> tuple[str, ...] | None:
    """Return the names of the keys that the firmware accepts; `None` when that is not known."""
    return _names(host, _ENROLLED, uefi)


def queued(host: Probes, uefi: bool | None) -> tuple[str, ...] | None:
    """Return the names of the keys that wait for the next boot; `None` when that is not known."""
    return _names(host, _QUEUED, uefi)


def one_queued(host: Host) -> bool:
    """Return whether exactly one key is known to wait for the next boot: two may bear one name."""
    return len(re.findall(r"^\[key \d+\]", host.run(_QUEUED).stdout, re.MULTILINE)) == 1


def is_let_go(certificate: str, host: Host) -> bool:
    """Return whether no key is known to wait for the next boot, and mokutil says that this one was not confirmed either."""
    told = host.run(("mokutil", "--test-key", certificate)).text
    return _names(host, _QUEUED, uefi=True) == () and "is not enrolled" in told


def _names(host: Probes | Host, question: tuple[str, ...], uefi: bool | None) -> tuple[str, ...] | None:
    """Return the names of the owner's keys that mokutil lists; shim keeps them, so there are none to list without UEFI."""
    if not uefi:
        return None
    result = host.run(question)
    names = re.findall(r"^\s*Subject:.*?\bCN ?= ?(.+?)\s*$", result.stdout, re.MULTILINE)
    if names:
        return tuple(dict.fromkeys(names))
    return () if result.status in (0, 1) and re.search(r"Mok(?:ListRT|ListXRT|New) is empty", result.text) else None
