"""Reading a table of `assets/data` into records; a slip names the file, the row and the field."""

from __future__ import annotations

import sys
from collections.abc import Callable
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


class CatalogError(Exception):
    """A table of ours is wrong: a bug of the package, never of the machine."""


@cache
def document(file: str) -> dict[str, Any]:
    """Return the whole TOML document `assets/data/<file>`."""
    try:
        return tomllib.loads(resources.read_text("data", file))
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{file}: {error}") from error


def _once(function: F) -> F:
    """Cache `function` and keep its signature: `cache` alone loses which record goes in and comes out."""
    return cast(F, cache(function))


@_once
def rows(file: str, array: str, record: type[R]) -> tuple[R, ...]:
    """Return the tables `[[array]]` of a TOML file as records, in the order of the file."""
    found: list[R] = []
    for position, table in enumerate(document(file).get(array, ())):
        try:
            found.append(msgspec.convert(table, record))
        except msgspec.ValidationError as error:
            raise CatalogError(f"{file}: [[{array}]] {position + 1}: {error}") from error
    return tuple(found)


@_once
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
