"""NVIDIA's stack as the tables know it: architectures, drivers, CUDA, cuDNN, NCCL, repositories, distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from steps.catalog.load import document, remembered, rows
from steps.catalog.versions import number
from steps.model.base import Record

Confidence = Literal["low"]


class Architecture(Record):
    """One compute capability; `last_cuda` and `last_branch` are `None` while the newest still supports it."""

    name: str
    chips: tuple[str, ...]
    compute_capability: str
    first_cuda: str
    last_cuda: str | None = None
    first_branch: str | None = None
    last_branch: str | None = None
    open_modules: Literal["unsupported", "optional", "required"]
    open_required_for: tuple[str, ...] = ()
    tegra: bool = False
    soc: str | None = None
    """What the device tree calls the chip that the GPU is a part of, where it sits on no bus."""
    note: str | None = None
    confidence: Confidence | None = None
    source: str


class Branch(Record):
    """One driver branch; `max_cuda` is what its libcuda implements."""

    name: str
    kind: Literal["legacy", "lts", "production", "new-feature"]
    first_release: str | None = None
    end_of_life: str | None = None
    max_cuda: str
    open_modules: Literal["none", "optional", "default", "only"]
    latest: str
    oldest: str
    kernel_max: str | None = None
    kernel_max_patched: str | None = None
    note: str | None = None
    confidence: Confidence | None = None
    source: str


class Cuda(Record):
    """One toolkit line; `driver` is the one in its installer, `minor_driver` the oldest that still runs it.

    `compat_from` are the driver branches on which `compat_package` brings it to data-center cards; `None`: not known.
    """

    version: str
    latest: str
    driver: str | None = None
    branch: str
    minor_driver: str
    gcc_min: int
    gcc_max: int
    glibc_max: str | None = None
    targets: tuple[str, ...]
    package: str
    compat_package: str | None = None
    compat_from: tuple[str, ...] | None = None
    note: str | None = None
    confidence: Confidence | None = None
    source: str


class CudaRepository(Record):
    """One of NVIDIA's package repositories; `{arch}` in its URL is one of `arches`."""

    token: str
    os: tuple[str, ...]
    version: str | None = None
    arches: tuple[str, ...]
    first_cuda: str | None = None
    last_cuda: str | None = None
    streams: bool = False
    """Whether each branch of the driver is a module stream of dnf's."""
    lock_tool: str | None = None
    """The package of `dnf versionlock` where that keeps a branch; `None` where streams do, or nothing is known to."""
    lock: str | None = None
    """Which packages of `{branch}` are locked."""
    url: str
    key_file: str | None = None
    key_by_sha1: bool | None = None
    """Whether SHA-1 binds its key, which apt with Sequoia refuses since February 2026."""
    note: str | None = None
    confidence: Confidence | None = None
    source: str


class Cudnn(Record):
    """One cuDNN line for one CUDA major."""

    version: str
    cuda_major: int
    latest: str
    min_driver: str
    cc_min: str | None = None
    cc_max: str | None = None
    package: str
    dev_package: str
    apt_version: str
    confidence: Confidence | None = None
    source: str


class Nccl(Record):
    """One NCCL release; `builds` are the CUDA lines it was built for."""

    version: str
    builds: tuple[str, ...]
    cc_min_cu12: str | None = None
    cc_min_cu13: str | None = None
    note: str | None = None
    confidence: Confidence | None = None
    source: str


class NcclVariable(Record):
    """One variable of NCCL; `since` is the first release that reads it. What it is for stands among the words (`nccl_variables.toml`)."""

    name: str
    default: str
    values: tuple[str, ...]
    """What may be written, partly in words."""
    plain: tuple[str, ...] = ()
    """Values that stand for themselves; empty where what fits is the machine's: an interface, a path, a number."""
    category: str
    since: str | None = None
    note: str | None = None
    confidence: Confidence | None = None
    source: str


class NcclRule(Record):
    """One fact about how NCCL reads its configuration file."""

    name: str
    detail: str
    note: str | None = None
    confidence: Confidence | None = None
    source: str


class Distribution(Record):
    """One distribution: what it runs, and the drivers its own archive offers (`archive`: variants like `580-server-open`)."""

    os: tuple[str, ...]
    version: str
    codename: str | None = None
    kernel: str | None = None
    glibc: str | None = None
    gcc: str | None = None
    manager: Literal["apt", "dnf", "zypper", "pacman"]
    token: str | None = None
    archive: tuple[str, ...] = ()
    archive_packages: Mapping[str, tuple[str, ...]] = {}
    signed_package: str | None = None
    headers: tuple[str, ...] = ()
    key_certificate: str | None = None
    components: tuple[str, ...] = ()
    dkms: Literal["extra"] | None = None
    """Where DKMS comes from; "extra": not from the distribution's own archive."""
    secure_boot: str | None = None
    status: str | None = None
    note: str | None = None
    confidence: Confidence | None = None
    source: str


class CLibrary(Record):
    """The C library of a release that has no row as a distribution."""

    os: tuple[str, ...]
    version: str
    glibc: str
    source: str


def checked() -> str:
    """Return the day up to which the tables were kept, ISO 8601."""
    return str(document("drivers.toml")["checked"])


def architectures() -> tuple[Architecture, ...]:
    """Return all architectures, oldest first."""
    return rows("architectures.toml", "architecture", Architecture)


