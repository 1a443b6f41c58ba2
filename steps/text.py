"""From keys to words, for one language."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from steps import resources
from steps.language import Language as Language  # noqa: PLC0414 - who asks for words names their language from here
from steps.model.base import Param, Phrase, Words
from steps.model.finding import Finding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def _area(language: Language, area: str) -> Mapping[str, Any]:
    """Return the words of one file; the first part of a key names the file."""
    return tomllib.loads(resources.read_text("i18n", language, f"{area}.toml"))


def lookup(language: Language, key: str) -> str | None:
    """Return the words at `key` with their braces unfilled, or `None` when there are none."""
    area, *rest = key.split(".")
    try:
        found: Any = _area(language, area)
    except FileNotFoundError:
        return None
    for part in rest:
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found if isinstance(found, str) else None


def say(language: Language, words: Words, /, **params: Param) -> str:
    """Return `words` in `language`; text that is never translated comes back as it is.

    `{bringup}` in words is what a person types to call this program.
    A key without words comes back as the key itself, so that a gap is seen and nothing crashes; a test looks for gaps.
    """
    if isinstance(words, str):
        return words
    template = lookup(language, words.key)
    if template is None and language != "en":
        template = lookup("en", words.key)
    if template is None:
        return words.key
    try:
        known = {name: _value(language, words.key, value) for name, value in words.params.items()}
        return template.format_map({"bringup": resources.command_name(), **known, **params})
    except (KeyError, IndexError, ValueError):
        return template


def say_rung(language: Language, rung: str) -> str:
    """Return what a rung of the proof is called; a package without words of its own keeps its name."""
    key = f"verify.rung.{rung}"
    return say(language, Phrase(key=key)) if lookup("en", key) else rung


def _value(language: Language, key: str, value: Param) -> Param:
    """Return a value as it is said: one that the doctor misses (`?`) is called not known."""
    if value != "?" or not key.startswith(("doctor", "repair.step.")):
        return value
    return lookup(language, "doctor.missing") or lookup("en", "doctor.missing") or value


FindingPart = Literal["topic", "tag", "sentence", "why", "remedy"]
"""`topic` is what a row that has only the tag beside it is about, where the subject (a card, a state) does not say it."""


def say_finding(language: Language, finding: Finding, part: FindingPart) -> str:
    """Return one of a finding's texts, or "" when it has none.

    They stand in the file of the finding's step (`driver.finding.<code>.tag`), general ones in `general.toml`.
    """
    for area in (finding.step, "general"):
        key = f"{area}.finding.{finding.code}.{part}"
        if lookup(language, key) is not None or lookup("en", key) is not None:
            return say(language, Phrase(key=key, params={"subject": finding.subject, **finding.params}))
    return finding.code if part in ("tag", "sentence") else ""


def say_error(language: Language, code: str, params: Mapping[str, Param]) -> str:
    """Return the sentence of an error and, after it, its remedy."""
    parts = (
        say(language, Phrase(key=f"error.{code}.{part}", params=params))
        for part in ("sentence", "remedy")
        if lookup("en", f"error.{code}.{part}")
    )
    return ("" if language == "zh_CN" else " ").join(parts) or code
