"""The MOK card: the blue screen of the next boot, screen by screen with the keys to press, as text to print beforehand."""

from __future__ import annotations

from collections.abc import Iterator

from steps.catalog.mok import MokScreen, mok_screens
from steps.model.base import Phrase
from steps.report.card import WIDTH, wrapped
from steps.text import Language, say


def mok_card(language: Language, certificate: str | None = None) -> str:
    """Return the card; `certificate` is the file of the key, for the case that the screen was missed."""
    return "\n".join(_lines(language, certificate)).rstrip() + "\n"


def _lines(language: Language, certificate: str | None) -> Iterator[str]:
    yield from (_word(language, "title"), "=" * WIDTH)
    yield from wrapped(_word(language, "before"), WIDTH)
    for number, screen in enumerate(mok_screens(), 1):
        yield ""
        yield from _screen(language, number, screen)
    yield ""
    again = f"mokutil --import {certificate}" if certificate else "mokutil --import"
    for key in ("layout", "wrong", "missed"):
        yield from wrapped(_word(language, key), WIDTH)
    yield f"    {again}"


def _screen(language: Language, number: int, screen: MokScreen) -> Iterator[str]:
    """Yield one screen as it looks, the row to take marked, and what to press."""
    yield f"[ ] {number}  {screen.title}"
    for row in screen.rows:
        yield f"       {'>' if row == screen.choose else ' '} {row}"
    yield from (f"       {line}" for line in wrapped(_word(language, f"keys.{screen.keys}"), WIDTH - 7))


def _word(language: Language, key: str) -> str:
    return say(language, Phrase(key=f"report.mok.{key}"))
