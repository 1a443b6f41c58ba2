"""A run that nothing can lose: hurt at every boundary and at random moments, it ends as an unharmed one does, or takes itself back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.faults.many import Faults
from tests.lab.lab import Lab

pytestmark = pytest.mark.lab
GROUP, GROUPS, LONG_GROUPS = 8, 8, 25
"""64 seeds have every trouble once; the long way is 200."""


@pytest.fixture(scope="module")
def faults(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Faults:
    """Return the unharmed run and what is needed for the others."""
    return Faults(lab, Path(tmp_path_factory.mktemp("faults")))


@pytest.mark.parametrize("group", [*range(GROUPS), *(pytest.param(group, marks=pytest.mark.long) for group in range(GROUPS, LONG_GROUPS))])
def test_whatever_happens_a_resume_finishes_it_or_an_undo_takes_it_back(group: int, faults: Faults) -> None:
    seeds = range(group * GROUP, (group + 1) * GROUP)
    wrong = [told for told in faults.runs(seeds) if "wrong" in told]
    assert not wrong, json.dumps(wrong, indent=1)


def test_an_unharmed_run_changes_every_kind_of_thing_and_its_undo_leaves_no_trace(faults: Faults) -> None:
    changed = {key for key, value in faults.reference["looks"].items() if faults.reference["before"].get(key) != value}
    assert {"package lab-driver", "package lab-data", "/etc/lab-settings.conf", "/opt/lab/env/done", "/var/lib/lab/module"} <= changed
    assert faults.reference["before"]["package lab-rival"] == "1.0 ii auto"
    assert faults.reference["looks"]["package lab-rival"].startswith("1.0 rc")
