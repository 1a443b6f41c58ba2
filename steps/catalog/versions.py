"""Version numbers as they are compared: by their numbers, never as text."""

from __future__ import annotations

import re
from functools import cache

Number = tuple[int, ...]
_DIGITS = 400


@cache
def number(version: str) -> Number:
    """Return the leading numbers of a version: `580.65.06` is (580, 65, 6), `12.8` is (12, 8); () when there are none.

    Of a number without end, as no release has one, its first digits count: Python refuses to read it.
    """
    found = re.match(r"\d+(?:\.\d+)*", version.strip())
    return tuple(int(part[:_DIGITS]) for part in found.group().split(".")) if found else ()


def at_least(version: str, floor: str) -> bool:
    """Return whether `version` is `floor` or newer; `580` counts as every release of its line, `580.0` does not."""
    have, need = number(version), number(floor)
    return have[: len(need)] >= need[: len(have)] if len(have) < len(need) else have >= need


def line(version: str, parts: int = 2) -> str:
    """Return the first `parts` numbers of a version: the line it belongs to."""
    return ".".join(str(part) for part in number(version)[:parts])


def belongs(version: str, wanted: str) -> bool:
    """Return whether `version` is of the line `wanted`: `9.10.2.21` is of `9.10`, not of `9.1`."""
    need = number(wanted)
    return bool(need) and number(version)[: len(need)] == need