@remembered
def architecture_of(name: str | None, compute_capability: str | None, chip: str | None) -> Architecture | None:
    """Return the row of a GPU, or `None` when nothing that is known of it names exactly one row."""
    known = architectures()
    if compute_capability:
        return next((row for row in known if row.compute_capability == compute_capability), None)
    by_chip = [row for row in known if chip and chip in row.chips]
    if len(by_chip) == 1:
        return by_chip[0]
    by_name = [row for row in known if name and row.name == name and not row.tegra]
    return by_name[0] if len(by_name) == 1 else None


def architecture_on(compatible: tuple[str, ...]) -> Architecture | None:
    """Return the row of the GPU in a system on a chip, by the `compatible` words of its device tree (`nvidia,tegra234`)."""
    return next((row for row in architectures() if row.soc and f"nvidia,{row.soc}" in compatible), None)


@remembered
def branches() -> Mapping[str, Branch]:
    """Return the driver branches by name, oldest first."""
    return {row.name: row for row in rows("drivers.toml", "branch", Branch)}


@remembered
def cudas() -> Mapping[str, Cuda]:
    """Return the toolkit lines by version, oldest first."""
    return {row.version: row for row in rows("cuda.toml", "cuda", Cuda)}


@remembered
def repository_of(os_id: str | None, version: str | None) -> CudaRepository | None:
    """Return NVIDIA's repository for a distribution, or `None` when we know of none."""
    known: tuple[CudaRepository, ...] = rows("cuda_repos.toml", "repository", CudaRepository)
    for row in known:
        if os_id in row.os and (row.version is None or (version and row.version in (version, version.split(".", maxsplit=1)[0]))):
            return row
    return None


def repository_at(url: str) -> tuple[CudaRepository, str] | None:
    """Return the repository of NVIDIA's that an address names, and its address as the table writes it; `None` where it names none.

    The address may come from anywhere; the host has to be NVIDIA's own, and what is handed back is the table's.
    """
    known: tuple[CudaRepository, ...] = rows("cuda_repos.toml", "repository", CudaRepository)
    try:
        asked = urlsplit(url)
    except ValueError:
        return None
    for row in known:
        for arch in row.arches:
            whole = row.url.replace("{arch}", arch)
            own = urlsplit(whole)
            if asked.scheme in ("http", "https") and asked.netloc == own.netloc and f"{asked.path}/".startswith(own.path):
                return row, whole
    return None


def cudnns() -> tuple[Cudnn, ...]:
    """Return the cuDNN lines, oldest first."""
    return rows("cudnn.toml", "cudnn", Cudnn)


def nccls() -> tuple[Nccl, ...]:
    """Return the NCCL releases, oldest first."""
    return rows("nccl.toml", "release", Nccl)


@remembered
def nccl_variables() -> Mapping[str, NcclVariable]:
    """Return NCCL's variables by name."""
    return {row.name: row for row in rows("nccl.toml", "variable", NcclVariable)}


class NcclAlso(Record):
    """Names that an NCCL reads, and of which the tables say nothing more."""

    names: tuple[str, ...]
    source: str


@remembered
def nccl_names() -> frozenset[str]:
    """Return every name that an NCCL of the tables reads, described or not."""
    also: tuple[NcclAlso, ...] = rows("nccl.toml", "also", NcclAlso)
    return frozenset(nccl_variables()).union(*(row.names for row in also))


class NcclSupport(Record):
    """The first NCCL that drives cards of an architecture."""

    architecture: str
    version: str
    confidence: Confidence | None = None
    source: str


def nccl_support(architecture: str) -> NcclSupport | None:
    """Return the first release for an architecture; `None` where none of the tables is older than its cards."""
    return next((row for row in rows("nccl.toml", "support", NcclSupport) if row.architecture == architecture), None)


def nccl_rules() -> tuple[NcclRule, ...]:
    """Return how NCCL reads its configuration file."""
    return rows("nccl.toml", "rule", NcclRule)


@remembered
def distribution_of(os_id: str | None, version: str | None) -> Distribution | None:
    """Return the row of a distribution, or `None` when we know nothing of it; point releases belong to their major."""
    known: tuple[Distribution, ...] = rows("distros.toml", "distribution", Distribution)
    for row in known:
        if os_id in row.os and (row.version == "rolling" or (version and row.version in (version, version.split(".", maxsplit=1)[0]))):
            return row
    return None


def glibc_of(os_id: str | None, version: str | None) -> str | None:
    """Return the C library that a release of a distribution keeps all its life; `None` where no table says it, as of rolling ones."""
    row = distribution_of(os_id, version)
    if row is not None:
        return row.glibc
    known: tuple[CLibrary, ...] = rows("distros.toml", "c_library", CLibrary)
    return next((one.glibc for one in known if os_id in one.os and f"{version}.".startswith(f"{one.version}.")), None)


def newer(row: Branch) -> tuple[int, ...]:
    """Return the key by which branches are ordered."""
    return number(row.name)


def kernel_ceiling(row: Branch, *, patched: bool) -> str | None:
    """Return the newest kernel that a branch builds on, by itself or with a distribution's patches; `None` when not known.

    Unpatched, a branch that ended before another one did builds on nothing newer than that.
    """
    if patched:
        return row.kernel_max_patched or row.kernel_max
    ended = row.end_of_life
    later = [one.kernel_max for one in branches().values() if ended and one.kernel_max and (one.end_of_life or "") >= ended]
    return row.kernel_max or min(later, key=number, default=None)


class Signer(Record):
    """One who signs modules for kernels that carry the key themselves; `name` is what modinfo prints."""

    name: str
    source: str
    confidence: str | None = None


@remembered
def signers() -> frozenset[str]:
    """Return the names of those whose modules load under Secure Boot without a key being enrolled."""
    return frozenset(row.name for row in rows("signers.toml", "signers", Signer))
