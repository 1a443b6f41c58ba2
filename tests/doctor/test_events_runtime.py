"""What CUDA's runtime, its compilers, what is built on them, and rpm say, as events, with the look-alike beside each."""

from __future__ import annotations

from typing import Any

import pytest

from steps.doctor.events.base import Event
from steps.doctor.events.builds import CompilerShown, CpuBuild
from steps.doctor.events.cuda import CudaError, DriverOld, DriverUnseen
from steps.doctor.events.libraries import LibraryMissing
from steps.doctor.events.nvml import NvmlError
from steps.doctor.events.packages import Conflict, Overwrite
from tests.doctor import kit

_RUNTIME = {"name": "libcudart.so", "major": None, "kind": "cuda"}
_COLLECTED = "PyTorch version: 2.2.2\nCUDA used to build PyTorch: Could not collect\nROCM used to build PyTorch: N/A\n\n"
_QUARREL = (
    ("from install of", "conflicts with file from package"),
    ("de l'installation de", "entre en conflit avec le fichier du paquet"),
    ("aus der Installation von", "steht in Konflikt mit der Datei aus dem Paket"),
    ("из устанавливаемого пакета", "конфликтует с файлом из пакета"),
)
_YUM = {"name": "nvidia-driver-branch-440", "other": "nvidia-driver"}
_CARDS = "Is CUDA available: False\nGPU models and configuration: \nGPU 0: Tesla T4\nGPU 1: Tesla T4\n"

