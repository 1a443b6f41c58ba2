"""A person's own additions to the tables, read from outside: strict in form, bounded in size, never trusted.

A file has the name of the table that it lies over. It says only what an index can say, it adds and refreshes releases, and it
can neither take a row away nor say for which cards a wheel was built. One wrong value refuses the whole file.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping
from datetime import date, datetime, timezone
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from steps.catalog import frameworks as catalog
from steps.catalog import load, stack
from steps.catalog.load import Merge
from steps.catalog.versions import number
from steps.model.base import Record

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 1 << 20
"""A larger file is refused unread; an honest one has a tenth of this."""
_TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"?|\'[^\'\n]*\'?|#[^\n]*')
_DEEP = re.compile(r"(?:\.[^.=,\[\]{}\n]*){8}")
_LONG = re.compile(r"[0-9](?:_?[0-9]){20}")

Version = Annotated[str, Meta(pattern=r"\A[0-9]{1,9}(\.[0-9]{1,9}){0,4}(\.post[0-9]{1,4})?\Z")]
Line = Annotated[str, Meta(pattern=r"\A3\.[0-9]{1,2}\Z")]
Glibc = Annotated[str, Meta(pattern=r"\A2\.[0-9]{1,3}\Z")]
Day = Annotated[str, Meta(pattern=r"\A20[0-9]{2}-[01][0-9]-[0-3][0-9]\Z")]
Variant = Annotated[str, Meta(pattern=r"\Acu[0-9]{3}\Z")]
Branch = Annotated[str, Meta(pattern=r"\A[0-9]{3,4}\Z")]
Site = Annotated[str, Meta(pattern=r"\A[a-z0-9.:\[\]-]{1,253}\Z")]
# They become arguments of pip and uv: begins with a letter, names no URL, no path and no second argument.
Requirement = Annotated[
    str, Meta(max_length=200, pattern=r"\A[a-z0-9][a-z0-9._-]*(\[[a-z0-9,_-]+\])?[0-9a-z.*+!=<>~, ]*(; ?[a-z_0-9\"'.=<>!() ]+)?\Z")
]
Megabytes = Annotated[float, Meta(ge=0, le=20_000)]
Lines = Annotated[tuple[Line, ...], Meta(min_length=1, max_length=12)]
Requirements = Annotated[tuple[Requirement, ...], Meta(max_length=40)]
Partners = Annotated[tuple[Version, ...], Meta(max_length=12)]


class TorchRow(Record, omit_defaults=True):
    """What an index says of a release of PyTorch; `default_variant` is `None` when its pins name no CUDA."""

    version: Version
    uploaded: Day
    default_variant: Variant | None = None
    glibc_by_tag: Glibc
    pythons: Lines
    pythons_aarch64: Annotated[tuple[Line, ...], Meta(max_length=12)] | None = None
    """`None` when the same as `pythons`, empty when there are no such wheels."""
    torchvision: Partners = ()
    torchaudio: Partners = ()
    pins: Requirements = ()
    size_mb: Megabytes


class TensorflowRow(Record, omit_defaults=True):
    """What an index says of a release of TensorFlow."""

    version: Version
    uploaded: Day
    pythons: Lines
    glibc: Glibc
    aarch64: bool = False
    cuda_major: Annotated[int, Meta(ge=10, le=30)] | None = None
    pins: Requirements = ()
    numpy: Requirements = ()
    size_mb: Megabytes


class JaxRow(Record, omit_defaults=True):
    """What an index says of a release of JAX, its library and its plugins."""

    version: Version
    pythons: Lines
    requires_python: Annotated[str, Meta(max_length=40, pattern=r"\A[0-9.,<>=!~* ]*\Z")]
    glibc: Glibc
    cuda12: bool
    cuda13: bool
    numpy: Requirements = ()
    size_mb: Megabytes


class BranchRow(Record):
    """The newest release of a driver branch that this machine's package indexes offer."""

    name: Branch
    latest: Version


Release = TypeVar("Release", TorchRow, TensorflowRow, JaxRow)
Row = TorchRow | TensorflowRow | JaxRow | BranchRow


class _File(Record):
    schema: Literal[1]
    checked: Day
    site: Site
    """The host of the index that was read; of its address nothing else is kept."""


