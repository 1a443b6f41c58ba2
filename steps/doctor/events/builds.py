"""What pip installs, and what compilers say while extensions are built."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Wheel(Event):
    """A Python package in a list, an installation or a message; `name` is as pip normalises it."""

    name: str
    version: str


_WHEELS = (
    "torch|torchvision|torchaudio|tensorflow|tensorflow-cpu|tensorflow-gpu|jax|jaxlib|jax-cuda1[23]-plugin|onnxruntime|onnxruntime-gpu|"
    "nvidia-nccl-cu1[123]|nvidia-cudnn-cu1[123]|nvidia-cublas-cu1[123]|nvidia-cublas|nvidia-cudnn|paddlepaddle|paddlepaddle-gpu|mxnet|"
    "habana-torch-plugin|habana-torch-dataloader|habana-pyhlml"
)


@parses(
    rf"(?:^|[ +'\"])(?P<name>{_WHEELS})(?P<between>==|=|@| +\(?|-)(?P<version>\d+\.\d+[\w.+!]*)\)?(?=$|[ ,;'\"\]])",
    "torch==", "torch ", "torch-", "torch=", "torch @", "torchvision", "torchaudio", "tensorflow", "jax", "onnxruntime", "nvidia-",
    "paddlepaddle", "mxnet", "habana-",
)  # fmt: skip
def wheel(found: re.Match[str], at: Place) -> Wheel | None:
    """Recognise a line of `pip list`, `pip freeze`, `conda list`, and what pip and uv say that they installed."""
    return Wheel(place=at, name=found["name"].lower().replace("_", "-"), version=found["version"].rstrip("."))


@parses(
    r"torch\.__version__[^\n\d]{0,80}\n?(?:>>> )?['\"]?(?P<version>\d+\.\d+\.\d[\w.+]*)",
    "torch.__version__",
    lines=2,
)  # fmt: skip
def torch_says(found: re.Match[str], at: Place) -> Wheel:
    """Recognise what the interpreter answers to the question for PyTorch's version."""
    return Wheel(place=at, name="torch", version=found["version"].rstrip("."))


class CpuBuild(Event):
    """A framework says that it was built without CUDA, or lists no provider for it; `what` is its name."""

    what: str


LLAMA = "llama.cpp"
"""It says which libraries it was built with, whoever asks."""

_CPU_SAID: tuple[tuple[str, str], ...] = (
    ("torch not compiled with cuda", "torch"),
    ("torch.version.cuda", "torch"),
    ("cuda-enabled jaxlib is not installed", "jaxlib"),
    ("tensorflow binary was not built with cuda", "tensorflow"),
    ("not built with cuda", "tensorflow"),
    ("executionprovider", "onnxruntime"),
    ("paddlepaddle", "paddlepaddle"),
    ("cuda used to build pytorch", "torch"),
    ("is_built_with_cuda", "tensorflow"),
    ("not compiled with cuda", "torch"),
    ("compiled without gpu support", "bitsandbytes"),
    ("not compiled with gpu", "an extension"),
    ("compiled without cuda", "OpenCV"),
    ("blas = 0", LLAMA),
)


@parses(
    r"(?:Torch not compiled with CUDA enabled|(?:PaddlePaddle (?:is )?)?[Nn]ot compiled with (?:CUDA|GPU (?:offload )?support)|"
    r"not built with CUDA|CUDA-enabled jaxlib is not installed|compiled without (?:GPU|CUDA) support|CUDA used to build PyTorch: None|"
    r"is_built_with_cuda\(\)\)? *\n?(?:[>.]{3} *)?False\b|"
    r"\bF16C = \d[^\n]{0,80}\bBLAS = 0 \||"
    r"torch\.version\.cuda(?:\)|:| *=+| *is)? *\n?(?:[>.]{3} *)?(?:None|none)\b|"
    r"\[(?:'(?!CUDA|Tensorrt|ROCM)\w+ExecutionProvider'(?:, *)?)*'CPUExecutionProvider'\]|"
    r"Specified provider ['‘\"]CUDAExecutionProvider['’\"] is not in available provider names)",
    "ot compiled with CUDA", "ot compiled with GPU", "ot built with CUDA", "CUDA-enabled jaxlib", "without GPU support",
    "without CUDA support", "torch.version.cuda", "ExecutionProvider", "used to build PyTorch", "is_built_with_cuda", "BLAS = 0",
    lines=2,
)  # fmt: skip
def cpu_build(found: re.Match[str], at: Place) -> CpuBuild | None:
    """Recognise that the program cannot use CUDA at all."""
    text = found[0].lower()
    return next((CpuBuild(place=at, what=what) for words, what in _CPU_SAID if words in text), None)


