"""The doctor on whole machines: what is true of them, and no alarm where nothing is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.model.base import Phrase
from tests.doctor import kit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MACHINES = Path(__file__).parent.parent / "machines"
CAUSES: dict[str, tuple[str, ...]] = {
    "dkms-not-built-for-running-kernel": ("no-module-for-running-kernel", "kernel-headers-missing"),
    "userland-without-module": ("in-tree-driver-owns-gpu", "no-module-for-running-kernel"),
    "driver-library-mismatch": ("reboot-pending-after-driver-update", "driver-library-mismatch"),
    "secure-boot-module-rejected": ("mok-not-enrolled",),
    "fallen-off-bus": ("gpu-fell-off-bus",),
    "display-engine-xid": (),
}
"""The causes that count for what is said of a machine; whatever else is said is no fault of the machine's stack."""
BY_OTHERS = {"needs-open-module": "gpu-needs-open-module"}
"""What is a fault only where a driver is installed."""

BY_PROGRAMS = {"application-illegal-memory-access"}
"""What a program did on a machine that is well: its line stays in the log."""


def problems(path: Path) -> list[str]:
    told = tomllib.loads(path.with_name(f"{path.stem}.expect.toml").read_text(encoding="utf-8"))
    return list(told.get("problems", told.get("expected", {}).get("problems", [])))


@pytest.mark.parametrize("path", sorted(MACHINES.glob("*.json")), ids=lambda path: path.stem)
def test_a_whole_machine_gets_the_right_verdict(path: Path) -> None:
    said = problems(path)
    verdict = kit.verdict(path)
    id = verdict.cause.id if verdict.cause else "none"
    wanted = [cause for problem in said for cause in CAUSES.get(problem, ())]
    wanted += [cause for problem, cause in BY_OTHERS.items() if problem in said and "no-driver" not in said]
    if wanted:
        assert id in wanted
        assert not verdict.healthy
    elif "display-engine-xid" not in said:
        assert {one.id for one in verdict.diagnoses if diagnoses()[one.id].severity != "not-a-fault"} <= BY_PROGRAMS


def test_a_slice_without_its_driver_is_told_that_only_the_provider_has_that() -> None:
    (said,) = kit.verdict(MACHINES / "azure-vgpu-a10-slice.json").diagnoses
    assert isinstance(said.title, Phrase)
    assert said.title.key == "doctor_driver.none.title-guest"
