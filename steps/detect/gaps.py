"""What could not be known about a machine, and where its sources disagree."""

from __future__ import annotations

import re

from steps.detect import firmware as board
from steps.detect import memory, pci, users
from steps.detect.probes import Probes
from steps.detect.smi import Smi
from steps.host.local import NO_ANSWER
from steps.model.base import Record, phrase
from steps.model.finding import Finding, StepKey
from steps.model.hardware import Accelerator, Firmware, Memory
from steps.model.software import Driver, GpuUser, Os

_DENIED = "Permission denied"


class Seen(Record):
    """What detection made of its sources."""

    os: Os
    memory: Memory
    firmware: Firmware
    cards: tuple[Accelerator, ...]
    driver: Driver
    smi: Smi
    users: tuple[GpuUser, ...] | None


def gaps(host: Probes, seen: Seen) -> tuple[Finding, ...]:
    """Return the findings, those about the hardware first."""
    return (
        *_unknown_cards(seen.cards),
        *_unseen_bus(host, seen.os),
        *_disagreements(host, seen),
        *_hanging(host),
        *_needs_root(host, seen),
    )


def _unknown_cards(cards: tuple[Accelerator, ...]) -> list[Finding]:
    return [
        Finding(
            code="unknown-hardware",
            severity="info",
            step="hardware",
            subject=f"{card.pci_id} ({card.address})",
            because=(f"PCI {card.address}: {card.pci_id}",),
        )
        for card in cards
        if card.pci_id is not None and card.architecture is None and not card.integrated
    ]


def _unseen_bus(host: Probes, os: Os) -> list[Finding]:
    """Return a finding where neither sysfs nor lspci showed a bus: no card found there means nothing."""
    if os.wsl or pci.seen(host):
        return []
    return [
        Finding(code="accelerators-unknown", severity="info", step="hardware", subject="PCI", because=(phrase("general.because.no-bus"),))
    ]


# -- sources that disagree --------------------------------------------------------------------------------------------


def _disagreements(host: Probes, seen: Seen) -> list[Finding]:
    """Return where two sources tell different things; the first of each pair is the one that was kept."""
    smi, driver = seen.smi, seen.driver
    found: list[Finding] = []
    on_bus = [card for card in seen.cards if card.vendor == "nvidia" and card.address is not None]
    if smi.gpus and on_bus and len(smi.gpus) != len(on_bus):
        found.append(_disagree("NVIDIA GPUs", (str(len(on_bus)), "PCI"), (str(len(smi.gpus)), "nvidia-smi")))
    if driver.kernel_version and smi.driver_version and driver.kernel_version != smi.driver_version:
        found.append(_disagree("NVIDIA driver", (driver.kernel_version, "/proc/driver/nvidia/version"), (smi.driver_version, "nvidia-smi")))
    found += _widths(seen)
    found += _secure_boot(host, seen.firmware)
    return found


def _widths(seen: Seen) -> list[Finding]:
    """Return the cards whose bus and driver name different widths: unlike the speed, the width does not change while it is read."""
    told = {gpu.address: gpu.link.width for gpu in seen.smi.gpus}
    return [
        _disagree(f"PCIe {card.address}", (f"x{card.pcie.width}", "sysfs"), (f"x{told[card.address]}", "nvidia-smi"))
        for card in seen.cards
        if card.address is not None and card.pcie and card.pcie.width and told.get(card.address) not in (None, card.pcie.width)
    ]


def _secure_boot(host: Probes, firmware: Firmware) -> list[Finding]:
    """Return whether mokutil contradicts the firmware's own variable."""
    said = re.search(r"^SecureBoot (enabled|disabled)", host.run(board.ASKED[0]).text, re.MULTILINE)
    if said is None or firmware.secure_boot not in ("enabled", "disabled") or said[1] == firmware.secure_boot:
        return []
    return [_disagree("Secure Boot", (firmware.secure_boot, "efivars"), (said[1], "mokutil"), step="firmware")]


def _disagree(subject: str, first: tuple[str, str], second: tuple[str, str], step: StepKey = "hardware") -> Finding:
    return Finding(
        code="sources-disagree",
        severity="info",
        step=step,
        subject=subject,
        params={"first": first[0], "by": first[1], "second": second[0], "other": second[1]},
        because=(f"{first[1]}: {first[0]}", f"{second[1]}: {second[0]}"),
    )


# -- what did not answer ----------------------------------------------------------------------------------------------


def _hanging(host: Probes) -> list[Finding]:
    """Return the probes that were stopped because they did not end."""
    hung = [" ".join(argv) for argv, result in host.answers() if NO_ANSWER in result.stderr]
    return [
        Finding(
            code="probe-hangs", severity="info", step="hardware", subject=probe, params={"probe": probe}, because=(f"{probe}: {NO_ANSWER}",)
        )
        for probe in hung
    ]


def _needs_root(host: Probes, seen: Seen) -> list[Finding]:
    """Return what stays unknown only because its source is root's."""
    found: list[Finding] = []
    argv = memory.ASKED[0]
    if seen.memory.type is None and _DENIED in host.run(argv).text:
        found.append(_root_only(" ".join(argv), "DIMM", _DENIED))
    if seen.smi.trouble == "no-permission":
        found.append(_root_only("nvidia-smi", "GPU", "Insufficient Permissions"))
    if users.partial(host, seen.users):
        found.append(_root_only("/proc/*/fd", "GPU", _DENIED))
    return found


def _root_only(probe: str, facts: str, said: str) -> Finding:
    return Finding(
        code="probe-needs-root",
        severity="info",
        step="hardware",
        subject=probe.split(maxsplit=1)[0],
        params={"probe": probe, "facts": facts},
        because=(f"{probe}: {said}",),
    )
