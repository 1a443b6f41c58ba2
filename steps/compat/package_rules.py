"""The rules about packages by name: withdrawn ones, pairs, NumPy's ABI, channels, and what shadows a wheel's own libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from steps.catalog import frameworks as catalog
from steps.catalog.versions import at_least, number
from steps.compat.case import Case
from steps.compat.findings import framework_finding
from steps.compat.wheels import cuda_of, rocm_variants, torch_release, variant_name
from steps.model.base import phrase
from steps.model.finding import Finding, Patch
from steps.model.hardware import Accelerator
from steps.model.machine import judged

if TYPE_CHECKING:
    from packaging.requirements import Requirement

Found = tuple[Finding, ...]
CONDA = ("conda", "mamba", "micromamba", "pixi")
_LOADER = "ld.so(8): LD_LIBRARY_PATH is searched before a library's RUNPATH"
_CUDA_FOLDER = re.compile(r"(^|/)(cuda|cudnn|nccl|tensorrt)[^/]*(/|$)", re.IGNORECASE)


def framework_discontinued(case: Case) -> Found:
    """The name no longer installs."""
    found: list[Finding] = []
    for name, version in case.answers.frameworks.items():
        row = catalog.discontinued().get(name)
        if row is None:
            continue
        found.append(
            framework_finding(
                "framework-discontinued",
                "error",
                (phrase("frameworks.because.withdrawn", name=name),),
                row.source,
                f"{name} {version}",
                name=name,
                instead=row.instead or "–",
            )
        )
    return tuple(found)


def numpy_too_new(case: Case) -> Found:
    """A framework was built for an older NumPy; PyTorch up to 2.2 does not even say so in its metadata."""
    return tuple(
        framework_finding(
            "numpy-too-new",
            "error",
            (phrase("frameworks.because.numpy" if wheel.startswith("torch ") else "frameworks.because.wants", **_wants(wheel, need)),),
            source,
            f"{wheel} × numpy {numpy}",
            wheel=wheel,
            numpy=numpy,
        )
        for wheel, need, source, numpy in _numpy(case)
        if not _met(need, numpy) and _above(need, numpy)
    )


def numpy_too_old(case: Case) -> Found:
    """A framework asks for a newer NumPy."""
    return tuple(
        framework_finding(
            "numpy-too-old",
            "error",
            (phrase("frameworks.because.wants", **_wants(wheel, need)),),
            source,
            f"{wheel} × numpy {numpy}",
            wheel=wheel,
            numpy=numpy,
        )
        for wheel, need, source, numpy in _numpy(case)
        if not _met(need, numpy) and not _above(need, numpy)
    )


def _wants(wheel: str, need: str) -> dict[str, str]:
    """Return the parameters of the fact that a wheel wants something."""
    return {"wheel": wheel, "name": wheel, "spec": need.partition(";")[0].strip()}


def _numpy(case: Case) -> Iterator[tuple[str, str, str, str]]:
    """Yield what wants which NumPy where one is chosen: (wheel, requirement, source, the chosen NumPy)."""
    numpy, release = case.answers.frameworks.get("numpy"), torch_release(case)
    if numpy is None or not number(numpy):
        return
    if release and release.numpy:
        yield f"torch {release.version}", release.numpy, release.source, numpy
    for name, row in (("tensorflow", case.tensorflow), ("jax", case.jax)):
        for need in row.numpy if row else ():
            if row and _applies(need, case.answers.environment.python):
                yield f"{name} {row.version}", need, row.source, numpy
    for other in case.others:
        for need in other.requires:
            if re.match(r"numpy\b(?!-)", need) and _applies(need, case.answers.environment.python):
                yield f"{other.package} {other.version}", need, other.source, numpy


@cache
def _requirement(text: str) -> Requirement:
    """Return a requirement of the tables."""
    from packaging.requirements import Requirement  # 20 ms, needed only where a NumPy is chosen

    return Requirement(text)


@cache
def _applies(need: str, python: str | None) -> bool:
    """Return whether a requirement holds for a Python; without one, only what holds for all does."""
    marker = _requirement(need).marker
    if marker is None:
        return True
    return python is not None and marker.evaluate({"python_version": python, "python_full_version": f"{python}.0"})


@cache
def _met(need: str, numpy: str) -> bool:
    """Return whether a NumPy meets a requirement."""
    return _requirement(need).specifier.contains(numpy, prereleases=True)


@cache
def _above(need: str, numpy: str) -> bool:
    """Return whether a NumPy that does not fit is past the upper bound."""
    return any(spec.operator in ("<", "<=") and not spec.contains(numpy, prereleases=True) for spec in _requirement(need).specifier)


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
            found.append(
                framework_finding(
                    "vision-audio-mismatch",
                    "error",
                    because,
                    release.source,
                    f"torch {release.version} × {name} {have}",
                    fix=fix,
                    name=name,
                    have=have,
                    fitting=fitting[-1],
                    torch=release.version,
                )
            )
    return tuple(found)


def channel_discontinued(case: Case) -> Found:
    """The conda channel of PyTorch got no release after 2.5.1."""
    release, row = torch_release(case), next((row for row in catalog.tools() if row.kind == "channel"), None)
    manager = case.answers.environment.manager
    if manager not in CONDA or release is None or row is None or row.last is None or at_least(row.last, release.version):
        return ()
    because = (phrase("frameworks.because.channel", channel=row.name, version=row.last),)
    fix: Patch = {"environment.manager": "uv"}
    wheel = f"torch {release.version}"
    return (
        framework_finding(
            "channel-discontinued", "warning", because, row.source, f"{wheel} × {manager}", fix=fix, wheel=wheel, last=row.last
        ),
    )


def channel_terms(case: Case) -> Found:
    """Anaconda's own channels, which a plain conda takes packages from, cost larger organisations money."""
    row = next((row for row in catalog.tools() if row.name == "miniconda"), None)
    if case.answers.environment.manager != "conda" or row is None:
        return ()
    because = (phrase("frameworks.because.terms"),)
    fix: Patch = {"environment.manager": "uv"}
    return (framework_finding("channel-terms", "info", because, row.source, "conda", fix=fix),)


