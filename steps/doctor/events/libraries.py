"""What the loader and frameworks say of the libraries of CUDA and cuDNN, and which of them lie where."""

from __future__ import annotations

import re
from typing import Literal

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place

LibraryKind = Literal["cuda", "cudnn", "nccl"]
_CUDA_LIBRARIES = (
    r"cublasLt|cublas|cudart|cufft|curand|cusolver|cusparse|cusparseLt|nvJitLink|nvrtc|nvrtc-builtins|cupti|npp\w{1,4}|nvToolsExt|cufile"
)
_LIBRARY = rf"lib(?P<name>{_CUDA_LIBRARIES}|cudnn\w*|nccl|nvinfer\w*)\.so\.(?P<major>\d+)(?:\.(?P<minor>\d+))?[\d.]*"


RUNTIME = "libcudart.so"
"""CUDA's runtime under the name without a version, which bitsandbytes searches for."""


class LibraryMissing(Event):
    """The loader found no file of this name; `major` is the one that was wanted, `None` where any would do."""

    name: str
    major: int | None
    kind: LibraryKind
    supposed: bool = False
    """Whether a program only says that it goes without, which it also does where the library is there and does not start."""


class CudnnIdle(Event):
    """cuDNN was loaded, and did not start: it wants memory, a newer driver or another CUDA."""


def _missing(found: re.Match[str], at: Place) -> LibraryMissing | None:
    """Return what is missing; TensorRT's libraries are an extra that TensorFlow looks for and does without."""
    if found["name"].startswith("nvinfer"):
        return None
    return LibraryMissing(place=at, name=f"lib{found['name']}.so.{found['major']}", major=int(found["major"]), kind=_kind(found["name"]))


@parses(
    rf"(?:(?:Error|dlerror|error|library|Unable to load|loading shared libraries|FATAL|load dynamic library)\W*)"
    rf"{_LIBRARY}:? *(?:cannot open shared object file|not found|No such file)",
    "cannot open shared object", "libcudnn",
)  # fmt: skip
def library_missing(found: re.Match[str], at: Place) -> LibraryMissing | None:
    """Recognise the loader's own words: what cannot be opened is the name right before them, not the one before that."""
    return _missing(found, at)


@parses(
    rf"(?:^|[\s(/'\"])lib(?P<name>{_CUDA_LIBRARIES}|cudnn\w*)\.so: +cannot open shared object",
    "cannot open shared object",
)  # fmt: skip
def library_of_any_version_missing(found: re.Match[str], at: Place) -> LibraryMissing:
    """Recognise a program that asks for the name without a version, as Paddle does."""
    return LibraryMissing(place=at, name=f"lib{found['name']}.so", major=None, kind=_kind(found["name"]))


@parses(
    rf"Couldn['’]t open CUDA library lib(?!cupti)(?P<name>{_CUDA_LIBRARIES}|cudnn\w*)\.so(?:\.(?P<major>\d+))?",
    "open CUDA library",
)  # fmt: skip
def library_unopened(found: re.Match[str], at: Place) -> LibraryMissing:
    """Recognise TensorFlow before 1.14; CUPTI is an extra that it did without."""
    major, name = found["major"], f"lib{found['name']}.so"
    return LibraryMissing(
        place=at, name=f"{name}.{major}" if major else name, major=int(major) if major else None, kind=_kind(found["name"])
    )


@parses(r"DNN library is not found", "DNN library is not")
def cudnn_of_xla_unfound(found: re.Match[str], at: Place) -> LibraryMissing:
    """Recognise the last word of JAX and TensorFlow, whatever was before it."""
    return LibraryMissing(place=at, name="libcudnn.so", major=None, kind="cudnn", supposed=True)


@parses(r"(?:Could not create cudnn handle|error before creating cudnn handle)", "create cudnn handle", "creating cudnn handle")
def cudnn_idle(found: re.Match[str], at: Place) -> CudnnIdle:
    """Recognise XLA."""
    return CudnnIdle(place=at)


