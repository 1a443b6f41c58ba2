"""The rules of the driver step: one function per finding code, each says what it was derived from and where that stands."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from steps.catalog import stack
from steps.catalog.versions import at_least, line, number
from steps.compat.case import Case, Gpu
from steps.model.base import Param, Words, phrase
from steps.model.finding import Finding, Patch, Severity

Found = tuple[Finding, ...]
MINOR = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"


def _finding(
    case: Case, code: str, severity: Severity, because: tuple[Words, ...], source: str | None, subject: str = "", fix: Patch | None = None, **params: Param
) -> Finding:
    """Return a finding of this step about the driver of the case."""
    return Finding(
        code=code,
        severity=severity,
        step="driver",
        subject=subject or case.driver.title,
        params={"branch": case.driver.branch or "?", **params},
        because=because,
        source=source,
        fix=fix,
    )


def _pair(case: Case, gpu: Gpu) -> str:
    """Return what a finding about a driver and a card is about."""
    return f"{case.driver.title} × {gpu.card.chip or gpu.name}"


def _each(case: Case, gpus: list[Gpu]) -> list[Gpu]:
    """Return one card of each kind: eight equal ones make one finding."""
    return list({(gpu.name, gpu.capability): gpu for gpu in reversed(gpus)}.values())[::-1]


def unknown_hardware(case: Case) -> Found:
    """A card that is not in the tables: nothing is said about it."""
    return tuple(
        _finding(case, "unknown-hardware", "info", (gpu.fact,), None, subject=gpu.name, name=gpu.name, id=gpu.card.pci_id or "?")
        for gpu in _each(case, [gpu for gpu in case.gpus if gpu.row is None])
    )


def unknown_distro(case: Case) -> Found:
    """A distribution that is not in the tables."""
    if case.distribution is not None or case.machine.os.id is None:
        return ()
    return (_finding(case, "unknown-distro", "info", (), None, subject=case.system, system=case.system),)


def unknown_branch(case: Case) -> Found:
    """A driver branch that is not in the tables."""
    if case.driver.branch is None or case.driver.row is not None or case.driver.origin == "host":
        return ()
    return (_finding(case, "unknown-version", "info", (), None, what=f"driver {case.driver.branch}"),)


def wsl_no_linux_driver(case: Case) -> Found:
    """Inside WSL2 the driver comes from Windows; one for Linux breaks it."""
    if not case.wsl or case.driver.origin != "planned":
        return ()
    because = (phrase("driver.because.wsl"),)
    fix: Patch = {"driver.branch": None, "driver.flavor": None, "driver.source": None, "driver.server": None}
    return (_finding(case, "wsl-no-linux-driver", "error", because, "https://docs.nvidia.com/cuda/wsl-user-guide/index.html", fix=fix),)


def container_uses_host_driver(case: Case) -> Found:
    """Inside a container the kernel, and with it the module, is the host's."""
    if not case.contained or case.driver.origin != "planned":
        return ()
    because = (phrase("driver.because.container", name=case.machine.os.container or "?"),)
    fix: Patch = {"driver.branch": None, "driver.flavor": None, "driver.source": None, "driver.server": None}
    return (_finding(case, "container-uses-host-driver", "error", because, "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/", fix=fix),)


def vgpu_needs_guest_driver(case: Case) -> Found:
    """A slice of a card (vGPU) works with the guest driver of its host's licence only."""
    if not case.virtual_gpu or case.driver.origin in ("installed", "host"):
        return ()
    gpu = case.gpus[0]
    severity: Severity = "error" if case.driver.origin == "planned" else "warning"
    return (_finding(case, "vgpu-needs-guest-driver", severity, (gpu.fact,), "https://docs.nvidia.com/vgpu/", subject=gpu.name, name=gpu.name),)


def driver_absent(case: Case) -> Found:
    """Cards, and no driver for them."""
    if case.driver.origin != "none" or not case.gpus or case.virtual_gpu or case.machine.driver.state != "absent":
        return ()
    return (_finding(case, "driver-absent", "warning", (case.gpus[0].fact, phrase("driver.because.no-driver")), None, subject=case.gpus[0].name, name=case.gpus[0].name),)


def gpu_needs_open_module(case: Case) -> Found:
    """Blackwell and newer, and Grace Hopper, are driven by the open kernel modules only."""
    if case.driver.flavor != "proprietary" or case.driver.origin == "host":
        return ()
    found: list[Finding] = []
    for gpu in _each(case, list(case.gpus)):
        row = gpu.row
        if row is None:
            continue
        if row.open_modules == "required" or any(name in (gpu.card.name or "") for name in row.open_required_for):
            chain_ = (gpu.fact, gpu.kin, phrase("driver.because.open-only", name=gpu.name))
            found.append(_finding(case, "gpu-needs-open-module", "error", chain_, row.source, _pair(case, gpu), name=gpu.name))
    return tuple(found)


