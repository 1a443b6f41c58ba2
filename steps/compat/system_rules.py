"""The rules between a driver and the system it goes into: sources, kernel, Secure Boot, containers, Windows."""

from __future__ import annotations

import re

from steps.catalog import stack
from steps.catalog.versions import at_least, line, number
from steps.compat.case import Case, archive_name
from steps.compat.findings import driver_finding, named
from steps.compat.next_boot import kernel_by_itself
from steps.model.base import Words, phrase
from steps.model.finding import Finding, Patch

Found = tuple[Finding, ...]
_DRIVER_PACKAGE = re.compile(r"(lib)?nvidia-|libcuda1|cuda-drivers|linux-(modules|objects|signatures)-nvidia")


def unknown_distro(case: Case) -> Found:
    """A distribution that is not in the tables."""
    if case.distribution is not None or case.machine.os.id is None:
        return ()
    return (
        driver_finding(
            case, "unknown-distro", "info", (f"/etc/os-release: {case.machine.os.id}",), None, subject=case.system, system=case.system
        ),
    )


def unknown_branch(case: Case) -> Found:
    """A driver branch that is not in the tables."""
    if case.driver.branch is None or case.driver.row is not None or case.driver.origin == "host":
        return ()
    what = f"driver {case.driver.branch}"
    return (driver_finding(case, "unknown-version", "info", (named(what),), None, what=what),)


def wsl_no_linux_driver(case: Case) -> Found:
    """Inside WSL2 the driver comes from Windows; one for Linux breaks it."""
    if not case.wsl or case.driver.origin != "planned":
        return ()
    because = (phrase("driver.because.wsl"),)
    fix: Patch = {"driver.branch": None, "driver.flavor": None, "driver.source": None, "driver.server": None}
    return (
        driver_finding(case, "wsl-no-linux-driver", "error", because, "https://docs.nvidia.com/cuda/wsl-user-guide/index.html", fix=fix),
    )


def container_uses_host_driver(case: Case) -> Found:
    """Inside a container the kernel, and with it the module, is the host's."""
    if not case.contained or case.driver.origin != "planned":
        return ()
    because = (phrase("driver.because.container", name=case.machine.os.container or "?"),)
    fix: Patch = {"driver.branch": None, "driver.flavor": None, "driver.source": None, "driver.server": None}
    return (
        driver_finding(
            case,
            "container-uses-host-driver",
            "error",
            because,
            "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/",
            fix=fix,
        ),
    )


def driver_not_offered(case: Case) -> Found:
    """The branch does not exist with these modules, or the chosen source does not carry it."""
    driver, row = case.driver, case.driver.row
    if driver.origin != "planned" or row is None:
        return ()
    title = f"{row.name} {driver.flavor or ''}".strip()
    if (driver.flavor == "open" and row.open_modules == "none") or (driver.flavor == "proprietary" and row.open_modules == "only"):
        because: tuple[Words, ...] = (phrase(f"driver.because.modules-{row.open_modules}", branch=row.name),)
        return (driver_finding(case, "driver-not-offered", "error", because, row.source, title=title, place=f"{row.name}"),)
    if driver.source == "distro" and case.distribution and archive_variant(case) is None and case.distribution.archive:
        because = (phrase("driver.because.archive", system=case.system, branches=", ".join(case.distribution.archive)), *_of_others(case))
        return (driver_finding(case, "driver-not-offered", "error", because, case.distribution.source, title=title, place=case.system),)
    if driver.source == "nvidia-repo" and case.machine.os.id:
        if case.repository is None:
            because = (phrase("driver.because.no-repository", system=case.system, arch=case.machine.os.arch or "?"),)
            return (
                driver_finding(
                    case,
                    "driver-not-offered",
                    "error",
                    because,
                    "https://developer.download.nvidia.com/compute/cuda/repos/",
                    title=title,
                    place=case.system,
                ),
            )
        if not in_repository(case.repository, row):
            because = (phrase("driver.because.repository-ends", token=case.repository.token, cuda=case.repository.last_cuda or "?"),)
            return (
                driver_finding(
                    case, "driver-not-offered", "error", because, case.repository.source, title=title, place=case.repository.token
                ),
            )
    return ()


def _of_others(case: Case) -> tuple[Words, ...]:
    """Return that the lists here have the branch under the distribution's names all the same: from another release."""
    here = (case.machine.offers.here if case.machine.offers else None) or {}
    patterns = case.distribution.archive_packages.values() if case.distribution else ()
    for name in (name for names in patterns for name in names):
        version = next((one for one in here.get(name, ()) if line(one, 1) == case.driver.branch), None)
        if version is not None:
            return (phrase("driver.because.other-release", package=f"{name} {version}", system=case.system),)
    return ()


def driver_offer_unknown(case: Case) -> Found:
    """The branch is older than what NVIDIA's repository for this system began with; whether it was added is not known."""
    row, repository = case.driver.row, case.repository
    if case.driver.origin != "planned" or case.driver.source != "nvidia-repo" or row is None or repository is None:
        return ()
    if not before_repository(repository, row):
        return ()
    because = (phrase("driver.because.repository-begins", token=repository.token, cuda=repository.first_cuda or "?"),)
    title = f"{row.name} {case.driver.flavor or ''}".strip()
    return (driver_finding(case, "driver-offer-unknown", "info", because, repository.source, title=title, place=repository.token),)


