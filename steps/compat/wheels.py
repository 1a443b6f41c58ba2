"""What the wanted wheels hold and ask for: the facts that the rules about them rest on."""

from __future__ import annotations

import re
from functools import cache

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import at_least, number
from steps.compat.case import Case, Gpu
from steps.compat.findings import MINOR


def torch_release(case: Case) -> catalog.TorchRelease | None:
    """Return the row of the wanted PyTorch."""
    return case.torch


def variant_name(case: Case) -> str | None:
    """Return the wanted variant; without one it is the package index's own."""
    return case.variant


def torch_variant(case: Case) -> catalog.TorchVariant | None:
    """Return the row of the wanted variant of the wanted PyTorch."""
    release = torch_release(case)
    return catalog.variant_of(release, variant_name(case)) if release else None


@cache
def cuda_of(variant: str | None) -> str | None:
    """Return the CUDA line of a variant's name: `cu126` is 12.6, `cpu` and `rocm6.4` have none."""
    found = re.fullmatch(r"cu(\d+)(\d)", variant or "")
    return f"{found.group(1)}.{found.group(2)}" if found else None


@cache
def capability_of(code: str) -> tuple[int, int]:
    """Return the compute capability in a code name: `sm_120` and `compute_120` are (12, 0)."""
    digits = re.sub(r"\D", "", code)
    return int(digits[:-1] or 0), int(digits[-1])


def runs(arch: tuple[str, ...], ptx: tuple[str, ...], capability: str) -> bool:
    """Return whether code built for `arch` (and `ptx`) starts on a GPU: same major and no newer minor, or any older PTX."""
    have = (*number(capability), 0)[:2]
    binary = any((major, minor) <= have and major == have[0] for major, minor in map(capability_of, arch))
    return binary or any(capability_of(code) <= have for code in ptx)


def kernels(row: catalog.TorchVariant, arch: str | None) -> tuple[str, ...] | None:
    """Return the code inside a variant's wheel for this processor; `None` when it is not known."""
    if arch in ("aarch64", "arm64"):
        return row.arch_aarch64
    return row.arch


def has_kernels(row: catalog.TorchVariant, arch: str | None, gpu: Gpu) -> bool | None:
    """Return whether a wheel starts on a card; `None` when the wheel or the card is not known well enough."""
    if gpu.capability is None:
        return None
    inside = kernels(row, arch)
    if inside is not None:
        return runs(inside, row.ptx, gpu.capability)
    if row.min_arch and number(gpu.capability) < capability_of(row.min_arch):
        return False
    return None


def driver_floor(cuda: str) -> str | None:
    """Return the oldest driver that runs programs built with a CUDA line; `None` when we do not know the line."""
    row = stack.cudas().get(cuda)
    if row:
        return row.minor_driver
    return "440.33" if cuda == "10.2" else None


def driver_floors(case: Case) -> list[tuple[str, str, str]]:
    """Return what wants which driver: (wheel, oldest driver, source)."""
    wanted, found = case.answers.frameworks, list[tuple[str, str, str]]()
    release, cuda = torch_release(case), cuda_of(variant_name(case))
    floor = driver_floor(cuda) if cuda else None
    if release and floor:
        found.append((f"torch {release.version}+{variant_name(case)}", floor, MINOR))
    if "tensorflow" in wanted and wanted.get("variant") != "cpu":
        row = next((row for row in catalog.tensorflow_releases() if row.version == wanted["tensorflow"]), None)
        floor = driver_floor(f"{row.cuda_major}.0") if row and row.cuda_major else None
        if row and floor:
            found.append((f"tensorflow {row.version}", floor, row.source))
    plugin = next((one for one in catalog.jax_plugins() if one.name == jax_extra(case)), None)
    if "jax" in wanted and plugin and plugin.driver:
        found.append((f"jax[{plugin.name}] {wanted['jax']}", plugin.driver, plugin.source))
    found += [(f"{row.package} {row.version}", row.driver, row.source) for row in case.others if row.driver]
    return found


def jax_extra(case: Case) -> str | None:
    """Return the extra that JAX is installed with: `cuda12`, `cuda13`, or `None` for the CPU."""
    variant = case.answers.frameworks.get("variant")
    cuda = cuda_of(variant)
    if cuda:
        return f"cuda{number(cuda)[0]}"
    if variant is not None or not case.gpus:
        return None
    return "cuda13" if case.driver.version is None or at_least(case.driver.version, "580") else "cuda12"


def pythons_of(case: Case, name: str) -> tuple[tuple[str, ...], str] | None:
    """Return the Python lines a wanted framework has wheels for, and where that stands; `None` when not known."""
    wanted = case.answers.frameworks.get(name)
    arm = case.machine.os.arch in ("aarch64", "arm64")
    if name == "torch":
        release = torch_release(case)
        if release is None:
            return None
        return (release.pythons_aarch64 if arm and release.pythons_aarch64 is not None else release.pythons), release.source
    if name == "tensorflow":
        flow = next((row for row in catalog.tensorflow_releases() if row.version == wanted), None)
        return (flow.pythons, flow.source) if flow else None
    if name == "jax":
        jax = next((row for row in catalog.jax_releases() if row.version == wanted), None)
        return (jax.pythons, jax.source) if jax else None
    other = catalog.other(name, wanted or "")
    return (other.pythons, other.source) if other and other.pythons else None


def glibc_of(case: Case) -> str | None:
    """Return the C library's version: as seen, else as the distribution has it."""
    return case.machine.os.glibc or (case.distribution.glibc if case.distribution else None)


def glibc_floors(case: Case) -> list[tuple[str, str, str]]:
    """Return what wants which C library: (wheel, oldest glibc, source)."""
    wanted, floors = case.answers.frameworks, list[tuple[str, str, str]]()
    release, variant = torch_release(case), torch_variant(case)
    if release:
        need = (variant.glibc if variant else None) or release.glibc or release.glibc_by_tag
        floors.append((f"torch {release.version}", need, release.source))
    floors += [
        (f"tensorflow {row.version}", row.glibc, row.source)
        for row in catalog.tensorflow_releases()
        if wanted.get("tensorflow") == row.version
    ]
    floors += [(f"jax {row.version}", row.glibc, row.source) for row in catalog.jax_releases() if wanted.get("jax") == row.version]
    floors += [(f"{row.package} {row.version}", row.glibc, row.source) for row in case.others if row.glibc]
    return floors
