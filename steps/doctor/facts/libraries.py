"""Which majors of CUDA's and cuDNN's libraries are on a machine, compared with the one that a program could not load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from steps.doctor.events.builds import Wheel
from steps.doctor.events.libraries import CudnnIdle, LibraryMissing, LibraryThere
from steps.doctor.numbers import whole
from steps.doctor.told import Told

if TYPE_CHECKING:
    from steps.doctor.evidence import Evidence

_CUDA_OF: dict[str, dict[int, int]] = {
    "libcufft": {10: 11, 11: 12, 12: 13},
    "libcusolver": {11: 12, 12: 13},
    "libcurand": {},
    "libcusparse": {},
    "libnpp": {},
}
"""Libraries whose own major is not CUDA's: own → CUDA's; none where one major serves several (libcurand.so.10)."""


def missing(seen: Evidence) -> LibraryMissing | None:
    """Return the library that could not be loaded, cuDNN's parts and CUDA's; `None` when none was named."""
    idle = seen.has(CudnnIdle)
    return seen.first(LibraryMissing, lambda event: event.kind in ("cuda", "cudnn") and not (event.supposed and idle))


def same_major(seen: Evidence, wanted: LibraryMissing) -> Told | None:
    """Return what shows that the wanted major is on the machine after all; any will do where none is named."""
    present = (told for major, told in _present(seen, wanted) if wanted.major is None or major == _comparable(wanted))
    return next(present, None) or _itself(seen, wanted)


def _itself(seen: Evidence, wanted: LibraryMissing) -> LibraryThere | None:
    """Return a file of exactly the name that was asked for: it would do, whatever CUDA it is of."""
    asked = re.search(rf"{re.escape(_base(wanted.name))}\.so\.\d+(?:\.\d+)*", wanted.place.text)
    if asked is None:
        return None
    name = re.compile(rf"{re.escape(asked[0])}(?!\d)")
    return seen.first(LibraryThere, lambda there: _base(there.name) == _base(wanted.name) and name.search(there.place.text) is not None)


def other_major(seen: Evidence, wanted: LibraryMissing) -> Told | None:
    """Return what shows that another major is there, and nothing of the wanted one."""
    found = list(_present(seen, wanted))
    if _comparable(wanted) is None or any(major == _comparable(wanted) for major, _ in found):
        return None
    return next((told for _, told in found), None)


def _base(name: str) -> str:
    return name.partition(".so")[0]


def _comparable(wanted: LibraryMissing) -> int | None:
    """Return the major to compare: cuDNN's own, else the CUDA major that the library belongs to; `None` when that cannot be told."""
    if wanted.kind == "cudnn":
        return wanted.major
    known = next((table for base, table in _CUDA_OF.items() if wanted.name.startswith(base)), None)
    return wanted.major if known is None or wanted.major is None else known.get(wanted.major)


def _present(seen: Evidence, wanted: LibraryMissing) -> Iterator[tuple[int, Told]]:
    """Yield the majors that are there, with what shows each: files, wheels, packages."""
    for there in seen.all(LibraryThere):
        if there.kind == wanted.kind and (wanted.kind == "cudnn" or _base(there.name) == _base(wanted.name)):
            as_missing = LibraryMissing(place=there.place, name=there.name, major=there.major, kind=there.kind)
            major = _comparable(as_missing)
            if major is not None:
                yield major, there
    for wheel in seen.all(Wheel):
        if wanted.kind == "cudnn" and wheel.name.startswith("nvidia-cudnn"):
            major = whole(wheel.version.partition(".")[0])
            if major is not None:
                yield major, wheel
        elif wanted.kind == "cuda" and (own := re.fullmatch(r"nvidia-\w+-cu(1[1-9])", wheel.name)) and "cudnn" not in wheel.name:
            yield int(own[1]), wheel
    for row in seen.packages.rows:
        pattern = r"libcudnn(\d+)\b.*" if wanted.kind == "cudnn" else r"(?:cuda-(?:toolkit|runtime|libraries|cudart)|libcublas)-(\d+)-\d+"
        named = re.fullmatch(pattern, row.name)
        if named:
            yield int(named[1]), row