TABLE: tuple[tuple[str, type[Event], dict[str, Any] | None], ...] = (
    ("cudaGetDeviceCount returned 30\n-> unknown error", CudaError, {"number": 999}),
    ("cudaGetDeviceCount() failed with error 30", CudaError, {"number": 999}),
    ("CUDA error 30 at src/miner.cu:41", CudaError, {"number": 999}),
    ("cudaGetDeviceCount -> 30", CudaError, None),
    ("CUDA error 304 at src/miner.cu:41", CudaError, None),
    ("cudaGetDevice returned 30.5 ms later", CudaError, None),
    ("ptxas application ptx input, line 9; fatal   : Unsupported .version 8.5; current version is '8.4'", DriverOld, {}),
    ("ptxas /tmp/tmpabc.ptx, line 9; fatal   : Unsupported .version 8.5; current version is '8.4'", DriverOld, None),
    ("CudaAPIError: [222] Call to cuLinkAddData results in UNKNOWN_CUDA_ERROR", DriverOld, {}),
    ("CudaAPIError: [218] Call to cuLinkAddData results in CUDA_ERROR_INVALID_PTX", DriverOld, None),
    ("WARNING: No libcudart.so found! Install CUDA or the cudatoolkit package (anaconda)!", LibraryMissing, _RUNTIME),
    ("DEBUG: Possible options found for libcudart.so: set()", LibraryMissing, _RUNTIME),
    ("CUDA SETUP: Problem: The main issue seems to be that the main CUDA runtime library was not detected.", LibraryMissing, _RUNTIME),
    ("DEBUG: Possible options found for libcudart.so: {PosixPath('/usr/local/cuda/lib64/libcudart.so')}", LibraryMissing, None),
    ("CUDA_SETUP: WARNING! libcudart.so not found in any environmental path. Searching in backup paths...", LibraryMissing, None),
    ("CUDA SETUP: WARNING! libcuda.so not found! Do you have a CUDA driver installed?", DriverUnseen, None),
    ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", NvmlError, {"trouble": "library-not-found"}),
    ("find libnvidia-ml.so in your system", NvmlError, None),
    (_COLLECTED + _CARDS, CpuBuild, {"what": "torch"}),
    (_COLLECTED + "GPU models and configuration: No CUDA\n", CpuBuild, None),
    (_COLLECTED + "GPU models and configuration: Could not collect\n", CpuBuild, None),
    (_COLLECTED.replace("N/A", "6.1.40091") + "GPU models and configuration: GPU 0: AMD Instinct MI250X\n", CpuBuild, None),
    (_COLLECTED.replace("Could not collect", "12.1") + _CARDS, CpuBuild, None),
    (
        "dso_loader.cc:126] Couldn't open CUDA library libcudnn.so.5. LD_LIBRARY_PATH: /usr/local/cuda-8.0/lib64",
        LibraryMissing,
        {"name": "libcudnn.so.5", "major": 5, "kind": "cudnn"},
    ),
    ("Couldn't open CUDA library libcudnn.so. LD_LIBRARY_PATH: ", LibraryMissing, {"name": "libcudnn.so", "major": None, "kind": "cudnn"}),
    ("Couldn't open CUDA library libcupti.so.8.0. LD_LIBRARY_PATH: ", LibraryMissing, None),
    ("Couldn't open CUDA library libcuda.so.1. LD_LIBRARY_PATH: ", LibraryMissing, None),
    ("Couldn't open CUDA library libcuda.so.1. LD_LIBRARY_PATH: ", DriverUnseen, {}),
    (
        "RuntimeError: Unimplemented: DNN library is not found.",
        LibraryMissing,
        {"name": "libcudnn.so", "major": None, "kind": "cudnn", "supposed": True},
    ),
    (
        "me@box:~$ /usr/local/cuda/bin/nvcc -V\nnvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.8, V12.8.93",
        CompilerShown,
        {"path": "/usr/local/cuda/bin/nvcc", "release": "12.8"},
    ),
    *(
        (
            (f"file /usr/lib/udev/rules.d/60-nvidia.rules {said[0]} nvidia-kmod-common-3:545.29.02-5.fc39.noarch {said[1]} "
            "xorg-x11-drv-nvidia-3:535.129.03-2.fc39.x86_64"),
            Overwrite,
            {"file": "/usr/lib/udev/rules.d/60-nvidia.rules", "package": "xorg-x11-drv-nvidia"},
        )
        for said in _QUARREL
    ),
    (
        ("file /etc/X11/xorg.conf.d/10-nvidia.conf conflicts between attempted installs of xorg-x11-nvidia-3:560.35.03-2.el9.x86_64 "
        "and nvidia-driver-3:560.35.03-1.el9.x86_64"),
        Overwrite,
        {"file": "/etc/X11/xorg.conf.d/10-nvidia.conf", "package": "nvidia-driver", "both": True},
    ),
    (
        ("file /usr/share/nvidia/nvidia-application-profiles-rc from install of nvidia-driver-libs-3:560.35.03-1.el9.i686 conflicts with "
        "file from package nvidia-driver-libs-3:550.54.14-1.el9.x86_64"),
        Overwrite,
        {"file": "/usr/share/nvidia/nvidia-application-profiles-rc", "package": "nvidia-driver-libs", "shared": True},
    ),
    ("package nvidia-driver-3:545.23.08-1.fc37.x86_64 conflicts with file from nobody", Overwrite, None),
    ("Error: nvidia-driver-branch-440 conflicts with 3:nvidia-driver-465.19.01-1.el7.x86_64", Conflict, _YUM),
    ("--> Processing Conflict: 3:nvidia-driver-branch-440-440.118.02-1.el7.x86_64 conflicts nvidia-driver > 440.118.02", Conflict, None),
    ("me@box:~$ /usr/local/cuda/bin/nvcc -V\nbash: /usr/local/cuda/bin/nvcc: No such file or directory", CompilerShown, None),
)  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "wanted"), TABLE, ids=[f"{kind.__name__}-{number}" for number, (_, kind, _) in enumerate(TABLE)])
def test_a_text_becomes_its_event(text: str, kind: type[Event], wanted: dict[str, Any] | None) -> None:
    assert kit.fields(text, kind) == ([] if wanted is None else [wanted])
