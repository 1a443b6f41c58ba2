"""The rules of the frameworks step: wheels against cards, driver, Python, system, and against each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import chain

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import at_least, number
from steps.compat.case import Case, Gpu
from steps.compat.driver_rules import MINOR
from steps.model.base import Param, Words, phrase
from steps.model.finding import Finding, Patch, Severity

Found = tuple[Finding, ...]
TESTED = "both wheels installed in one environment, 2026-11-30"
BIG_THREE = ("torch", "tensorflow", "jax")


def _finding(
    code: str, severity: Severity, because: tuple[Words, ...], source: str | None, subject: str, fix: Patch | None = None, **params: Param
) -> Finding:
    """Return a finding of this step."""
    return Finding(code=code, severity=severity, step="frameworks", subject=subject, params=params, because=because, source=source, fix=fix)


def torch_release(case: Case) -> catalog.TorchRelease | None:
    """Return the row of the wanted PyTorch."""
    wanted = case.answers.frameworks.get("torch")
    return catalog.torch_release(wanted) if wanted else None


def variant_name(case: Case) -> str | None:
    """Return the wanted variant; without one it is the package index's own."""
    release = torch_release(case)
    return case.answers.frameworks.get("variant") or (release.default_variant if release else None)


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


def unknown_framework(case: Case) -> Found:
    """A release that is not in the tables."""
    found: list[Finding] = []
    known: Mapping[str, set[str]] = {
        "torch": {row.version for row in catalog.torch_releases()},
        "tensorflow": {row.version for row in catalog.tensorflow_releases()},
        "jax": {row.version for row in catalog.jax_releases()},
    }
    for name in BIG_THREE:
        wanted = case.answers.frameworks.get(name)
        if wanted and wanted.partition("+")[0] not in known[name]:
            found.append(_finding("unknown-version", "info", (), None, f"{name} {wanted}", what=f"{name} {wanted}"))
    return tuple(found)


def no_such_variant(case: Case) -> Found:
    """The release was never built for this variant."""
    release, name = torch_release(case), variant_name(case)
    if release is None or name is None or torch_variant(case):
        return ()
    names = ", ".join(row.name for row in release.variant)
    because = (phrase("frameworks.because.variants", version=release.version, variants=names),)
    return (_finding("no-such-variant", "error", because, release.source, f"torch {release.version} × {name}", version=release.version, variant=name),)


def wheel_lacks_gpu_kernels(case: Case) -> Found:
    """The wheel holds no code that starts on a card: it imports, then fails at the first kernel."""
    release, row = torch_release(case), torch_variant(case)
    if release is None or row is None or cuda_of(row.name) is None or not case.gpus:
        return ()
    kinds = list({gpu.capability: gpu for gpu in case.gpus}.values())
    lacking = [gpu for gpu in kinds if has_kernels(row, case.machine.os.arch, gpu) is False]
    if not lacking:
        return ()
    severity: Severity = "error" if len(lacking) == len(kinds) else "warning"
    gpu = lacking[0]
    inside = ", ".join(kernels(row, case.machine.os.arch) or ()) or f"≥ {row.min_arch}"
    because = (gpu.fact, gpu.kin, phrase("frameworks.because.kernels", wheel=f"torch {release.version}+{row.name}", arch=inside))
    return (
        _finding(
            "wheel-lacks-gpu-kernels",
            severity,
            because,
            row.source or release.source,
            f"torch {release.version}+{row.name} × {gpu.card.chip or gpu.name}",
            wheel=f"torch {release.version}+{row.name}",
            name=gpu.name,
            capability=gpu.capability or "?",
        ),
    )


def kernels_unconfirmed(case: Case) -> Found:
    """Nobody has looked which code is inside the wheel."""
    release, row = torch_release(case), torch_variant(case)
    if release is None or row is None or cuda_of(row.name) is None or not case.gpus or kernels(row, case.machine.os.arch) is not None:
        return ()
    if wheel_lacks_gpu_kernels(case):
        return ()
    wheel = f"torch {release.version}+{row.name}"
    return (_finding("kernels-unconfirmed", "info", (phrase("frameworks.because.unconfirmed", wheel=wheel),), row.source or release.source, wheel, wheel=wheel),)


def _needs_cuda(case: Case) -> list[tuple[str, str, str]]:
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
    for other in catalog.others():
        if other.driver and wanted.get(other.package) == other.version:
            found.append((f"{other.package} {other.version}", other.driver, other.source))
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


def driver_too_old_for_wheel(case: Case) -> Found:
    """The driver is older than the wheel's CUDA major allows."""
    version = case.driver.version
    if version is None or not case.gpus:
        return ()
    return tuple(
        _finding(
            "driver-too-old-for-wheel",
            "error",
            (phrase("toolkit.because.driver", version=version), phrase("frameworks.because.floor", wheel=wheel, version=floor)),
            source,
            f"driver {case.driver.branch} × {wheel}",
            branch=case.driver.branch or "?",
            wheel=wheel,
            floor=floor,
        )
        for wheel, floor, source in _needs_cuda(case)
        if not at_least(version, floor)
    )


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
    other = next((row for row in catalog.others() if row.package == name and row.version == wanted), None)
    return (other.pythons, other.source) if other and other.pythons else None


