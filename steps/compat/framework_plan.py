"""From wanted frameworks to exact requirements, the indexes that hold them, and what they weigh."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

import msgspec

from steps import resources
from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import number
from steps.compat import builds
from steps.compat.case import Case
from steps.compat.wheels import cuda_of, jax_extra, torch_release, variant_name
from steps.managers import python
from steps.managers.fetching import address
from steps.model.action import LINE, AnyAction, Write
from steps.model.base import phrase
from steps.model.plan import Plan, Target

MB = 1_000_000
DEFAULT_NAME = python.DEFAULT_NAME
_LIBRARIES_MB = {"11": 1_900, "12": 2_600, "13": 2_300}
"""What NVIDIA's libraries of one CUDA major weigh beside a wheel that does not hold them."""
_ROCM_MB = 5_100
"""What one PyTorch wheel for AMD weighs, ROCm's libraries and the code for all cards in it (torch 2.10.0+rocm7.1, CPython 3.13)."""
_PYTORCH = "https://download.pytorch.org/whl/{variant}"


def requirements(case: Case) -> tuple[str, ...]:
    """Return the exact requirements, with what metadata forgets (`numpy<2`, `numpy`)."""
    wanted = case.answers.frameworks
    found: list[str] = []
    compiled = {row.package for row in builds.built_here(case)}
    for name, version in wanted.items():
        if name == "torch":
            # `===`: a folder of wheels may hold a build for another variant, and `==` would prefer that one.
            found.append(f"torch=={version}{_local(case)}" if _local(case) else f"torch==={version}")
        elif name == "tensorflow":
            found.append(f"tensorflow[and-cuda]=={version}" if case.gpus and wanted.get("variant") != "cpu" else f"tensorflow=={version}")
        elif name == "jax":
            extra = jax_extra(case)
            found.append(f"jax[{extra}]=={version}" if extra else f"jax=={version}")
        elif name == "onnxruntime-gpu":
            found.append(f"onnxruntime-gpu[cuda,cudnn]=={version}")
        elif name != "variant" and name not in compiled:
            found.append(f"{name}=={version}")
    release = torch_release(case)
    if release and release.numpy and "numpy" not in wanted:
        found.append(release.numpy)
    there = {re.split(r"[\[=<>!~]", one)[0] for one in found}
    found += [one for name in wanted for one in catalog.companions(name) if one not in there]
    return (*found, *_older_cudnn(case))


def _older_cudnn(case: Case) -> tuple[str, ...]:
    """Return the bound without which pip would take a cuDNN that has no code for the cards: where the frameworks leave it open."""
    extra = jax_extra(case) if "jax" in case.answers.frameworks else None
    flow = case.tensorflow.cuda_major if case.tensorflow and case.answers.frameworks.get("variant") != "cpu" else None
    major = int(extra.removeprefix("cuda")) if extra else flow
    oldest = min((number(gpu.capability) for gpu in case.gpus if gpu.capability), default=())
    if major is None or not oldest or torch_release(case) is not None:
        return ()
    rows = [row for row in stack.cudnns() if row.cuda_major == major and row.cc_min]
    dropped = next((row for row in rows if number(row.cc_min or "") > oldest), None)
    return (f"nvidia-cudnn-cu{major}<{dropped.version}",) if dropped and dropped is not rows[0] else ()


def _local(case: Case) -> str:
    """Return the local part that names the variant: empty for the package index's own wheel."""
    variant, release = variant_name(case), torch_release(case)
    if variant is None or (release and variant == release.default_variant and _plain(case)):
        return ""
    if variant == "cpu" and case.machine.os.arch in ("aarch64", "arm64") and release and number(release.version) < (2, 7):
        return ""
    return f"+{variant}"


def _plain(case: Case) -> bool:
    """Return whether the package index's own wheel is this variant here; on aarch64 nobody has checked."""
    return case.machine.os.arch not in ("aarch64", "arm64")


