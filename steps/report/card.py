"""The card: what is to be changed in the BIOS and where it stands there, as text to print, for the minute when no screen is at hand."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from steps import firmware
from steps.model.base import Param, Phrase
from steps.model.choice import Option
from steps.model.machine import Machine
from steps.model.profile import Profile
from steps.text import Language, say, say_finding

WIDTH = 76


def card(machine: Machine, answers: Profile, language: Language) -> str:
    """Return the card; what is measured and right is not on it."""
    return "\n".join(_lines(machine, answers, language)).rstrip() + "\n"


def _lines(machine: Machine, answers: Profile, language: Language) -> Iterator[str]:
    """Yield the lines of the card."""

    def word(key: str, /, **params: Param) -> str:
        return say(language, Phrase(key=f"report.card.{key}", params=params))

    told = machine.firmware
    name = " ".join(part for part in (told.vendor, told.board or told.product) if part) or "?"
    title = word("title", board=f"{name} (BIOS {told.bios_version or '?'})")
    board, _ = firmware.paths(machine, "")
    yield from (*textwrap.wrap(title, WIDTH if language == "en" else WIDTH // 2), "=" * WIDTH)
    yield word("enter", key=board.setup_key) if board is not None else word("enter-unknown")
    options = firmware.choices(machine, answers)[0].options
    groups = {"change": [one for one in options if one.mark == "catch"], "look": [one for one in options if one.mark == "unknown"]}
    if not any(groups.values()):
        yield from ("", word("nothing"))
        return
    for group, members in groups.items():
        if members:
            yield from ("", f"{word(group)}:")
        for option in members:
            yield from ("", *_item(machine, option, language, word))
    yield from ("", word("after"))


def _item(machine: Machine, option: Option, language: Language, word: Callable[..., str]) -> Iterator[str]:
    """Yield one switch: a box to tick, why, where, and what is measured now."""
    yield f"[ ] {say(language, option.label)}: {say(language, option.tag)}"
    for finding in option.findings[:1]:
        yield from _indented(say_finding(language, finding, "remedy"), language)
    board, menus = firmware.paths(machine, option.value)
    for menu in menus[:2]:
        yield from _indented(word("path", path=firmware.where(board.vendor if board is not None else "", menu)), language)
        yield from _indented(word("source", source=menu.source), language)
    if not menus:
        yield from _indented(word("manual", entry=firmware.ENTRIES[option.value]), language)
    measured = [say(language, note.text) for note in option.notes if note.label == "measured"]
    if measured:
        yield from _indented(word("now", measured="; ".join(measured)), language)


def _indented(text: str, language: Language) -> list[str]:
    """Return text wrapped below its box; Chinese letters are two cells wide and have no blanks to break at."""
    width = WIDTH - 4 if language == "en" else (WIDTH - 4) // 2
    return textwrap.wrap(text, width, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
