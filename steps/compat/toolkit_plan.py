"""From a wanted toolkit to the packages and actions that bring it."""

from __future__ import annotations

from steps.catalog.versions import line
from steps.compat import driver_packages, forward
from steps.compat.case import Case
from steps.compat.driver_sources import repository_file
from steps.compat.library_rules import cudnn_row, nccl_rows
from steps.managers import apt_repository
from steps.model.action import AnyAction, Command, ManagerName, Packages, Run, Write, installing
from steps.model.base import Words, phrase

_PINS = "/etc/apt/preferences.d/bringup-cuda-libraries"
_COMPAT = "/etc/ld.so.conf.d/00-bringup-cuda-compat.conf"
"""Read before the folders of the distribution: of two libraries of one name the first found is loaded."""
_GUARD = "/etc/apt/preferences.d/bringup-keep-driver"
_GUARDED = (
    "nvidia-driver* nvidia-dkms* nvidia-kernel* nvidia-open* nvidia-utils* nvidia-compute-utils* libnvidia-compute* libcuda1* cuda-drivers*"
)
CUDA_DOWNLOAD, CUDA_DISK = 3_300_000_000, 7_200_000_000


def plan(case: Case) -> tuple[AnyAction, ...]:
    """Return what installs the wanted CUDA, cuDNN and NCCL; empty when none is wanted or the manager is not known."""
    wanted = [name for name in ("cudnn", "nccl") if _wanted(case, name)]
    row = case.cuda_row
    if (row is None and not wanted) or case.distribution is None:
        return ()
    manager = case.distribution.manager
    found: list[AnyAction] = [*source(case, manager)]
    if row is not None:
        found.append(
            _install(
                "toolkit.cuda",
                phrase("toolkit.action.cuda", version=row.version),
                manager,
                {row.package: None},
                phrase("toolkit.why.cuda"),
                CUDA_DOWNLOAD,
                CUDA_DISK,
                240,
            )
        )
        found.append(_path(row.version))
        found += _compat(case, manager, row.version)
    for name in wanted:
        version = getattr(case.answers.toolkit, name)
        patterns = _library(case, name, version)
        title = phrase(f"toolkit.action.{name}", version=version, major=case.cuda_major or "?")
        if patterns:
            found.append(
                _install(
                    f"toolkit.{name}",
                    title,
                    manager,
                    patterns,
                    phrase(f"toolkit.why.{name}"),
                    700_000_000 if name == "cudnn" else 180_000_000,
                    1_500_000_000,
                    60,
                )
            )
    return tuple(found)


def _wanted(case: Case, name: str) -> bool:
    """Return whether a library is wanted."""
    value = getattr(case.answers.toolkit, name)
    return bool(value and value != "none")


def library_names(case: Case, name: str, version: str) -> tuple[str, ...]:
    """Return the packages of a library, for those who would type the command."""
    return tuple(_library(case, name, version))


def _library(case: Case, name: str, version: str) -> dict[str, str | None]:
    """Return the packages of a library, each with the pattern of versions that are right; empty when there are none."""
    if name == "cudnn":
        row = cudnn_row(case)
        if row is None:
            return {}
        pattern = f"{version}.*" if row.package.startswith("libcudnn9") else f"{version}.*+cuda{row.cuda_major}.?"
        return {row.package: pattern, row.dev_package: pattern}
    if not nccl_rows(case) or case.cuda_major is None:
        return {}
    # No star at the end: apt then takes the whole pattern for a literal prefix.
    pattern = f"{line(version)}.*+cuda{case.cuda_major}.?"
    return {"libnccl2": pattern, "libnccl-dev": pattern}


