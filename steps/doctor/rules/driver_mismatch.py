"""Kernel and user space of two versions: which of them lags, and whether a reboot helps."""

from __future__ import annotations

import re
from itertools import pairwise

from steps.doctor import numbers
from steps.doctor.events.kernel import ApiMismatch, Loading, ModuleMix, SymbolMix
from steps.doctor.events.nvml import NvmlError
from steps.doctor.evidence import Evidence
from steps.doctor.facts.versions import fit
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.told import Fact, fact


def mismatch(seen: Evidence) -> NvmlError | ApiMismatch | None:
    """Return the message that says so, NVML's or the kernel's, or `None`; of a machine that serves its tools a log's word is of then."""
    said = seen.nvml("mismatch") or seen.first(ApiMismatch)
    return None if said is not None and seen.serves is True and said.place.source in seen.handed else said


def ahead(seen: Evidence) -> Fact | None:
    """Return the version of user space that certainly differs from the loaded module's, a newer one first; `None` without such a one."""
    loaded = next(iter(seen.versions.loaded), None)
    if loaded is None:
        return None
    others = [one for one in seen.versions.user if not fit(one, loaded)]
    return max(others, key=lambda one: (numbers.newer(one.value, loaded.value), len(one.value)), default=None)


def on_disk(seen: Evidence) -> Fact | None:
    """Return the version of the module that the next boot loads: modinfo's, else the one that DKMS installed for the running kernel."""
    told, running = next(iter(seen.versions.on_disk), None), seen.system.kernel
    if told is not None or running is None:
        return told
    mine = [line for line in seen.modules.dkms or () if line.module.startswith("nvidia") and line.kernel == running.value]
    done = [line for line in mine if line.state == "installed"]
    return Fact(place=done[0].place, value=done[0].version) if len(done) == 1 and numbers.upstream(done[0].version) else None


@rule("reboot-pending-after-driver-update")
def reboot_pending(seen: Evidence) -> Answer:
    """User space is newer than what runs, and nothing shows that the file on disk is old too."""
    loaded, disk = next(iter(seen.versions.loaded), None), on_disk(seen)
    if loaded is None:
        return None
    said = mismatch(seen)
    # Where nothing tells the version of user space, NVML's word that it differs and a newer file on disk do.
    renewed = disk if said is not None and disk is not None and numbers.newer(disk.value, loaded.value) else None
    user = ahead(seen) or renewed
    if user is None:
        return None
    # Where the driver serves its tools, an older client brought a library of its own: that one stays after a reboot.
    if seen.driver_answers is True and user.place == (said.place if said else None) and numbers.newer(loaded.value, user.value):
        return None
    if disk is not None and fit(disk, loaded):
        return out(disk, loaded)
    told = {"loaded": loaded.value, "installed": user.value}
    if disk is not None:
        return found(CERTAIN if fit(disk, user) else POSSIBLE, loaded, user, disk, said, **told)
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
    disk, loaded = on_disk(seen), next(iter(seen.versions.loaded), None)
    if disk is None:
        return None
    user = next((one for one in seen.versions.user if not fit(one, disk)), None)
    if user is None or (loaded is not None and not fit(loaded, disk)):
        return out(disk, loaded, *seen.versions.user[:1])
    if not numbers.newer(user.value, disk.value):
        return found(POSSIBLE, disk, user, mismatch(seen), module=disk.value, installed=user.value)
    sure = CERTAIN if loaded is not None else STRONG
    return found(sure, disk, loaded, user, mismatch(seen), module=disk.value, installed=user.value)


_SISTER = re.compile(r"nvidia[-_](?:modeset|uvm|drm|peermem)")


def _sister(seen: Evidence) -> tuple[Fact, Fact] | None:
    """Return the versions of nvidia.ko and of a sister module where they were asked for, or were loaded one after the other, and differ."""
    disk = next(iter(seen.versions.on_disk), None)
    for argv in seen.host.forms(lambda argv: argv[0] == "modinfo" and bool(_SISTER.fullmatch(argv[-1]))):
        told = re.search(r"^(?:version:\s*)?(\d{3}\.\d+(?:\.\d+)*)\s*$", seen.host.run(argv).stdout, re.MULTILINE)
        if told and disk is not None and not numbers.same(told[1], disk.value):
            return disk, fact(told[1], " ".join(argv), " ".join(told[0].split()))
    greetings = seen.all(Loading)
    for one, then in pairwise(greetings):
        if not one.modeset and then.modeset and one.place.source == then.place.source and not numbers.same(one.version, then.version):
            return Fact(place=one.place, value=one.version), Fact(place=then.place, value=then.version)
    return None


@rule("kernel-modules-from-two-drivers")
def two_modules(seen: Evidence) -> Answer:
    """Two modules of the driver name each other's versions."""
    mix = seen.first(ModuleMix)
    if mix is None:
        symbol = seen.first(SymbolMix)
        if symbol is not None:
            return found(STRONG, symbol, module=symbol.module, symbol=symbol.symbol, variant="symbols")
        sister = _sister(seen)
        return found(STRONG, *sister, first=sister[0].value, second=sister[1].value) if sister else None
    return found(CERTAIN, mix, first=mix.first, second=mix.second)
