"""Fixtures of the lab: made once for all tests, a fresh machine for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab import lab as laboratory
from tests.lab.lab import Lab, LabMachine


@pytest.fixture(scope="session")
def lab() -> Lab:
    """Return the lab; skip where there can be none."""
    reason = laboratory.missing()
    if reason is not None:
        pytest.skip(f"no lab here: {reason}")
    return laboratory.prepare()


@pytest.fixture
def machine(lab: Lab) -> Iterator[LabMachine]:
    """Return a fresh machine."""
    with laboratory.machine(lab) as running:
        yield running
