"""The rules of cuDNN and NCCL as system libraries: against CUDA and the cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steps.catalog import stack
from steps.catalog.load import remembered
from steps.catalog.versions import at_least, belongs, number
from steps.compat.case import Case
from steps.compat.findings import toolkit_finding
from steps.compat.forward import library_version
from steps.model.base import phrase
from steps.model.finding import Finding

Found = tuple[Finding, ...]


def cudnn_row(case: Case) -> stack.Cudnn | None:
    """Return the row of the wanted cuDNN line for the CUDA major of the case."""
    wanted = case.answers.toolkit.cudnn
    return next((row for row in cudnn_lines(wanted) if row.cuda_major == case.cuda_major), None) if wanted and wanted != "none" else None


@remembered
def cudnn_lines(wanted: str) -> tuple[stack.Cudnn, ...]:
    """Return the rows of a cuDNN line, newest first; empty when we do not know it."""
    return tuple(row for row in reversed(stack.cudnns()) if belongs(row.latest, wanted))


def cudnn_cuda_mismatch(case: Case) -> Found:
    """The cuDNN line was not built for this CUDA major, or there is no CUDA for it at all."""
    wanted = case.answers.toolkit.cudnn
    if not wanted or wanted == "none" or cudnn_row(case):
        return ()
    lines = cudnn_lines(wanted)
    if not lines:
        return ()
    majors = ", ".join(sorted({str(row.cuda_major) for row in lines}))
    because = (phrase("toolkit.because.cudnn", version=wanted, majors=majors), phrase("toolkit.because.cuda", version=case.cuda or "–"))
    return (
        toolkit_finding(
            case,
            "cudnn-cuda-mismatch",
            "error",
            because,
            lines[0].source,
            subject=f"cuDNN {wanted} × CUDA {case.cuda or '–'}",
            cudnn=wanted,
            majors=majors,
        ),
    )


def gpu_unsupported_by_cudnn(case: Case) -> Found:
    """The cuDNN line has no code for the card."""
    row = cudnn_row(case)
    if row is None:
        return ()
    found: list[Finding] = []
    for gpu in case.kinds:
        have = number(gpu.capability or "")
        too_old = row.cc_min is not None and have < number(row.cc_min)
        too_new = row.cc_max is not None and have > number(row.cc_max)
        if have and (too_old or too_new):
            because = (
                gpu.fact,
                gpu.kin,
                phrase("toolkit.because.cudnn-range", version=row.version, first=row.cc_min or "?", last=row.cc_max or "?"),
            )
            subject = f"cuDNN {row.version} × {gpu.card.chip or gpu.name}"
            found.append(
                toolkit_finding(
                    case, "gpu-unsupported-by-cudnn", "error", because, row.source, subject=subject, name=gpu.name, cudnn=row.version
                )
            )
    return tuple(found)


def nccl_rows(case: Case) -> tuple[stack.Nccl, ...]:
    """Return the releases of the wanted NCCL line, newest first."""
    wanted = case.answers.toolkit.nccl
    return nccl_line(wanted) if wanted and wanted != "none" else ()


@remembered
def nccl_line(wanted: str) -> tuple[stack.Nccl, ...]:
    """Return the releases of an NCCL line, newest first; empty when we do not know it."""
    return tuple(row for row in reversed(stack.nccls()) if belongs(row.version, wanted))


def driver_too_old_for_cudnn(case: Case) -> Found:
    """The driver is older than this cuDNN wants; where CUDA itself is too new for it, the toolkit's rule says so."""
    row, version, cuda = cudnn_row(case), library_version(case), case.cuda_row
    if row is None or version is None or at_least(version, row.min_driver) or (cuda and not at_least(version, cuda.minor_driver)):
        return ()
    wanted = case.answers.toolkit.cudnn or "?"
    because = (
        phrase("toolkit.because.driver", version=version),
        phrase("toolkit.because.cudnn-floor", cudnn=wanted, version=row.min_driver),
    )
    params = {"branch": case.driver.branch or "?", "cudnn": wanted, "floor": row.min_driver}
    subject = f"driver {case.driver.branch} × cuDNN {wanted}"
    return (toolkit_finding(case, "driver-too-old-for-cudnn", "error", because, row.source, subject=subject, **params),)


def nccl_cuda_mismatch(case: Case) -> Found:
    """NCCL was not built for this CUDA major."""
    lines = nccl_rows(case)
    major = case.cuda_major
    if not lines or (major is not None and any(number(build)[0] == major for row in lines for build in row.builds)):
        return ()
    wanted = case.answers.toolkit.nccl or "?"
    builds = ", ".join(sorted({build for row in lines for build in row.builds}, key=number))
    because = (phrase("toolkit.because.nccl", version=wanted, builds=builds), phrase("toolkit.because.cuda", version=case.cuda or "–"))
    return (
        toolkit_finding(
            case,
            "nccl-cuda-mismatch",
            "error",
            because,
            lines[0].source,
            subject=f"NCCL {wanted} × CUDA {case.cuda or '–'}",
            nccl=wanted,
            builds=builds,
        ),
    )


def gpu_unsupported_by_nccl(case: Case) -> Found:
    """The NCCL line has no code for the card."""
    lines, major = nccl_rows(case), case.cuda_major
    floors = [(row, floor) for row in lines if (floor := row.cc_min_cu13 if major == 13 else row.cc_min_cu12 if major == 12 else None)]
    if not floors:
        return ()
    row, floor = floors[0]
    return tuple(
        toolkit_finding(
            case,
            "gpu-unsupported-by-nccl",
            "error",
            (gpu.fact, gpu.kin, phrase("toolkit.because.nccl-floor", version=row.version, first=floor)),
            row.source,
            subject=f"NCCL {case.answers.toolkit.nccl} × {gpu.card.chip or gpu.name}",
            name=gpu.name,
            nccl=case.answers.toolkit.nccl or "?",
        )
        for gpu in case.kinds
        if gpu.capability and number(gpu.capability) < number(floor)
    )


OF: Mapping[str, tuple[Callable[[Case], Found], ...]] = {
    "cudnn": (cudnn_cuda_mismatch, gpu_unsupported_by_cudnn, driver_too_old_for_cudnn),
    "nccl": (nccl_cuda_mismatch, gpu_unsupported_by_nccl),
}
"""The rules of each library: it is held against CUDA's major, the cards and the driver."""
RULES: tuple[Callable[[Case], Found], ...] = (*OF["cudnn"], *OF["nccl"])


def fits(case: Case, name: str) -> bool:
    """Return whether nothing forbids the wanted line of a library, whatever is to be said about the toolkit itself."""
    return not any(rule(case) for rule in OF[name])
