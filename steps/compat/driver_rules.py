"""The rules of the driver step: one function per finding code, each says what it was derived from and where that stands."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from steps.catalog.versions import number
from steps.compat.case import Case, Gpu
from steps.compat.driver_packages import FABRIC_GUIDE, fabric_manager, switched
from steps.compat.driver_sources import branch_not_held
from steps.compat.extra_sources import source_unknown
from steps.compat.findings import Bound, beyond, driver_finding
from steps.compat.offer_rules import driver_not_in_lists
from steps.compat.state_rules import driver_blocked, driver_failing, driver_mismatch, driver_not_loaded, gpu_in_use
from steps.compat.system_rules import (
    container_uses_host_driver,
    driver_end_of_life,
    driver_not_offered,
    driver_offer_unknown,
    kernel_headers_missing,
    kernel_too_new_for_driver,
    mixed_driver_install,
    next_boot_other_kernel,
    packages_held,
    secure_boot_unsigned_module,
    unknown_branch,
    unknown_distro,
    wsl_no_linux_driver,
)
from steps.model.base import Words, phrase
from steps.model.finding import Finding, Patch, Severity

Found = tuple[Finding, ...]


def _pair(case: Case, gpu: Gpu) -> str:
    """Return what a finding about a driver and a card is about."""
    return f"{case.driver.title} × {gpu.card.chip or gpu.name}"


def unknown_hardware(case: Case) -> Found:
    """A card that is not in the tables: nothing is said about it."""
    return tuple(
        driver_finding(case, "unknown-hardware", "info", (gpu.fact,), None, subject=gpu.name, name=gpu.name, id=gpu.card.pci_id or "?")
        for gpu in [gpu for gpu in case.kinds if gpu.row is None]
    )


def vgpu_needs_guest_driver(case: Case) -> Found:
    """A slice of a card (vGPU) works with the guest driver of its host's licence only."""
    if not case.virtual_gpu or case.driver.origin in ("installed", "host"):
        return ()
    gpu = case.gpus[0]
    severity: Severity = "error" if case.driver.origin == "planned" else "warning"
    return (
        driver_finding(
            case, "vgpu-needs-guest-driver", severity, (gpu.fact,), "https://docs.nvidia.com/vgpu/", subject=gpu.name, name=gpu.name
        ),
    )


def fabric_manager_unknown(case: Case) -> Found:
    """Cards behind NVSwitch, and a driver whose fabric manager we could not install: CUDA would not start."""
    if case.driver.origin != "planned" or not switched(case) or fabric_manager(case) is not None:
        return ()
    because: tuple[Words, ...] = (
        phrase("driver.because.switched", count=len(case.gpus)),
        phrase("driver.because.no-fabric", system=case.system, source=case.driver.source or "?"),
    )
    return (driver_finding(case, "fabric-manager-unknown", "error", because, FABRIC_GUIDE, system=case.system),)


def driver_absent(case: Case) -> Found:
    """Cards, and no driver for them."""
    if case.driver.origin != "none" or not case.gpus or case.virtual_gpu or case.machine.driver.state != "absent":
        return ()
    return (
        driver_finding(
            case,
            "driver-absent",
            "warning",
            (case.gpus[0].fact, phrase("driver.because.no-driver")),
            None,
            subject=case.gpus[0].name,
            name=case.gpus[0].name,
        ),
    )


def gpu_lent(case: Case) -> Found:
    """Cards that are set aside for virtual machines: their driver belongs into the guest."""
    if not case.lent:
        return ()
    first = case.lent[0]
    because = (first.fact, phrase("driver.because.held-by", name=first.name, driver="vfio-pci"))
    source = "https://docs.kernel.org/driver-api/vfio.html"
    severity: Severity = "info" if case.gpus else "warning"
    return (driver_finding(case, "gpu-lent", severity, because, source, subject=first.name, name=first.name),)


def gpu_needs_open_module(case: Case) -> Found:
    """Blackwell and newer, and Grace Hopper, are driven by the open kernel modules only."""
    if case.driver.flavor != "proprietary" or case.driver.origin == "host":
        return ()
    found: list[Finding] = []
    for gpu in case.kinds:
        row = gpu.row
        if row is None:
            continue
        if row.open_modules == "required" or any(name in (gpu.card.name or "") for name in row.open_required_for):
            chain_ = (gpu.fact, gpu.kin, phrase("driver.because.open-only", name=gpu.name))
            found.append(
                driver_finding(case, "gpu-needs-open-module", "error", chain_, row.source, subject=_pair(case, gpu), name=gpu.name)
            )
    return tuple(found)