@parses(
    r"CUDA used to build PyTorch: Could not collect\W{1,9}ROCM used to build PyTorch: N/A\b"
    r".{0,2000}?\bGPU models and configuration:\s{0,9}GPU \d+: ",
    "used to build PyTorch: Could not",
    lines=40,
    flags=re.DOTALL,
)  # fmt: skip
def uncollected_cuda(found: re.Match[str], at: Place) -> CpuBuild:
    """Recognise the report of a PyTorch that knows of no CUDA, on a machine whose cards the same report lists."""
    return CpuBuild(place=at, what="torch")


@parses(
    r"\b(?P<name>(?:py|lib)torch|jaxlib|tensorflow(?:-base)?|onnxruntime)(?: +|[-=])\d[\w.]*(?: +|[-=])(?:py[\d.]+_|\w+_)?cpu(?:_\w+)?\b|"
    r"\bpytorch-mutex(?: +|[-=])[\d.]+(?: +|[-=])cpu\b|(?:^|::)cpuonly(?: +|[-=])\d",
    "pytorch ", "pytorch-", "pytorch=", "libtorch", "jaxlib ", "jaxlib-", "jaxlib=", "tensorflow", "onnxruntime",
    "cpuonly ", "cpuonly-", "cpuonly=",
)  # fmt: skip
def conda_cpu(found: re.Match[str], at: Place) -> CpuBuild:
    """Recognise a conda package by its build string, and the package that asks for such builds."""
    return CpuBuild(place=at, what=(found["name"] or "torch").removeprefix("py").removeprefix("lib"))


class PackageGone(Event):
    """pip was told to install a package that holds nothing any more."""

    name: str


@parses(
    r"(?:tensorflow[-_]gpu-\d[\d.]*\.tar\.gz(?: \(\d+(?:\.\d+)? kB\))?|"
    r"The \"tensorflow-gpu\" package has been removed|No matching distribution found for tensorflow-gpu|"
    r"Could not find a version that satisfies the requirement tensorflow-gpu|"
    r"Because (?:only )?tensorflow-gpu[^\n]{0,200}(?:unsatisfiable|no versions?|not found)|Failed to build [`'\"]?tensorflow-gpu)",
    "tensorflow-gpu", "tensorflow_gpu",
)  # fmt: skip
def package_gone(found: re.Match[str], at: Place) -> PackageGone:
    """Recognise the empty archive of tensorflow-gpu, and what pip and uv say of it."""
    return PackageGone(place=at, name="tensorflow-gpu")


class CompilerRefused(Event):
    """nvcc does not take a host compiler of this age; `header` tells which nvcc it was, `None` where a report shows its line only."""

    header: str | None
    newest: int


@parses(
    r"(?P<header>/\S*host_config\.h):\d+[^|]{0,40}?[Uu]nsupported (?:GNU|clang) version!? (?:(?:gcc|clang) versions? )?"
    r"later than (?P<newest>\d+)|"
    r"(?P<old>/\S*host_config\.h):\d+.{0,40}?unsupported GNU version! gcc (?P<up>\d+)(?:\.(?P<minor>\d+))? and up are not supported|"
    r"(?P<other>/\S*host_config\.h):\d+.{0,40}?unsupported clang version! clang version must be less than (?P<below>\d+)",
    "nsupported GNU version", "nsupported clang version", "host_config.h",
    lines=2,
)  # fmt: skip
def compiler_refused(found: re.Match[str], at: Place) -> CompilerRefused:
    """Recognise the error of the header that checks compilers."""
    return CompilerRefused(place=at, header=found["header"] or found["old"] or found["other"], newest=_newest(found))


@parses(
    r"#error -- unsupported (?:GNU|clang) version! (?:gcc|clang) "
    r"(?:versions? later than (?P<newest>\d+) are|(?P<up>\d+)(?:\.(?P<minor>\d+))? and up are|"
    r"version must be less than (?P<below>\d+))",
    "#error -- unsupported",
)  # fmt: skip
def compiler_refused_somewhere(found: re.Match[str], at: Place) -> CompilerRefused | None:
    """Recognise the line of the header by itself, as compilers repeat it; the one with the header's name says more."""
    if "host_config.h" in at.text:
        return None
    return CompilerRefused(place=at, header=None, newest=_newest(found))


