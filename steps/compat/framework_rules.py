"""The rules of the frameworks step: wheels against cards, driver, Python, system, and against each other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from steps.catalog import frameworks as catalog
from steps.catalog.load import remembered
from steps.catalog.versions import at_least, number
from steps.compat import package_rules
from steps.compat.case import Case
from steps.compat.findings import framework_finding, named
from steps.compat.forward import library_version
from steps.compat.wheels import (
    capability_floors,
    cuda_of,
    driver_floors,
    glibc_floors,
    glibc_of,
    has_kernels,
    jax_extra,
    kernels,
    major_of,
    pythons_of,
    torch_release,
    torch_variant,
    variant_name,
)
from steps.model.base import Words, phrase
from steps.model.finding import Finding, Severity

Found = tuple[Finding, ...]
TESTED = "both wheels installed in one environment, 2026-11-30"
FIRST_CUDA_ON_ARM = (2, 4)
CUDA_ON_ARM = "https://github.com/pytorch/builder/issues/1971"
"""Which release of PyTorch was the first with a CUDA wheel for aarch64, and where that stands."""


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
    wanted = {name: case.answers.frameworks[name] for name in catalog.BIG_THREE if name in case.answers.frameworks}
    return tuple(
        framework_finding("unknown-version", "info", (named(f"{name} {version}"),), None, f"{name} {version}", what=f"{name} {version}")
        for name, version in wanted.items()
        if version.partition("+")[0] not in _known(name)
    )


def unknown_package(case: Case) -> Found:
    """A name that is not in the tables: an index may have something of that name, and we know nothing of it."""
    names = catalog.package_names()
    return tuple(
        framework_finding("unknown-package", "info", (named(name),), None, name, package=name)
        for name in case.answers.frameworks
        if name != "variant" and name.lower().replace("_", "-") not in names
    )


def variant_unused(case: Case) -> Found:
    """A variant where nothing is wanted that comes in variants."""
    wanted = case.answers.frameworks
    if "variant" not in wanted or any(name in wanted for name in (*catalog.BIG_THREE, "torchvision", "torchaudio")):
        return ()
    return (
        framework_finding(
            "variant-unused", "warning", (named(f"variant {wanted['variant']}"),), None, wanted["variant"], variant=wanted["variant"]
        ),
    )


def no_such_variant(case: Case) -> Found:
    """The release was never built for this variant."""
    release, name = torch_release(case), variant_name(case)
    if release and name and torch_variant(case) is None:
        names = ", ".join(row.name for row in release.variant)
        because = (phrase("frameworks.because.variants", wheel=f"torch {release.version}", variants=names),)
        subject = f"torch {release.version} × {name}"
        return (
            framework_finding("no-such-variant", "error", because, release.source, subject, wheel=f"torch {release.version}", variant=name),
        )
    return _no_such_extra(case)


def _no_such_extra(case: Case) -> Found:
    """JAX has no plugin for the CUDA of the variant: pip would warn and install the one that computes on the processor."""
    extra = jax_extra(case)
    if case.jax is None or extra is None:
        return ()
    built = [name for name, there in (("cuda12", case.jax.cuda12), ("cuda13", case.jax.cuda13)) if there]
    if extra in built:
        return ()
    wheel = f"jax {case.jax.version}"
    because = (phrase("frameworks.because.variants", wheel=wheel, variants=", ".join(built) or "CPU"),)
    return (framework_finding("no-such-variant", "error", because, case.jax.source, f"{wheel} × {extra}", wheel=wheel, variant=extra),)


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
        framework_finding(
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


def package_lacks_gpu_kernels(case: Case) -> Found:
    """A package beside PyTorch is made for newer cards."""
    found: list[Finding] = []
    for wheel, floor, source in capability_floors(case):
        lacking = [gpu for gpu in case.kinds if gpu.capability and number(gpu.capability) < number(floor)]
        if lacking:
            gpu = lacking[0]
            found.append(
                framework_finding(
                    "wheel-lacks-gpu-kernels",
                    "error" if len(lacking) == len(case.kinds) else "warning",
                    (gpu.fact, gpu.kin, phrase("frameworks.because.capability", wheel=wheel, capability=floor)),
                    source,
                    f"{wheel} × {gpu.card.chip or gpu.name}",
                    wheel=wheel,
                    name=gpu.name,
                    capability=gpu.capability or "?",
                )
            )
    return tuple(found)


def package_past_the_card(case: Case) -> Found:
    """A package built for a CUDA major that no longer compiles for a card has no code for it, and cannot make any there."""
    found: list[Finding] = []
    for row in case.others:
        major = major_of(row.driver)
        lacking = [gpu for gpu in case.kinds if major and gpu.row and gpu.row.last_cuda and number(gpu.row.last_cuda)[0] < major]
        if row.compute_capability is None and lacking:
            gpu, wheel = lacking[0], f"{row.package} {row.version}"
            ended = phrase("toolkit.because.last-cuda", capability=gpu.capability or "?", cuda=(gpu.row and gpu.row.last_cuda) or "?")
            because = (gpu.fact, gpu.kin, ended, phrase("frameworks.because.built-for", wheel=wheel, platform=f"CUDA {major}"))
            severity: Severity = "error" if len(lacking) == len(case.kinds) else "warning"
            subject = f"{wheel} × {gpu.card.chip or gpu.name}"
            need = gpu.capability or "?"
            lacks = "wheel-lacks-gpu-kernels"
            found.append(framework_finding(lacks, severity, because, row.source, subject, wheel=wheel, name=gpu.name, capability=need))
    return tuple(found)


def tensorflow_unconfirmed(case: Case) -> Found:
    """Nobody has looked which cards TensorFlow's wheel has code for."""
    row = case.tensorflow
    if row is None or row.cuda_major is None or not case.gpus or case.answers.frameworks.get("variant") == "cpu":
        return ()
    wheel = f"tensorflow {row.version}"
    because = (phrase("frameworks.because.unconfirmed", wheel=wheel),)
    return (framework_finding("kernels-unconfirmed", "info", because, row.source, wheel, wheel=wheel),)


