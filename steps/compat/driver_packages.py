"""Which packages a driver is, by distribution, source and kind of kernel modules."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from steps.catalog import package_sources
from steps.catalog.stack import Distribution
from steps.catalog.versions import line, number
from steps.compat.case import Case, repository_arch
from steps.compat.system_rules import archive_variant, signed

REPLACED = (
    "nvidia-driver*",
    "nvidia-dkms*",
    "nvidia-kernel*",
    "nvidia-open*",
    "nvidia-headless*",
    "nvidia-utils*",
    "nvidia-compute-utils*",
    "nvidia-firmware*",
    "nvidia-modprobe*",
    "nvidia-persistenced*",
    "nvidia-settings*",
    "nvidia-prime*",
    "nvidia-alternative*",
    "nvidia-support*",
    "nvidia-smi*",
    "nvidia-*-common*",
    "nvidia-tesla*",
    "firmware-nvidia*",
    "libnvidia-cfg1*",
    "libnvidia-common*",
    "libnvidia-compute*",
    "libnvidia-decode*",
    "libnvidia-encode*",
    "libnvidia-extra*",
    "libnvidia-fbc1*",
    "libnvidia-gl*",
    "libnvidia-gpucomp*",
    "libnvidia-ml1*",
    "libcuda1*",
    "linux-modules-nvidia-*",
    "linux-objects-nvidia-*",
    "linux-signatures-nvidia-*",
    "xserver-xorg-video-nvidia*",
    "cuda-drivers*",
)
"""Packages that a change of driver may remove: the old driver's own, nothing of containers, toolkits or the desktop."""

_OF_BRANCH = (
    "kmod-nvidia*",
    "nvidia-driver*",
    "nvidia-kernel*",
    "nvidia-dkms*",
    "nvidia-open*",
    "libnvidia-compute*",
    "libcuda1*",
    "cuda-drivers*",
)
"""Packages whose version is the driver's: its tools (`nvidia-settings`, `nvidia-modprobe`) may be of a newer one beside it."""

FABRIC_GUIDE = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide"
"""Where it stands that the fabric manager must run, in the version of the driver."""
NVSWITCH_CARDS = 8
"""How many SXM cards a board has that connects them through NVSwitch."""


def packages(case: Case) -> tuple[str, ...]:
    """Return the packages of the planned driver; empty when we know none for this system and source."""
    driver, row = case.driver, case.distribution
    if driver.source == "nvidia-repo":
        pinned = f"={driver.branch}.*" if row is None or row.manager in ("apt", "dnf") else ""
        whole = "nvidia-open" if driver.flavor == "open" else "cuda-drivers"
        # The one package alone may leave what it needs to the newest branch: its modules and its libraries are named with it.
        modules = "kmod-nvidia-open-dkms" if driver.flavor == "open" else "kmod-nvidia-latest-dkms"
        beside = (modules, "nvidia-driver-cuda") if row is not None and row.manager == "dnf" and not _streamed(case) else ()
        return tuple(name + pinned for name in (whole, *beside))
    if driver.source == "rpmfusion":
        last = number(driver.branch or "") == (580,) and any(gpu.row and gpu.row.last_branch for gpu in case.gpus)
        return ("akmod-nvidia-580xx", "xorg-x11-drv-nvidia-580xx-cuda") if last else ("akmod-nvidia", "xorg-x11-drv-nvidia-cuda")
    if driver.source == "ppa":
        return (f"nvidia-driver-{driver.branch}" + ("-open" if driver.flavor == "open" else ""),)
    variant = archive_variant(case)
    if row is None or variant is None:
        return ()
    patterns = row.archive_packages.get(variant) or row.archive_packages.get("*") or ()
    names = tuple(_of_branch(pattern.format(variant=variant), driver.branch or "", row) for pattern in patterns)
    if prebuilt(case) and row.signed_package:
        return (row.signed_package.format(variant=variant, flavour=kernel_flavour(case)), *names)
    return names


def _streamed(case: Case) -> bool:
    """Return whether a module stream has only packages of the branch."""
    return case.repository is not None and case.repository.streams


