"""The rules of the toolkit step: CUDA, cuDNN and NCCL against cards, driver, system and compilers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from steps.catalog.versions import at_least, line, number
from steps.compat import forward, library_rules
from steps.compat.builds import line_needed
from steps.compat.case import Case
from steps.compat.findings import MINOR, Bound, beyond, named, toolkit_finding
from steps.compat.wheels import brings_cuda
from steps.model.base import Words, phrase
from steps.model.finding import Finding, Severity

Found = tuple[Finding, ...]


def unknown_cuda(case: Case) -> Found:
    """A toolkit, cuDNN or NCCL line that is not in the tables."""
    wanted = case.answers.toolkit
    found: list[Finding] = []
    if case.cuda and case.cuda_row is None:
        found.append(_unknown(case, f"CUDA {case.cuda}"))
    if wanted.cudnn and wanted.cudnn != "none" and not library_rules.cudnn_lines(wanted.cudnn):
        found.append(_unknown(case, f"cuDNN {wanted.cudnn}"))
    if wanted.nccl and wanted.nccl != "none" and not library_rules.nccl_line(wanted.nccl):
        found.append(_unknown(case, f"NCCL {wanted.nccl}"))
    return (*found, *_not_installed(case, found))


def _unknown(case: Case, what: str) -> Finding:
    """Return that a line is not in the tables."""
    return toolkit_finding(case, "unknown-version", "info", (named(what),), None, subject=what, what=what)


def _not_installed(case: Case, unknown: list[Finding]) -> Found:
    """Return a warning for each unknown line that is not here already: no package can be named for it, and so no step of the plan."""
    machine, wanted = case.machine, case.answers.toolkit
    here = {
        "CUDA": any(one.version and line(one.version) == case.cuda for one in machine.toolkits),
        "cuDNN": any(one.version and one.version.startswith(f"{wanted.cudnn}.") for one in machine.cudnn),
        "NCCL": any(one.version and one.version.startswith(f"{wanted.nccl}.") for one in machine.nccl),
    }
    lacking = (str(finding.params["what"]) for finding in unknown)
    return tuple(
        toolkit_finding(case, "no-package-known", "warning", (named(what),), None, subject=what, what=what)
        for what in lacking
        if not here[what.partition(" ")[0]]
    )


def gpu_unsupported_by_cuda(case: Case) -> Found:
    """The toolkit no longer compiles for the card."""
    return _outside(case, "gpu-unsupported-by-cuda", "last")


def gpu_too_new_for_cuda(case: Case) -> Found:
    """The toolkit does not know the card yet."""
    return _outside(case, "gpu-too-new-for-cuda", "first")


def _outside(case: Case, code: str, bound: Bound) -> Found:
    """Return the cards whose first or last toolkit line the wanted one lies beyond."""
    return tuple(
        toolkit_finding(
            case,
            code,
            "error",
            (gpu.fact, gpu.kin, phrase(f"toolkit.because.{bound}-cuda", capability=row.compute_capability, cuda=end)),
            row.source,
            subject=f"CUDA {case.cuda} × {gpu.card.chip or gpu.name}",
            name=gpu.name,
            end=end,
        )
        for gpu, row, end in (beyond(case, case.cuda, bound, "cuda") if case.cuda else ())
    )


def driver_too_old_for_cuda(case: Case) -> Found:
    """The driver is older than the toolkit's: an error below the floor of its major, a catch above it."""
    row, version = case.cuda_row, case.driver.version
    if row is None or version is None:
        return ()
    subject = f"driver {case.driver.branch} × CUDA {row.version}"
    first: Words = phrase("toolkit.because.driver", version=version)
    if forward.too_old(case):
        if forward.relied_on(case):
            return ()
        because = (first, phrase("toolkit.because.floor", cuda=row.version, version=row.minor_driver), *_no_way_round(case))
        return (
            toolkit_finding(
                case,
                "driver-too-old-for-cuda",
                "error",
                because,
                MINOR,
                subject=subject,
                branch=case.driver.branch or "?",
                floor=row.minor_driver,
            ),
        )
    if case.driver.origin != "host" and number(case.driver.branch or "") < number(row.branch):
        because = (first, phrase("toolkit.because.own-driver", cuda=row.version, branch=row.branch))
        return (
            toolkit_finding(
                case,
                "minor-version-compatibility",
                "warning",
                because,
                MINOR,
                subject=subject,
                branch=case.driver.branch or "?",
                own=row.branch,
            ),
        )
    return ()


def _no_way_round(case: Case) -> tuple[Words, ...]:
    """Return why the package for older drivers does not help on data-center cards; nothing for others, which it never helps."""
    row = case.cuda_row
    if row is None or not case.data_center or case.wsl or row.compat_package is None:
        return ()
    if forward.unknown(case):
        return (phrase("toolkit.because.compat-unknown", package=row.compat_package),)
    return (phrase("toolkit.because.compat-from", package=row.compat_package, branches=", ".join(row.compat_from or ())),)


