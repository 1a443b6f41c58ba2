"""What the wanted wheels hold and ask for: the facts that the rules about them rest on."""

from __future__ import annotations

import re
from functools import cache

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.load import remembered
from steps.catalog.versions import at_least, number
from steps.compat.case import Case, Gpu
from steps.compat.findings import MINOR
from steps.model.machine import judged


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
    flow = case.tensorflow
    if flow and flow.cuda_major and wanted.get("variant") != "cpu" and (floor := driver_floor(f"{flow.cuda_major}.0")):
        found.append((f"tensorflow {flow.version}", floor, flow.source))
    plugin = jax_plugin(case)
    if plugin and plugin.driver:
        found.append((f"jax[{plugin.name}] {wanted['jax']}", plugin.driver, plugin.source))
    found += [(f"{row.package} {row.version}", row.driver, row.source) for row in case.others if row.driver]
    return found


def jax_extra(case: Case) -> str | None:
    """Return the extra that JAX is installed with: `cuda12`, `cuda13`, or `None` for the CPU.

    Without a variant it is the newest that the release has, the driver bears and all cards are new enough for.
    """
    variant = case.answers.frameworks.get("variant")
    cuda = cuda_of(variant)
    if cuda:
        return f"cuda{number(cuda)[0]}"
    if variant is not None or not case.gpus:
        return None
    newest = next(one for one in catalog.jax_plugins() if one.name == "cuda13")
    capabilities = [number(gpu.capability) for gpu in case.gpus if gpu.capability]
    built = case.jax is None or case.jax.cuda13
    driven = case.driver.version is None or newest.driver is None or at_least(case.driver.version, newest.driver)
    fits = built and driven and all(have >= number(newest.cc_min or "") for have in capabilities)
    return "cuda13" if fits else "cuda12"


def jax_plugin(case: Case) -> catalog.JaxPlugin | None:
    """Return the row of the plugin that JAX would be installed with; `None` without one, or when JAX is not wanted."""
    extra = jax_extra(case) if "jax" in case.answers.frameworks else None
    return next((one for one in catalog.jax_plugins() if one.name == extra), None) if extra else None


def capability_floors(case: Case) -> list[tuple[str, str, str]]:
    """Return which package wants which compute capability: (wheel, oldest capability, source)."""
    found = [(f"{row.package} {row.version}", row.compute_capability, row.source) for row in case.others if row.compute_capability]
    plugin = jax_plugin(case)
    if plugin and plugin.cc_min:
        found.append((f"jax[{plugin.name}] {case.answers.frameworks['jax']}", plugin.cc_min, plugin.source))
    release, brought = torch_release(case), brought_cudnn(case)
    if release and brought and brought.cc_min:
        found.append((f"cuDNN {brought.version} (torch {release.version}+{variant_name(case)})", brought.cc_min, brought.source))
    return found


def brings_cuda(case: Case) -> bool:
    """Return whether the wanted PyTorch comes with a CUDA of its own."""
    return "torch" in case.answers.frameworks and (case.variant is None or cuda_of(case.variant) is not None)


@remembered
def major_of(driver: str | None) -> int | None:
    """Return the CUDA major whose oldest driver branch this is: a package that asks for it was built for that major."""
    floors = {number(row.minor_driver)[0]: number(row.version)[0] for row in stack.cudas().values()}
    return floors.get(number(driver)[0]) if driver and number(driver) else None


def brought_cudnn(case: Case) -> stack.Cudnn | None:
    """Return the row of the cuDNN that the wanted PyTorch wheel brings along; `None` when it is not known."""
    variant, cuda = torch_variant(case), cuda_of(variant_name(case))
    if variant is None or variant.cudnn is None or cuda is None:
        return None
    return next((row for row in stack.cudnns() if (row.version, row.cuda_major) == (variant.cudnn, number(cuda)[0])), None)


LINES = tuple(f"3.{minor}" for minor in range(7, 17))
"""The Python lines that a bound in a package's metadata is read against."""


@cache
def allowed(bounds: str) -> tuple[str, ...]:
    """Return the Python lines that `requires_python` leaves; an exclusion of one patch release excludes no line."""
    left = list(LINES)
    for operator, bound in re.findall(r"(>=|<=|<|>|==|!=|~=)\s*([\d.]+)", bounds):
        need = number(bound.rstrip("."))[:2]
        keeps = {
            ">=": lambda line, need=need: number(line) >= need,
            "~=": lambda line, need=need: number(line) >= need,
            "<": lambda line, need=need: number(line) < need,
            "<=": lambda line, need=need: number(line) <= need,
            ">": lambda line, need=need: number(line) >= need,
            "==": lambda line, need=need: number(line)[: len(need)] == need,
        }.get(operator)
        left = [line for line in left if keeps(line)] if keeps else left
    return tuple(left)


def pythons_for(case: Case, release: catalog.TorchRelease) -> tuple[str, ...]:
    """Return the Python lines that a release of PyTorch has wheels for on this processor."""
    return release.pythons_aarch64 if case.arm and release.pythons_aarch64 is not None else release.pythons


def pythons_of(case: Case, name: str) -> tuple[tuple[str, ...], str] | None:
    """Return the Python lines a wanted framework has wheels for, and where that stands; `None` when not known."""
    wanted = case.answers.frameworks.get(name)
    if name == "torch":
        release = torch_release(case)
        if release is None:
            return None
        return pythons_for(case, release), release.source
    if name == "tensorflow":
        return (case.tensorflow.pythons, case.tensorflow.source) if case.tensorflow else None
    if name == "jax":
        return (case.jax.pythons, case.jax.source) if case.jax else None
    other = catalog.other(name, wanted or "")
    if other is None:
        return None
    lines = other.pythons or (allowed(other.requires_python) if other.requires_python else ())
    return (lines, other.source) if lines else None


def glibc_of(case: Case) -> str | None:
    """Return the C library's version: as seen, else as the distribution has it."""
    return case.machine.os.glibc or (case.distribution.glibc if case.distribution else None)


def glibc_floors(case: Case) -> list[tuple[str, str, str]]:
    """Return what wants which C library: (wheel, oldest glibc, source)."""
    floors: list[tuple[str, str, str]] = []
    release, variant = torch_release(case), torch_variant(case)
    if release:
        need = (variant.glibc if variant else None) or release.glibc or release.glibc_by_tag
        floors.append((f"torch {release.version}", need, release.source))
    if case.tensorflow:
        floors.append((f"tensorflow {case.tensorflow.version}", case.tensorflow.glibc, case.tensorflow.source))
    if case.jax:
        floors.append((f"jax {case.jax.version}", case.jax.glibc, case.jax.source))
    floors += [(f"{row.package} {row.version}", row.glibc, row.source) for row in case.others if row.glibc]
    return floors


def rocm_variants(case: Case, release: catalog.TorchRelease) -> list[str]:
    """Return the ROCm variants built for the cards, those that fit the installed ROCm first."""
    gfx = {card.gfx for card in judged(case.machine) if card.gfx}
    series = next((row for row in catalog.rocm_torch() if row.series == ".".join(map(str, number(release.version)[:2]))), None)
    if series is None or not gfx or not (gfx <= set(series.gfx)):
        return []
    built = {row.rocm for row in catalog.rocm_wheels() if gfx <= set(row.gfx)}
    names = [row.name for row in release.variant if row.name.startswith("rocm") and row.name.removeprefix("rocm") in built]
    return sorted(names, key=lambda name: number(name.removeprefix("rocm")), reverse=True)
