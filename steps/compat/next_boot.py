"""Whether the driver will come up at the next boot: each kernel that may be started, its module, its key, and nouveau."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from steps.catalog.stack import signers
from steps.model.base import Param, Phrase, phrase
from steps.model.finding import Finding, Severity
from steps.model.machine import Machine
from steps.model.software import BootEntry, KernelModule

_SOURCE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
_KEYS = "https://wiki.debian.org/SecureBoot"
_NOUVEAU = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html"


def findings(machine: Machine, nouveau: Mapping[str, bool | None]) -> tuple[Finding, ...]:
    """Return what is wrong with the next boot, the kernel that starts by itself first; `nouveau` says by kernel whether it would come.

    An error for the kernel that starts by itself, a warning for one that a person would have to choose. Without a boot
    loader's menu nothing is known but that.
    """
    if machine.boot is None:
        return (_finding("next-boot-unknown", "info", "GRUB", (phrase("driver.because.no-boot-menu"),), _SOURCE),)
    found: list[Finding] = []
    for kernel, entry in kernels(machine.boot).items():
        module = next((one for one in machine.driver.modules if one.kernel == kernel), None)
        found += _of_kernel(machine, kernel, entry, module, nouveau.get(kernel))
    return tuple(found)


def kernels(entries: tuple[BootEntry, ...]) -> dict[str, BootEntry]:
    """Return the kernels that may be started with the entry that counts: the one that starts by itself, first of all."""
    ordered = sorted((entry for entry in entries if entry.kernel is not None), key=lambda entry: not entry.default)
    found: dict[str, BootEntry] = {}
    for entry in ordered:
        found.setdefault(str(entry.kernel), entry)
    return found


def kernel_by_itself(machine: Machine) -> str | None:
    """Return the kernel that starts next when nobody chooses; `None` when that is not known."""
    return next((entry.kernel for entry in machine.boot or () if entry.default), None)


def _of_kernel(machine: Machine, kernel: str, entry: BootEntry, module: KernelModule | None, nouveau: bool | None) -> Iterator[Finding]:
    """Yield what is wrong with one kernel, or that all of it is right."""
    severity: Severity = "error" if entry.default else "warning"
    starts = phrase("driver.because.boot-default" if entry.default else "driver.because.boot-by-hand", kernel=kernel)
    troubles = list(_troubles(machine, kernel, module, nouveau))
    for code, because, source, params in troubles:
        yield _finding(code, "warning" if code in _UNSURE else severity, kernel, (starts, because), source, kernel=kernel, **params)
    queued = _waits_for_key(machine, module)
    if queued is not None:
        yield _finding("next-boot-key-queued", "info", kernel, (starts, queued), _KEYS, kernel=kernel)
    if not troubles and module is not None and module.present and nouveau is False:
        because = phrase("driver.because.module-of-kernel", kernel=kernel, version=module.version or "?")
        yield _finding("next-boot-ready", "ok", kernel, (starts, because), _SOURCE, kernel=kernel)


_UNSURE = frozenset(("next-boot-key-unknown",))
"""A kernel may carry a key that no list of ours names."""
Trouble = tuple[str, Phrase, str, dict[str, Param]]


def _troubles(machine: Machine, kernel: str, module: KernelModule | None, nouveau: bool | None) -> Iterator[Trouble]:
    library = machine.driver.library_version
    if module is not None and module.present is False:
        yield "next-boot-no-module", phrase("driver.because.no-module-of-kernel", kernel=kernel), _SOURCE, {}
    if module is not None and module.version is not None and library is not None and module.version != library:
        because = phrase("driver.because.module-and-library", version=module.version, library=library)
        yield "next-boot-versions-differ", because, _SOURCE, {"version": module.version, "library": library}
    if module is not None and module.present and machine.firmware.secure_boot == "enabled":
        yield from _unsigned(machine, module)
    if nouveau:
        yield "next-boot-nouveau", phrase("driver.because.nouveau-in-initramfs", kernel=kernel), _NOUVEAU, {}


def _unsigned(machine: Machine, module: KernelModule) -> Iterator[Trouble]:
    """Yield why Secure Boot will refuse the module, or may; nothing where signature or keys are not known."""
    if module.signer is None:
        # Its description was read, and names nobody.
        if module.version is not None:
            yield "next-boot-unsigned", phrase("driver.because.signer-none"), _KEYS, {}
        return
    enrolled, queued = machine.firmware.enrolled_keys, machine.firmware.queued_keys
    if enrolled is not None and module.signer not in {*enrolled, *(queued or ()), *signers()}:
        yield "next-boot-key-unknown", phrase("driver.because.signer", signer=module.signer), _KEYS, {"signer": module.signer}


def _waits_for_key(machine: Machine, module: KernelModule | None) -> Phrase | None:
    """Return the fact that somebody must be at the console, or `None` where nobody must."""
    queued = machine.firmware.queued_keys or ()
    if machine.firmware.secure_boot != "enabled" or module is None or module.signer not in queued:
        return None
    return phrase("driver.because.key-queued", key=str(module.signer))


def _finding(code: str, severity: Severity, subject: str, because: tuple[Phrase, ...], source: str, **params: Param) -> Finding:
    return Finding(code=code, severity=severity, step="driver", subject=subject, params=params, because=because, source=source)
