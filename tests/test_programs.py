"""The programs of assets/training without any framework: what they decide, and that they run under every Python a machine may have."""

from __future__ import annotations

import importlib
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from steps import proof, resources

PYTHONS = ("3.8", "3.9", "3.13")


def interpreter(line: str) -> str:
    """Return a Python of this line; skips where there is none."""
    own = sorted((Path.home() / ".pyenv/versions").glob(f"{line}.*/bin/python"))
    found = str(own[0]) if own else shutil.which(f"python{line}")
    if found is None:
        pytest.skip(f"needs Python {line}")
    return found


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the program that measures, as a module."""
    monkeypatch.syspath_prepend(str(Path(resources.path_of("training", "ranks.py")).parent))
    return importlib.import_module("verify_speed")


@pytest.fixture
def deaf() -> Iterator[int]:
    """Return a port that takes no connection and refuses none: its queue is full."""
    with socket.socket() as door, socket.socket() as one, socket.socket() as other:
        door.bind(("127.0.0.1", 0))
        door.listen(0)
        for waiting in (one, other):
            waiting.setblocking(False)
            waiting.connect_ex(door.getsockname())
        yield int(door.getsockname()[1])


@pytest.mark.parametrize("line", PYTHONS)
def test_a_node_says_what_timed_out_under_every_python(line: str, deaf: int) -> None:
    program = resources.read_text("training", "node.py")

    def said(*argv: str) -> str:
        done = subprocess.run((interpreter(line), "-I", "-c", program, *argv), capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.strip()

    assert said("connect", "127.0.0.1", str(deaf), "0.5") == "error 110 ETIMEDOUT"
    assert said("listen", "127.0.0.1", "0", "0.2") == "nobody"


def test_a_slow_link_is_measured_with_a_smaller_message_and_a_fast_one_with_the_largest(measuring: ModuleType) -> None:
    small, most = measuring.SMALL_BYTES, measuring.MOST_BYTES
    gigabit = small / 0.1e9
    assert measuring.fitting(gigabit, most, 2.0) == pytest.approx(0.2e9, rel=0.01)
    assert measuring.fitting(small / 400e9, most, 2.0) == most
    # Whatever the link: all rounds end within the limit.
    for rate in (0.02e9, 0.1e9, 1e9, 10e9, 400e9):
        size = measuring.fitting(small / rate, most, measuring.ROUND_SECONDS)
        assert (1 + measuring.WARM + measuring.ROUNDS) * size / rate < measuring.LIMIT / 2


def test_a_torch_that_cannot_be_imported_is_found_by_the_program_itself_and_not_once_a_rung(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch_cpu.so: cannot open')\n")
    text = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + proof.program_text("verify_speed.py")
    done = subprocess.run((sys.executable, "-I", "-c", text), capture_output=True, text=True, check=True, timeout=60)
    (line,) = done.stdout.splitlines()
    assert json.loads(line) == {"rung": "speed", "state": "failed", "text": "ImportError: libtorch_cpu.so: cannot open"}
