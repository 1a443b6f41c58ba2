"""The map of what goes with what: drivers by toolkit lines, and the framework builds that each line has."""

from __future__ import annotations

from steps.catalog import frameworks as catalog
from steps.catalog import stack
from steps.catalog.versions import number
from steps.compat import candidates, rows
from steps.compat.case import Case, installed_driver
from steps.compat.driver_rules import driver_findings
from steps.compat.repairs import repaired
from steps.compat.toolkit_rules import toolkit_findings
from steps.compat.wheels import cuda_of, has_kernels
from steps.model.base import Record, Words, phrase
from steps.model.choice import Mark
from steps.model.finding import Finding, Patch, Severity
from steps.model.machine import Machine
from steps.model.profile import Profile, answered

Found = tuple[Finding, ...]
_WORDS = {
    "gpu-needs-open-module": "gpu",
    "gpu-lacks-open-module": "gpu",
    "gpu-unsupported-by-driver": "gpu",
    "gpu-too-new-for-driver": "gpu",
    "gpus-need-different-drivers": "gpu",
    "gpu-unsupported-by-cuda": "code",
    "gpu-too-new-for-cuda": "code",
    "driver-too-old-for-cuda": "old",
    "minor-version-compatibility": "minor",
    "cuda-forward-compat-only": "compat",
    "host-compiler-too-new": "gcc",
    "host-glibc-too-new": "glibc",
    "cuda-not-for-distro": "offer",
    "driver-not-offered": "offer",
    "driver-end-of-life": "ended",
    "kernel-too-new-for-driver": "kernel",
    "secure-boot-unsigned-module": "key",
}
"""The word of a cell by what decides it; a finding without one here is said as "look"."""
NO_WHEEL, NO_CODE, UNKNOWN = "no-wheel", "no-code", "unknown"


class Cell(Record):
    """One driver with one toolkit line: its mark, the key of its word, and what decides it."""

    mark: Mark
    word: str
    own: bool = False
    """Whether the driver is new enough to be this toolkit's own, so that nothing is to be watched."""
    findings: Found = ()
    patch: Patch = {}
    """What taking driver and toolkit together changes in the answers."""


class Row(Record):
    """One driver with a cell for each toolkit line."""

    label: Words
    patch: Patch
    cells: tuple[Cell, ...]


class Builds(Record):
    """One framework with the build that each toolkit line has: a version or an extra, or one of the three words."""

    name: str
    cells: tuple[Words, ...]


class Matrix(Record):
    """All rows and columns, and where the answers of now stand: (row, column)."""

    cudas: tuple[str, ...]
    rows: tuple[Row, ...]
    builds: tuple[Builds, ...]
    at: tuple[int, int] = (0, 0)


def matrix(machine: Machine, answers: Profile) -> Matrix:
    """Return the map for a machine and the answers so far; without rows where no driver is to be chosen."""
    case = Case(machine, answers)
    lines = tuple(sorted(stack.cudas(), key=number))
    if case.wsl or case.contained:
        listed: list[Row] = [_row(case, lines, {}, case.driver.title)] if case.driver.origin == "host" else []
    else:
        listed = _drivers(case, lines)
    builds = tuple(Builds(name=name, cells=tuple(cell(case, line) for line in lines)) for name, cell in _BUILDS)
    return Matrix(cudas=lines, rows=tuple(listed), builds=builds, at=_here(case, lines, listed))


def findings_of(machine: Machine, answers: Profile, cell: Cell) -> Found:
    """Return what is to be said about a cell, each finding with its repair."""
    return repaired(Case(machine, answered(answers, cell.patch)), cell.findings)


def _drivers(case: Case, lines: tuple[str, ...]) -> list[Row]:
    """Return the drivers that can be taken, oldest first, then those that cannot, newest first."""
    version, _ = installed_driver(case.machine)
    kept = [_row(case, lines, candidates.KEEP, phrase("driver.option.keep", version=version))] if version else []
    offered = [_row(case, lines, patch, _label(patch)) for patch in rows.drivers(case)]
    usable = [row for row in offered if any(cell.mark != "bad" for cell in row.cells)]
    return [*kept, *reversed(usable), *(row for row in offered if row not in usable)]


def _label(patch: Patch) -> Words:
    """Return the name of a driver, short enough for the first column."""
    return phrase(f"driver.short.{patch['driver.flavor']}", branch=str(patch["driver.branch"]))


