"""What could be taken on a machine, best first: drivers, toolkits, PyTorch with its variant, Python."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import at_least, line, number
from steps.compat.case import Case, installed_driver
from steps.compat.driver_rules import driver_findings
from steps.compat.offer_rules import distance
from steps.compat.system_rules import in_repository, signed
from steps.compat.wheels import cuda_of, driver_floor, glibc_of, has_kernels, rocm_variants
from steps.model.finding import Patch
from steps.model.machine import Machine, judged
from steps.model.profile import Profile, answered

NO_DRIVER: Patch = {"driver.branch": None, "driver.flavor": None, "driver.source": None, "driver.server": None}
KEEP: Patch = {"driver.branch": None, "driver.flavor": None, "driver.source": "keep", "driver.server": None}
PYTHONS = ("3.12", "3.11", "3.13", "3.10", "3.14")
_KINDS = {"lts": 0, "production": 1, "legacy": 2, "new-feature": 3}


def driver_patch(branch: str, flavor: str, source: str, server: bool | None = None) -> Patch:
    """Return the answers that name one driver; `server` is said only where it is not what nobody's choice would come to."""
    return {"driver.branch": branch, "driver.flavor": flavor, "driver.source": source, "driver.server": server}


def archive_drivers(row: stack.Distribution | None, data_center: bool = False) -> Iterator[Patch]:
    """Yield the drivers of a distribution's own archive; on data-center cards plain packages must be asked for."""
    for variant in row.archive if row else ():
        branch, _, rest = variant.partition("-")
        server = True if rest.startswith("server") else False if data_center else None
        yield driver_patch(branch, "open" if rest.endswith("open") else "proprietary", "distro", server)


def repository_drivers(case: Case) -> Iterator[Patch]:
    """Yield the drivers that NVIDIA's repository for this system can carry."""
    if case.repository is None:
        return
    for row in stack.branches().values():
        if not in_repository(case.repository, row):
            continue
        if row.open_modules != "none":
            yield driver_patch(row.name, "open", "nvidia-repo")
        if row.open_modules != "only":
            yield driver_patch(row.name, "proprietary", "nvidia-repo")


def driver_candidates(machine: Machine, base: Profile, branch: str | None = None) -> tuple[Patch, ...]:
    """Return the drivers that can be taken without an error, best first; `branch` asks for one branch.

    A new-feature branch is there only when asked for. Where no Linux driver belongs (no NVIDIA card, WSL2, a container, a
    vGPU slice), the one candidate leaves the driver alone.
    """
    bare = Case(machine, answered(base, NO_DRIVER))
    if not bare.gpus or bare.wsl or bare.contained or bare.virtual_gpu or all(gpu.row is None for gpu in bare.gpus):
        version, _ = installed_driver(machine)
        keeps = version and not (bare.wsl or bare.contained) and bare.gpus
        return (KEEP if keeps else NO_DRIVER,) if branch is None else ()
    ranked: list[tuple[tuple[object, ...], Patch]] = []
    for patch in chain((KEEP,), archive_drivers(bare.distribution, bare.data_center), repository_drivers(bare)):
        case = Case(machine, answered(base, patch))
        if (branch and case.driver.branch != branch) or not _worth_it(case, asked=branch is not None):
            continue
        if not any(finding.severity == "error" for finding in driver_findings(case)):
            ranked.append((_rank(case), patch))
    return tuple(patch for _, patch in sorted(ranked, key=lambda pair: pair[0]))


def every_driver(machine: Machine, base: Profile) -> tuple[Patch, ...]:
    """Return every driver that can be taken without an error, new-feature branches among them, in no order of preference."""
    bare = Case(machine, answered(base, NO_DRIVER))
    if not bare.gpus or bare.wsl or bare.contained or bare.virtual_gpu or all(gpu.row is None for gpu in bare.gpus):
        return driver_candidates(machine, base)
    offers = (KEEP, *archive_drivers(bare.distribution, bare.data_center), *repository_drivers(bare))
    return tuple(patch for patch in offers if _can_be(Case(machine, answered(base, patch))))


def _can_be(case: Case) -> bool:
    """Return whether a driver may be had at all and nothing forbids it."""
    return _worth_it(case, asked=True) and not any(finding.severity == "error" for finding in driver_findings(case))


def _worth_it(case: Case, asked: bool) -> bool:
    """Return whether a driver may be a candidate at all: a working one to keep, or one of a branch that we know."""
    if case.driver.source == "keep":
        return installed_driver(case.machine)[1]
    return case.driver.row is not None and (asked or case.driver.row.kind != "new-feature")


def _rank(case: Case) -> tuple[object, ...]:
    """Return the sort key of the contract's preference, smaller is better."""
    row, keep = case.driver.row, case.driver.source == "keep"
    # Two installations over each other are no state to keep: the next upgrade of either breaks the other.
    settled = keep and case.machine.driver.source != "mixed"
    ended = row is None or bool(row.end_of_life and row.end_of_life <= stack.checked())
    needs_key = case.machine.firmware.secure_boot == "enabled" and not keep and not signed(case)
    age = tuple(-part for part in number((row.end_of_life or "0").replace("-", ".") if row and ended else case.driver.branch or ""))
    wants_open = all(gpu.row is not None and gpu.row.open_modules != "unsupported" for gpu in case.gpus)
    default = row is not None and row.open_modules in ("default", "only")
    flavor = 0 if (case.driver.flavor == "open") == (wants_open and default) else 1
    kind = 0 if ended else _KINDS[row.kind] if row else 9
    return (
        ended,
        not settled,
        keep and not settled,
        needs_key,
        distance(case),
        kind,
        age,
        flavor,
        case.driver.server != case.data_center,
    )


