"""The Python environments of a machine and the frameworks in them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from steps.detect.probes import Probes
from steps.model.software import Environment

_CONFIGS = (
    "/opt/bringup/envs/*/pyvenv.cfg",
    "/root/envs/*/pyvenv.cfg",
    "/home/*/envs/*/pyvenv.cfg",
    "/root/.local/share/bringup/envs/*/pyvenv.cfg",
    "/home/*/.local/share/bringup/envs/*/pyvenv.cfg",
    "/home/*/*/pyvenv.cfg",
    "/home/*/*/.venv/pyvenv.cfg",
    "/home/*/.venv/pyvenv.cfg",
    "/opt/*/pyvenv.cfg",
    "/root/*/pyvenv.cfg",
)
_OWN_CONDA = ("/opt/bringup/envs/*", "/root/envs/*", "/home/*/envs/*")
_CONDA = ("/opt/{}", "/root/{}", "/home/*/{}", "/usr/local/{}")
_CONDA_NAMES = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "conda")
_CONDA_LIBRARIES = ("cudnn", "nccl", "cuda-version", "cuda-toolkit", "cudatoolkit")
_FRAMEWORKS = (
    "torch",
    "torchvision",
    "torchaudio",
    "tensorflow",
    "jax",
    "jaxlib",
    "transformers",
    "deepspeed",
    "vllm",
    "numpy",
    "triton",
    "cupy",
)


def environments(host: Probes) -> tuple[Environment, ...]:
    """Return the environments in the usual places."""
    found: dict[str, Environment] = {}
    for pattern in _CONFIGS:
        for config in host.glob(pattern):
            path = str(PurePosixPath(config).parent)
            found.setdefault(path, _venv(host, path, host.read(config) or ""))
    for own in _OWN_CONDA:
        for history in (*host.glob(f"{own}/conda-meta/history"), *host.glob(f"{own}/.pixi/envs/default/conda-meta/history")):
            path = str(PurePosixPath(history).parent.parent)
            found.setdefault(path, _conda(host, path))
    for folder in _CONDA:
        for name in _CONDA_NAMES:
            base = folder.format(name)
            for history in (*host.glob(f"{base}/conda-meta/history"), *host.glob(f"{base}/envs/*/conda-meta/history")):
                path = str(PurePosixPath(history).parent.parent)
                found.setdefault(path, _conda(host, path))
    return tuple(found.values())


def _venv(host: Probes, path: str, config: str) -> Environment:
    version = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", config, re.MULTILINE)
    manager = "uv" if re.search(r"^uv\s*=", config, re.MULTILINE) else "venv"
    python = version[1] if version else None
    return Environment(manager=manager, name=PurePosixPath(path).name, path=path, python=python, frameworks=_frameworks(host, path))


def _conda(host: Probes, path: str) -> Environment:
    names = host.glob(f"{path}/conda-meta/python-3*.json")
    python = next((found[1] for name in names if (found := re.search(r"/python-(\d+\.\d+\.\d+)-", name))), None)
    return Environment(manager="conda", name=PurePosixPath(path).name, path=path, python=python, frameworks=_frameworks(host, path))


def _frameworks(host: Probes, path: str) -> dict[str, str]:
    """Return the frameworks by the names of their metadata folders, and the CUDA libraries that came as wheels or by conda."""
    found: dict[str, str] = {}
    for folder in host.glob(f"{path}/lib/python3*/site-packages"):
        for framework in _FRAMEWORKS:
            for at in host.glob(f"{folder}/{framework}-*.dist-info"):
                match = re.fullmatch(rf"{framework}-([^-]+)\.dist-info", PurePosixPath(at).name)
                if match:
                    found[framework] = match[1]
        for at in host.glob(f"{folder}/nvidia_*_cu1[0-9]-*.dist-info"):
            match = re.fullmatch(r"(nvidia_[a-z_]+_cu1\d)-([^-]+)\.dist-info", PurePosixPath(at).name)
            if match:
                found[match[1].replace("_", "-")] = match[2]
    for name in _CONDA_LIBRARIES:
        for at in host.glob(f"{path}/conda-meta/{name}-*.json"):
            match = re.fullmatch(rf"{name}-(\d[^-]*)-[^-]+\.json", PurePosixPath(at).name)
            if match:
                found[name] = match[1]
    return found
