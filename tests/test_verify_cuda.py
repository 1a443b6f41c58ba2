"""The driver's own rung: a context and a kernel on each GPU, against a stand-in for libcuda that goes wrong in every way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steps import resources

SOURCE = Path(__file__).parent / "mock" / "cuda.c"


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the stand-in as libcuda.so.1; skips without a C compiler."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("cuda")
    subprocess.run(("cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", folder / "libcuda.so.1", SOURCE), check=True)
    return folder


def said(libraries: Path, told: str, *argv: str) -> dict[str, Any]:
    environ = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "CUDA_STAND_IN": told}
    program = resources.read_text("training", "verify_cuda.py")
    done = subprocess.run((sys.executable, "-I", "-c", program, *argv), capture_output=True, text=True, check=True, env=environ, timeout=60)
    (line,) = done.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_every_gpu_computes(libraries: Path) -> None:
    found = said(libraries, "gpus=3")
    assert (found["rung"], found["state"], found["value"], found["detail"]) == ("cuda", "passed", 3, "3 × Stand-in GPU")
    assert found["params"] == {"count": 3, "version": "12.8"}


@pytest.mark.parametrize(
    ("told", "code", "params"),
    [
        ("init=802", "cuda-error", {"call": "cuInit", "number": 802, "name": "CUDA_ERROR_SYSTEM_NOT_READY"}),
        ("init=100", "cuda-error", {"call": "cuInit", "number": 100, "name": "CUDA_ERROR_NO_DEVICE"}),
        ("init=999", "cuda-error", {"call": "cuInit", "number": 999, "name": "?"}),
        ("gpus=0", "cuda-none", {}),
        ("launch=700 on=1", "cuda-error", {"gpu": 1, "call": "cuLaunchKernel", "number": 700, "name": "?"}),
        ("wrong on=1", "cuda-wrong", {"gpu": 1, "at": 17}),
        ("crash on=0", "cuda-killed", {"gpu": 0, "signal": 11}),
        ("hang on=1", "cuda-hung", {"gpu": 1, "seconds": 1}),
    ],
)
def test_what_goes_wrong_is_named_with_its_gpu(libraries: Path, told: str, code: str, params: dict[str, object]) -> None:
    found = said(libraries, told, "--limit", "1")
    assert (found["state"], found["code"], found.get("params", {})) == ("failed", code, params)


@pytest.mark.parametrize("value", ["", "-1"])
def test_what_hides_every_gpu_is_named(libraries: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    found = said(libraries, "gpus=3")
    assert (found["state"], found["code"], found["params"]) == ("failed", "hidden", {"value": value})


def test_without_the_library_the_reason_is_the_loaders(tmp_path: Path) -> None:
    found = said(tmp_path, "")
    assert found["state"] == "failed"
    assert "libcuda.so.1" in found["text"]
