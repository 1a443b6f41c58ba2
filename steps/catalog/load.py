"""Reading a table of `assets/data` into records; a slip names the file, the row and the field."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from steps import resources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

R = TypeVar("R", bound=msgspec.Struct)
F = TypeVar("F", bound=Callable[..., Any])
Merge = Callable[[tuple[Any, ...]], tuple[Any, ...]]
"""What an overlay makes of the built-in rows of one array."""


class CatalogError(Exception):
    """A table of ours is wrong: a bug of the package, never of the machine."""


_remembered: list[Any] = []
"""What was read or worked out from the tables; an overlay makes it old."""
_laid: dict[tuple[str, str], Merge] = {}


def remembered(function: F) -> F:
    """Cache `function` until an overlay is laid, and keep its signature: `cache` alone loses which record comes out."""
    kept = cache(function)
    _remembered.append(kept)
    return cast(F, kept)


def lay(merges: Mapping[tuple[str, str], Merge]) -> None:
    """Let these make the rows of (file, array) from the built-in ones, and forget what was read before."""
    if not merges and not _laid:
        return
    _laid.clear()
    _laid.update(merges)
    for kept in _remembered:
        kept.cache_clear()


def laid_now() -> Mapping[tuple[str, str], Merge]:
    """Return what lies over the tables now, to be laid again later."""
    return dict(_laid)


@cache
def document(file: str) -> dict[str, Any]:
    """Return the whole TOML document `assets/data/<file>`."""
    try:
        return tomllib.loads(resources.read_text("data", file))
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{file}: {error}") from error


@remembered
def rows(file: str, array: str, record: type[R]) -> tuple[R, ...]:
    """Return the tables `[[array]]` of a TOML file as records, in the order of the file; an overlay's come after them."""
    found: list[R] = []
    for position, table in enumerate(document(file).get(array, ())):
        try:
            found.append(msgspec.convert(table, record))
        except msgspec.ValidationError as error:
            raise CatalogError(f"{file}: [[{array}]] {position + 1}: {error}") from error
    merge = _laid.get((file, array))
    return merge(tuple(found)) if merge else tuple(found)


@remembered
def lines(file: str, record: type[R]) -> tuple[R, ...]:
    """Return the lines of a tab-separated file as records; its first line names the fields, an empty cell is `None`."""
    head, *body = resources.read_text("data", file).splitlines()
    names = head.split("\t")
    found: list[R] = []
    for position, line in enumerate(body):
        cells = {name: cell for name, cell in zip(names, line.split("\t"), strict=False) if cell}
        try:
            found.append(msgspec.convert(cells, record, strict=False))
        except msgspec.ValidationError as error:
            raise CatalogError(f"{file}: line {position + 2}: {error}") from error
    return tuple(found)