def no_wheel_for_python(case: Case) -> Found:
    """The release has no wheel for this Python."""
    python, found = case.answers.environment.python, list[Finding]()
    if python is None:
        return ()
    for name, version in case.answers.frameworks.items():
        known = pythons_of(case, name) if name != "variant" else None
        if known and known[0] and python not in known[0]:
            lines = ", ".join(known[0])
            because = (phrase("frameworks.because.pythons", wheel=f"{name} {version}", lines=lines),)
            subject = f"{name} {version} × Python {python}"
            found.append(_finding("no-wheel-for-python", "error", because, known[1], subject, wheel=f"{name} {version}", python=python, lines=lines))
    return tuple(found)


def no_wheel_for_platform(case: Case) -> Found:
    """There are no wheels for this processor or this C library."""
    arch, release = case.machine.os.arch, torch_release(case)
    found: list[Finding] = []
    if release and arch and arch not in ("x86_64", "amd64", "aarch64", "arm64"):
        because = (phrase("frameworks.because.platforms", wheel=f"torch {release.version}"),)
        found.append(_finding("no-wheel-for-platform", "error", because, release.source, f"torch × {arch}", wheel=f"torch {release.version}", platform=arch))
    if release and case.machine.os.id == "alpine":
        because = (phrase("frameworks.because.musl"),)
        found.append(_finding("no-wheel-for-platform", "error", because, release.source, "torch × musl", wheel=f"torch {release.version}", platform="musl"))
    return tuple(found)


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
    floors += [(f"tensorflow {row.version}", row.glibc, row.source) for row in catalog.tensorflow_releases() if wanted.get("tensorflow") == row.version]
    floors += [(f"jax {row.version}", row.glibc, row.source) for row in catalog.jax_releases() if wanted.get("jax") == row.version]
    floors += [(f"{row.package} {row.version}", row.glibc, row.source) for row in catalog.others() if row.glibc and wanted.get(row.package) == row.version]
    return floors


def glibc_too_old(case: Case) -> Found:
    """The wheel wants a newer C library than this system has."""
    have = glibc_of(case)
    if have is None:
        return ()
    return tuple(
        _finding(
            "glibc-too-old",
            "error",
            (phrase("frameworks.because.glibc", version=have), phrase("frameworks.because.glibc-floor", wheel=wheel, version=need)),
            source,
            f"{wheel} × glibc {have}",
            wheel=wheel,
            glibc=have,
            floor=need,
        )
        for wheel, need, source in glibc_floors(case)
        if not at_least(have, need)
    )


def framework_discontinued(case: Case) -> Found:
    """The name no longer installs."""
    found: list[Finding] = []
    for name, version in case.answers.frameworks.items():
        row = catalog.discontinued().get(name)
        if row is None:
            continue
        fix: Patch | None = None
        if row.instead == "tensorflow":
            fix = {f"frameworks.{name}": None, "frameworks.tensorflow": catalog.tensorflow_releases()[0].version}
        subject = f"{name} {version}"
        found.append(_finding("framework-discontinued", "error", (phrase("frameworks.because.withdrawn", name=name),), row.source, subject, fix, name=name, instead=row.instead or "–"))
    return tuple(found)


def numpy_too_new(case: Case) -> Found:
    """PyTorch up to 2.2 was built with NumPy 1; its metadata does not say so."""
    release, numpy = torch_release(case), case.answers.frameworks.get("numpy")
    if release is None or release.numpy is None or numpy is None or number(numpy) < (2,):
        return ()
    because = (phrase("frameworks.because.numpy", wheel=f"torch {release.version}"),)
    fix: Patch = {"frameworks.numpy": None}
    return (_finding("numpy-too-new", "error", because, release.source, f"torch {release.version} × numpy {numpy}", fix, wheel=f"torch {release.version}", numpy=numpy),)


def vision_audio_mismatch(case: Case) -> Found:
    """torchvision and torchaudio are made for one PyTorch each."""
    release, found = torch_release(case), list[Finding]()
    if release is None:
        return ()
    for name, fitting in (("torchvision", release.torchvision), ("torchaudio", release.torchaudio)):
        have = case.answers.frameworks.get(name)
        if have and fitting and have.partition("+")[0] not in fitting:
            because = (phrase("frameworks.because.pair", wheel=f"torch {release.version}", name=name, versions=", ".join(fitting)),)
            fix: Patch = {f"frameworks.{name}": fitting[-1]}
            subject = f"torch {release.version} × {name} {have}"
            found.append(_finding("vision-audio-mismatch", "error", because, release.source, subject, fix, name=name, have=have, fitting=fitting[-1], torch=release.version))
    return tuple(found)


RULES: tuple[Callable[[Case], Found], ...] = (
    framework_discontinued,
    no_such_variant,
    wheel_lacks_gpu_kernels,
    driver_too_old_for_wheel,
    no_wheel_for_python,
    no_wheel_for_platform,
    glibc_too_old,
    numpy_too_new,
    vision_audio_mismatch,
    kernels_unconfirmed,
    unknown_framework,
)


def wheel_findings(case: Case) -> Found:
    """Return what all rules about single wheels find."""
    return tuple(chain.from_iterable(rule(case) for rule in RULES))
