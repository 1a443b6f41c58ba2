"""Texts that a pattern matches, made from the pattern itself."""

from __future__ import annotations

import importlib
import random
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

_PARSER: Any = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_LETTERS = "aZ0_ /-.:,'\"(=[\n"
_CATEGORIES = {
    "CATEGORY_DIGIT": "019", "CATEGORY_NOT_DIGIT": "a-/", "CATEGORY_SPACE": " \n", "CATEGORY_NOT_SPACE": "a/-:.0", "CATEGORY_WORD": "aZ0_",
    "CATEGORY_NOT_WORD": "-/. ",
}  # fmt: skip


def texts(pattern: re.Pattern[str], chance: random.Random) -> Iterator[str]:
    """Yield such texts without an end; where a pattern looks around itself, some of them match nothing."""
    tree = _PARSER.parse(pattern.pattern, pattern.flags)
    while True:
        yield "".join(_made(tree, chance, {}))


def _made(tree: Iterable[tuple[Any, Any]], chance: random.Random, groups: dict[int, str]) -> Iterator[str]:
    """Yield the parts of one text; `groups` is what the numbered groups hold so far."""
    for kind, told in tree:
        match str(kind):
            case "LITERAL":
                yield chr(told)
            case "NOT_LITERAL":
                yield chance.choice([letter for letter in _LETTERS if ord(letter) != told])
            case "ANY":
                yield chance.choice(_LETTERS[:-1])
            case "IN":
                yield chance.choice(_of_set(told))
            case "BRANCH":
                yield from _made(chance.choice(told[1]), chance, groups)
            case "SUBPATTERN":
                held = "".join(_made(told[3], chance, groups))
                if told[0] is not None:
                    groups[told[0]] = held
                yield held
            case "GROUPREF":
                yield groups.get(told, "")
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = told
                for _ in range(min(most, least + chance.choice((0, 0, 1, 2)))):
                    yield from _made(inner, chance, groups)
            case _:
                continue


def _of_set(told: Iterable[tuple[Any, Any]]) -> str:
    """Return letters of a set, or of all but that."""
    letters, but = "", False
    for kind, value in told:
        match str(kind):
            case "NEGATE":
                but = True
            case "LITERAL":
                letters += chr(value)
            case "RANGE":
                letters += chr(value[0]) + chr(value[1])
            case _:
                letters += _CATEGORIES[str(value)]
    return "".join(letter for letter in _LETTERS if letter not in letters) or "é" if but else letters