@parses(
    r"No libcudart\.so found!|options found for libcudart\.so: set\(\)|main CUDA runtime library was not detected",
    "No libcudart.so", "found for libcudart.so", "runtime library was not",
)  # fmt: skip
def runtime_of_bitsandbytes(found: re.Match[str], at: Place) -> LibraryMissing:
    """Recognise bitsandbytes at the end of its search; that the first folders did not have it is only a step on its way."""
    return LibraryMissing(place=at, name=RUNTIME, major=None, kind="cuda")


@parses(r"Unable to load cuDNN\. Is it installed\?", "Unable to load cuDNN")
def cudnn_of_jax(found: re.Match[str], at: Place) -> LibraryMissing:
    """Recognise JAX, which does not say the file's name."""
    return LibraryMissing(place=at, name="libcudnn.so", major=None, kind="cudnn")


@parses(
    rf"^\s*{_LIBRARY} => not found",
    "=> not found",
)  # fmt: skip
def library_unresolved(found: re.Match[str], at: Place) -> LibraryMissing | None:
    """Recognise a line of ldd."""
    return _missing(found, at)


@parses(
    r"Unable to load any of \{[^}]*lib(?P<name>cudnn\w*)\.so\.(?P<major>\d+)[^}]*\}|"
    r"Could not load library lib(?P<same>cudnn\w*)\.so\.(?P<its>\d+)(?!\S* Error: lib(?!cudnn))",
    "Unable to load any of", "Could not load library libcudnn",
)  # fmt: skip
def cudnn_unloaded(found: re.Match[str], at: Place) -> LibraryMissing | None:
    """Recognise cuDNN's own loader, which tries several names of one of its parts."""
    major, name = found["major"] or found["its"], found["name"] or found["same"]
    return LibraryMissing(place=at, name=f"lib{name}.so.{major}", major=int(major), kind="cudnn")


def _kind(name: str) -> LibraryKind:
    return "cudnn" if name.startswith("cudnn") else "nccl" if name == "nccl" else "cuda"


class LibraryThere(Event):
    """A library that a list of files or the loader's cache shows; `path` is where it lies."""

    name: str
    major: int
    kind: LibraryKind
    path: str | None = None


@parses(
    rf"(?:^\s*|=> |\s)(?P<path>/\S*/{_LIBRARY})(?=\s|$)",
    "libcu", "libnv", "libnccl", "libnpp",
)  # fmt: skip
def library_there(found: re.Match[str], at: Place) -> LibraryThere | None:
    """Recognise a line of ldconfig -p, ls, find, locate or ldd."""
    if "cannot open" in at.text or "not found" in at.text:
        return None
    return LibraryThere(
        place=at,
        name=f"lib{found['name']}.so.{found['major']}",
        major=int(found["major"]),
        kind=_kind(found["name"]),
        path=found["path"],
    )


@parses(
    rf"^(?:[-l]r[\w-]{{8}}[.+@]? [^\n]{{10,90}}? )?{_LIBRARY}(?: -> \S+)?[ \t]*$",
    "libcu", "libnv", "libnccl", "libnpp",
)  # fmt: skip
def library_listed(found: re.Match[str], at: Place) -> LibraryThere:
    """Recognise a line of `ls` in the folder itself, short or long."""
    return LibraryThere(place=at, name=f"lib{found['name']}.so.{found['major']}", major=int(found["major"]), kind=_kind(found["name"]))


_CUDNN_FOLDERS = tuple(f"/{name}{behind}" for name in ("cudnn", "cuDNN") for behind in "-_/v156789")
"""How such a path goes on behind the name: long words cost a log that has none of them almost nothing."""


@parses(
    r"(?:^|[=:\s'\"])(?P<path>/(?:[^\s:'\"]*/)?cudnn[-_/]?v?(?P<major>[5-9])(?:\.\d[\w.]*)?(?P<more>-[\w.-]+)?/(?:lib|lib64)/?)(?=$|[:\s'\"])",
    *_CUDNN_FOLDERS,
    flags=re.IGNORECASE,
    typed=True,
)
def cudnn_folder(found: re.Match[str], at: Place) -> LibraryThere:
    """Recognise a version in a path of libraries that is searched; archives named CUDA's version first, and cuDNN's own behind a "v"."""
    own = re.search(r"-v(\d)", found["more"] or "")
    major = own[1] if own else found["major"]
    return LibraryThere(place=at, name=f"libcudnn.so.{major}", major=int(major), kind="cudnn", path=found["path"])


