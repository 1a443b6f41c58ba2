"""What could not be known about a machine, and where its sources disagree."""

from __future__ import annotations

from steps.detect import memory, pci
from steps.detect.probes import Probes
from steps.detect.smi import Smi
from steps.host.local import NO_ANSWER
from steps.model.finding import Finding
from steps.model.machine import Accelerator, Driver, Memory, Os


def gaps(host: Probes, *, os: Os, memory: Memory, cards: tuple[Accelerator, ...], driver: Driver, smi: Smi) -> tuple[Finding, ...]:
    """Return the findings, those about the hardware first."""
    found = [*_unknown_cards(cards), *_unseen_bus(host, os), *_disagreements(cards, driver, smi), *_hanging(host)]
    needs_root = _needs_root(host, memory)
    return (*found, needs_root) if needs_root is not None else tuple(found)


def _unknown_cards(cards: tuple[Accelerator, ...]) -> list[Finding]:
    return [
        Finding(code="unknown-hardware", severity="info", step="hardware", subject=f"{card.pci_id} ({card.address})")
        for card in cards
        if card.pci_id is not None and card.architecture is None and not card.integrated
    ]


def _unseen_bus(host: Probes, os: Os) -> list[Finding]:
    """Return a finding where neither sysfs nor lspci showed a bus: no card found there means nothing."""
    if os.wsl or pci.seen(host):
        return []
    return [Finding(code="accelerators-unknown", severity="info", step="hardware", subject="PCI")]


def _disagreements(cards: tuple[Accelerator, ...], driver: Driver, smi: Smi) -> list[Finding]:
    """Return where the driver's tools and the bus tell different things; the bus and the kernel decide."""
    found: list[Finding] = []
    on_bus = [card for card in cards if card.vendor == "nvidia" and card.address is not None]
    if smi.gpus and on_bus and len(smi.gpus) != len(on_bus):
        found.append(_disagree("NVIDIA GPUs", (str(len(on_bus)), "PCI"), (str(len(smi.gpus)), "nvidia-smi")))
    if driver.kernel_version and smi.driver_version and driver.kernel_version != smi.driver_version:
        found.append(_disagree("NVIDIA driver", (driver.kernel_version, "/proc/driver/nvidia/version"), (smi.driver_version, "nvidia-smi")))
    return found


def _disagree(subject: str, first: tuple[str, str], second: tuple[str, str]) -> Finding:
    return Finding(
        code="sources-disagree",
        severity="info",
        step="hardware",
        subject=subject,
        params={"first": first[0], "by": first[1], "second": second[0], "other": second[1]},
    )


def _hanging(host: Probes) -> list[Finding]:
    """Return the probes that were stopped because they did not end."""
    hung = [" ".join(argv) for argv, result in host.answers() if NO_ANSWER in result.stderr]
    return [Finding(code="probe-hangs", severity="info", step="hardware", subject=probe, params={"probe": probe}) for probe in hung]


def _needs_root(host: Probes, told: Memory) -> Finding | None:
    """Return a finding where memory modules stay unknown only because DMI is root's."""
    argv = memory.ASKED[0]
    if told.type is not None or "Permission denied" not in host.run(argv).text:
        return None
    return Finding(
        code="probe-needs-root", severity="info", step="hardware", subject=argv[0], params={"probe": " ".join(argv), "facts": "DIMM"}
    )
