"""Kernel and user space of two versions: which of them lags, and whether a reboot helps."""

from __future__ import annotations

from steps.doctor import numbers
from steps.doctor.events.kernel import ApiMismatch, ModuleMix, SymbolMix
from steps.doctor.events.nvml import NvmlError
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact


def mismatch(seen: Evidence) -> NvmlError | ApiMismatch | None:
    """Return the message that says so, NVML's or the kernel's, or `None`."""
    return seen.nvml("mismatch") or seen.first(ApiMismatch)


def ahead(seen: Evidence) -> Fact | None:
    """Return the version of user space that certainly differs from the loaded module's, a newer one first; `None` without such a one."""
    loaded = next(iter(seen.versions.loaded), None)
    if loaded is None:
        return None
    others = [one for one in seen.versions.user if not numbers.agree(one.value, loaded.value)]
    return max(others, key=lambda one: (numbers.newer(one.value, loaded.value), len(one.value)), default=None)


@rule("reboot-pending-after-driver-update")
def reboot_pending(seen: Evidence) -> Answer:
    """User space is newer than what runs, and nothing shows that the file on disk is old too."""
    loaded, disk = next(iter(seen.versions.loaded), None), next(iter(seen.versions.on_disk), None)
    if loaded is None:
        return None
    said = mismatch(seen)
    # Where nothing tells the version of user space, NVML's word that it differs and a newer file on disk do.
    renewed = disk if said is not None and disk is not None and numbers.newer(disk.value, loaded.value) else None
    user = ahead(seen) or renewed
    if user is None:
        return None
    if disk is not None and numbers.agree(disk.value, loaded.value):
        return out(disk, loaded)
    told = {"loaded": loaded.value, "installed": user.value}
    if disk is not None:
        return found(CERTAIN if numbers.agree(disk.value, user.value) else POSSIBLE, loaded, user, disk, said, **told)
    # Without the file on disk it is the usual reading; that something older was installed over it is less usual.
    return found(LIKELY if numbers.newer(user.value, loaded.value) else POSSIBLE, loaded, user, said, **told)


@rule("driver-library-mismatch")
def library_mismatch(seen: Evidence) -> Answer:
    """NVML says so, and that is all that is known."""
    said = mismatch(seen)
    if said is None:
        return None
    return found(POSSIBLE + 0.05, said)


@rule("stale-module-on-disk")
def stale_module(seen: Evidence) -> Answer:
    """The module on disk is as old as the one that runs, user space is newer."""
    disk, loaded = next(iter(seen.versions.on_disk), None), next(iter(seen.versions.loaded), None)
    if disk is None:
        return None
    user = next((one for one in seen.versions.user if not numbers.agree(one.value, disk.value)), None)
    if user is None or (loaded is not None and not numbers.agree(loaded.value, disk.value)):
        return out(disk, loaded, *seen.versions.user[:1])
    if not numbers.newer(user.value, disk.value):
        return found(POSSIBLE, disk, user, mismatch(seen), module=disk.value, installed=user.value)
    sure = CERTAIN if loaded is not None else STRONG
    return found(sure, disk, loaded, user, mismatch(seen), module=disk.value, installed=user.value)


@rule("kernel-modules-from-two-drivers")
def two_modules(seen: Evidence) -> Answer:
    """Two modules of the driver name each other's versions."""
    mix = seen.first(ModuleMix)
    if mix is None:
        symbol = seen.first(SymbolMix)
        return found(STRONG, symbol, module=symbol.module, symbol=symbol.symbol, variant="symbols") if symbol else None
    return found(CERTAIN, mix, first=mix.first, second=mix.second)