def source(case: Case, manager: ManagerName) -> tuple[AnyAction, ...]:
    """Return what makes NVIDIA's repository known, and keeps its drivers away from one that came from elsewhere."""
    url = driver_packages.repository_url(case)
    if url is None or manager == "pacman":
        return ()
    if manager != "apt":
        return () if driver_packages.driver_adds_repository(case) else repository_file(case, url, manager)
    found: list[AnyAction] = []
    if not driver_packages.driver_adds_repository(case):
        found += apt_repository.nvidia_repository(url)
        if case.driver.origin in ("planned", "installed") and not _from_nvidia(case):
            found.append(_guard())
    pins = _pins(case)
    if pins:
        found.append(
            Write(
                id="toolkit.pins",
                title=phrase("toolkit.action.pins"),
                why=phrase("toolkit.why.pins", major=case.cuda_major or "?"),
                lane="packages",
                path=_PINS,
                text=pins,
            )
        )
    return tuple(found)


def _from_nvidia(case: Case) -> bool:
    """Return whether the installed driver came out of NVIDIA's repository, which must go on serving it."""
    names = {package.name for package in case.machine.driver.packages}
    return case.driver.origin == "installed" and any(name.startswith(("cuda-drivers", "nvidia-open")) for name in names)


def _guard() -> Write:
    """Return the file that leaves the driver to the archive it came from: NVIDIA's repository would win by its pin."""
    text = f"Package: {_GUARDED}\nPin: release l=NVIDIA CUDA\nPin-Priority: -10\n"
    return Write(
        id="toolkit.keep-driver",
        title=phrase("toolkit.action.guard"),
        why=phrase("toolkit.why.guard"),
        lane="packages",
        path=_GUARD,
        text=text,
    )


def _pins(case: Case) -> str:
    """Return apt's preferences for the libraries: one repository carries their builds for several CUDA majors."""
    stanzas = []
    for name in ("cudnn", "nccl"):
        if _wanted(case, name):
            patterns = _library(case, name, getattr(case.answers.toolkit, name))
            for pattern in dict.fromkeys(patterns.values()):
                names = " ".join(package for package, one in patterns.items() if one == pattern)
                stanzas.append(f"Package: {names}\nPin: version {pattern}\nPin-Priority: 900\n")
    return "\n".join(stanzas)


def _install(
    id: str, title: Words, manager: ManagerName, patterns: dict[str, str | None], why: Words, download: int, disk: int, seconds: float
) -> Packages:
    """Return one installation; apt's pins choose the version, the probe says whether it is the right one."""
    return installing(
        manager, id, title, tuple(patterns), versions=patterns, why=why, download_bytes=download, disk_bytes=disk, seconds=seconds
    )


def _compat(case: Case, manager: ManagerName, version: str) -> tuple[AnyAction, ...]:
    """Return what brings the newer driver library that the toolkit relies on, before the driver's own on the loader's path.

    The first refresh of the loader's cache is there for the way back: there it comes after the file is gone.
    """
    package = forward.relied_on(case)
    if package is None:
        return ()
    title, why = phrase("toolkit.action.compat", package=package), phrase("toolkit.why.compat", branch=case.driver.branch or "?")
    refresh = phrase("toolkit.action.loader")
    folder = f"/usr/local/cuda-{version}/compat"
    return (
        installing(manager, "toolkit.compat", title, (package,), why=why, download_bytes=60_000_000, disk_bytes=200_000_000, seconds=20),
        Run(id="toolkit.loader-before", title=refresh, lane="packages", argv=("ldconfig",), undo=(Command(argv=("ldconfig",)),), seconds=2),
        Write(
            id="toolkit.compat-path",
            title=phrase("toolkit.action.compat-path"),
            lane="packages",
            needs=("toolkit.compat",),
            path=_COMPAT,
            text=f"{folder}\n",
        ),
        Run(id="toolkit.loader", title=refresh, lane="packages", argv=("ldconfig",), seconds=2),
    )


def _path(version: str) -> Write:
    """Return the file that puts nvcc on the path of new shells."""
    folder = f"/usr/local/cuda-{version}"
    text = f"# CUDA {version}: nvcc and its friends for login shells.\nPATH={folder}/bin:$PATH\nexport PATH\n"
    return Write(
        id="toolkit.path",
        title=phrase("toolkit.action.path", version=version),
        why=phrase("toolkit.why.path"),
        lane="packages",
        needs=("toolkit.cuda",),
        path="/etc/profile.d/bringup-cuda.sh",
        text=text,
    )