class LibrariesSkipped(Event):
    """TensorFlow goes on without GPUs since it could not load its libraries; `stub` when it did not even find libcudart."""

    stub: bool = False


@parses(
    r"(?:Cannot dlopen some GPU libraries|Could not find cuda drivers on your machine|Skipping registering GPU devices|"
    r"Could not load dynamic library 'libcuda\w+\.so)",
    "Cannot dlopen some GPU", "find cuda drivers", "Skipping registering GPU", "Could not load dynamic library",
)  # fmt: skip
def libraries_skipped(found: re.Match[str], at: Place) -> LibrariesSkipped:
    """Recognise TensorFlow's warnings."""
    return LibrariesSkipped(place=at, stub="cuda drivers" in found[0])


class CudnnVersions(Event):
    """A framework found another cuDNN than it was built with, both as (major, minor)."""

    built: tuple[int, int]
    loaded: tuple[int, int]
    blames_path: bool = False
    refused: bool = False
    """Whether the framework stops for any other version, a later one as well."""


@parses(
    r"PyTorch was compiled +against \((?P<a>\d+), (?P<b>\d+), \d+\) but found runtime version \((?P<c>\d+), (?P<d>\d+), \d+\)"
    r"(?P<more>.{0,400})",
    "but found runtime version",
    lines=6,
    flags=re.DOTALL,
)  # fmt: skip
def cudnn_of_torch(found: re.Match[str], at: Place) -> CudnnVersions:
    """Recognise PyTorch's check of cuDNN."""
    blames = "LD_LIBRARY_PATH" in found["more"]
    return CudnnVersions(place=at, built=(int(found["a"]), int(found["b"])), loaded=(int(found["c"]), int(found["d"])), blames_path=blames)


@parses(
    r"cuDNN version mismatch: PyTorch was compiled +against (?P<built>\d{4,5}) but linked against (?P<loaded>\d{4,5})|"
    r"Loaded runtime CuDNN library: (?P<runtime>\d{4,5}) .{0,60}?source was compiled with:? (?P<source>\d{4,5})|"
    r"Found cuDNN version (?P<found>\d{4,5}), but JAX was built against version (?P<jax>\d{4,5})|"
    r"Minimum supported: (?P<least>\d{4,5})\n[^\n]{0,8}Installed version: (?P<there>\d{4,5})\b",
    "but linked against", "Loaded runtime CuDNN library", "Found cuDNN version", "Minimum supported: ",
    lines=2,
)  # fmt: skip
def cudnn_by_number(found: re.Match[str], at: Place) -> CudnnVersions:
    """Recognise the checks of older PyTorch, of TensorFlow and of JAX, which print cuDNN's one number."""
    built = _cudnn(found["built"] or found["source"] or found["jax"] or found["least"])
    loaded = _cudnn(found["loaded"] or found["runtime"] or found["found"] or found["there"])
    return CudnnVersions(place=at, built=built, loaded=loaded, refused=found["built"] is not None or found["jax"] is not None)


def _cudnn(number: str) -> tuple[int, int]:
    """Return major and minor of cuDNN's number: 1000 a major before 9, 10000 since."""
    return (int(number) // 1000, int(number) % 1000 // 100) if len(number) == 4 else (int(number) // 10000, int(number) % 10000 // 100)


@parses(
    r"Loaded runtime CuDNN library: (?P<c>\d+)\.(?P<d>\d+)\.\d+ but source was compiled with: (?P<a>\d+)\.(?P<b>\d+)",
    "Loaded runtime CuDNN library",
)  # fmt: skip
def cudnn_of_xla(found: re.Match[str], at: Place) -> CudnnVersions:
    """Recognise the check of TensorFlow and JAX."""
    return CudnnVersions(place=at, built=(int(found["a"]), int(found["b"])), loaded=(int(found["c"]), int(found["d"])))
