"""The newest releases of PyTorch, TensorFlow and JAX as the indexes have them: rows for the overlay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from steps.catalog import frameworks as catalog
from steps.catalog.overlay import JaxRow, TensorflowRow, TorchRow
from steps.catalog.versions import line, number
from steps.knowledge.source import Source
from steps.managers.index import Arch, Wheel

NEWEST = 6
"""How many releases are read again, besides all that the tables do not know and that are newer than these know."""
PARTNERS = 12
"""How many releases of torchvision and torchaudio are looked at for the ones that fit."""
PROJECTS = ("torch", "torchvision", "torchaudio", "tensorflow", "jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin")
_CUDA = re.compile(r"(?:cuda-toolkit|nvidia-cuda-runtime(?:-cu\d+)?)(?:\[[^]]*\])?==(\d+)\.(\d+)")

Projects = Mapping[str, tuple[Wheel, ...] | None]


def torch(source: Source, projects: Projects) -> tuple[TorchRow, ...]:
    """Return the newest releases of PyTorch with the torchvision and torchaudio that fit each."""
    releases = _newest(projects.get("torch"), [row.version for row in catalog.torch_releases()])
    partners = {name: _releases(projects.get(name))[-PARTNERS:] for name in ("torchvision", "torchaudio")}
    speaks = {version: _typical(wheels) for version, wheels in releases.items()}
    chosen = {name: {version: _one(projects.get(name), version) for version in versions} for name, versions in partners.items()}
    said = source.metadata([wheel for one in (speaks, *chosen.values()) for wheel in one.values() if wheel])
    asks = {
        name: {version: _asked(said[wheel.file].requires) for version, wheel in versions.items() if wheel and wheel.file in said}
        for name, versions in chosen.items()
    }
    rows = []
    for version, wheels in releases.items():
        own, arm, wheel = _pythons(wheels, "x86_64"), tuple(_pythons(wheels, "aarch64")), speaks[version]
        if wheel is None or wheel.file not in said:
            continue
        pins = _needs(said[wheel.file].requires, wheel.python or "3.12")
        cuda = next((found for found in map(_CUDA.match, pins) if found), None)
        size, day = _size_and_day(source, wheels)
        floor = max((wheel.glibc or "" for wheel in own.values()), key=number)
        if size is None or day is None or not floor:
            continue
        rows.append(
            TorchRow(
                version=version,
                uploaded=day,
                default_variant=f"cu{cuda[1]}{cuda[2]}" if cuda else None,
                glibc_by_tag=floor,
                pythons=tuple(own),
                pythons_aarch64=None if arm == tuple(own) else arm,
                torchvision=_fitting(version, asks["torchvision"]),
                torchaudio=_fitting(version, asks["torchaudio"]),
                pins=tuple(pin for pin in pins if re.match(r"nvidia-(cudnn|nccl)", pin)),
                size_mb=round(size / 1e6, 1),
            )
        )
    return tuple(rows)


def tensorflow(source: Source, projects: Projects) -> tuple[TensorflowRow, ...]:
    """Return the newest patch of the newest series of TensorFlow."""
    releases = _series(_newest(projects.get("tensorflow"), [row.version for row in catalog.tensorflow_releases()]))
    chosen = {version: _one(wheels, version) for version, wheels in releases.items()}
    said = source.metadata([wheel for wheel in chosen.values() if wheel])
    rows = []
    for version, wheels in releases.items():
        wheel = chosen[version]
        size, day = _size_and_day(source, wheels)
        if wheel is None or wheel.file not in said or wheel.glibc is None or size is None or day is None:
            continue
        requires = said[wheel.file].requires
        pins = [pin for pin in _needs(requires, wheel.python or "3.12", "and-cuda") if re.match(r"nvidia-(cuda-runtime|cudnn|nccl)", pin)]
        major = next((found for found in (re.match(r"nvidia-cuda-runtime-cu(\d+)", pin) for pin in pins) if found), None)
        rows.append(
            TensorflowRow(
                version=version,
                uploaded=day,
                pythons=tuple(_pythons(wheels, "x86_64")),
                glibc=wheel.glibc,
                aarch64=any(one.linux("aarch64") for one in wheels),
                cuda_major=int(major[1]) if major else None,
                pins=tuple(pins),
                numpy=_numpy(requires),
                size_mb=round(size / 1e6, 1),
            )
        )
    return tuple(rows)


def jax(source: Source, projects: Projects) -> tuple[JaxRow, ...]:
    """Return the newest patch of the newest series of JAX, with what its library and its plugins are there for."""
    releases = _series(_newest(projects.get("jax"), [row.version for row in catalog.jax_releases()], linux=False))
    said = source.metadata([wheels[-1] for wheels in releases.values()])
    library = projects.get("jaxlib") or ()
    rows = []
    for version, wheels in releases.items():
        metadata = said.get(wheels[-1].file)
        if metadata is None:
            continue
        built = _admitted(metadata.requires, "jaxlib", None, library)
        own = [wheel for wheel in library if wheel.version == built]
        pythons = _pythons(own, "x86_64")
        floor = max((wheel.glibc or "" for wheel in pythons.values()), key=number, default="")
        size, _ = _size_and_day(source, own)
        if not pythons or not floor or size is None or metadata.requires_python is None:
            continue
        rows.append(
            JaxRow(
                version=version,
                pythons=tuple(pythons),
                requires_python=metadata.requires_python,
                glibc=floor,
                cuda12=_admitted(metadata.requires, "jax-cuda12-plugin", "cuda12", projects.get("jax-cuda12-plugin") or ()) is not None,
                cuda13=_admitted(metadata.requires, "jax-cuda13-plugin", "cuda13", projects.get("jax-cuda13-plugin") or ()) is not None,
                numpy=_numpy(metadata.requires),
                size_mb=round(size / 1e6, 1),
            )
        )
    return tuple(rows)


# --- which releases and which wheels ----------------------------------------------------------------


def _releases(wheels: Sequence[Wheel] | None) -> list[str]:
    """Return the releases that wheels belong to, oldest first; local builds are not the index's own."""
    return [version for version in dict.fromkeys(wheel.version for wheel in wheels or ()) if "+" not in version]