class TorchFile(_File):
    """Lies over `torch.toml`."""

    release: Annotated[tuple[TorchRow, ...], Meta(max_length=400)] = ()


class TensorflowFile(_File):
    """Lies over `tensorflow.toml`."""

    release: Annotated[tuple[TensorflowRow, ...], Meta(max_length=400)] = ()


class JaxFile(_File):
    """Lies over `jax.toml`."""

    release: Annotated[tuple[JaxRow, ...], Meta(max_length=400)] = ()


class DriversFile(_File):
    """Lies over `drivers.toml`; branches that the tables do not know are not made up from a name."""

    branch: Annotated[tuple[BranchRow, ...], Meta(max_length=100)] = ()


File = TorchFile | TensorflowFile | JaxFile | DriversFile
FILES: Mapping[str, type[Any]] = {
    "torch.toml": TorchFile,
    "tensorflow.toml": TensorflowFile,
    "jax.toml": JaxFile,
    "drivers.toml": DriversFile,
}
"""The tables that can be laid over."""


class Refused(Record):
    """Why a file of the overlay does not count: `key` is where it is wrong, "" for the file as a whole."""

    file: str
    key: str
    reason: str


def read(name: str, text: str | None, today: str | None = None) -> File | Refused | None:
    """Return a file of the overlay, why it is refused, or `None` when there is none; `today` is the clock's day unless given."""
    if text is None:
        return None
    if costly := _costly(text):
        return Refused(file=name, key="", reason=costly)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return Refused(file=name, key="", reason=_plain(str(error)) or "nested too deep")
    try:
        found: File = msgspec.convert(table, FILES[name])
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        field = re.search(r"field `([^`]*)`$", reason)
        key = ".".join(part for part in (place.rstrip("`").lstrip("."), field[1] if field else "") if part)
        return Refused(file=name, key=_plain(key), reason=_plain(reason))
    except (ValueError, RecursionError) as error:
        return Refused(file=name, key="", reason=_plain(str(error)))
    if undated := _undated(found.checked, today or datetime.fromtimestamp(time.time(), timezone.utc).date().isoformat()):
        return Refused(file=name, key="checked", reason=undated)
    rows = _rows(found)
    names = [row.name if isinstance(row, BranchRow) else row.version for row in rows]
    twice = next((one for at, one in enumerate(names) if one in names[:at]), None)
    return Refused(file=name, key=twice, reason="stands there twice") if twice else found


def _costly(text: str) -> str | None:
    """Return why a text is not even parsed: what would hold or stop the parser; `None` when nothing would."""
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        return f"more than {MOST_BYTES >> 20} MB"
    if _LONG.search(text):
        return "a number of more than 20 digits"
    if '"""' in text or "'''" in text:
        return "text over several lines"
    return "a key of more than 8 parts" if _DEEP.search(_TEXT.sub("", text)) else None


def _undated(checked: str, today: str) -> str | None:
    """Return what is wrong with the day of a file, `None` when nothing is."""
    try:
        read_on = date.fromisoformat(checked)
    except ValueError:
        return "no day of the calendar"
    return "a day that is still to come" if read_on > date.fromisoformat(today) else None


def _rows(file: File) -> tuple[Row, ...]:
    """Return the rows of a file."""
    return file.branch if isinstance(file, DriversFile) else file.release


def _plain(text: str) -> str:
    """Return words of a foreign file without what a terminal would obey, and not endless."""
    return re.sub(r"[^\x20-\x7e]", "?", text)[:160]


def use(files: Mapping[str, File]) -> None:
    """Lay these over the built-in tables from now on; an empty mapping takes every overlay away."""
    load.lay({(name, "branch" if name == "drivers.toml" else "release"): _merge(file) for name, file in files.items()})


def _merge(file: File) -> Merge:
    """Return what makes the rows of a table from the built-in ones and this file."""
    where = f"package index metadata of {file.site}, read on {file.checked}"
    if isinstance(file, TorchFile):
        return lambda known: _merged(known, file.release, lambda row, old: _torch(row, old, known, where))
    if isinstance(file, TensorflowFile):
        return lambda known: _merged(known, file.release, lambda row, old: _tensorflow(row, old, where))
    if isinstance(file, JaxFile):
        return lambda known: _merged(known, file.release, lambda row, old: _jax(row, old, where))
    return lambda known: tuple(_branch(row, file.branch) for row in known)


