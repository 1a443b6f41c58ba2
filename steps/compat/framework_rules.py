"""The rules of the frameworks step: wheels against cards, driver, Python, system, and against each other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from steps.catalog import frameworks as catalog
from steps.catalog.load import remembered
from steps.catalog.versions import at_least, number
from steps.compat.case import Case
from steps.compat.wheels import (
    cuda_of,
    driver_floors,
    glibc_floors,
    glibc_of,
    has_kernels,
    kernels,
    pythons_of,
    torch_release,
    torch_variant,
    variant_name,
)
from steps.model.base import Param, Words, phrase
from steps.model.finding import Finding, Patch, Severity
from steps.model.machine import judged

Found = tuple[Finding, ...]
TESTED = "both wheels installed in one environment, 2026-11-30"
BIG_THREE = ("torch", "tensorflow", "jax")


def _finding(
    code: str,
    severity: Severity,
    because: tuple[Words, ...],
    source: str | None,
    subject: str,
    *,
    fix: Patch | None = None,
    **params: Param,
) -> Finding:
    """Return a finding of this step."""
    return Finding(code=code, severity=severity, step="frameworks", subject=subject, params=params, because=because, source=source, fix=fix)


@remembered
def _known(name: str) -> frozenset[str]:
    """Return the releases of one of the big three that we know."""
    if name == "torch":
        return frozenset(row.version for row in catalog.torch_releases())
    if name == "tensorflow":
        return frozenset(row.version for row in catalog.tensorflow_releases())
    return frozenset(row.version for row in catalog.jax_releases())


def unknown_framework(case: Case) -> Found:
    """A release that is not in the tables."""
    wanted = {name: case.answers.frameworks[name] for name in BIG_THREE if name in case.answers.frameworks}
    return tuple(
        _finding("unknown-version", "info", (), None, f"{name} {version}", what=f"{name} {version}")
        for name, version in wanted.items()
        if version.partition("+")[0] not in _known(name)
    )


def no_such_variant(case: Case) -> Found:
    """The release was never built for this variant."""
    release, name = torch_release(case), variant_name(case)
    if release is None or name is None or torch_variant(case):
        return ()
    names = ", ".join(row.name for row in release.variant)
    because = (phrase("frameworks.because.variants", version=release.version, variants=names),)
    return (
        _finding(
            "no-such-variant", "error", because, release.source, f"torch {release.version} × {name}", version=release.version, variant=name
        ),
    )


def wheel_lacks_gpu_kernels(case: Case) -> Found:
    """The wheel holds no code that starts on a card: it imports, then fails at the first kernel."""
    release, row = torch_release(case), torch_variant(case)
    if release is None or row is None or cuda_of(row.name) is None or not case.gpus:
        return ()
    kinds = case.kinds
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
    return (
        _finding(
            "kernels-unconfirmed",
            "info",
            (phrase("frameworks.because.unconfirmed", wheel=wheel),),
            row.source or release.source,
            wheel,
            wheel=wheel,
        ),
    )


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
        for wheel, floor, source in driver_floors(case)
        if not at_least(version, floor)
    )


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
            found.append(
                _finding("no-wheel-for-python", "error", because, known[1], subject, wheel=f"{name} {version}", python=python, lines=lines)
            )
    return tuple(found)


def no_wheel_for_platform(case: Case) -> Found:
    """There are no wheels for this processor or this C library."""
    arch, release = case.machine.os.arch, torch_release(case)
    found: list[Finding] = []
    if release and arch and arch not in ("x86_64", "amd64", "aarch64", "arm64"):
        because = (phrase("frameworks.because.platforms", wheel=f"torch {release.version}"),)
        found.append(
            _finding(
                "no-wheel-for-platform",
                "error",
                because,
                release.source,
                f"torch × {arch}",
                wheel=f"torch {release.version}",
                platform=arch,
            )
        )
    if release and case.machine.os.id == "alpine":
        because = (phrase("frameworks.because.musl"),)
        found.append(
            _finding(
                "no-wheel-for-platform", "error", because, release.source, "torch × musl", wheel=f"torch {release.version}", platform="musl"
            )
        )
    return tuple(found)


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
        found.append(
            _finding(
                "framework-discontinued",
                "error",
                (phrase("frameworks.because.withdrawn", name=name),),
                row.source,
                subject,
                fix=fix,
                name=name,
                instead=row.instead or "–",
            )
        )
    return tuple(found)


def numpy_too_new(case: Case) -> Found:
    """PyTorch up to 2.2 was built with NumPy 1; its metadata does not say so."""
    release, numpy = torch_release(case), case.answers.frameworks.get("numpy")
    if release is None or release.numpy is None or numpy is None or number(numpy) < (2,):
        return ()
    because = (phrase("frameworks.because.numpy", wheel=f"torch {release.version}"),)
    fix: Patch = {"frameworks.numpy": None}
    return (
        _finding(
            "numpy-too-new",
            "error",
            because,
            release.source,
            f"torch {release.version} × numpy {numpy}",
            fix=fix,
            wheel=f"torch {release.version}",
            numpy=numpy,
        ),
    )


def vision_audio_mismatch(case: Case) -> Found:
    """Torchvision and torchaudio are made for one PyTorch each."""
    release, found = torch_release(case), list[Finding]()
    if release is None:
        return ()
    for name, fitting in (("torchvision", release.torchvision), ("torchaudio", release.torchaudio)):
        have = case.answers.frameworks.get(name)
        if have and fitting and have.partition("+")[0] not in fitting:
            because = (phrase("frameworks.because.pair", wheel=f"torch {release.version}", name=name, versions=", ".join(fitting)),)
            fix: Patch = {f"frameworks.{name}": fitting[-1]}
            subject = f"torch {release.version} × {name} {have}"
            found.append(
                _finding(
                    "vision-audio-mismatch",
                    "error",
                    because,
                    release.source,
                    subject,
                    fix=fix,
                    name=name,
                    have=have,
                    fitting=fitting[-1],
                    torch=release.version,
                )
            )
    return tuple(found)


def vendors_own_stack(case: Case) -> Found:
    """Cards whose frameworks come from their maker, or that no build is known for: nothing is chosen for them here."""
    if case.vendor not in ("amd", "habana") or cuda_of(variant_name(case)) or (variant_name(case) or "").startswith("rocm"):
        return ()
    card = judged(case.machine)[0]
    name, source = (
        card.name or card.pci_id or "?",
        {"amd": "https://rocm.docs.amd.com/", "habana": "https://docs.habana.ai/en/latest/Support_Matrix/"},
    )
    because = (phrase("frameworks.because.card", name=name, gfx=card.gfx or card.architecture or "?"),)
    return (_finding("vendors-own-stack", "info", because, source[case.vendor], name, name=name),)


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
    vendors_own_stack,
    unknown_framework,
)


def wheel_findings(case: Case) -> Found:
    """Return what all rules about single wheels find."""
    return tuple(chain.from_iterable(rule(case) for rule in RULES))