def gpu_lacks_open_module(case: Case) -> Found:
    """Before Turing there is no GSP, which the open kernel modules need."""
    if case.driver.flavor != "open" or case.driver.origin == "host":
        return ()
    return tuple(
        driver_finding(
            case,
            "gpu-lacks-open-module",
            "error",
            (gpu.fact, gpu.kin, phrase("driver.because.no-gsp", name=gpu.name)),
            gpu.row.source,
            subject=_pair(case, gpu),
            name=gpu.name,
        )
        for gpu in case.kinds
        if gpu.row and gpu.row.open_modules == "unsupported"
    )


def gpu_unsupported_by_driver(case: Case) -> Found:
    """The branch is newer than the last one that supports the card."""
    return _outside(case, "gpu-unsupported-by-driver", "last")


def gpu_too_new_for_driver(case: Case) -> Found:
    """The branch is older than the first one that knows the card."""
    return _outside(case, "gpu-too-new-for-driver", "first")


def _outside(case: Case, code: str, bound: Bound) -> Found:
    """Return the cards whose first or last branch the driver's lies beyond."""
    branch = case.driver.branch
    if branch is None or case.driver.origin == "host":
        return ()
    return tuple(
        driver_finding(
            case,
            code,
            "error",
            (gpu.fact, gpu.kin, phrase(f"driver.because.{bound}-branch", architecture=_kind(gpu), branch=end)),
            row.source,
            subject=_pair(case, gpu),
            name=gpu.name,
            end=end,
        )
        for gpu, row, end in beyond(case, branch, bound, "branch")
    )


def _kind(gpu: Gpu) -> str:
    """Return the architecture of a known card as a word."""
    return gpu.row.name.capitalize() if gpu.row else "?"


def gpus_need_different_drivers(case: Case) -> Found:
    """No one branch, or no one kind of kernel modules, drives all cards together."""
    known = [gpu for gpu in case.gpus if gpu.row]
    if len(known) < 2 or case.wsl or case.contained:
        return ()
    oldest = min(known, key=lambda gpu: number(gpu.row.last_branch) if gpu.row and gpu.row.last_branch else (9999,))
    newest = max(known, key=lambda gpu: number(gpu.row.first_branch) if gpu.row and gpu.row.first_branch else (0,))
    last, first = oldest.row and oldest.row.last_branch, newest.row and newest.row.first_branch
    only_open = [gpu for gpu in known if gpu.row and gpu.row.open_modules == "required"]
    never_open = [gpu for gpu in known if gpu.row and gpu.row.open_modules == "unsupported"]
    because: tuple[Words, ...]
    if last and first and number(first) > number(last):
        because = (newest.fact, phrase("driver.because.first-branch", architecture=_kind(newest), branch=first), oldest.fact)
        because += (phrase("driver.because.last-branch", architecture=_kind(oldest), branch=last),)
        one, other = newest, oldest
    elif only_open and never_open:
        one, other = only_open[0], never_open[0]
        because = (
            one.fact,
            phrase("driver.because.open-only", name=one.name),
            other.fact,
            phrase("driver.because.no-gsp", name=other.name),
        )
    else:
        return ()
    ignore = tuple(gpu.card.address for gpu in case.gpus if gpu.card.address and gpu.row and (gpu in never_open or gpu is other))
    fix: Patch = {"driver.ignore": (*(case.answers.driver.ignore or ()), *ignore)}
    source = "; ".join(gpu.row.source for gpu in (one, other) if gpu.row)
    return (
        driver_finding(
            case,
            "gpus-need-different-drivers",
            "error",
            because,
            source,
            subject=f"{one.name} × {other.name}",
            fix=fix,
            one=one.name,
            other=other.name,
        ),
    )


RULES: tuple[Callable[[Case], Found], ...] = (
    wsl_no_linux_driver,
    container_uses_host_driver,
    vgpu_needs_guest_driver,
    gpu_needs_open_module,
    gpu_lacks_open_module,
    gpu_unsupported_by_driver,
    gpu_too_new_for_driver,
    gpus_need_different_drivers,
    driver_not_offered,
    driver_offer_unknown,
    driver_not_in_lists,
    source_unknown,
    branch_not_held,
    fabric_manager_unknown,
    kernel_too_new_for_driver,
    secure_boot_unsigned_module,
    driver_end_of_life,
    kernel_headers_missing,
    next_boot_other_kernel,
    packages_held,
    mixed_driver_install,
    driver_absent,
    gpu_lent,
    driver_mismatch,
    driver_not_loaded,
    driver_blocked,
    driver_failing,
    gpu_in_use,
    unknown_hardware,
    unknown_distro,
    unknown_branch,
)


def driver_findings(case: Case) -> Found:
    """Return what all rules of the driver find, worst first within their order."""
    return tuple(chain.from_iterable(rule(case) for rule in RULES))
