"""What NVIDIA's packages are called and rest on, by package manager and distribution: the fabric manager, EPEL."""

from __future__ import annotations

from steps.catalog.load import remembered, rows
from steps.catalog.versions import number
from steps.model.base import Record


class FabricPackage(Record):
    """What NVIDIA's repository calls the fabric manager of the branches from `first` on."""

    manager: str
    first: str
    package: str
    source: str


@remembered
def fabric_package(manager: str, branch: str | None) -> str | None:
    """Return the package of a branch's fabric manager in NVIDIA's repository; `None` where we do not know its name."""
    known: tuple[FabricPackage, ...] = rows("drivers.toml", "fabric", FabricPackage)
    fitting = [row for row in known if row.manager == manager and branch is not None and number(row.first) <= number(branch)]
    return max(fitting, key=lambda row: number(row.first)).package if fitting else None


class ExtraSource(Record):
    """How a distribution is given EPEL.

    `release` is EPEL's package (at `url` where the archive has none), `builders` what the repository of builders may be called.
    """

    os: tuple[str, ...]
    version: str
    release: str
    url: str | None = None
    builders: tuple[str, ...]
    source: str


@remembered
def extra_source(os_id: str | None, version: str | None) -> ExtraSource | None:
    """Return how EPEL comes to a distribution, by its major; `None` when we do not know."""
    known: tuple[ExtraSource, ...] = rows("distros.toml", "extra", ExtraSource)
    return next((row for row in known if os_id in row.os and row.version == version), None)
