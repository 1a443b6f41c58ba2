"""Repairs of a program's environment fit the cards, the driver and the CUDA of that environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from steps.doctor.diagnosis import Diagnosis
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.captured import CapturedHost, parse_capture
from tests.doctor import kit

MACHINES = Path(__file__).parents[1] / "machines"
_CPU = "AssertionError: Torch not compiled with CUDA enabled\n"


def on(name: str, log: str) -> Diagnosis:
    """Return the cause of a log on a recorded machine."""
    host = CapturedHost(parse_capture((MACHINES / f"{name}.json").read_bytes()), name)
    cause = judge(Evidence(host, (("log", (log.encode(),)),))).cause
    assert cause is not None
    return cause


def told(cause: Diagnosis) -> list[tuple[str, str]]:
    """Return the steps of a repair with what is typed for each."""
    return [(step.says.key.rpartition(".")[2], " ".join(step.command or ())) for step in cause.repair.steps]


_SMI = "| NVIDIA-SMI 580.95.05    Driver Version: 580.95.05    CUDA Version: 13.0 |\n"


def logged(text: str) -> Diagnosis:
    """Return the cause of a log on a machine of which only the driver is known."""
    cause = kit.judged(files={"/etc/os-release": "ID=ubuntu\n"}, logs={"python.log": text}, commands={"nvidia-smi": _SMI}).cause
    assert cause is not None
    return cause


@pytest.mark.parametrize(
    ("machine", "key", "build"),
    [
        ("rtx4090x4-epyc", "cuda-build", "+cu126 "),  # driver 550 runs no CUDA 13
        ("vm-p100-passthrough", "cuda-build", "+cu126 "),  # CUDA 13 has no code for Pascal
        ("p40-3090-mixed", "cuda-build", "+cu126 "),
        ("rtx5090-u2404-fresh", "cuda-build-any-driver", "+cu130 "),
        ("xe9680-mi300x", "rocm-build", "+rocm"),
        ("nogpu-dell-r6515", "no-card", "bringup detect"),
        ("gtx1080ti-u1804", "build-needs-driver", "apply"),  # driver 430
    ],
)
def test_the_build_of_pytorch_is_one_that_runs_on_that_machine(machine: str, key: str, build: str) -> None:
    ((said, command),) = told(on(machine, _CPU))
    assert said == key
    assert build in command


def test_the_proof_of_a_build_for_amds_cards_names_hip_and_one_for_nvidias_cuda() -> None:
    for name, word in (("xe9680-mi300x", "torch.version.hip"), ("rtx4090x4-epyc", "torch.version.cuda")):
        verify = on(name, _CPU).repair.verify
        assert verify is not None
        assert word in " ".join(verify.command or ())


def test_the_release_that_is_here_stays_where_a_build_of_it_runs() -> None:
    ((_, command),) = told(on("rtx4090x4-epyc", f"torch==2.6.0+cpu\ntorchvision==0.21.0+cpu\n{_CPU}"))
    assert "torch==2.6.0+cu1" in command
    assert "torchvision==0.21.0" in command


def test_an_old_card_gets_the_last_build_with_its_code() -> None:
    text = (
        "Found GPU1 Tesla V100-PCIE-16GB which is of cuda capability 7.0.\n"
        "PyTorch no longer supports this GPU because it is too old.\n"
        "The minimum cuda capability supported by this library is 7.5.\n"
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    )
    ((key, command),) = told(logged(text))
    assert key == "older-build"
    assert "+cu126" in command


_BLACKWELL = (
    "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.\n"
    "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
)


def test_the_card_that_was_named_and_the_driver_that_is_here_decide_the_build_together() -> None:
    cause = on("rtx4090x4-epyc", _BLACKWELL)  # driver 550 runs no build with code for Blackwell
    ((key, command),) = told(cause)
    assert (cause.id, key) == ("wheel-lacks-gpu-kernels", "build-needs-driver")
    assert "apply" in command
    assert {"driver": "550", "least": "570"}.items() <= {
        name: str(value).partition(".")[0] for name, value in cause.repair.steps[0].says.params.items()
    }.items()
    ((key, command),) = told(logged(_BLACKWELL))
    assert key == "newer-build"
    assert "+cu13" in command or "+cu128" in command


_LT12 = "cannot open shared object file: No such file or directory\n"


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (
            f"[E:onnxruntime] Failed to load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.12: {_LT12}",
            [("libraries-beside", "python -m pip install onnxruntime-gpu[cuda,cudnn]"), ("preload", "python -c import onnxruntime;")],
        ),
        (f"./darknet: error while loading shared libraries: libcublasLt.so.12: {_LT12}", [("program-of-major", "ldconfig -p")]),
        (f"ImportError: libcudnn.so.9: {_LT12}", [("program-of-major", "ldconfig -p")]),
    ],
)
def test_a_missing_library_repairs_the_program_that_asked_for_it(text: str, steps: list[tuple[str, str]]) -> None:
    found = told(logged(text))
    assert [key for key, _ in found] == [key for key, _ in steps]
    assert all(command.startswith(start) for (_, command), (_, start) in zip(found, steps, strict=True))


_CUDNN = "ImportError: libcudnn.so.8: cannot open shared object file: No such file or directory\n"


@pytest.mark.parametrize(
    ("wheels", "step"),
    [
        ("torch==2.6.0+cu124\nnvidia-cudnn-cu12==9.1.0.70\n", ("cudnn-major", "python -m pip install nvidia-cudnn-cu12==8.*")),
        ("torch==2.9.1\nnvidia-cudnn-cu12==9.1.0.70\n", ("cudnn-major", "python -m pip install nvidia-cudnn-cu12==8.*")),
        ("torch==2.14.1+cu130\nnvidia-cudnn-cu13==9.12.0.46\n", ("cudnn-by-hand", "")),  # cuDNN 8 was never built for CUDA 13
        ("torch==2.9.1\nlibcudnn.so.9\n", ("cudnn-by-hand", "")),
    ],
)
def test_cudnn_is_for_the_cuda_of_the_environment_not_of_the_driver(wheels: str, step: tuple[str, str]) -> None:
    cause = logged(wheels + _CUDNN)
    assert cause.id == "cudnn-major-mismatch"
    assert told(cause) == [step]


@pytest.mark.parametrize(
    ("wheels", "key", "package"), [("torch==2.6.0+cu124\n", "newer-nccl", "nvidia-nccl-cu12"), ("", "nccl-by-hand", "")]
)
def test_nccl_is_for_the_cuda_of_the_environment(wheels: str, key: str, package: str) -> None:
    case = next(one for one in kit.made_up("frameworks")["case"] if one["cause"] == "nccl-too-old-for-gpu")
    logs = {**case.get("logs", {}), "pip.log": wheels}
    cause = kit.judged(files=case.get("files"), commands={**case.get("commands", {}), "nvidia-smi": _SMI}, logs=logs).cause
    assert cause is not None
    assert cause.id == "nccl-too-old-for-gpu"
    ((said, command),) = told(cause)
    assert said == key
    assert package in command


@pytest.mark.parametrize(
    ("machine", "extra"), [("rtx4090x4-epyc", "cuda12"), ("rtx5090-u2404-fresh", "cuda12"), ("rtx5090-3090ti-mixed", "cuda13")]
)
def test_jax_comes_with_the_cuda_that_the_driver_runs(machine: str, extra: str) -> None:
    cause = on(machine, "CUDA-enabled jaxlib is not installed. Falling back to cpu.\n")
    assert cause.id == "cpu-only-build-active"
    assert f"jax[{extra}]" in told(cause)[0][1]
