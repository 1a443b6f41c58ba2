"""The overlay made anew from what the indexes say, and what would change by it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import tomli_w

from steps.catalog import frameworks as catalog
from steps.catalog import load, overlay, stack
from steps.catalog.overlay import BranchRow, DriversFile, File, JaxFile, TensorflowFile, TorchFile
from steps.catalog.versions import number
from steps.knowledge import releases
from steps.knowledge.source import NOBODY, Source
from steps.managers import offered
from steps.managers.access import Access
from steps.model.base import Record
from steps.model.plan import Installer

if TYPE_CHECKING:
    from steps.host.base import Host
    from steps.model.machine import Machine

SECONDS = 120.0
_ROWS: Mapping[str, tuple[str, Callable[[], tuple[Any, ...]]]] = {
    "torch.toml": ("torch", catalog.torch_releases),
    "tensorflow.toml": ("tensorflow", catalog.tensorflow_releases),
    "jax.toml": ("jax", catalog.jax_releases),
    "drivers.toml": ("driver", lambda: tuple(stack.branches().values())),
}
_SILENT = ("source", "note")
"""Fields that say where a fact is from, not what it is."""


class Change(Record):
    """One field that would change; `before` is "" for a row that is new, and `field` is "" when the row only is named."""

    table: str
    row: str
    field: str = ""
    before: str = ""
    after: str = ""


class Update(Record):
    """An overlay that could be kept, and what it changes; `untold` are driver branches on offer that no table knows."""

    files: Mapping[str, File]
    changes: tuple[Change, ...]
    unread: tuple[str, ...] = ()
    """What could not be read, in the words of the one who tried."""
    untold: tuple[str, ...] = ()


def prepared(
    machine: Machine, host: Host, installer: Installer, *, today: str, seconds: float = SECONDS, access: Access = NOBODY
) -> Update:
    """Read the indexes and return what would be kept; `today` is the ISO day to write into it, `access` who the person is there.

    Raises `PreflightError` for an index that cannot be read at all by its address.
    """
    laid = load.laid_now()
    unread: list[str] = []
    # What the built-in tables lack is read again each time; an earlier overlay must not count as theirs.
    overlay.use({})
    try:
        return _prepared(machine, host, Source(installer, seconds=seconds, said=unread.append, access=access), unread, today, laid)
    finally:
        load.lay(laid)


def _prepared(
    machine: Machine, host: Host, source: Source, unread: list[str], today: str, laid: Mapping[tuple[str, str], load.Merge]
) -> Update:
    """Return the update, over the built-in tables alone; `unread` is told what could not be read."""
    projects = source.projects(releases.PROJECTS)
    about: Mapping[str, Any] = {"schema": 1, "checked": today, "site": source.site}
    found: dict[str, File] = {}
    if torch := releases.torch(source, projects):
        found["torch.toml"] = TorchFile(**about, release=torch)
    if tensorflow := releases.tensorflow(source, projects):
        found["tensorflow.toml"] = TensorflowFile(**about, release=tensorflow)
    if jax := releases.jax(source, projects):
        found["jax.toml"] = JaxFile(**about, release=jax)
    newest = _branches(host) if _has_apt(machine) else {}
    known = stack.branches()
    rows = tuple(BranchRow(name=name, latest=version) for name, version in newest.items() if name in known)
    if rows:
        found["drivers.toml"] = DriversFile(**{**about, "site": "localhost"}, branch=rows)
    # What is written is read again as an overlay is read, so that nothing is kept that would be refused.
    sound = {name: file for name, file in found.items() if overlay.read(name, text(file), today) == file}
    unread += [f"{name}: would be refused" for name in found if name not in sound]
    untold = tuple(name for name in newest if name not in known)
    load.lay(laid)
    return Update(files=sound, changes=changes(sound), unread=tuple(dict.fromkeys(unread)), untold=untold)


def _has_apt(machine: Machine) -> bool:
    row = stack.distribution_of(machine.os.id, machine.os.version)
    return row is not None and row.manager == "apt"


def _branches(host: Host) -> Mapping[str, str]:
    """Return the newest release of each driver branch that apt offers."""
    names = offered.drivers(host)
    versions = offered.by_apt(host, names) or {}
    newest: dict[str, str] = {}
    for name, listed in versions.items():
        branch = offered.branch_of(name)
        for version in map(offered.upstream, listed):
            # A transitional package has the name of one branch and the version of another.
            if branch and number(version)[:1] == number(branch) and number(version) > number(newest.get(branch, "0")):
                newest[branch] = version
    return dict(sorted(newest.items(), key=lambda pair: number(pair[0])))


def text(file: File) -> str:
    """Return a file of the overlay as it is written."""
    return tomli_w.dumps(msgspec.to_builtins(file))


def changes(files: Mapping[str, File]) -> tuple[Change, ...]:
    """Return what these files would change of what is known now, by table and row."""
    before = {name: _table(name) for name in _ROWS}
    laid = load.laid_now()
    try:
        overlay.use(files)
        after = {name: _table(name) for name in _ROWS}
    finally:
        load.lay(laid)
    return tuple(change for name in _ROWS for change in _differences(_ROWS[name][0], before[name], after[name]))


def _table(name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of a table as plain values, by their own name."""
    return {getattr(row, "version", None) or row.name: _plain(msgspec.to_builtins(row)) for row in _ROWS[name][1]()}


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its variants as one line each: the name, and the GPU code that it has or probably has."""
    variants = row.get("variant", ())
    if variants:
        row["variant"] = [" ".join((one["name"], *(one["arch"] or one["arch_probable"]))) for one in variants]
    return row


def _differences(table: str, before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> Iterator[Change]:
    """Yield the rows that are new, gone again, or have another value."""
    for row in sorted({*before, *after}, key=number):
        old, new = before.get(row), after.get(row)
        if old is None and new is not None:
            yield Change(table=table, row=row, after=_said(_summary(new)))
        elif new is None:
            yield Change(table=table, row=row, before=_said(_summary(old or {})))
        elif old is not None:
            for field in old:
                if field not in _SILENT and old[field] != new[field]:
                    yield Change(table=table, row=row, field=field, before=_said(old[field]), after=_said(new[field]))


def _summary(row: Mapping[str, Any]) -> Iterable[str]:
    """Return what a person wants to know of a row that is new."""
    for field in ("default_variant", "cuda_major", "pythons", "glibc_by_tag", "glibc", "torchvision", "pins", "latest", "size_mb"):
        if row.get(field):
            yield f"{field} {_said(row[field])}"


def _said(value: Any) -> str:
    """Return a value as one short line."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else str(value) if isinstance(value, (int, float)) else ", ".join(map(str, value))
