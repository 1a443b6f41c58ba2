"""What CUDA's runtime, its compilers and what is built on them say, as events, with the look-alike beside each."""

from __future__ import annotations

from typing import Any

import pytest

from steps.doctor.events.base import Event
from steps.doctor.events.builds import CompilerShown, CpuBuild
from steps.doctor.events.cuda import CudaError, DriverUnseen
from steps.doctor.events.libraries import LibraryMissing
from steps.doctor.events.nvml import NvmlError
from tests.doctor import kit

_RUNTIME = {"name": "libcudart.so", "major": None, "kind": "cuda"}
_COLLECTED = "PyTorch version: 2.2.2\nCUDA used to build PyTorch: Could not collect\nROCM used to build PyTorch: N/A\n\n"
_CARDS = "Is CUDA available: False\nGPU models and configuration: \nGPU 0: Tesla T4\nGPU 1: Tesla T4\n"

TABLE: tuple[tuple[str, type[Event], dict[str, Any] | None], ...] = (
    ("cudaGetDeviceCount returned 30\n-> unknown error", CudaError, {"number": 999}),
    ("cudaGetDeviceCount() failed with error 30", CudaError, {"number": 999}),
    ("CUDA error 30 at src/miner.cu:41", CudaError, {"number": 999}),
    ("cudaGetDeviceCount -> 30", CudaError, None),
    ("CUDA error 304 at src/miner.cu:41", CudaError, None),
    ("cudaGetDevice returned 30.5 ms later", CudaError, None),
    ("WARNING: No libcudart.so found! Install CUDA or the cudatoolkit package (anaconda)!", LibraryMissing, _RUNTIME),
    ("DEBUG: Possible options found for libcudart.so: set()", LibraryMissing, _RUNTIME),
    ("CUDA SETUP: Problem: The main issue seems to be that the main CUDA runtime library was not detected.", LibraryMissing, _RUNTIME),
    ("DEBUG: Possible options found for libcudart.so: {PosixPath('/usr/local/cuda/lib64/libcudart.so')}", LibraryMissing, None),
    ("CUDA_SETUP: WARNING! libcudart.so not found in any environmental path. Searching in backup paths...", LibraryMissing, None),
    ("CUDA SETUP: WARNING! libcuda.so not found! Do you have a CUDA driver installed?", DriverUnseen, {}),
    ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", NvmlError, {"trouble": "library-not-found"}),
    ("find libnvidia-ml.so in your system", NvmlError, None),
    (_COLLECTED + _CARDS, CpuBuild, {"what": "torch"}),
    (_COLLECTED + "GPU models and configuration: No CUDA\n", CpuBuild, None),
    (_COLLECTED + "GPU models and configuration: Could not collect\n", CpuBuild, None),
    (_COLLECTED.replace("N/A", "6.1.40091") + "GPU models and configuration: GPU 0: AMD Instinct MI250X\n", CpuBuild, None),
    (_COLLECTED.replace("Could not collect", "12.1") + _CARDS, CpuBuild, None),
    (
        "me@box:~$ /usr/local/cuda/bin/nvcc -V\nnvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.8, V12.8.93",
        CompilerShown,
        {"path": "/usr/local/cuda/bin/nvcc", "release": "12.8"},
    ),
    ("me@box:~$ /usr/local/cuda/bin/nvcc -V\nbash: /usr/local/cuda/bin/nvcc: No such file or directory", CompilerShown, None),
)  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "wanted"), TABLE, ids=[f"{kind.__name__}-{number}" for number, (_, kind, _) in enumerate(TABLE)])
def test_a_text_becomes_its_event(text: str, kind: type[Event], wanted: dict[str, Any] | None) -> None:
    assert kit.fields(text, kind) == ([] if wanted is None else [wanted])
