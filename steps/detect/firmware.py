"""The board, and what its firmware was told to do."""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from typing import TYPE_CHECKING, Literal

from steps.detect import pci
from steps.detect.probes import Probes
from steps.model.hardware import Accelerator, Firmware, FirmwareSriov, SriovDevice

if TYPE_CHECKING:
    from steps.host.base import Host

ASKED = (("mokutil", "--sb-state"),)
ENROLLED = ("mokutil", "--list-enrolled")
QUEUED = ("mokutil", "--list-new")
_DMI = "/sys/class/dmi/id"
_EFIVARS = "/sys/firmware/efi/efivars"
_GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
_FILLERS = re.compile(
    r"(to be filled by o\.?e\.?m\.?|system (manufacturer|version)|default string|not (specified|applicable)|unknown|none|n/a|\.*|x+)",
    re.IGNORECASE,
)


def firmware(host: Probes, accelerators: tuple[Accelerator, ...]) -> Firmware:
    """Return the board's names and the settings that the running system can see."""
    uefi = host.exists("/sys/firmware/efi")
    return Firmware(
        vendor=_dmi(host, "sys_vendor") or _dmi(host, "board_vendor"),
        board=_dmi(host, "board_name"),
        product=host.line(f"{_DMI}/product_name"),
        bios_version=_dmi(host, "bios_version"),
        bios_date=_day(_dmi(host, "bios_date")),
        uefi=uefi,
        secure_boot=_secure_boot(host, uefi),
        iommu=_iommu(host),
        above_4g=_above_4g(host, accelerators),
        resizable_bar=_resizable_bar(accelerators),
        sriov=_sriov(host),
        enrolled_keys=_keys(host, ENROLLED, uefi),
        queued_keys=_keys(host, QUEUED, uefi),
        iommu_groups=_iommu_groups(host),
    )


def _dmi(host: Probes, name: str) -> str | None:
    text = host.line(f"{_DMI}/{name}")
    return None if text is None or _FILLERS.fullmatch(text) else text


def _day(text: str | None) -> str | None:
    """Return a day of the firmware, which writes month/day/year, as ISO 8601; `None` for what is no day. Two digits are of 19xx."""
    found = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{2}|\d{4})", text or "")
    if found is None:
        return None
    month, day, year = (int(part) for part in found.groups())
    try:
        return date(year if year > 99 else 1900 + year, month, day).isoformat()
    except ValueError:
        return None


SecureBoot = Literal["enabled", "disabled", "setup", "unsupported"]


def _secure_boot(host: Probes, uefi: bool | None) -> SecureBoot | None:
    """Return the state from the EFI variable itself, else from mokutil; a BIOS without UEFI has none."""
    enabled = _variable(host, "SecureBoot")
    if enabled is not None:
        if _variable(host, "SetupMode") == 1:
            return "setup"
        return "enabled" if enabled == 1 else "disabled"
    said = host.run(("mokutil", "--sb-state")).text
    if "SecureBoot enabled" in said:
        return "enabled"
    if "SecureBoot disabled" in said:
        return "setup" if "Setup Mode" in said else "disabled"
    if uefi is False or "doesn't support Secure Boot" in said or "EFI variables are not supported" in said:
        return "unsupported"
    return None


def _variable(host: Probes, name: str) -> int | None:
    """Return the last byte of an EFI variable, its value after four bytes of attributes."""
    data = host.read_bytes(f"{_EFIVARS}/{name}-{_GLOBAL}")
    return data[4] if data is not None and len(data) == 5 else None


def _iommu(host: Probes) -> Literal["on", "passthrough", "off"] | None:
    """Return whether devices are translated: groups exist only when an IOMMU works."""
    at = "/sys/kernel/iommu_groups"
    groups = host.listdir(at)
    if groups is None:
        return "off" if host.exists(at) is False else None
    if not groups:
        return "off"
    kinds = {kind for group in groups if (kind := host.line(f"{at}/{group}/type")) is not None}
    cmdline = (host.read("/proc/cmdline") or "").split()
    if kinds == {"identity"} or (not kinds and ("iommu=pt" in cmdline or "iommu.passthrough=1" in cmdline)):
        return "passthrough"
    return "on"


