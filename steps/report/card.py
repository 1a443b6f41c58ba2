"""The card: what is to be changed in the BIOS and where it stands there, as text to print, for the minute when no screen is at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steps import firmware
from steps.lines import cells_of
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
    yield from (*wrapped(title, WIDTH), "=" * WIDTH)
    yield from wrapped(word("enter", key=board.setup_key) if board is not None else word("enter-unknown"), WIDTH)
    options = firmware.choices(machine, answers)[0].options
    groups = {"change": [one for one in options if one.mark == "catch"], "look": [one for one in options if one.mark == "unknown"]}
    if not any(groups.values()):
        yield from ("", word("nothing"))
        return
    for group, members in groups.items():
        if members:
            yield from ("", word(group))
        for option in members:
            yield from ("", *_item(machine, option, language, word))
    yield from ("", word("after"))


def _item(machine: Machine, option: Option, language: Language, word: Callable[..., str]) -> Iterator[str]:
    """Yield one switch: a box to tick, why, where, and what is measured now."""
    yield f"[ ] {word('item', name=say(language, option.label), tag=say(language, option.tag))}"
    for finding in option.findings[:1]:
        yield from _indented(say_finding(language, finding, "remedy"))
    board, menus = firmware.paths(machine, option.value)
    for menu in menus[:2]:
        yield from _indented(word("path", path=say(language, firmware.where(board.vendor if board is not None else "", menu))))
        yield from _indented(word("source", source=menu.source))
    if not menus:
        yield from _indented(say(language, firmware.unlisted(machine, option.value)))
    measured = [say(language, note.text) for note in option.notes if note.label == "measured"]
    if measured:
        yield from _indented(word("now", measured="; ".join(measured)))


def _indented(text: str) -> list[str]:
    """Return text wrapped below its box."""
    return [f"    {line}" for line in wrapped(text, WIDTH - 4)]


def wrapped(text: str, cells: int) -> list[str]:
    """Return lines of at most so many cells: Latin words stay whole, a Chinese letter takes two cells and breaks anywhere."""
    lines: list[str] = []
    line, blank = "", 0
    for char in text:
        if cells_of(line + char) > cells:
            at = blank if blank and ord(char) < 0x2E80 and char != " " else len(line)
            lines.append(line[:at].rstrip())
            line, blank = line[at:].lstrip(), 0
        line += char
        if char == " " or ord(char) >= 0x2E80:
            blank = len(line)
    return [*lines, line.rstrip()] if line.strip() else lines
