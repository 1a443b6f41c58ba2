"""What the installed system was told about its hardware: its boot loader and kernel parameters, who sets the governor, our own switches."""

from __future__ import annotations

import re

from steps.catalog import linux
from steps.detect import links, pci
from steps.detect.packages import Packages
from steps.detect.probes import Probes
from steps.model.hardware import Accelerator
from steps.model.software import Told

_LOADER_INFO = "/sys/firmware/efi/efivars/LoaderInfo-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
_PREFERENCE = "/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference"
_SYSTEMD = ("/run/systemd/system", "/usr/lib/systemd/systemd", "/lib/systemd/systemd")
_MOST_TEXT = 65_536
_DMI = "/sys/class/dmi/id"
_NAMES = ("sys_vendor", "board_vendor", "board_name", "product_name", "product_version", "product_family")
_PORTABLE = {"8", "9", "10", "11", "14", "30", "31", "32"}
"""SMBIOS 3.7, table 17: portable, laptop, notebook, hand-held, sub-notebook, tablet, convertible, detachable."""


def told(host: Probes, cards: tuple[Accelerator, ...], installed: Packages) -> Told:
    """Return what a plan must know before it changes a setting; what could not be seen is `None` or not there."""
    line = host.line("/proc/cmdline")
    found = [host.exists(path) for path in _SYSTEMD]
    texts = {path: text for path in linux.edited() if (text := host.read(path)) is not None and len(text) <= _MOST_TEXT}
    return Told(
        loader=_loader(host),
        parameters=None if line is None else tuple(line.split()),
        systemd=True if any(found) else None if None in found else False,
        kernels=tuple(path.removeprefix("/boot/vmlinuz-") for path in host.glob("/boot/vmlinuz-[0-9]*")),
        preference=host.line(_PREFERENCE),
        governors=_governors(host, installed),
        domains=_domains(host, cards),
        texts=texts,
        names=tuple(text for name in _NAMES if (text := host.line(f"{_DMI}/{name}"))),
        portable=host.line(f"{_DMI}/chassis_type") in _PORTABLE,
        nvlink=links.joins_told(host, sum(card.vendor == "nvidia" and not card.integrated for card in cards)),
    )


def _loader(host: Probes) -> str | None:
    """Return the first row whose files are all there and whose loader, where it names one, says that it started this system."""
    started = _started_by(host)
    sealed = _sealed(host)
    for row in linux.loaders():
        if row.files and all(any(host.exists(path) for path in either.split("|")) for either in row.files):
            named = row.started_by is None or (started or "").startswith(row.started_by)
            if named and (not row.sealed or sealed):
                return row.id
    return None


def _started_by(host: Probes) -> str | None:
    """Return what the boot loader calls itself: UTF-16 behind four bytes of attributes; `None` where none wrote its name."""
    data = host.read_bytes(_LOADER_INFO)
    return data[4:].decode("utf-16-le", errors="replace").rstrip("\0") if data is not None and len(data) > 4 else None


def _sealed(host: Probes) -> bool:
    """Return whether the root file system is mounted for reading only."""
    mounts = host.read("/proc/self/mounts") or host.read("/proc/mounts") or ""
    found = re.search(r"^\S+ / \S+ (\S+) ", mounts, re.MULTILINE)
    return found is not None and "ro" in found[1].split(",")


def _governors(host: Probes, installed: Packages) -> tuple[str, ...] | None:
    """Return who sets the governor at boot, by the links that enable a unit; a capture has packages at best."""
    wanted = {path.rsplit("/", 1)[-1] for path in host.glob("/etc/systemd/system/*.wants/*.service")}
    # A script of the old kind: systemd makes a unit of it at each start.
    wanted |= {f"{path.rsplit('/', 1)[-1][3:]}.service" for path in host.glob("/etc/rc2.d/S[0-9][0-9]*")}
    if wanted:
        return tuple(row.id for row in linux.owners() if wanted & set(row.units))
    # A machine says whether the folder is there, and so does its capture; one made by hand says nothing.
    if host.exists("/etc/systemd/system") is not None:
        return ()
    packaged = tuple(row.id for row in linux.owners() if row.package and installed.version(row.package))
    return packaged or None


def _domains(host: Probes, cards: tuple[Accelerator, ...]) -> dict[str, str]:
    kinds = {card.address: host.line(f"{pci.DEVICES}/{card.address}/iommu_group/type") for card in cards if card.address}
    return {address: kind for address, kind in kinds.items() if kind is not None}