def _newest(wheels: Sequence[Wheel] | None, known: Sequence[str], *, linux: bool = True) -> dict[str, list[Wheel]]:
    """Return the wheels of the releases to read, oldest first: the newest, and what is newer than the tables know."""
    usable = [wheel for wheel in wheels or () if not linux or wheel.linux("x86_64") or wheel.linux("aarch64")]
    newest_known = max(map(number, known), default=())
    versions = [version for version in _releases(usable) if not linux or any(w.linux("x86_64") for w in usable if w.version == version)]
    chosen = [version for at, version in enumerate(versions) if at >= len(versions) - NEWEST or number(version) > newest_known]
    return {version: [wheel for wheel in usable if wheel.version == version] for version in chosen[-4 * NEWEST :]}


def _series(releases: dict[str, list[Wheel]]) -> dict[str, list[Wheel]]:
    """Return the newest patch of each series."""
    newest = {line(version): version for version in releases}
    return {version: releases[version] for version in newest.values()}


def _pythons(wheels: Iterable[Wheel], arch: Arch) -> dict[str, Wheel]:
    """Return one wheel for each Python line that a release has a Linux wheel for, oldest line first."""
    found = {wheel.python: wheel for wheel in wheels if wheel.python and wheel.linux(arch)}
    return {python: found[python] for python in sorted(filter(None, found), key=number)}


def _one(wheels: Sequence[Wheel] | None, version: str) -> Wheel | None:
    """Return the wheel of a release that speaks for it: one Python's for Linux, else one for all of them."""
    own = [wheel for wheel in wheels or () if wheel.version == version and wheel.linux("x86_64")]
    return _typical(own) or next(iter(own), None)


def _typical(wheels: Iterable[Wheel]) -> Wheel | None:
    """Return the wheel that speaks for a release: the middle Python's; the oldest and newest are where exceptions are."""
    own = list(_pythons(wheels, "x86_64").values())
    return own[len(own) // 2] if own else None


def _size_and_day(source: Source, wheels: Sequence[Wheel]) -> tuple[int | None, str | None]:
    """Return the size of the largest Linux wheel and the day of the first one; `None` for what nobody says."""
    linux = [wheel for wheel in wheels if wheel.linux("x86_64")]
    if not linux:
        return None, None
    if any(wheel.size is None or wheel.uploaded is None for wheel in linux):
        return source.measured(linux[-1])
    return max(wheel.size or 0 for wheel in linux), min(wheel.uploaded or "" for wheel in linux)


# --- what the metadata says -------------------------------------------------------------------------


def _parsed(text: str) -> Requirement | None:
    """Return a requirement, or `None` when it is malformed."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _needs(requires: Iterable[str], python: str, extra: str = "") -> tuple[str, ...]:
    """Return what is required on Linux on x86_64 with this Python, without conditions, sorted."""
    place = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_system": "Linux",
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_machine": "x86_64",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "extra": extra,
    }
    found = []
    for text in requires:
        one = _parsed(text)
        if one is not None and one.url is None and (one.marker is None or one.marker.evaluate(place)):
            extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
            found.append(f"{re.sub(r'[-_.]+', '-', one.name).lower()}{extras}{one.specifier}")
    return tuple(sorted(found))


def _numpy(requires: Iterable[str]) -> tuple[str, ...]:
    """Return the plain requirements on NumPy, with their conditions."""
    found = [
        one for one in map(_parsed, requires) if one is not None and one.name.lower() == "numpy" and "extra" not in str(one.marker or "")
    ]
    return tuple(f"numpy{one.specifier}" + (f"; {one.marker}" if one.marker else "") for one in found)


def _asked(requires: Iterable[str]) -> str:
    """Return what a partner asks of PyTorch; "" when it asks nothing."""
    return next(
        (str(one.specifier) for one in map(_parsed, requires) if one is not None and one.name == "torch" and one.marker is None), ""
    )


def _fitting(version: str, asks: Mapping[str, str]) -> tuple[str, ...]:
    """Return the partners whose own metadata admits a release, oldest first; one that asks nothing says nothing."""
    return tuple(partner for partner, asked in asks.items() if asked and _admits(asked, version))


def _admits(specifier: str, version: str) -> bool:
    """Return whether a specifier admits a version."""
    try:
        return SpecifierSet(specifier).contains(version)
    except InvalidSpecifier:
        return False


def _admitted(requires: Iterable[str], name: str, extra: str | None, wheels: Sequence[Wheel]) -> str | None:
    """Return the newest release of a project that the requirements take and the index has for Linux; `None` for neither."""
    for one in map(_parsed, requires):
        if one is None or re.sub(r"[-_.]+", "-", one.name).lower() != name or (f'"{extra}"' if extra else "") not in str(one.marker or ""):
            continue
        versions = [wheel.version for wheel in wheels if wheel.linux("x86_64") and one.specifier.contains(wheel.version)]
        return max(versions, key=number, default=None)
    return None
