"""What can be had from here: asked of the machine's own indexes, of NVIDIA's repository and of the Python index."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import number
from steps.host.web import Unreachable, Web, within
from steps.knowledge.local import joined, local, named
from steps.knowledge.source import NOBODY, Source
from steps.managers import offered
from steps.managers.access import Access
from steps.managers.index import Garbled, Wheel
from steps.model.machine import Machine
from steps.model.offers import Offers
from steps.model.plan import Installer

if TYPE_CHECKING:
    from steps.host.base import Host

SECONDS = 8.0
"""How long the network may take; what has not come by then is not known."""
PROJECTS = ("torch", "torchvision", "torchaudio", "tensorflow", "jax", "jaxlib")
RELEASES = 40
"""How many releases of a project are kept, the newest."""
_PYTORCH = "https://download.pytorch.org/whl/{variant}"
_MOST_LIST = 64 << 20
_LINUX_KIND = re.compile(r"linux")


def live(machine: Machine, host: Host, installer: Installer, *, now: float, seconds: float = SECONDS, access: Access = NOBODY) -> Offers:
    """Return what the machine and the network offer; each part that does not answer in time stays not known.

    `now` is the time that the record is to bear; `access` says who the person is at the indexes.
    """
    silent: list[str] = []
    source = Source(installer, seconds=seconds, said=silent.append, access=access)
    variants = _variants()
    answers = within(
        seconds,
        [
            lambda: local(machine, host),
            lambda: Offers(added=repository(machine, installer, seconds)),
            lambda: Offers(wheels=_wheels(source.projects(PROJECTS), machine.os.arch)),
            lambda: Offers(wheels=_wheels(_of_variants(source, variants), machine.os.arch)),
        ],
    )
    return joined(*(one for one in answers if one is not None), asked=now)


# --- Python -----------------------------------------------------------------------------------------


def _variants() -> tuple[str, ...]:
    """Return the CUDA variants of the newest releases: their indexes are asked too."""
    names = {variant.name for release in catalog.torch_releases()[:4] for variant in release.variant}
    return tuple(sorted(name for name in names if re.fullmatch(r"cu\d+|cpu", name)))


def _of_variants(source: Source, variants: tuple[str, ...]) -> Mapping[str, tuple[Wheel, ...] | None]:
    """Return PyTorch's wheels by `torch+cu126`; `None` for a variant whose index did not answer."""
    addresses = {f"torch+{variant}": _PYTORCH.format(variant=variant) for variant in variants}
    return dict(zip(addresses, source.at(tuple(addresses.values()), "torch"), strict=True))


def _wheels(projects: Mapping[str, tuple[Wheel, ...] | None], arch: str | None) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the tags of the Linux wheels by project and release; a project that nobody could be asked about is missing."""
    found: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for name, wheels in projects.items():
        if wheels is None:
            continue
        releases: dict[str, list[str]] = {}
        for wheel in wheels:
            if _fits(wheel, arch):
                releases.setdefault(_public(wheel.version, name), []).append(wheel.tag)
        newest = sorted(releases, key=number, reverse=True)[:RELEASES]
        found[name] = {version: tuple(releases[version]) for version in newest}
    return found


def _public(version: str, name: str) -> str:
    """Return a release without the local part that the project's own name says already."""
    return version.partition("+")[0] if "+" in name else version


def _fits(wheel: Wheel, arch: str | None) -> bool:
    """Return whether a wheel is for Linux on this processor, or for everything."""
    if wheel.tag.endswith("-any"):
        return True
    if arch in ("x86_64", "aarch64"):
        return wheel.linux("aarch64" if arch == "aarch64" else "x86_64")
    return bool(_LINUX_KIND.search(wheel.tag))


# --- NVIDIA's repository ----------------------------------------------------------------------------


def repository(machine: Machine, installer: Installer, seconds: float) -> Mapping[str, tuple[str, ...]] | None:
    """Return what NVIDIA's repository for this system has; `None` when there is none or it does not answer in time."""
    row, system = stack.repository_of(machine.os.id, machine.os.version), stack.distribution_of(machine.os.id, machine.os.version)
    arch = {"aarch64": "sbsa", "arm64": "sbsa"}.get(machine.os.arch or "", machine.os.arch or "x86_64")
    if row is None or system is None or arch not in row.arches or system.manager != "apt":
        return None
    web = Web(proxy=installer.proxy, certificates=installer.certificates, seconds=seconds)
    try:
        packed = web.get(f"{row.url.format(arch=arch).rstrip('/')}/Packages.gz").body
        text = unpacked(packed).decode("utf-8", "replace")
    except (Unreachable, Garbled):
        return None
    return listed(text, named(system))


def unpacked(packed: bytes) -> bytes:
    """Return what was packed, if it is no larger than such a list can be; raises `Garbled`."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        data = unpacker.decompress(packed, _MOST_LIST)
    except zlib.error:
        raise Garbled("no package list") from None
    if unpacker.unconsumed_tail:
        raise Garbled("the package list is too long")
    return data


def listed(text: str, names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the versions of these packages in a Debian package list, newest first."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for paragraph in text.split("\n\n"):
        name = re.search(r"^Package: (\S+)$", paragraph, re.MULTILINE)
        version = re.search(r"^Version: (\S+)$", paragraph, re.MULTILINE)
        if name and version and name[1] in found:
            found[name[1]].add(version[1])
    return {name: tuple(sorted(versions, key=lambda one: number(offered.upstream(one)), reverse=True)) for name, versions in found.items()}
