"""Frameworks as the tables know them: releases, variants, pins, and the tools and indexes they come with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from steps.catalog.load import remembered, rows
from steps.catalog.versions import number
from steps.model.base import Record

Confidence = Literal["low"]


class TorchVariant(Record):
    """One variant of a release (`cu126`, `cpu`); `arch` is the binary code inside, `arch_probable` what it most likely is."""

    name: str
    arch: tuple[str, ...] | None = None
    arch_aarch64: tuple[str, ...] | None = None
    ptx: tuple[str, ...] = ()
    arch_probable: tuple[str, ...] = ()
    min_arch: str | None = None
    glibc: str | None = None
    cudnn: str | None = None
    """The line of the cuDNN that the wheel pins, where it is known."""
    pins: tuple[str, ...] = ()
    """Its pins of NVIDIA's libraries, where they are known and it is not the default."""
    note: str | None = None
    source: str | None = None


class TorchRelease(Record):
    """One release of PyTorch; `default_variant` is the wheel of the Python package index."""

    version: str
    uploaded: str
    default_variant: str | None = None
    glibc: str | None = None
    glibc_by_tag: str
    numpy: str | None = None
    pythons: tuple[str, ...]
    pythons_aarch64: tuple[str, ...] | None = None
    torchvision: tuple[str, ...] = ()
    torchaudio: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    size_mb: float
    confidence: Confidence | None = None
    source: str
    variant: tuple[TorchVariant, ...] = ()


class TensorflowRelease(Record):
    """One release of TensorFlow; `cuda_major` and `pins` belong to `tensorflow[and-cuda]`."""

    version: str
    uploaded: str
    pythons: tuple[str, ...]
    glibc: str
    aarch64: bool = False
    cuda_major: int | None = None
    tested_cuda: str | None = None
    tested_cudnn: str | None = None
    pins: tuple[str, ...] = ()
    numpy: tuple[str, ...] = ()
    size_mb: float | None = None
    note: str | None = None
    source: str


class JaxRelease(Record):
    """One release of JAX and the CUDA plugins it has."""

    version: str
    pythons: tuple[str, ...]
    requires_python: str
    glibc: str
    cuda12: bool
    cuda13: bool
    needs_cuda12: tuple[str, ...] = ()
    needs_cuda13: tuple[str, ...] = ()
    """What the extra asks for of NVIDIA's libraries; empty: not known."""
    numpy: tuple[str, ...]
    size_mb: float | None = None
    note: str | None = None
    source: str


class JaxPlugin(Record):
    """One accelerator plugin of JAX: the oldest driver branch and GPU it runs on."""

    name: str
    extra: str
    driver: str | None = None
    cc_min: str | None = None
    works_with: str | None = None
    note: str | None = None
    source: str


class Build(Record):
    """What compiling a package takes: the oldest CUDA line of nvcc, what its environment must hold, and memory for each job."""

    nvcc: str
    tools: tuple[str, ...] = ()
    job_gigabytes: int | None = None


class OtherRelease(Record):
    """One release of a package beside the big three; `requires` is its own metadata."""

    package: str
    version: str
    uploaded: str | None = None
    requires_python: str | None = None
    requires: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """What its own metadata asks of companions, which it has as an extra only."""
    pythons: tuple[str, ...] = ()
    glibc: str | None = None
    compute_capability: str | None = None
    driver: str | None = None
    build: Build | None = None
    """How it is compiled where it is used, against the PyTorch that is there; `None` where the index has wheels."""
    size_mb: float | None = None
    note: str | None = None
    source: str


class Companion(Record):
    """What a package does nothing useful without, though its own metadata does not require it."""

    package: str
    wants: str
    source: str


class Discontinued(Record):
    """A name that no longer installs, and what to take instead."""

    package: str
    instead: str | None = None
    note: str
    source: str


class RocmTorch(Record):
    """The ROCm variants of one PyTorch series, with the GPUs they are built for."""

    series: str
    rocm: tuple[str, ...]
    gfx: tuple[str, ...] = ()
    note: str | None = None
    source: str


class RocmWheel(Record):
    """The GPUs that the wheels for one ROCm release are built for."""

    rocm: str
    gfx: tuple[str, ...]
    source: str


class Rocm(Record):
    """One ROCm release: the GPUs, systems and kernel drivers that AMD supports with it."""

    version: str
    gfx: tuple[str, ...] = ()
    os: tuple[str, ...] = ()
    driver: tuple[str, ...] = ()
    note: str | None = None
    source: str


class Tool(Record):
    """A tool that makes Python environments."""

    name: str
    kind: str
    recommended: bool | None = None
    licence: str | None = None
    terms: str | None = None
    last: str | None = None
    """The last release that a channel got; `None` while it goes on."""
    activation: str | None = None
    note: str | None = None
    source: str