def kernels_unconfirmed(case: Case) -> Found:
    """Nobody has looked which code is inside the wheel."""
    release, row = torch_release(case), torch_variant(case)
    if release is None or row is None or cuda_of(row.name) is None or not case.gpus or kernels(row, case.machine.os.arch) is not None:
        return ()
    if wheel_lacks_gpu_kernels(case):
        return ()
    wheel = f"torch {release.version}+{row.name}"
    return (
        framework_finding(
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
    version = library_version(case)
    if version is None or not case.gpus:
        return ()
    driver = phrase("toolkit.because.driver", version=case.driver.version or "?")
    return tuple(
        framework_finding(
            "driver-too-old-for-wheel",
            "error",
            (driver, phrase("frameworks.because.floor", wheel=wheel, version=floor)),
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
                framework_finding(
                    "no-wheel-for-python", "error", because, known[1], subject, wheel=f"{name} {version}", python=python, lines=lines
                )
            )
    return tuple(found)


def no_wheel_for_platform(case: Case) -> Found:
    """There are no wheels for this processor or this C library."""
    arch, found = case.machine.os.arch, list[Finding]()
    for wheel, arm, source in _compiled(case):
        if arch and arch not in ("x86_64", "amd64") and not (case.arm and arm):
            because: tuple[Words, ...] = (phrase("frameworks.because.platforms" if arm else "frameworks.because.platform", wheel=wheel),)
            platform = arch
        elif case.machine.os.id == "alpine":
            because, platform = (phrase("frameworks.because.musl"),), "musl"
        else:
            continue
        subject = f"{wheel.partition(' ')[0]} × {platform}"
        found.append(framework_finding("no-wheel-for-platform", "error", because, source, subject, wheel=wheel, platform=platform))
    return tuple(found)


def _compiled(case: Case) -> list[tuple[str, bool, str]]:
    """Return the wanted wheels that are made for single platforms: (wheel, whether there is one for aarch64, source)."""
    release, found = torch_release(case), list[tuple[str, bool, str]]()
    if release:
        arm = cuda_of(variant_name(case)) is None or number(release.version) >= FIRST_CUDA_ON_ARM
        found.append((f"torch {release.version}", arm, release.source if arm else CUDA_ON_ARM))
    if case.tensorflow:
        found.append((f"tensorflow {case.tensorflow.version}", case.tensorflow.aarch64, case.tensorflow.source))
    if case.jax:
        found.append((f"jax {case.jax.version}", True, case.jax.source))
    return found


def glibc_too_old(case: Case) -> Found:
    """The wheel wants a newer C library than this system has."""
    have = glibc_of(case)
    if have is None:
        return ()
    return tuple(
        framework_finding(
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


RULES: tuple[Callable[[Case], Found], ...] = (
    no_such_variant,
    wheel_lacks_gpu_kernels,
    package_lacks_gpu_kernels,
    package_past_the_card,
    driver_too_old_for_wheel,
    no_wheel_for_python,
    no_wheel_for_platform,
    glibc_too_old,
    *package_rules.RULES,
    kernels_unconfirmed,
    tensorflow_unconfirmed,
    unknown_framework,
    unknown_package,
    variant_unused,
)


def wheel_findings(case: Case) -> Found:
    """Return what all rules about single wheels find."""
    return tuple(chain.from_iterable(rule(case) for rule in RULES))


def refused(case: Case, name: str) -> bool:
    """Return whether a rule about single wheels forbids a framework; the rest of the rules are not asked."""
    return any(finding.severity == "error" and name in finding.subject for rule in RULES for finding in rule(case))