def _merged(known: tuple[Any, ...], rows: tuple[Release, ...], made: Callable[[Release, Any], Any]) -> tuple[Any, ...]:
    """Return the known rows, refreshed, and after them the new ones."""
    old = {row.version: row for row in known}
    fresh: dict[str, Any] = {row.version: made(row, old.get(row.version)) for row in rows}
    return (*(fresh.pop(row.version, row) for row in known), *fresh.values())


def _torch(row: TorchRow, old: catalog.TorchRelease | None, known: tuple[catalog.TorchRelease, ...], where: str) -> catalog.TorchRelease:
    """Return a release of PyTorch with what the index says; what it cannot say stays as it was known."""
    said = {
        "uploaded": row.uploaded,
        "glibc_by_tag": row.glibc_by_tag,
        "pythons": row.pythons,
        "pythons_aarch64": row.pythons_aarch64,
        "torchvision": row.torchvision,
        "torchaudio": row.torchaudio,
        "pins": row.pins,
        "size_mb": row.size_mb,
    }
    if old is not None:
        kept = {key: value for key, value in said.items() if value not in (None, ()) or key == "pythons_aarch64"}
        # A partner whose metadata asks nothing of PyTorch is known from elsewhere, and stays.
        kept |= {"torchvision": _both(old.torchvision, row.torchvision), "torchaudio": _both(old.torchaudio, row.torchaudio)}
        return msgspec.structs.replace(old, **kept, source=f"{where}; {old.source}")
    variants = [catalog.TorchVariant(name="cpu")]
    if row.default_variant:
        variants.append(_like(row.default_variant, known, where))
    return catalog.TorchRelease(
        version=row.version,
        default_variant=row.default_variant,
        confidence="low",
        source=where,
        variant=tuple(variants),
        **said,  # type: ignore[arg-type]  # the fields above, by name
    )


def _both(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    """Return all partners, oldest first."""
    return tuple(sorted({*old, *new}, key=number))


def _like(name: str, known: tuple[catalog.TorchRelease, ...], where: str) -> catalog.TorchVariant:
    """Return a variant of a new release; the code inside is probably that of the newest known release's variant of that name."""
    for release in sorted(known, key=lambda one: number(one.version), reverse=True):
        for variant in release.variant:
            if variant.name == name:
                return catalog.TorchVariant(
                    name=name,
                    arch_probable=variant.arch or variant.arch_probable,
                    min_arch=variant.min_arch,
                    note=f"GPU code taken from torch {release.version}; an index does not say it",
                    source=where,
                )
    return catalog.TorchVariant(name=name, source=where)


def _tensorflow(row: TensorflowRow, old: catalog.TensorflowRelease | None, where: str) -> catalog.TensorflowRelease:
    """Return a release of TensorFlow with what the index says."""
    said: dict[str, Any] = {name: value for name, value in msgspec.structs.asdict(row).items() if value not in (None, ())}
    if old is not None:
        return msgspec.structs.replace(old, **said, source=f"{where}; {old.source}")
    return catalog.TensorflowRelease(source=where, **said)


def _jax(row: JaxRow, old: catalog.JaxRelease | None, where: str) -> catalog.JaxRelease:
    """Return a release of JAX with what the index says."""
    said: dict[str, Any] = {
        name: value for name, value in msgspec.structs.asdict(row).items() if value not in (None, ()) or name == "numpy"
    }
    if old is not None:
        return msgspec.structs.replace(old, **said, source=f"{where}; {old.source}")
    return catalog.JaxRelease(source=where, **said)


def _branch(known: stack.Branch, rows: tuple[BranchRow, ...]) -> stack.Branch:
    """Return a branch with the newest release that is known of it."""
    latest = next((row.latest for row in rows if row.name == known.name), None)
    newer = latest is not None and number(latest) > number(known.latest) and number(latest)[:1] == number(known.name)
    return msgspec.structs.replace(known, latest=latest) if newer else known
