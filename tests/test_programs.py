"""The programs of assets/training without any framework: what they decide, and that they run under every Python a machine may have."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

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
    assert said("listen", "::1", "0", "0.2") == "nobody"


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


LOST = """
class cuda:
    @staticmethod
    def is_available(): {counting}
    @staticmethod
    def device_count(): return 0
float32, bfloat16, float16 = "torch.float32", "torch.bfloat16", "torch.float16"
def set_float32_matmul_precision(_): pass
def randn(*_, device): return __import__("builtins").exit(f"computed on {{device}}")
__version__ = "2.13.0+cu130"
"""
"""A PyTorch that sees no GPU any more."""


def measured(folder: Path, counting: str, *argv: str) -> dict[str, dict[str, object]]:
    """Return what the program that measures says beside a PyTorch that counts so, by rung."""
    package = folder / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(LOST.format(counting=counting))
    (package / "distributed.py").write_text("")
    text = f"import sys; sys.path.insert(0, {str(folder)!r})\n" + proof.program_text("verify_speed.py")
    done = subprocess.run((sys.executable, "-I", "-c", text, *argv), capture_output=True, text=True, check=True, timeout=60)
    return {line["rung"]: line for line in map(json.loads, done.stdout.splitlines())}


def test_nothing_is_measured_on_the_processor_where_a_gpu_is_gone(tmp_path: Path) -> None:
    assert measured(tmp_path, "return False", "--gpus", "2") == {"seen": {"rung": "seen", "state": "passed", "value": 0}}


@pytest.mark.parametrize(("counting", "code"), [("import os; os.kill(os.getpid(), 11)", "killed"), ("import time; time.sleep(60)", "hung")])
def test_a_count_that_crashes_or_hangs_is_no_count_of_zero(tmp_path: Path, counting: str, code: str) -> None:
    found = measured(tmp_path, counting, "--limit", "1")
    assert list(found) == ["seen"]
    assert (found["seen"]["state"], found["seen"]["code"]) == ("failed", code)


def test_a_gpu_that_goes_between_the_count_and_a_rung_breaks_the_rung(measuring: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        float32 = "torch.float32"
        version = SimpleNamespace(hip=None)

        class cuda:  # noqa: N801 - PyTorch's own name
            @staticmethod
            def is_available() -> bool:
                return False

            @staticmethod
            def get_device_capability() -> tuple[int, int]:
                raise RuntimeError("No CUDA GPUs are available")

    monkeypatch.setitem(sys.modules, "torch", Gone)
    training = importlib.import_module("verify_torch")
    assert training.device_of() == "cpu"
    monkeypatch.setattr(training, "SEEN", [2])
    assert (training.device_of(), training.gpus()) == ("cuda:0", 2)
    with pytest.raises(RuntimeError, match="No CUDA GPUs"):
        measuring.half_precision(gpu=True)


@pytest.mark.parametrize(
    ("gpu", "capability", "hip", "half"),
    [
        (True, (9, 0), None, "bfloat16"),
        (True, (8, 0), None, "bfloat16"),
        (True, (7, 5), None, "float16"),
        (True, (9, 0), "6.4", "bfloat16"),
        (False, (0, 0), None, "bfloat16"),
    ],
    ids=["H100", "A100", "T4", "MI300X", "processor"],
)
def test_half_precision_is_one_that_the_card_has_and_does_not_imitate(
    measuring: ModuleType, monkeypatch: pytest.MonkeyPatch, gpu: bool, capability: tuple[int, int], hip: str | None, half: str
) -> None:
    cuda = SimpleNamespace(get_device_capability=lambda: capability, is_bf16_supported=lambda: True)
    torch = SimpleNamespace(cuda=cuda, version=SimpleNamespace(hip=hip), bfloat16="bfloat16", float16="float16")
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert measuring.half_type(gpu=gpu) == half


def test_a_checkpoint_is_on_the_disk_before_it_takes_the_old_ones_place_and_its_name_after(
    measuring: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(opened: int) -> None:
        events.append(("fsync", Path(f"/proc/self/fd/{opened}").readlink().name))
        fsync(opened)

    def replaced(old: Path, new: Path) -> None:
        events.append(("replace", new.name))
        replace(old, new)

    class Part:
        @staticmethod
        def state_dict() -> str:
            return "numbers"

    torch = ModuleType("torch")
    named = ("torch.distributed", "torch.nn", "torch.nn.parallel")
    for name, module in {"torch": torch, **{name: ModuleType(name) for name in named}}.items():
        monkeypatch.setitem(sys.modules, name, module)
    torch.distributed, sys.modules["torch.nn.parallel"].DistributedDataParallel = sys.modules["torch.distributed"], object  # type: ignore[attr-defined]
    torch.save = lambda what, path: Path(path).write_text(str(what))  # type: ignore[attr-defined]
    sample = importlib.import_module("checkpoint_resume")
    monkeypatch.setattr(sample.os, "fsync", synced)
    monkeypatch.setattr(sample.os, "replace", replaced)
    sample.save(tmp_path / "run" / "checkpoint.pt", Part(), Part(), 5)
    monkeypatch.delitem(sys.modules, "checkpoint_resume")
    assert events == [("fsync", "checkpoint.partial"), ("replace", "checkpoint.pt"), ("fsync", "run")]
    assert "'step': 5" in (tmp_path / "run" / "checkpoint.pt").read_text()