def before_repository(repository: stack.CudaRepository, row: stack.Branch) -> bool:
    """Return whether a branch is older than the driver of the first toolkit that a repository held."""
    first = stack.cudas().get(repository.first_cuda or "")
    return first is not None and number(row.name) < number(first.branch)


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
    wanted = archive_name(case.driver.branch, case.driver.server, case.driver.flavor)
    return wanted if wanted in case.distribution.archive else None


def driver_end_of_life(case: Case) -> Found:
    """The branch gets no fixes any more."""
    row = case.driver.row
    if row is None or case.driver.origin == "host" or not row.end_of_life or row.end_of_life > stack.checked():
        return ()
    because = (phrase("driver.because.end-of-life", branch=row.name, date=row.end_of_life),)
    return (driver_finding(case, "driver-end-of-life", "warning", because, row.source, date=row.end_of_life),)


def kernel_too_new_for_driver(case: Case) -> Found:
    """The module does not build on a kernel that is newer than the branch knows."""
    row, kernel = case.driver.row, case.machine.os.kernel
    if case.driver.origin != "planned" or row is None or not kernel or not number(kernel):
        return ()
    patched = case.driver.source == "distro"
    limit = stack.kernel_ceiling(row, patched=patched)
    if limit is None or at_least(limit, line(kernel)) or (patched and archive_variant(case) and case.machine.os.id == "ubuntu"):
        return ()
    because = (phrase("driver.because.kernel", kernel=kernel), phrase("driver.because.kernel-limit", branch=row.name, limit=limit))
    return (driver_finding(case, "kernel-too-new-for-driver", "error", because, row.source, kernel=line(kernel), limit=limit),)


def next_boot_other_kernel(case: Case) -> Found:
    """Another kernel than the one that runs starts at the next boot: it needs its module too."""
    kernel, coming = case.machine.os.kernel, kernel_by_itself(case.machine)
    if case.driver.origin != "planned" or kernel is None or coming is None or coming == kernel:
        return ()
    because = (phrase("driver.because.runs", kernel=kernel), phrase("driver.because.boot-default", kernel=coming))
    return (driver_finding(case, "next-boot-other-kernel", "warning", because, "dkms(8)", subject=coming, kernel=coming, running=kernel),)


def kernel_headers_missing(case: Case) -> Found:
    """Without the kernel's headers DKMS builds nothing; said where it was seen that there are none. Ready modules need none."""
    kernel = case.machine.os.kernel
    if case.driver.origin != "planned" or kernel is None or _headers(case) is not False:
        return ()
    if signed(case) and case.machine.firmware.secure_boot == "enabled":
        return ()
    because = (phrase("driver.because.headers", folder=f"/lib/modules/{kernel}/build"),)
    return (driver_finding(case, "kernel-headers-missing", "warning", because, "dkms(8)", subject=kernel, kernel=kernel),)


def _headers(case: Case) -> bool | None:
    """Return whether the running kernel's headers are here: what its folder says, else what was seen of its modules."""
    if case.machine.headers is not None:
        return case.machine.headers
    return next((one.headers for one in case.machine.driver.modules if one.kernel == case.machine.os.kernel), None)


def packages_held(case: Case) -> Found:
    """The driver that is here was told to stay: the package manager would refuse to change it."""
    if case.driver.origin != "planned" or not case.machine.held:
        return ()
    names = [name for name in case.machine.held if _DRIVER_PACKAGE.match(name)]
    if not names:
        return ()
    short = names[0] if len(names) == 1 else f"{names[0]}, …"
    because = (phrase("driver.because.held", names=", ".join(names)),)
    command = f"apt-mark unhold {' '.join(names)}"
    return (driver_finding(case, "packages-held", "warning", because, "apt-mark(8)", subject=names[0], names=short, command=command),)


def mixed_driver_install(case: Case) -> Found:
    """Packages and NVIDIA's installer have both written the driver."""
    if case.machine.driver.source != "mixed" or case.driver.origin == "host":
        return ()
    because: tuple[Words, ...] = (phrase("driver.because.mixed"),)
    source = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/removing-the-driver.html"
    return (driver_finding(case, "mixed-driver-install", "warning", because, source),)


def secure_boot_unsigned_module(case: Case) -> Found:
    """With Secure Boot the kernel loads signed modules only; a key must be enrolled for those that are built here."""
    if case.machine.firmware.secure_boot != "enabled" or case.driver.origin != "planned" or signed(case):
        return ()
    because: tuple[Words, ...] = (phrase("driver.because.secure-boot"), phrase("driver.because.unsigned", source=case.driver.source or "?"))
    source = case.distribution.source if case.distribution else None
    fix: Patch | None = None
    if case.distribution and case.distribution.signed_package and archive_variant(case):
        fix = {"driver.source": "distro"}
    console = case.answers.driver.console
    if console == "nobody":
        why = (*because, phrase("driver.because.console-nobody"))
        return (driver_finding(case, "secure-boot-nobody-there", "error", why, source, fix=fix),)
    found = driver_finding(case, "secure-boot-unsigned-module", "warning", because, source, fix=fix)
    return (found, driver_finding(case, "console-not-said", "info", because, source)) if console is None else (found,)


def signed(case: Case) -> bool:
    """Return whether the planned modules come signed with a key that the firmware already trusts."""
    row = case.distribution
    return (
        case.driver.source == "distro"
        and row is not None
        and (row.manager == "zypper" or (row.signed_package is not None and archive_variant(case) is not None))
    )