def _of_branch(name: str, branch: str, row: Distribution) -> str:
    """Return a package with the branch that it is wanted of, where its name does not say it already, as Debian's do not.

    An archive's own newest may be of another branch: an installed one is not done then, and lists of another release are no answer.
    """
    return name if row.manager != "apt" or branch in name else f"{name}={branch}.*"


def astray(case: Case) -> bool:
    """Return whether the lists here would bring another branch than the planned one under the same names."""
    here = case.machine.offers.here if case.machine.offers else None
    wanted = (package.partition("=") for package in packages(case))
    return any(version and not fnmatchcase(found[0], version) for name, _, version in wanted if (found := (here or {}).get(name)))


def older(case: Case) -> bool:
    """Return whether the planned branch is behind the packages that are installed, of apt's or dnf's: they have to go back."""
    if case.distribution is not None and case.distribution.manager not in ("apt", "dnf"):
        return False
    if case.driver.source not in ("nvidia-repo", "distro") or not any("=" in name for name in packages(case)):
        # Where a name says its branch, another branch is another package.
        return False
    wanted = number(case.driver.branch or "")
    carry = (row.version for row in case.machine.driver.packages if row.version and any(fnmatchcase(row.name, one) for one in _OF_BRANCH))
    return bool(wanted) and any(number(version.rpartition(":")[2])[:1] > wanted[:1] for version in carry)


def prebuilt(case: Case) -> bool:
    """Return whether ready modules are taken instead of ones built here: where Secure Boot wants a signature."""
    return signed(case) and case.machine.firmware.secure_boot == "enabled"


def kernel_flavour(case: Case) -> str:
    """Return Ubuntu's name for the line of kernels that the running one belongs to: `generic`, `generic-hwe-24.04`, `azure`."""
    kernel, row = case.machine.os.kernel or "", case.distribution
    found = re.match(r"[\d.]+-\d+-(.+)", kernel)
    flavour = found.group(1) if found else "generic"
    first = number((row.kernel or "").partition(" ")[0]) if row else ()
    if first and flavour in ("generic", "lowlatency") and number(line(kernel)) > first:
        return f"{flavour}-hwe-{case.machine.os.version}"
    return flavour


def headers(case: Case, kernel: str | None) -> tuple[str, ...]:
    """Return the packages with the headers of a kernel; empty when modules come ready, or the kernel is not known."""
    row = case.distribution
    if row is None or kernel is None or prebuilt(case):
        return ()
    return tuple(pattern.format(kernel=kernel) for pattern in row.headers)


def repository_url(case: Case) -> str | None:
    """Return the address of NVIDIA's repository for this system, or `None` when there is none."""
    return case.repository.url.format(arch=repository_arch(case.machine.os.arch)) if case.repository else None


def driver_adds_repository(case: Case) -> bool:
    """Return whether the driver step adds NVIDIA's repository, so that the toolkit need not."""
    return case.driver.origin == "planned" and case.driver.source == "nvidia-repo"


def build_kernel(case: Case, kernel: str | None) -> str | None:
    """Return the kernel that the module is built for: the target's, or `None` for its newest."""
    return None if prebuilt(case) else kernel


def switched(case: Case) -> bool:
    """Return whether the cards are joined through NVSwitch.

    Where none is seen on the bus, a board with eight SXM cards has it all the same (those of Blackwell hide theirs); smaller boards
    connect their cards directly.
    """
    boarded = [gpu for gpu in case.gpus if re.search(r"SXM|HBM3|\bB[23]00\b", gpu.card.name or "")]
    return bool(case.machine.nvswitches and case.gpus) or len(boarded) >= NVSWITCH_CARDS


def fabric_manager(case: Case) -> str | None:
    """Return the package of the fabric manager, or `None` where there is no NVSwitch or the package is not known."""
    row = case.distribution
    if row is None or not switched(case):
        return None
    if row.manager != "apt":
        return package_sources.fabric_package(row.manager, case.driver.branch) if case.driver.source == "nvidia-repo" else None
    if case.driver.source == "nvidia-repo" and number(case.driver.branch or "") >= (590,):
        return "nvidia-fabricmanager"
    return f"nvidia-fabricmanager-{case.driver.branch}"
