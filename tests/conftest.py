"""What all tests share: the option `--long`, Hypothesis without a clock, and a folder for runs."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Runs in a folder of their own; one that another user may pass, as /var/lib is, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="bringup-test-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("BRINGUP_STATE", folder)
        monkeypatch.delenv("SUDO_UID", raising=False)
        yield Path(folder)


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the stand-in for NVML under the library's name."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).parent / "mock" / "nvml.c"
    argv = (compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(folder / "libnvidia-ml.so.1"), str(source))
    subprocess.run(argv, check=True)
    return folder
