"""What all tests share: the option `--long`, and Hypothesis without a clock."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A busy machine is no reason to fail, and the same examples on every machine make a failure somebody else's too.
settings.register_profile("house", deadline=None, derandomize=True, database=None)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="takes minutes; runs with --long")
    for item in items:
        if "long" in item.keywords:
            item.add_marker(skip)
