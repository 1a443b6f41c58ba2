"""The CUDA and ROCm toolkits, cuDNN and NCCL of a machine, wherever they came from."""

from __future__ import annotations

import json
import re

from steps.detect.packages import Packages
from steps.detect.probes import Probes
from steps.model.software import Library, Toolkit

_TOOLKIT_FILES = ("version.json", "version.txt", "bin/nvcc")
NVCC = ("nvcc", "--version")
_VERSION = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)+)")


def toolkits(host: Probes, packages: Packages) -> tuple[Toolkit, ...]:
    """Return the toolkits on disk, those only named by packages among them."""
    found: dict[str, Toolkit] = {}
    for path in host.glob("/usr/local/cuda-[0-9]*"):
        version = _at(host, path)
        # An empty folder is what a removed toolkit leaves behind.
        if version is not None and any(host.exists(f"{path}/{file}") for file in _TOOLKIT_FILES):
            release = "-".join(version.split(".")[:2])
            packaged = packages.matching(rf"cuda-(toolkit|compiler|nvcc|runtime)-{re.escape(release)}")
            found[path] = Toolkit(
                version=version, path=path, source=packages.manager if packaged else "runfile" if packages.known else None
            )
    if not found:
        for package in packages.matching(r"cuda-toolkit-\d+-\d+|nvidia-cuda-toolkit"):
            version_ = _VERSION.match(package.version or "")
            found[package.name] = Toolkit(version=version_[1] if version_ else None, source=packages.manager)
    nvcc = _nvcc(host)
    if nvcc is not None and not any((toolkit.version or "").startswith(nvcc) for toolkit in found.values()):
        found["nvcc"] = Toolkit(version=nvcc)
    rocm = host.line("/opt/rocm/.info/version")
    if rocm is not None:
        found["rocm"] = Toolkit(version=rocm.partition("-")[0], path="/opt/rocm", source="rocm")
    return tuple(found.values())


def _at(host: Probes, path: str) -> str | None:
    """Return the version of a CUDA folder: by its own note, else by its name."""
    try:
        document = json.loads(host.read(f"{path}/version.json") or "{}")
    except (ValueError, RecursionError):
        document = {}
    told = document.get("cuda") if isinstance(document, dict) else None
    version = told.get("version") if isinstance(told, dict) else None
    if isinstance(version, str):
        return version
    text = re.search(r"CUDA Version (\d+\.\d+(?:\.\d+)?)", host.read(f"{path}/version.txt") or "")
    name = re.search(r"cuda-(\d+\.\d+)$", path)
    return text[1] if text else name[1] if name else None


def _nvcc(host: Probes) -> str | None:
    """Return the release of the compiler on the path."""
    found = re.search(r"release (\d+\.\d+)", host.run(NVCC).stdout)
    return found[1] if found else None


def cudnn(host: Probes, packages: Packages) -> tuple[Library, ...]:
    """Return the cuDNN releases, by packages and by the headers that name them."""
    found = {
        version[1]: Library(version=version[1], source=packages.manager)
        for package in packages.matching(r"libcudnn\d+(-cuda-\d+)?|cudnn\d*-cuda-\d+.*|libcudnn9-cuda-\d+")
        if (version := _VERSION.match(package.version or ""))
    }
    for path in (*host.glob("/usr/local/cuda*/include/cudnn_version.h"), *host.glob("/usr/include/cudnn_version.h")):
        text = host.read(path) or ""
        numbers = [re.search(rf"#define CUDNN_{name}\s+(\d+)", text) for name in ("MAJOR", "MINOR", "PATCHLEVEL")]
        version_ = ".".join(number[1] for number in numbers if number)
        if all(numbers) and not any(known.startswith(version_) for known in found):
            found[version_] = Library(version=version_, source="files")
    return tuple(found.values())


def nccl(host: Probes, packages: Packages) -> tuple[Library, ...]:
    """Return the NCCL releases, by packages and by library names."""
    found = {
        version[1]: Library(version=version[1], source=packages.manager)
        for package in packages.matching(r"libnccl2?")
        if (version := _VERSION.match(package.version or ""))
    }
    folders = ("/usr/lib/*-linux-gnu", "/usr/local/lib", "/usr/lib64")
    for path in (path for folder in folders for path in host.glob(f"{folder}/libnccl.so.*.*")):
        name = re.search(r"libnccl\.so\.(\d+\.\d+\.\d+)$", path)
        if name and name[1] not in found:
            found[name[1]] = Library(version=name[1], source="files")
    return tuple(found.values())


LIBRARY_PATH = ("printenv", "LD_LIBRARY_PATH")


def library_path(host: Probes) -> tuple[str, ...] | None:
    """Return the folders of LD_LIBRARY_PATH, where libraries are looked for first; `None` when nobody could see it."""
    said = host.run(LIBRARY_PATH)
    if said.status in (0, 1):
        return tuple(folder for folder in said.stdout.strip().split(":") if folder)
    recorded = host.run(("env",)).stdout if ("env",) in host.host.recorded() else ""
    found = re.search(r"^LD_LIBRARY_PATH=(.*)$", recorded, re.MULTILINE)
    return tuple(folder for folder in found[1].strip().split(":") if folder) if found else None