def gpu_lacks_open_module(case: Case) -> Found:
    """Before Turing there is no GSP, which the open kernel modules need."""
    if case.driver.flavor != "open" or case.driver.origin == "host":
        return ()
    return tuple(
        _finding(
            case, "gpu-lacks-open-module", "error", (gpu.fact, gpu.kin, phrase("driver.because.no-gsp", name=gpu.name)), gpu.row.source, _pair(case, gpu), name=gpu.name
        )
        for gpu in _each(case, list(case.gpus))
        if gpu.row and gpu.row.open_modules == "unsupported"
    )


def gpu_unsupported_by_driver(case: Case) -> Found:
    """The branch is newer than the last one that supports the card."""
    if case.driver.branch is None or case.driver.origin == "host":
        return ()
    return tuple(
        _finding(
            case,
            "gpu-unsupported-by-driver",
            "error",
            (gpu.fact, gpu.kin, phrase("driver.because.last-branch", architecture=_kind(gpu), branch=gpu.row.last_branch)),
            gpu.row.source,
            _pair(case, gpu),
            name=gpu.name,
            last=gpu.row.last_branch,
        )
        for gpu in _each(case, list(case.gpus))
        if gpu.row and gpu.row.last_branch and number(case.driver.branch) > number(gpu.row.last_branch)
    )


def gpu_too_new_for_driver(case: Case) -> Found:
    """The branch is older than the first one that knows the card."""
    if case.driver.branch is None or case.driver.origin == "host":
        return ()
    return tuple(
        _finding(
            case,
            "gpu-too-new-for-driver",
            "error",
            (gpu.fact, gpu.kin, phrase("driver.because.first-branch", architecture=_kind(gpu), branch=gpu.row.first_branch)),
            gpu.row.source,
            _pair(case, gpu),
            name=gpu.name,
            first=gpu.row.first_branch,
        )
        for gpu in _each(case, list(case.gpus))
        if gpu.row and gpu.row.first_branch and number(case.driver.branch) < number(gpu.row.first_branch)
    )


def _kind(gpu: Gpu) -> str:
    """Return the architecture of a known card as a word."""
    return gpu.row.name.capitalize() if gpu.row else "?"


def gpus_need_different_drivers(case: Case) -> Found:
    """No one branch, or no one kind of kernel modules, drives all cards together."""
    known = [gpu for gpu in case.gpus if gpu.row]
    if len(known) < 2 or case.driver.origin == "host":
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
        because = (one.fact, phrase("driver.because.open-only", name=one.name), other.fact, phrase("driver.because.no-gsp", name=other.name))
    else:
        return ()
    ignore = tuple(gpu.card.address for gpu in case.gpus if gpu.card.address and gpu.row and (gpu in never_open or gpu is other))
    fix: Patch = {"driver.ignore": (*(case.answers.driver.ignore or ()), *ignore)}
    source = "; ".join(gpu.row.source for gpu in (one, other) if gpu.row)
    return (_finding(case, "gpus-need-different-drivers", "error", because, source, f"{one.name} × {other.name}", fix, one=one.name, other=other.name),)


def driver_not_offered(case: Case) -> Found:
    """The branch does not exist with these modules, or the chosen source does not carry it."""
    driver, row = case.driver, case.driver.row
    if driver.origin != "planned" or row is None:
        return ()
    title = f"{row.name} {driver.flavor or ''}".strip()
    if (driver.flavor == "open" and row.open_modules == "none") or (driver.flavor == "proprietary" and row.open_modules == "only"):
        because: tuple[Words, ...] = (phrase(f"driver.because.modules-{row.open_modules}", branch=row.name),)
        return (_finding(case, "driver-not-offered", "error", because, row.source, title=title, place=f"{row.name}"),)
    if driver.source == "distro" and case.distribution and archive_variant(case) is None and case.distribution.archive:
        because = (phrase("driver.because.archive", system=case.system, branches=", ".join(case.distribution.archive)),)
        return (_finding(case, "driver-not-offered", "error", because, case.distribution.source, title=title, place=case.system),)
    if driver.source == "nvidia-repo" and case.machine.os.id:
        if case.repository is None:
            because = (phrase("driver.because.no-repository", system=case.system, arch=case.machine.os.arch or "?"),)
            return (_finding(case, "driver-not-offered", "error", because, "https://developer.download.nvidia.com/compute/cuda/repos/", title=title, place=case.system),)
        if not in_repository(case.repository, row):
            because = (phrase("driver.because.repository-ends", token=case.repository.token, cuda=case.repository.last_cuda or "?"),)
            return (_finding(case, "driver-not-offered", "error", because, case.repository.source, title=title, place=case.repository.token),)
    return ()