def torch_candidates(case: Case, version: str | None = None, variant: str | None = None) -> Iterator[tuple[catalog.TorchRelease, str]]:
    """Yield releases of PyTorch with a variant, best first.

    Releases of low confidence come last. On a machine with cards the CPU variant is yielded only when asked for.
    """
    fitting = [row for row in catalog.torch_releases() if version is None or _matches(row.version, version)]
    if case.vendor == "amd" and variant is None:
        # What AMD supports on the installed driver goes before what is newest.
        pairs = [(release, name) for release in fitting for name in _variants(case, release, None)]
        yield from sorted(pairs, key=lambda pair: not fits_rocm(case.machine, pair[1].removeprefix("rocm")))
        return
    for low in (False, True):
        for release in fitting:
            if (release.confidence == "low") == low:
                for name in _variants(case, release, variant):
                    yield release, name


def _matches(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one, or of the wanted line."""
    return number(version)[: len(number(wanted))] == number(wanted)


def _variants(case: Case, release: catalog.TorchRelease, asked: str | None) -> list[str]:
    """Return the variants of a release worth trying: asked for, or of the vendor; the best for the driver first."""
    if asked:
        return [row.name for row in release.variant if row.name == asked]
    if case.vendor == "amd":
        return rocm_variants(case, release)
    if case.vendor != "nvidia" or not case.gpus:
        return ["cpu"] if not judged(case.machine) else []
    if all(gpu.capability is None for gpu in case.gpus):
        # What we do not know gets no guess: the build that starts anywhere.
        return ["cpu"]
    limit = case.driver.row.max_cuda if case.driver.row and case.driver.origin != "host" else case.machine.driver.cuda_max
    arch, unknown = case.machine.os.arch, case.driver.version is None and limit is None

    def key(row: catalog.TorchVariant) -> tuple[object, ...]:
        cuda = cuda_of(row.name) or "0"
        lacking = sum(has_kernels(row, arch, gpu) is not True for gpu in case.kinds)
        return (
            lacking,
            bool(limit and number(cuda) > number(limit)),
            # Which driver will run it is not known: the one that asks for the oldest runs with most.
            number(driver_floor(cuda) or "9999") if unknown else (),
            row.name != release.default_variant,
            tuple(-part for part in number(cuda)),
        )

    return [row.name for row in sorted((row for row in release.variant if _starts(case, row)), key=key)]


def _starts(case: Case, row: catalog.TorchVariant) -> bool:
    """Return whether a CUDA variant may start at all: cheap, and no stricter than the rules."""
    cuda = cuda_of(row.name)
    if cuda is None or all(has_kernels(row, case.machine.os.arch, gpu) is False for gpu in case.kinds):
        return False
    floor = driver_floor(cuda)
    return case.driver.version is None or floor is None or at_least(case.driver.version, floor)


def fits_rocm(machine: Machine, rocm: str) -> bool:
    """Return whether AMD supports a ROCm release on the kernel driver that is installed with another, as far as is known."""
    have = {line(machine.driver.library_version)} if machine.driver.library_version else set[str]()
    row = next((row for row in catalog.rocms() if row.version == rocm), None)
    return not have or bool(row and have & set(row.driver))


def python_candidates(case: Case, known: tuple[str, ...]) -> list[str]:
    """Return the Python lines that a framework has wheels for, the system's own first, then the one that fits most."""
    own = case.machine.tools.get("python3") or case.machine.tools.get("python")
    system = line(own) if own else None
    return sorted((one for one in PYTHONS if one in known), key=lambda one: (one != system, PYTHONS.index(one)))


def cuda_candidates(case: Case) -> tuple[str, ...]:
    """Return the toolkit lines, best first: the one of the wheel's CUDA, then those up to the driver's own, newest first."""
    limit = case.driver.row.max_cuda if case.driver.row else None
    wheel = cuda_of(case.answers.frameworks.get("variant"))
    lines = sorted(stack.cudas(), key=number, reverse=True)
    return tuple(sorted(lines, key=lambda one: (one != wheel, bool(limit and not at_least(limit, one)))))


def cudnn_candidates(case: Case) -> tuple[str, ...]:
    """Return the cuDNN lines for the CUDA major of the case, newest first."""
    return tuple(row.version for row in reversed(stack.cudnns()) if row.cuda_major == case.cuda_major)


def nccl_candidates(case: Case) -> tuple[str, ...]:
    """Return the NCCL lines that were built for the CUDA major of the case, newest first."""
    fitting = (row.version for row in reversed(stack.nccls()) if any(number(build)[:1] == (case.cuda_major,) for build in row.builds))
    return tuple(dict.fromkeys(".".join(map(str, number(version)[:2])) for version in fitting))


def old_enough(case: Case, floor: str) -> bool:
    """Return whether the system's C library meets a floor, as far as it is known."""
    have = glibc_of(case)
    return have is None or at_least(have, floor)
