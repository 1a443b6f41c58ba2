"""What can really be had from here: by this machine's repositories, by one that would be added, and by the Python index.

In every mapping three things differ: a name that is missing was *not asked for*, an empty value was asked for and is
*not offered*, and a mapping that is `None` could not be asked at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from steps.model.base import Record

Place = Literal["here", "added", "known"]
"""Offered by this machine's repositories or index · by a repository that we would add · in our tables only (not asked, or not offered)."""


class Offers(Record):
    """What the indexes said; the record is a fact of the machine, never a guess."""

    here: Mapping[str, tuple[str, ...]] | None = None
    """System package → the versions that the machine's own repositories offer, what would be installed first."""
    added: Mapping[str, tuple[str, ...]] | None = None
    """The same for NVIDIA's repository of this distribution, which a plan would add."""
    wheels: Mapping[str, Mapping[str, tuple[str, ...]]] | None = None
    """Distribution → release → the tags of its Linux wheels (`cp312-cp312-manylinux_2_28_x86_64`), newest release first.

    PyTorch's variants have indexes of their own: what these offer stands under `torch+cu126`."""
    asked: float | None = None
    """When the network was last asked, seconds since the epoch; `None` when nothing came from it."""


def place_of(offers: Offers | None, packages: tuple[str, ...]) -> Place | None:
    """Return where all of these system packages ("name", or "name=580.*") can be had.

    `None` says that nobody could be asked; "known" that who was asked has not all of them.
    """
    if offers is None or not packages:
        return None
    answers: list[tuple[Place, bool | None]] = [("here", _has(offers.here, packages)), ("added", _has(offers.added, packages))]
    found: Place | None = next((place for place, has in answers if has), None)
    return found or ("known" if any(has is False for _, has in answers) else None)


def _has(offered: Mapping[str, tuple[str, ...]] | None, packages: tuple[str, ...]) -> bool | None:
    """Return whether an index has all the packages; `None` when it was not asked for each of them."""
    wanted = [package.partition("=") for package in packages]
    if offered is None or any(name not in offered for name, _, _ in wanted):
        return None
    return all(any(_matches(one, version) for one in offered[name]) for name, _, version in wanted)


def _matches(offered: str, wanted: str) -> bool:
    """Return whether an offered version is the wanted one: "" is any, "580.*" a line; an epoch that is not said does not count."""
    if not wanted:
        return True
    return any(fnmatchcase(one, wanted) for one in (offered, offered.partition(":")[2], offered.partition("-")[0]))


def has_wheel(offers: Offers | None, distribution: str, version: str, python: str | None = None, arch: str | None = None) -> bool | None:
    """Return whether the index has a wheel of a release for a Python line and an architecture; `None` when it was not asked.

    `distribution` is `torch`, or `torch+cu126` for PyTorch's own index of a variant.
    """
    releases = None if offers is None or offers.wheels is None else offers.wheels.get(distribution)
    if releases is None:
        return None
    return any(suits(tag, python, arch) for tag in releases.get(version, ()))


def suits(tag: str, python: str | None, arch: str | None) -> bool:
    """Return whether a wheel's tag is for the Python line and the architecture."""
    interpreter, abi, platform = [*tag.split("-"), "", ""][:3]
    if arch is not None and not platform.endswith((f"_{arch}", "any")):
        return False
    if python is None:
        return True
    wanted = python.replace(".", "")
    if abi == "abi3":
        minors = [int(one[3:]) for one in interpreter.split(".") if one.startswith("cp3") and one[3:].isdigit()]
        return any(int(wanted[1:]) >= minor for minor in minors)
    if abi == "none":
        return any(one in ("py3", f"py{wanted}", f"cp{wanted}") for one in interpreter.split("."))
    return f"cp{wanted}" in interpreter.split(".") and abi in (f"cp{wanted}", f"cp{wanted}m")


def fresh(offers: Offers, now: float, hours: float) -> bool:
    """Return whether the network's answer is no older than that, and not from the future."""
    return offers.asked is not None and 0 <= now - offers.asked <= hours * 3600