def in_repository(repository: stack.CudaRepository, row: stack.Branch) -> bool:
    """Return whether a repository can carry a branch: it holds the drivers of the toolkits it holds."""
    if repository.last_cuda:
        last = stack.cudas().get(repository.last_cuda)
        if last and number(row.name) > number(last.branch):
            return False
    return True


def archive_variant(case: Case) -> str | None:
    """Return the distribution's own variant of the wanted driver (`580-server-open`), or `None` when it has none."""
    if case.distribution is None or case.driver.branch is None:
        return None
    wanted = case.driver.branch + ("-server" if case.driver.server else "") + ("-open" if case.driver.flavor == "open" else "")
    return wanted if wanted in case.distribution.archive else None


def driver_end_of_life(case: Case) -> Found:
    """The branch gets no fixes any more."""
    row = case.driver.row
    if row is None or case.driver.origin == "host" or not row.end_of_life or row.end_of_life > stack.checked():
        return ()
    because = (phrase("driver.because.end-of-life", branch=row.name, date=row.end_of_life),)
    return (_finding(case, "driver-end-of-life", "warning", because, row.source, date=row.end_of_life),)


def kernel_too_new_for_driver(case: Case) -> Found:
    """The module does not build on a kernel that is newer than the branch knows."""
    row, kernel = case.driver.row, case.machine.os.kernel
    if case.driver.origin != "planned" or row is None or not kernel or not number(kernel):
        return ()
    patched = case.driver.source == "distro"
    limit = row.kernel_max_patched or row.kernel_max if patched else row.kernel_max
    if limit is None or at_least(limit, line(kernel)) or (patched and archive_variant(case) and case.machine.os.id == "ubuntu"):
        return ()
    because = (phrase("driver.because.kernel", kernel=kernel), phrase("driver.because.kernel-limit", branch=row.name, limit=limit))
    return (_finding(case, "kernel-too-new-for-driver", "error", because, row.source, kernel=line(kernel), limit=limit),)


def kernel_headers_missing(case: Case) -> Found:
    """Without the kernel's headers DKMS builds nothing; detection says so when it saw it."""
    if case.driver.origin != "planned":
        return ()
    missing = [gap for gap in case.machine.gaps if gap.code == "kernel-headers-missing"]
    kernel = case.machine.os.kernel or "?"
    return (_finding(case, "kernel-headers-missing", "warning", missing[0].because, missing[0].source, subject=kernel, kernel=kernel),) if missing else ()


def mixed_driver_install(case: Case) -> Found:
    """Packages and NVIDIA's installer have both written the driver."""
    if case.machine.driver.source != "mixed" or case.driver.origin == "host":
        return ()
    because: tuple[Words, ...] = (phrase("driver.because.mixed"),)
    source = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/removing-the-driver.html"
    return (_finding(case, "mixed-driver-install", "warning", because, source),)


def secure_boot_unsigned_module(case: Case) -> Found:
    """With Secure Boot the kernel loads signed modules only; a key must be enrolled for those that are built here."""
    if case.machine.firmware.secure_boot != "enabled" or case.driver.origin != "planned" or signed(case):
        return ()
    because: tuple[Words, ...] = (phrase("driver.because.secure-boot"), phrase("driver.because.unsigned", source=case.driver.source or "?"))
    source = case.distribution.source if case.distribution else None
    fix: Patch | None = None
    if case.distribution and case.distribution.signed_package and archive_variant(case):
        fix = {"driver.source": "distro"}
    return (_finding(case, "secure-boot-unsigned-module", "warning", because, source, fix=fix),)


def signed(case: Case) -> bool:
    """Return whether the planned modules come signed with a key that the firmware already trusts."""
    row = case.distribution
    return case.driver.source == "distro" and row is not None and (row.manager == "zypper" or (row.signed_package is not None and archive_variant(case) is not None))


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
    kernel_too_new_for_driver,
    secure_boot_unsigned_module,
    driver_end_of_life,
    kernel_headers_missing,
    mixed_driver_install,
    driver_absent,
    unknown_hardware,
    unknown_distro,
    unknown_branch,
)


def driver_findings(case: Case) -> Found:
    """Return what all rules of the driver find, worst first within their order."""
    return tuple(chain.from_iterable(rule(case) for rule in RULES))
