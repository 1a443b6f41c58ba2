"""Forward compatibility: a newer CUDA on an older driver through a package with a newer driver library, on data-center cards."""

from __future__ import annotations

from steps.catalog.versions import at_least
from steps.compat.case import Case

SOURCE = "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html"


def too_old(case: Case) -> bool:
    """Return whether the driver is older than what the major of the wanted toolkit asks for."""
    row, version = case.cuda_row, case.driver.version
    return row is not None and version is not None and not at_least(version, row.minor_driver)


def relied_on(case: Case) -> str | None:
    """Return the package that lets the driver run the wanted toolkit; `None` where it needs none, or none can."""
    row = case.cuda_row
    if row is None or not case.data_center or case.wsl or not too_old(case):
        return None
    return row.compat_package if case.driver.branch in (row.compat_from or ()) else None


def library_version(case: Case) -> str | None:
    """Return the version of the driver library that programs load: the package's where it is relied on, else the driver's own."""
    return case.cuda_row.branch if case.cuda_row and relied_on(case) is not None else case.driver.version


def unknown(case: Case) -> bool:
    """Return whether nobody has looked which drivers the package for the wanted toolkit works on, where that would matter."""
    row = case.cuda_row
    return row is not None and row.compat_from is None and too_old(case) and case.data_center and not case.wsl
