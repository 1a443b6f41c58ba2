"""NCCL's configuration files: what NCCL takes from each line, which lines mean something else than they seem to, and how ours are put in.

NCCL reads NAME=VALUE and nothing else: the line is split at the first "=", nothing is trimmed, the first line for a name wins.
How it reads was seen on five real libraries; `assets/data/nccl.toml` holds the rules with their source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Literal

from steps.catalog import stack
from steps.model.base import Record

Fault = Literal[
    "comment", "blanks", "blank-end", "quotes", "export", "carriage-return", "control", "indented", "no-equals", "no-name", "again", "long"
]
RULES: Mapping[Fault, str] = {
    "comment": "comments_inline",
    "blanks": "line_syntax",
    "blank-end": "trailing_blank",
    "quotes": "line_syntax",
    "export": "line_syntax",
    "carriage-return": "crlf",
    "control": "line_syntax",
    "indented": "comments_indented",
    "no-equals": "missing_equals",
    "no-name": "line_syntax",
    "again": "duplicates",
    "long": "limits",
}
"""The rule of the tables that says what comes of a fault."""
HARMLESS: tuple[Fault, ...] = ("indented", "no-equals", "no-name", "again")
"""Faults of lines that set nothing; the others give a variable another name or value than the person meant."""
_LONGEST = 1023
_SPACED = ("NCCL_DEBUG_TIMESTAMP_FORMAT",)
"""Variables whose values hold blanks on purpose: this one's own default ends with one."""
_BYTE_ORDER_MARK = "\ufeff"
"""What some editors write before everything: for NCCL a part of the first name."""
_SHELL_WORD = re.compile(r"\s*(?:export|set)\s+")
_QUOTED = re.compile(r"""(["'])(.*)\1""", re.DOTALL)


class Line(Record):
    """One line of a file: what NCCL sets by it (`name` is `None` when nothing), what was meant, and what is wrong with it."""

    number: int
    text: str
    """Without the line end, a carriage return included."""
    name: str | None = None
    value: str = ""
    meant: str | None = None
    """The variable that the person meant; `None` for comments, blank lines and lines that name none."""
    wanted: str = ""
    """The value that the person meant."""
    faults: tuple[Fault, ...] = ()

    @property
    def misread(self) -> bool:
        """Whether NCCL takes something else than was meant."""
        return any(fault not in HARMLESS for fault in self.faults)


def lines(text: str) -> tuple[Line, ...]:
    """Return the lines of a file as every NCCL from 2.18 on reads them; where releases differ, as the strictest does.

    Full-line comments are comments from 2.26 on and set a variable that nobody reads before: they are no fault.
    """
    seen: set[str] = set()
    found: list[Line] = []
    for number, raw in enumerate(text.removesuffix("\n").split("\n") if text else (), start=1):
        line = _line(number, raw)
        if line.meant is not None and line.meant in seen:
            line = Line(number=number, text=raw, meant=line.meant, wanted=line.wanted, faults=("again",))
        elif line.name is not None and line.meant is not None:
            seen.add(line.meant)
        found.append(line)
    return tuple(found)


def _line(number: int, raw: str) -> Line:
    """Return one line, without regard to the others."""
    if not raw.strip():
        return Line(number=number, text=raw)
    if raw.startswith("#"):
        return Line(number=number, text=raw)
    if raw.lstrip().startswith("#"):
        return Line(number=number, text=raw, faults=("indented",))
    name, equals, value = raw.partition("=")
    if not equals:
        return Line(number=number, text=raw, faults=("no-equals",))
    meant = _SHELL_WORD.sub("", name.removeprefix(_BYTE_ORDER_MARK)).strip()
    if not meant:
        return Line(number=number, text=raw, faults=("no-name",))
    return Line(number=number, text=raw, name=name, value=value, meant=meant, wanted=cleaned(value), faults=_faults(name, value))


def _faults(name: str, value: str) -> tuple[Fault, ...]:
    """Return what makes NCCL take another name or value than was meant."""
    found: list[Fault] = []
    bare = value.rstrip("\r")
    if re.match(r"\s*export\s", name):
        found.append("export")
    elif any(letter.isspace() for letter in name):
        found.append("blanks")
    spaced = name in _SPACED
    if "blanks" not in found and bare != bare.lstrip() and not spaced:
        found.append("blanks")
    if "#" in bare:
        found.append("comment")
    elif bare != bare.rstrip() and not spaced:
        found.append("blank-end")
    elif re.search(r",\s", bare) and not spaced:
        found.append("blanks")
    if _QUOTED.fullmatch(cleaned_comment(bare).strip()):
        found.append("quotes")
    if value.endswith("\r"):
        found.append("carriage-return")
    if not (name + bare).replace("\t", " ").isprintable():
        found.append("control")
    if max(len(name.encode()), len(value.encode())) > _LONGEST:
        found.append("long")
    return tuple(found)


def cleaned_comment(value: str) -> str:
    """Return a value without the comment behind it."""
    return value.partition("#")[0]


def cleaned(value: str) -> str:
    """Return the value that a person meant: no comment, no blanks around it, no quotes, no control characters."""
    bare = "".join(letter for letter in cleaned_comment(value) if letter.isprintable() or letter == "\t").strip()
    quoted = _QUOTED.fullmatch(bare)
    # A blank behind a comma would begin the next entry of a list.
    return re.sub(r",\s+", ",", (quoted[2] if quoted else bare).strip())[:_LONGEST]


def taken(found: tuple[Line, ...]) -> dict[str, str]:
    """Return the variables that NCCL takes from a file, as it spells them; a name with a blank in it is a variable that nobody reads."""
    return {line.name: line.value for line in reversed(found) if line.name is not None}


def merged(text: str, said: Mapping[str, str], without: AbstractSet[str] = frozenset()) -> str:
    """Return a file with `said` in it: a line for one of its names is replaced where it stands, all others stay byte for byte.

    Later lines for such a name, which NCCL ignores, are left out, and so are all lines for names in `without`; new names come last.
    """
    kept: list[str] = []
    left = dict(said)
    for line in lines(text):
        if line.meant in without:
            continue
        if line.meant is None or line.meant not in said:
            kept.append(line.text)
        elif line.meant in left:
            kept.append(f"{line.meant}={left.pop(line.meant)}")
    kept += [f"{name}={value}" for name, value in left.items()]
    return "".join(f"{line}\n" for line in kept)


def source_of(fault: Fault) -> str | None:
    """Return where it is written what comes of a fault."""
    rule = next((row for row in stack.nccl_rules() if row.name == RULES[fault]), None)
    return rule.source if rule else None
