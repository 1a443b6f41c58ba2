"""The table of known-good and known-bad combinations, `tests/cases/combinations.toml`: each is judged as it is written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steps.compat.solve import judge
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.profile import Profile, answered
from tests.test_compat_cases import machine

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Combination(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row: a machine, the answers, and what is said about them; `errors` is everything that forbids it."""

    name: str
    cards: tuple[str, ...]
    errors: tuple[str, ...]
    source: str
    warnings: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    system: str = "ubuntu 24.04"
    arch: str = "x86_64"
    kernel: str = "6.8.0-50-generic"
    installed: str | None = None
    gcc: str | None = None
    glibc: str | None = None
    secure_boot: bool = False
    wsl: bool = False
    container: str = "none"
    library_path: tuple[str, ...] | None = None
    driver: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    python: str | None = None
    manager: str | None = None
    want: dict[str, str] = {}


def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "cases" / "combinations.toml").read_text(encoding="utf-8"))


TABLE = _table()
ROWS = [msgspec.convert(row, Combination) for row in TABLE["combination"]]


def here(row: Combination) -> Machine:
    """Return the machine of a row."""
    found = machine(
        *row.cards,
        system=row.system,
        arch=row.arch,
        driver=row.installed,
        secure_boot=row.secure_boot,
        gcc=row.gcc,
        glibc=row.glibc,
        kernel=row.kernel,
        wsl=row.wsl,
        container=row.container,
    )
    return msgspec.structs.replace(found, library_path=row.library_path)


def wanted(row: Combination) -> Profile:
    """Return the answers of a row."""
    branch, flavor, source, *_ = [*(row.driver or "").split(), None, None, None]
    patch = {
        "driver.branch": branch,
        "driver.flavor": flavor,
        "driver.source": source,
        "toolkit.cuda": row.cuda,
        "toolkit.cudnn": row.cudnn,
        "toolkit.nccl": row.nccl,
        "environment.python": row.python,
        "environment.manager": row.manager,
        **{f"frameworks.{name}": version for name, version in row.want.items()},
    }
    return answered(Profile(), {key: value for key, value in patch.items() if value is not None})


def codes(found: tuple[Finding, ...], severity: str) -> set[str]:
    """Return the codes of one severity."""
    return {finding.code for finding in found if finding.severity == severity}


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_the_combination_is_judged_as_it_is_written(row: Combination) -> None:
    found = judge(here(row), wanted(row))

    assert codes(found, "error") == set(row.errors)
    assert set(row.warnings) <= codes(found, "warning")
    assert set(row.infos) <= codes(found, "info")
    assert not set(row.silent) & {finding.code for finding in found}


@pytest.mark.parametrize("row", [row for row in ROWS if row.errors], ids=[row.name for row in ROWS if row.errors])
def test_what_is_forbidden_says_why_and_where_and_how_to_go_on(row: Combination) -> None:
    """Every repair removes its finding and raises no error that was not there."""
    found = judge(here(row), wanted(row))
    before = codes(found, "error")
    for finding in found:
        if finding.severity == "error":
            assert finding.because
            assert finding.source
            assert finding.subject
        if finding.fix is not None:
            after = judge(here(row), answered(wanted(row), finding.fix))
            assert (finding.code, finding.subject) not in {(one.code, one.subject) for one in after if one.severity == finding.severity}
            assert codes(after, "error") <= before


def test_the_table_is_large_and_every_row_names_its_source() -> None:
    assert len(ROWS) >= 150
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert {row.source for row in ROWS} == set(TABLE["sources"])
    assert sum(not row.errors for row in ROWS) >= 75
    assert sum(bool(row.errors) for row in ROWS) >= 75
