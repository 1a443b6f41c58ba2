"""The whole disks of a machine and what kind of storage each is."""

from __future__ import annotations

import json
import re
from typing import Literal

from steps.detect.probes import Probes
from steps.model.hardware import Disk

BLOCK = "/sys/block"
LSBLK = ("lsblk", "-J", "-b", "-o", "NAME,SIZE,ROTA,TYPE,MODEL")
Tier = Literal["nvme", "ssd", "hdd", "external", "virtual", "raid"]
_FLASH: dict[str, Tier] = {"MMC": "ssd", "SD": "external"}
_MOST_BYTES = 1 << 64
"""No disk is larger; what says so is broken."""
_NO_DISK = re.compile(r"^(loop|ram|zram|dm-|md|sr|fd|nbd|zd|rbd|mtdblock)\d|^nvme\d+c\d+n\d+$|boot\d$|rpmb$")
_VIRTUAL = re.compile(r"virtual|QEMU|VBOX|VMware|PersistentDisk|Amazon Elastic Block Store|^Msft|LIO-ORG", re.IGNORECASE)
_PORTABLE = re.compile(r"^USB|\b(Portable|Expansion|Elements|My Passport|My Book|Cruzer|Ultra Fit|DataTraveler|External)\b", re.IGNORECASE)
_RAID = re.compile(r"\bPERC\b|RAID|\bMR9\d{3}|LOGICAL VOL|SmartArray|BOSS|AVAGO|Marvell_NVMe_VD", re.IGNORECASE)


def disks(host: Probes, *, virtual_machine: bool) -> tuple[Disk, ...]:
    """Return the disks; from sysfs, completed (or found at all) by lsblk."""
    listed = _lsblk(host)
    named = host.listdir(BLOCK)
    names = [name for name in (named if named is not None else tuple(listed)) if not _NO_DISK.match(name)]
    by_usb = _usb_disks(host) if any(name.startswith("sd") for name in names) else frozenset()
    found = (_disk(host, name, listed.get(name, {}), usb=name in by_usb, virtual_machine=virtual_machine) for name in names)
    return tuple(disk for disk in found if disk.bytes != 0)


def _disk(host: Probes, name: str, listed: dict[str, object], *, usb: bool, virtual_machine: bool) -> Disk:
    at = f"{BLOCK}/{name}"
    sectors = host.number(f"{at}/size")
    listed_size, listed_model, listed_turns = listed.get("size"), listed.get("model"), listed.get("rota")
    model = host.line(f"{at}/device/model") or (listed_model.strip() or None if isinstance(listed_model, str) else None)
    size = sectors * 512 if sectors is not None else listed_size if isinstance(listed_size, int) else None
    size = size if size is not None and 0 <= size < _MOST_BYTES else None
    turns = {"0": False, "1": True}.get(host.line(f"{at}/queue/rotational") or "", listed_turns if isinstance(listed_turns, bool) else None)
    described = f"{host.line(f'{at}/device/vendor') or ''} {model or ''}".strip()
    external = usb or host.line(f"{at}/removable") == "1" or "/usb" in (host.readlink(at) or "")
    tier = _tier(host, name, described, external=external, turns=turns, virtual_machine=virtual_machine)
    return Disk(name=name, model=model, bytes=size, tier=tier)


def _tier(host: Probes, name: str, described: str, *, external: bool, turns: bool | None, virtual_machine: bool) -> Tier | None:
    if name.startswith(("vd", "xvd", "pmem")) or _VIRTUAL.search(described) or "/virtio" in (host.readlink(f"{BLOCK}/{name}") or ""):
        return "virtual"
    if _RAID.search(described):
        return "raid"
    if name.startswith("nvme"):
        # A hypervisor's disks may call themselves so too; without a model's name they are not told apart.
        return None if virtual_machine and not described else "nvme"
    if name.startswith("mmcblk"):
        # The kernel tells a soldered chip from a card in a slot.
        return _FLASH.get(host.line(f"{BLOCK}/{name}/device/type") or "")
    if external:
        return "external"
    if virtual_machine and name.startswith("sd"):
        return "virtual"
    return None if turns is None else "hdd" if turns else "ssd"


def _lsblk(host: Probes) -> dict[str, dict[str, object]]:
    """Return lsblk's disks by name; asked only where sysfs cannot tell or a capture recorded it."""
    if host.listdir(BLOCK) is not None and LSBLK not in host.host.recorded():
        return {}
    try:
        document = json.loads(host.run(LSBLK).stdout or "{}")
    except (ValueError, RecursionError):
        return {}
    entries = document.get("blockdevices") if isinstance(document, dict) else None
    found: dict[str, dict[str, object]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry.get("type", "disk") == "disk":
            found[entry["name"]] = entry
    return found


def _usb_disks(host: Probes) -> frozenset[str]:
    """Return the disks that the kernel log saw arrive over USB, for captures that do not show where a disk hangs."""
    if ("dmesg",) not in host.host.recorded():
        return frozenset()
    text = host.run(("dmesg",)).stdout
    places = {f"{number}:" for number in re.findall(r"scsi host(\d+): (?:usb-storage|uas)", text)}
    places |= {place for place, named in re.findall(r"scsi (\d+:\d+:\d+:\d+): Direct-Access\s+(.*)", text) if _PORTABLE.search(named)}
    found = re.findall(r"sd ((\d+:)\d+:\d+:\d+): \[(sd[a-z]+)\]", text)
    return frozenset(disk for place, number, disk in found if place in places or number in places)