def indexes(case: Case, target: Target) -> tuple[str, ...]:
    """Return the indexes that hold the variant, beside the person's own.

    A CPU build is left to the person's find-links where there are any: that is where such wheels are kept.
    """
    if "torch" not in case.answers.frameworks or not _local(case):
        return ()
    variant = variant_name(case) or "cpu"
    asked = case.answers.network.torch_index
    if asked:
        preset = address("torch", asked)
        return (preset.format(variant=variant) if "{variant}" in preset else preset,)
    if variant == "cpu" and (target.installer.find_links or case.answers.network.find_links):
        return ()
    return (_PYTORCH.format(variant=variant),)


def size(case: Case) -> int:
    """Return about how many bytes are downloaded."""
    wanted, total = case.answers.frameworks, 60.0
    release, cuda = torch_release(case), cuda_of(variant_name(case))
    if release:
        rocm = (variant_name(case) or "").startswith("rocm")
        total += release.size_mb if cuda else _ROCM_MB if rocm else 190
    majors = {str(number(cuda)[0])} if cuda else set[str]()
    flow = next((row for row in catalog.tensorflow_releases() if row.version == wanted.get("tensorflow")), None)
    if flow:
        total += flow.size_mb or 500
        majors |= {str(flow.cuda_major)} if flow.cuda_major and case.gpus else set()
    if "jax" in wanted:
        total += 90
        majors |= {extra.removeprefix("cuda")} if (extra := jax_extra(case)) else set()
    total += sum(_LIBRARIES_MB.get(major, 0) for major in majors)
    total += sum(row.size_mb or 0 for row in catalog.others() if wanted.get(row.package) == row.version)
    return round(total) * MB


def plan(case: Case, target: Target) -> tuple[AnyAction, ...]:
    """Return what makes the environment; empty when no framework is wanted."""
    wanted = requirements(case)
    if not wanted and case.answers.environment.lock is None:
        return ()
    fetched = size(case)
    building = builds.building(case)
    samples = _samples(case, python.place(case.answers, target).path)
    named = {one.partition("=")[0] for one in wanted}
    wanted += tuple(tool for tool in (building.tools if building else ()) if tool not in named)
    made = python.environment(
        case.machine,
        case.answers,
        wanted,
        target,
        indexes=indexes(case, target),
        building=building,
        trying=tries(tuple(one.path for one in samples), len(case.gpus)),
        download_bytes=fetched,
        disk_bytes=round(fetched * 2.4),
        seconds=30 + fetched / LINE,
    )
    if case.answers.environment.for_all:
        # Before the rights are set, and root's like all of it.
        return (*made[:-1], *(msgspec.structs.replace(one, by="root") for one in samples), made[-1])
    return (*made, *samples)


SAMPLE = "environment.sample."
SAMPLES = {"torch": ("ddp_amp.py", "checkpoint_resume.py"), "jax": ("jax_train.py",), "tensorflow": ("tensorflow_train.py",)}
"""The programs of assets/training that a person keeps, by framework."""


def tries(paths: Iterable[str], gpus: int) -> tuple[str, ...]:
    """Return the commands that start samples in the environment that is in use: PyTorch's by torchrun, with a process a GPU."""
    launcher = f"torchrun --standalone --nproc-per-node {max(1, gpus)}"
    return tuple(f"{launcher if path.rpartition('/')[2] in SAMPLES['torch'] else 'python'} {shlex.quote(path)}" for path in paths)


def tries_of(plan: Plan, gpus: int) -> tuple[str, ...]:
    """Return the commands that start the samples which a plan lays down."""
    written = (one for one in plan.actions if isinstance(one, Write) and one.id.startswith(SAMPLE))
    return tries((one.path for one in written), gpus)


def _samples(case: Case, environment: str) -> tuple[Write, ...]:
    """Return what lays the frameworks' samples into the environment's folder."""
    names = [name for framework, programs in SAMPLES.items() if framework in case.answers.frameworks for name in programs]
    found: list[Write] = []
    for name in names:
        path, text = f"{environment}/samples/{name}", resources.read_text("training", name)
        title, why = phrase("manager.action.sample", name=name, path=path), phrase("manager.why.sample")
        found.append(python.laid(f"{SAMPLE}{name.removesuffix('.py')}", title, why, path, text))
    return tuple(found)