def _row(case: Case, lines: tuple[str, ...], patch: Patch, label: Words) -> Row:
    """Return one driver with all its cells."""
    answers = answered(case.answers, {**patch, "toolkit.cudnn": "none", "toolkit.nccl": "none"})
    about_driver = driver_findings(Case(case.machine, answers))
    cells = (
        _cell(Case(case.machine, answered(answers, {"toolkit.cuda": line})), about_driver, {**patch, "toolkit.cuda": line})
        for line in lines
    )
    return Row(label=label, patch=patch, cells=tuple(cells))


def _cell(case: Case, about_driver: Found, patch: Patch) -> Cell:
    """Return one cell: the worst finding about the driver, else about the pair, decides it."""
    pair = toolkit_findings(case)
    # What forbids the driver forbids its whole row; what is only to be watched is said of the pair before it is said of the driver.
    found = (*_of("error", about_driver, pair), *_of("warning", pair, about_driver))
    worst = next((one for one in found if one.code != "mixed-driver-install"), None)
    if worst is not None:
        mark: Mark = "bad" if worst.severity == "error" else "catch"
        return Cell(
            mark=mark, word=_WORDS.get(worst.code, "look"), findings=(worst, *(one for one in found if one is not worst)), patch=patch
        )
    row = case.driver.row
    return Cell(mark="good", word="ok", own=bool(row and row.max_cuda == case.cuda), patch=patch)


def _of(severity: Severity, *groups: Found) -> Found:
    """Return the findings of one severity, group after group."""
    return tuple(one for group in groups for one in group if one.severity == severity)


def _here(case: Case, lines: tuple[str, ...], listed: list[Row]) -> tuple[int, int]:
    """Return where the answers stand; without a wanted toolkit on the CUDA of the wheel, else on the driver's own."""
    driver = case.answers.driver
    taken: Patch = {"driver.branch": driver.branch, "driver.flavor": driver.flavor}
    keeps = driver.source == "keep"
    row = next(
        (
            at
            for at, one in enumerate(listed)
            if (keeps and one.patch.get("driver.source") == "keep")
            or (not keeps and driver.branch and all(one.patch.get(key) == value for key, value in taken.items()))
        ),
        0,
    )
    own = case.driver.row.max_cuda if case.driver.row else None
    wanted = next((line for line in (case.cuda, cuda_of(case.variant), own) if line in lines), lines[-1])
    return row, lines.index(wanted)


# --- framework builds -----------------------------------------------------------------------------


def _torch(case: Case, line: str) -> Words:
    """Return the newest PyTorch built with a CUDA line that has code for these cards."""
    without_code = False
    for release in catalog.torch_releases():
        for row in release.variant:
            if cuda_of(row.name) == line:
                if not all(has_kernels(row, case.machine.os.arch, gpu) is False for gpu in case.kinds) or not case.kinds:
                    return release.version
                without_code = True
    return phrase(f"ui.matrix.{NO_CODE if without_code else NO_WHEEL}")


def _tensorflow(case: Case, line: str) -> Words:
    """Return the newest TensorFlow for a CUDA major; which cards its kernels run on is not in its metadata."""
    found = next((row for row in catalog.tensorflow_releases() if row.cuda_major == number(line)[0]), None)
    if found is None:
        return phrase(f"ui.matrix.{NO_WHEEL}")
    known = all(gpu.capability and (6, 0) <= number(gpu.capability) < (12, 0) for gpu in case.kinds)
    return found.version if known else phrase(f"ui.matrix.{UNKNOWN}")


def _jax(case: Case, line: str) -> Words:
    """Return the extra that JAX is installed with for a CUDA major."""
    extra = f"cuda{number(line)[0]}"
    plugin = next((one for one in catalog.jax_plugins() if one.name == extra), None)
    if plugin is None:
        return phrase(f"ui.matrix.{NO_WHEEL}")
    floor = number(plugin.cc_min or "0")
    if case.kinds and all(gpu.capability and number(gpu.capability) < floor for gpu in case.kinds):
        return phrase(f"ui.matrix.{NO_CODE}")
    return extra


_BUILDS = (("PyTorch", _torch), ("TensorFlow", _tensorflow), ("JAX", _jax))