def library_path_shadows_wheel(case: Case) -> Found:
    """LD_LIBRARY_PATH names a system CUDA: its libraries are loaded in place of the ones that the wheel brings."""
    shadowed = _own_libraries(case)
    if not shadowed or case.machine.library_path is None:
        return ()
    kits = {kit.path.rstrip("/") for kit in case.machine.toolkits if kit.path}
    folders = [one for one in case.machine.library_path if _CUDA_FOLDER.search(one) or any(one.startswith(kit) for kit in kits)]
    if not folders:
        return ()
    because = (
        phrase("frameworks.because.library-path", folders=":".join(folders)),
        phrase("frameworks.because.own-libraries", wheel=shadowed),
    )
    return (framework_finding("library-path-shadows-wheel", "warning", because, _LOADER, folders[0], folder=folders[0], wheel=shadowed),)


def library_path_unknown(case: Case) -> Found:
    """A system CUDA is here, and nobody could see whether LD_LIBRARY_PATH names it."""
    shadowed = _own_libraries(case)
    if not shadowed or case.machine.library_path is not None or not case.machine.toolkits:
        return ()
    because = (phrase("frameworks.because.toolkit-here", version=case.machine.toolkits[0].version or "?"),)
    return (framework_finding("library-path-unknown", "info", because, _LOADER, "LD_LIBRARY_PATH", wheel=shadowed),)


def _own_libraries(case: Case) -> str | None:
    """Return a wanted wheel that brings CUDA libraries of its own; `None` when there is none."""
    wanted, release = case.answers.frameworks, torch_release(case)
    if release and cuda_of(variant_name(case)):
        return f"torch {release.version}"
    name = next((name for name in ("tensorflow", "jax") if name in wanted), None) if case.gpus else None
    return f"{name} {wanted[name]}" if name and wanted.get("variant") != "cpu" else None


_MODULES = {"amd": "amdgpu", "habana": "habanalabs"}


def card_not_driven(case: Case) -> Found:
    """Cards of another maker than NVIDIA whose kernel module does not hold them: whatever is installed finds no card."""
    module = _MODULES.get(case.vendor or "")
    if module is None or case.machine.driver.state not in ("absent", "not-loaded", "failing"):
        return ()
    idle = next((card for card in judged(case.machine) if card.kernel_driver != module), None)
    if idle is None:
        return ()
    name = idle.name or idle.pci_id or "?"
    because = (phrase("driver.because.held-by", name=name, driver=idle.kernel_driver),) if idle.kernel_driver else ()
    return (framework_finding("card-not-driven", "warning", because, _MAKERS[case.vendor or ""], name, name=name, driver=module),)


_MAKERS = {
    "amd": "https://rocm.docs.amd.com/",
    "habana": "https://docs.habana.ai/en/latest/Support_Matrix/",
    "intel": "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html",
    "nvidia": "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/",
}
"""Where each maker says what its cards want; NVIDIA's of a system on a chip want other builds than its cards."""


def vendors_own_stack(case: Case) -> Found:
    """Cards whose frameworks come from their maker, or that no build is known for: nothing is chosen for them here."""
    card = _left_to_its_maker(case)
    if card is None or cuda_of(variant_name(case)) or (variant_name(case) or "").startswith("rocm"):
        return ()
    if case.vendor == "amd" and any(rocm_variants(case, release) for release in catalog.torch_releases()):
        # There are builds for it, whatever is wanted so far: they are what is recommended.
        return ()
    name = card.name or card.pci_id or "?"
    because = (phrase("frameworks.because.card", name=name, gfx=card.gfx or card.architecture or "?"),)
    return (framework_finding("vendors-own-stack", "info", because, _MAKERS[card.vendor], name, name=name),)


def _left_to_its_maker(case: Case) -> Accelerator | None:
    """Return the card that our builds may not be for: AMD's and Habana's, else Intel's, else NVIDIA's that is a part of the processor."""
    if case.vendor is not None:
        return judged(case.machine)[0] if case.vendor in ("amd", "habana") else None
    others = (card for card in case.machine.accelerators if card.integrated == (card.vendor == "nvidia"))
    return next((card for card in others if card.vendor in ("intel", "nvidia")), None)


RULES: tuple[Callable[[Case], Found], ...] = (
    framework_discontinued,
    numpy_too_new,
    numpy_too_old,
    vision_audio_mismatch,
    channel_discontinued,
    channel_terms,
    library_path_shadows_wheel,
    library_path_unknown,
    vendors_own_stack,
    card_not_driven,
)