def _newest(found: re.Match[str]) -> int:
    """Return the newest major that is taken: "4.9 and up" still leaves earlier ones of 4, "6 and up" leaves 5."""
    if found["newest"]:
        return int(found["newest"])
    return int(found["up"]) if int(found["minor"] or 0) else max(0, int(found["up"] or found["below"]) - 1)


class HeadersRejected(Event):
    """nvcc cannot read the headers of the host compiler; `compiler` is its major."""

    compiler: int


@parses(r"/usr/(?:include|lib\S*/include)/c\+\+/(?P<major>\d+)\S*:\d+: error: parameter packs not expanded with", "parameter packs not")
def headers_rejected(found: re.Match[str], at: Place) -> HeadersRejected:
    """Recognise what nvcc of a toolkit older than the compiler makes of its templates."""
    return HeadersRejected(place=at, compiler=int(found["major"]))


class CompilerShown(Event):
    """Somebody asked an nvcc for its version, by the path that was typed: a bare name is the one that is found first."""

    path: str
    release: str


@parses(
    r"^[^\n]{0,160}[$#%>❯➜] *(?P<path>(?:/\S*/)?nvcc) +(?:-V|--version)[ \t]{0,6}\n.{0,200}?"
    r"Cuda compilation tools, release (?P<release>\d+\.\d+)",
    "nvcc -V", "nvcc --version",
    lines=6,
    flags=re.DOTALL,
    typed=True,
)  # fmt: skip
def compiler_shown(found: re.Match[str], at: Place) -> CompilerShown:
    """Recognise the question behind a prompt, with its answer."""
    return CompilerShown(place=at, path=found["path"], release=found["release"])


class HeaderMissing(Event):
    """A compiler stopped at a header that is not there."""

    header: str


@parses(r"fatal error: ['\"]?(?P<header>[\w./+-]+\.(?:h|hpp|cuh))['\"]?(?:: No such file| file not found)", "fatal error: ")
def header_missing(found: re.Match[str], at: Place) -> HeaderMissing:
    """Recognise gcc's and clang's fatal error."""
    return HeaderMissing(place=at, header=found["header"])


class CompilerDiffers(Event):
    """nvcc is of another CUDA than PyTorch; `refused` when the build stopped for it, else it is a warning."""

    nvcc: str
    torch: str
    refused: bool


@parses(
    r"detected CUDA version \((?P<nvcc>\d+\.\d+)\) (?P<how>mismatches the version|has a minor version mismatch with the version) "
    r"that was used to compile PyTorch \((?P<torch>\d+\.\d+)\)",
    "The detected CUDA version",
    lines=3,
)  # fmt: skip
def compiler_differs(found: re.Match[str], at: Place) -> CompilerDiffers:
    """Recognise what PyTorch's extension builder says: other majors are an error, other minors a warning."""
    return CompilerDiffers(place=at, nvcc=found["nvcc"], torch=found["torch"], refused=found["how"].startswith("mismatches"))


@parses(
    r"compiled with a version of Cuda that does not match the version used to compile Pytorch binaries.{0,20}?"
    r"(?:Pytorch binaries were compiled with Cuda (?P<torch>\d+\.\d+))?",
    "not match the version used to compile Pytorch",
    lines=2,
)  # fmt: skip
def apex_differs(found: re.Match[str], at: Place) -> CompilerDiffers:
    """Recognise apex, which compares by itself and does not repeat what nvcc is of."""
    return CompilerDiffers(place=at, nvcc="?", torch=found["torch"] or "?", refused=True)


@parses(
    r"Installed CUDA version (?P<nvcc>\d+\.\d+) does not match the version torch was compiled with (?P<torch>\d+\.\d+)",
    "does not match the version torch was compiled",
)  # fmt: skip
def builder_differs(found: re.Match[str], at: Place) -> CompilerDiffers:
    """Recognise what DeepSpeed says before it goes on to build."""
    return CompilerDiffers(place=at, nvcc=found["nvcc"], torch=found["torch"], refused=False)