def cuda_forward_compat_only(case: Case) -> Found:
    """Only a package with a newer driver library lets this driver run the toolkit."""
    row, package = case.cuda_row, forward.relied_on(case)
    if row is None or package is None:
        return ()
    because = (
        phrase("toolkit.because.driver", version=case.driver.version or "?"),
        phrase("toolkit.because.floor", cuda=row.version, version=row.minor_driver),
        phrase("toolkit.because.data-center", name=case.gpus[0].name),
        phrase("toolkit.because.compat-from", package=package, branches=", ".join(row.compat_from or ())),
    )
    subject = f"driver {case.driver.branch} × CUDA {row.version}"
    found = toolkit_finding(
        case,
        "cuda-forward-compat-only",
        "warning",
        because,
        f"{forward.SOURCE}; {row.source}",
        subject=subject,
        package=package,
        branch=case.driver.branch or "?",
    )
    return (found,)


def cuda_not_for_distro(case: Case) -> Found:
    """NVIDIA's repository for this system does not carry the toolkit."""
    row, repository = case.cuda_row, case.repository
    if row is None or case.machine.os.id is None or case.wsl:
        return ()
    subject = f"CUDA {row.version} × {case.system}"
    if repository is None:
        severity: Severity = "error" if case.distribution else "info"
        because = (phrase("driver.because.no-repository", system=case.system, arch=case.machine.os.arch or "?"),)
        return (
            toolkit_finding(
                case,
                "cuda-not-for-distro",
                severity,
                because,
                "https://developer.download.nvidia.com/compute/cuda/repos/",
                subject=subject,
                system=case.system,
            ),
        )
    first, last = repository.first_cuda, repository.last_cuda
    if (first and number(row.version) < number(first)) or (last and number(row.version) > number(last)):
        words = "repository" if last else "repository-from"
        because = (phrase(f"toolkit.because.{words}", token=repository.token, first=first or "?", last=last or ""),)
        return (toolkit_finding(case, "cuda-not-for-distro", "error", because, repository.source, subject=subject, system=case.system),)
    return ()


def host_compiler_too_new(case: Case) -> Found:
    """Nvcc refuses host compilers that are newer than its headers know."""
    row = case.cuda_row
    have = number(case.machine.os.gcc or (case.distribution.gcc if case.distribution and case.distribution.gcc else ""))
    if row is None or not have or have[0] <= row.gcc_max:
        return ()
    because = (
        phrase("toolkit.because.gcc", version=".".join(map(str, have))),
        phrase("toolkit.because.gcc-max", cuda=row.version, version=row.gcc_max),
    )
    return (
        toolkit_finding(
            case,
            "host-compiler-too-new",
            "error",
            because,
            row.source,
            subject=f"gcc {have[0]} × CUDA {row.version}",
            gcc=have[0],
            limit=row.gcc_max,
        ),
    )


def host_glibc_too_new(case: Case) -> Found:
    """The toolkit's headers clash with those of a newer C library: nothing compiles."""
    row = case.cuda_row
    have = case.machine.os.glibc or (case.distribution.glibc if case.distribution else None)
    if row is None or not have or row.glibc_max is None or at_least(row.glibc_max, have):
        return ()
    because = (phrase("toolkit.because.glibc", version=have), phrase("toolkit.because.glibc-max", cuda=row.version, version=row.glibc_max))
    return (
        toolkit_finding(
            case,
            "host-glibc-too-new",
            "error",
            because,
            row.source,
            subject=f"glibc {have} × CUDA {row.version}",
            glibc=have,
            limit=row.glibc_max,
        ),
    )


def toolkit_not_needed(case: Case) -> Found:
    """Wheels bring their own CUDA: a system toolkit is for compiling only."""
    if case.cuda is None or not brings_cuda(case) or line_needed(case):
        return ()
    because = (phrase("toolkit.because.wheels"),)
    source = "https://pytorch.org/get-started/locally/"
    return (toolkit_finding(case, "toolkit-not-needed", "info", because, source, subject=f"CUDA {case.cuda}"),)


RULES: tuple[Callable[[Case], Found], ...] = (
    unknown_cuda,
    gpu_unsupported_by_cuda,
    gpu_too_new_for_cuda,
    driver_too_old_for_cuda,
    cuda_forward_compat_only,
    cuda_not_for_distro,
    host_compiler_too_new,
    host_glibc_too_new,
    *library_rules.RULES,
    toolkit_not_needed,
)


def toolkit_findings(case: Case) -> Found:
    """Return what all rules of the toolkit find."""
    return tuple(chain.from_iterable(rule(case) for rule in RULES))