def _above_4g(host: Probes, accelerators: tuple[Accelerator, ...]) -> bool | None:
    """Return whether a card's memory window lies above 4 GiB; `None` where no card's windows can be seen."""
    for card in accelerators:
        if card.integrated or card.address is None:
            continue
        starts = [line.split()[0] for line in (host.read(f"{pci.DEVICES}/{card.address}/resource") or "").splitlines()[:6] if line.split()]
        try:
            numbers = [int(start, 16) for start in starts]
        except ValueError:
            continue
        if any(number >= 1 << 32 for number in numbers):
            return True
    if not any(card.address and not card.integrated for card in accelerators):
        return None
    # Small windows may lie low though the setting is on: what the firmware gave the bridges tells.
    ends = re.findall(r"root bus resource \[mem 0x[0-9a-f]{1,16}-0x([0-9a-f]{1,16})", host.run(("dmesg",)).stdout)
    return any(int(end, 16) >= 1 << 32 for end in ends) if ends else None


def _resizable_bar(accelerators: tuple[Accelerator, ...]) -> bool | None:
    """Return whether a window covers its card's memory, where both sizes are known."""
    known = [covers for card in accelerators if (covers := _covers(card)) is not None]
    return all(known) if known else None


_SMALL_WINDOW = 256 << 20


def _covers(card: Accelerator) -> bool | None:
    """Return whether one card's window covers its memory; 256 MiB never does, whatever the card."""
    if card.integrated or card.bar1_bytes is None:
        return None
    if card.bar1_bytes <= _SMALL_WINDOW:
        return False
    return None if card.memory_bytes is None else card.bar1_bytes >= card.memory_bytes * 0.9


def _sriov(host: Probes) -> FirmwareSriov | None:
    """Return the devices that can be split; `None` where the bus was not seen."""
    if host.listdir(pci.DEVICES) is None:
        return None
    folders = (path.removesuffix("/sriov_totalvfs") for path in host.glob(f"{pci.DEVICES}/*/sriov_totalvfs"))
    found = tuple(device for at in folders if (device := _sriov_device(host, at)) is not None)
    return FirmwareSriov(
        capable=tuple(device.address for device in found), enabled=sum(device.enabled or 0 for device in found), devices=found
    )


def _sriov_device(host: Probes, at: str) -> SriovDevice | None:
    """Return the device in a folder, when it can be split."""
    total = host.number(f"{at}/sriov_totalvfs") or 0
    return SriovDevice(address=at.rsplit("/", 1)[-1], total=total, enabled=host.number(f"{at}/sriov_numvfs")) if total > 0 else None


def _keys(host: Probes | Host, question: tuple[str, ...], uefi: bool | None) -> tuple[str, ...] | None:
    """Return the names of the owner's keys that mokutil lists; shim keeps them, so there are none to list without UEFI."""
    if not uefi:
        return None
    result = host.run(question)
    names = re.findall(r"^\s*Subject:.*?\bCN ?= ?(.+?)\s*$", result.stdout, re.MULTILINE)
    if names:
        return tuple(dict.fromkeys(names))
    return () if result.status in (0, 1) and re.search(r"Mok(?:ListRT|ListXRT|New) is empty", result.text) else None


def one_key_queued(host: Host) -> bool:
    """Return whether exactly one key is known to wait for the next boot: two may bear one name."""
    return len(re.findall(r"^\[key \d+\]", host.run(QUEUED).stdout, re.MULTILINE)) == 1


def is_key_let_go(certificate: str, host: Host) -> bool:
    """Return whether no key is known to wait for the next boot, and mokutil says that this one was not confirmed either."""
    told = host.run(("mokutil", "--test-key", certificate)).text
    return _keys(host, QUEUED, uefi=True) == () and "is not enrolled" in told


def _iommu_groups(host: Probes) -> dict[str, int] | None:
    """Return how many groups there are of each kind; `None` where the folder of groups was not seen."""
    at = "/sys/kernel/iommu_groups"
    groups = host.listdir(at)
    if groups is None:
        return None
    return dict(sorted(Counter(kind for group in groups if (kind := host.line(f"{at}/{group}/type")) is not None).items()))
