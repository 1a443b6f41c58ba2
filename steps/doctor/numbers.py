"""Numbers as machines print them: those that a text begins with, and the driver's versions in all their spellings."""

from __future__ import annotations

import re

_UPSTREAM = re.compile(r"^(?:\d+:)?([3-9]\d\d\.\d+(?:\.\d+)*)")
_ANYWHERE = re.compile(r"(?<![\d.])([3-9]\d\d\.\d{2,3}(?:\.\d{2})?)(?![\d.]*\d)")


_DECIMAL = re.compile(r"\s*(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)(?![0-9]|\.+[0-9])")
_WHOLE = re.compile(r"\s*(-?[0-9]{1,18})\s*")


def number(text: str | None) -> float | None:
    """Return the number that a text begins with, whatever unit follows; `None` for what is none (`2..5`, `²`, hundreds of digits)."""
    found = _DECIMAL.match(text or "")
    return float(found[1]) if found else None


def whole(text: str | None) -> int | None:
    """Return the whole number that a text is, `None` for any other text."""
    found = _WHOLE.fullmatch(text or "")
    return int(found[1]) if found else None


def upstream(version: str | None) -> str | None:
    """Return the driver's version in a package's (`3:595.71.05-1.fc43` → `595.71.05`); `None` for a package of another counting."""
    found = _UPSTREAM.match(version or "")
    return found[1] if found else None


def inside(text: str) -> str | None:
    """Return the first driver version in a text or a name (`NVIDIA-Linux-x86_64-570.124.04.run`), or `None`."""
    found = _ANYWHERE.search(text)
    return found[1] if found else None


def branch(version: str) -> str:
    """Return the branch of a version: `550` of `550.90.07`."""
    return version.partition(".")[0]


def parts(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparing."""
    return tuple(int(part) for part in re.findall(r"[0-9]{1,18}", version))


def agree(one: str, other: str) -> bool:
    """Return whether two versions may be the same: NVML's own message leaves the third number out, so the shorter one decides."""
    a, b = parts(one), parts(other)
    least = min(len(a), len(b))
    return a[:least] == b[:least]


def same(one: str, other: str) -> bool:
    """Return whether two versions that were told wholly are the same: 575.64 and 575.64.03 are two releases."""
    return parts(one) == parts(other)


def newer(one: str, other: str) -> bool:
    """Return whether `one` is newer than `other`; of two that may be the same it is asked only where both were told wholly."""
    return parts(one) > parts(other)
