"""Packages that the index has as source only: the compiler that they need beside PyTorch, and how they are compiled."""

from __future__ import annotations

from steps.catalog.frameworks import OtherRelease
from steps.catalog.versions import at_least, line, number
from steps.compat import toolkit_plan
from steps.compat.case import Case
from steps.compat.findings import framework_finding
from steps.compat.wheels import cuda_of, variant_name
from steps.managers.building import Building
from steps.model.base import phrase
from steps.model.finding import Finding

_GIGABYTE = 1 << 30


def built_here(case: Case) -> tuple[OtherRelease, ...]:
    """Return the wanted packages that are compiled where they are used; ROCm's compiler is not in our tables, so none there."""
    if (variant_name(case) or "").startswith("rocm"):
        return ()
    return tuple(row for row in case.others if row.build is not None)


def line_needed(case: Case) -> str | None:
    """Return the CUDA line whose nvcc compiles for the chosen PyTorch; `None` where nothing is to be compiled, or for no CUDA."""
    return cuda_of(variant_name(case)) if built_here(case) and "torch" in case.answers.frameworks else None


def builds_need_a_toolkit(case: Case) -> tuple[Finding, ...]:
    """A package has to be compiled, and no nvcc of PyTorch's own CUDA major is there or chosen."""
    cuda = line_needed(case)
    return tuple(
        framework_finding(
            "build-needs-toolkit",
            "error",
            (
                phrase("frameworks.because.compiled-here", name=row.package, version=row.version, nvcc=row.build.nvcc),
                phrase("frameworks.because.torch-cuda", cuda=cuda or "–"),
            ),
            row.source,
            f"{row.package} {row.version}",
            fix={"toolkit.cuda": cuda} if cuda and at_least(cuda, row.build.nvcc) else None,
            package=row.package,
            cuda=cuda or row.build.nvcc,
        )
        for row in built_here(case)
        if row.build is not None and _compiler(case, row.build.nvcc) is None
    )


def _compiler(case: Case, least: str) -> str | None:
    """Return the folder of a toolkit that compiles for PyTorch: of its CUDA's major, chosen or installed; `None` without one."""
    cuda = line_needed(case)
    if cuda is None:
        return None
    chosen = [(case.cuda, f"/usr/local/cuda-{case.cuda}")] if case.cuda else []
    # PyTorch's own builder refuses another major, and warns of another minor version.
    there = [(kit.version, kit.path) for kit in case.machine.toolkits]
    for version, path in (*chosen, *there):
        if version and path and number(version)[:1] == number(cuda)[:1] and at_least(line(version), least):
            return path
    return None


def building(case: Case) -> Building | None:
    """Return how the packages are compiled once the environment holds PyTorch; `None` where none is."""
    rows = built_here(case)
    if not rows:
        return None
    builds = [row.build for row in rows if row.build is not None]
    homes = [path for one in builds if (path := _compiler(case, one.nvcc))]
    planned = any(action.id == "toolkit.cuda" for action in toolkit_plan.plan(case))
    return Building(
        requirements=tuple(f"{row.package}=={row.version}" for row in rows),
        tools=tuple(dict.fromkeys((*(tool for one in builds for tool in one.tools), *_beside(rows)))),
        cuda_home=homes[0] if homes else None,
        jobs=_jobs(case, max((one.job_gigabytes or 0 for one in builds), default=0)),
        needs=("toolkit.cuda",) if planned else (),
    )


def _beside(rows: tuple[OtherRelease, ...]) -> tuple[str, ...]:
    """Return what the packages need at run time beside PyTorch: wheels, which come before them."""
    return tuple(need for row in rows for need in row.requires if need != "torch")


def _jobs(case: Case, gigabytes: int) -> int | None:
    """Return how many files may be compiled at once: memory and half the cores bear no more; `None` where neither is known."""
    memory, cores = case.machine.memory.total_bytes, case.machine.cpu.cores
    bounds = [memory // _GIGABYTE // gigabytes] if memory and gigabytes else []
    bounds += [cores // 2] if cores else []
    return max(1, min(bounds)) if bounds else None
