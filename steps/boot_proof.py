"""The proof of the next boot, before anybody is told to reboot: the boot loader's kernels, looked at one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps.compat import next_boot
from steps.detect.boot import nouveau_comes
from steps.model.base import phrase
from steps.model.finding import Finding
from steps.model.machine import Machine, judged
from steps.model.verdict import Rung

if TYPE_CHECKING:
    from steps.host.base import Host

RUNG = "next-boot"
_MOST_IMAGES = 3
"""So many initramfs are read, the one of the kernel that starts by itself first: each takes seconds."""


def findings(host: Host, machine: Machine) -> tuple[Finding, ...] | None:
    """Return what is right and wrong with the next boot; `None` where no driver of NVIDIA's shall come up at one."""
    contained = machine.os.wsl or machine.os.container not in (None, "none")
    if host.root != "/" or contained or not any(card.vendor == "nvidia" for card in judged(machine)) or not _has_driver(machine):
        return None
    entries = next_boot.kernels(machine.boot or ())
    nouveau = {kernel: nouveau_comes(host, entry) for kernel, entry in list(entries.items())[:_MOST_IMAGES]}
    return next_boot.findings(machine, nouveau)


def _has_driver(machine: Machine) -> bool:
    return machine.driver.library_version is not None or any(module.present for module in machine.driver.modules)


def rung(found: tuple[Finding, ...]) -> Rung:
    """Return the rung of the ladder that `findings` come to; what could not be read is skipped and never passed."""
    wrong = next((one for one in found if one.severity == "error"), None)
    if wrong is not None:
        key = f"driver.finding.{wrong.code}.sentence"
        return Rung(id=RUNG, state="failed", because=phrase(key, **wrong.params), detail=wrong.subject)
    if any(one.code == "next-boot-unknown" for one in found):
        return Rung(id=RUNG, state="skipped", because=phrase("verify.because.next-boot-unread"))
    ready = [one.subject for one in found if one.severity == "ok"]
    warned = {one.subject for one in found if one.severity == "warning"}
    if not ready:
        return Rung(id=RUNG, state="skipped", because=phrase("verify.because.next-boot-partly", kernels=", ".join(sorted(warned)) or "?"))
    because = phrase("verify.because.next-boot-default" if warned else "verify.because.next-boot", kernels=", ".join(ready))
    return Rung(id=RUNG, state="passed", because=because, detail=ready[0])