class SetBuild(Record):
    """A package that is compiled where it is used: what the index has of its needs, and the cards it is for."""

    package: str
    tools: tuple[str, ...] = ()
    compute_capability: str | None = None
    source: str


class PackageSet(Record):
    """Packages that people want together, by the name that a command line may give for a profile."""

    name: str
    packages: tuple[str, ...]
    build: SetBuild | None = None
    source: str


class Index(Record):
    """A package index by its preset name; `{variant}` in a `torch` URL is PyTorch's."""

    name: str
    kind: Literal["pypi", "torch", "conda"]
    url: str
    confidence: Confidence | None = None
    source: str


@remembered
def torch_releases() -> tuple[TorchRelease, ...]:
    """Return the releases of PyTorch, newest first."""
    return tuple(sorted(rows("torch.toml", "release", TorchRelease), key=lambda row: number(row.version), reverse=True))


@remembered
def torch_release(version: str) -> TorchRelease | None:
    """Return one release, or `None` when we do not know it; a local part (`+cu126`) does not count."""
    public = version.partition("+")[0]
    return next((row for row in torch_releases() if row.version == public), None)


@remembered
def _variants(version: str) -> Mapping[str, TorchVariant]:
    """Return the variants of a release by name."""
    release = torch_release(version)
    return {row.name: row for row in release.variant} if release else {}


def variant_of(release: TorchRelease, name: str | None) -> TorchVariant | None:
    """Return a variant of a release by name, or `None` when it has none such."""
    return _variants(release.version).get(name or "")


@remembered
def tensorflow_releases() -> tuple[TensorflowRelease, ...]:
    """Return the releases of TensorFlow, newest first."""
    return tuple(sorted(rows("tensorflow.toml", "release", TensorflowRelease), key=lambda row: number(row.version), reverse=True))


@remembered
def tensorflow_release(version: str) -> TensorflowRelease | None:
    """Return one release, or `None` when we do not know it."""
    return next((row for row in tensorflow_releases() if row.version == version), None)


@remembered
def jax_release(version: str) -> JaxRelease | None:
    """Return one release, or `None` when we do not know it."""
    return next((row for row in jax_releases() if row.version == version), None)


@remembered
def jax_releases() -> tuple[JaxRelease, ...]:
    """Return the releases of JAX, newest first."""
    return tuple(sorted(rows("jax.toml", "release", JaxRelease), key=lambda row: number(row.version), reverse=True))


def jax_plugins() -> tuple[JaxPlugin, ...]:
    """Return JAX's accelerator plugins."""
    return rows("jax.toml", "plugin", JaxPlugin)


def others() -> tuple[OtherRelease, ...]:
    """Return the releases of all other packages, newest first within a package."""
    return rows("frameworks.toml", "release", OtherRelease)


@remembered
def other(package: str, version: str) -> OtherRelease | None:
    """Return one release of another package, or `None` when we do not know it."""
    return next((row for row in others() if row.package == package and row.version == version), None)


@remembered
def companions(package: str) -> tuple[str, ...]:
    """Return what a package wants beside it, as far as its metadata does not say so; empty when it says all."""
    return tuple(row.wants for row in rows("frameworks.toml", "companion", Companion) if row.package == package)


@remembered
def discontinued() -> Mapping[str, Discontinued]:
    """Return the names that no longer install."""
    return {row.package: row for row in rows("frameworks.toml", "discontinued", Discontinued)}


BIG_THREE = ("torch", "tensorflow", "jax")
"""The frameworks with tables of their own."""


@remembered
def package_names() -> tuple[str, ...]:
    """Return every distribution name that the tables know: with rows of its own, withdrawn, in a set, or needed by one that has rows."""
    needed = (re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0] for row in others() for one in row.requires)
    built = (*BIG_THREE, *(row.package for row in others()), *discontinued(), *(one for each in package_sets() for one in each.packages))
    return tuple(sorted({name.lower().replace("_", "-") for name in (*built, *needed)}))


def rocm_torch() -> tuple[RocmTorch, ...]:
    """Return the ROCm variants by PyTorch series, oldest first."""
    return rows("rocm.toml", "torch", RocmTorch)


def rocm_wheels() -> tuple[RocmWheel, ...]:
    """Return what the wheels of each ROCm release are built for."""
    return rows("rocm.toml", "wheel", RocmWheel)


def rocms() -> tuple[Rocm, ...]:
    """Return AMD's own support tables."""
    return rows("rocm.toml", "rocm", Rocm)


def tools() -> tuple[Tool, ...]:
    """Return the tools that make environments."""
    return rows("env_tools.toml", "tool", Tool)


def indexes() -> tuple[Index, ...]:
    """Return the package indexes by preset name."""
    return rows("indexes.toml", "index", Index)


def package_sets() -> tuple[PackageSet, ...]:
    """Return what people want together, by name."""
    return rows("sets.toml", "set", PackageSet)
