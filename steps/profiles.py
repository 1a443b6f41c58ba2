"""Profiles as TOML text: read strictly, with the line of every slip, and written back."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec
import tomli_w

from steps.catalog.frameworks import package_names
from steps.catalog.prompts import prompt_rows
from steps.errors import InputError
from steps.model.profile import Profile, as_tables, holds_credentials

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SCHEMA = 1
_TABLE = re.compile(r"^\s*\[{1,2}\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_.-]+))\s*=""")
_MADE_FOR = "# made for: "
_OPEN_TABLES = ("frameworks", "prompts")
"""Tables whose keys are names of the catalogue, not of the profile."""
_VERSION, _LINE, _WORD = r"[0-9][A-Za-z0-9.+!_-]*", r"[0-9]+(\.[0-9]+)*", r"[A-Za-z0-9_][A-Za-z0-9_.@:-]*"
_SHAPES: Mapping[str, tuple[str, str]] = {
    "driver.branch": (_LINE, "580"),
    "driver.ignore": (r"([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]", "0000:01:00.0"),
    "toolkit.cuda": (f"{_LINE}|none", "12.8"),
    "toolkit.cudnn": (f"{_LINE}|none", "9.10"),
    "toolkit.nccl": (f"{_LINE}|none", "2.27"),
    "nccl.interface": (r"[\^=]{0,2}[^\s/,\"'#]{1,15}(,[^\s/,\"'#]{1,15})*", "eno1"),
    "nccl.extra": (r"[^\x00-\x1f\x7f]*", "a single line"),
    "environment.name": (r"[^\s/\x00-\x1f~$-][^/\x00-\x1f]*", "dl"),
    "environment.python": (_LINE, "3.12"),
    "environment.group": (_WORD, "ml"),
    "frameworks": (_VERSION, "2.9.1"),
}
"""What values have to look like that end up in a command or a file, with an example; of a table or a list each value."""
_LONG = 5
"""Letters from which on a name that differs by one is hardly another package's."""
_KEYS: Mapping[str, tuple[str, str]] = {
    "nccl.extra": ("NCCL_[A-Z0-9_]+", "NCCL_IB_HCA"),
    "frameworks": ("[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", "torch"),
}
"""The same for the keys that a person names."""


def parse(text: str, name: str) -> Profile:
    """Return the profile that `text` (of the file `name`) holds.

    Raises `InputError` that names the file, the line and the key: `profile-syntax`, `profile-schema`, `profile-key`,
    `profile-type`, `profile-choice`, `profile-quotes`, `profile-shape`, `profile-keep`, `profile-secret`, `profile-prompt`,
    `profile-prompt-person`.
    """
    try:
        tables = tomllib.loads(text)
    except ValueError as error:  # tomllib's own, and Python's for a number of thousands of digits
        raise InputError("profile-syntax", file=name, detail=str(error)) from error
    schema = tables.get("schema", _SCHEMA)
    if type(schema) is not int:
        detail = f"Expected `int`, got `{type(schema).__name__}`"
        raise InputError("profile-type", file=name, line=_line(text, "schema"), key="schema", detail=detail)
    if schema != _SCHEMA:
        raise InputError("profile-schema", file=name, line=_line(text, "schema"), found=str(schema), known=_SCHEMA)
    _refuse_unknown(tables, text, name)
    try:
        profile = msgspec.convert(tables, Profile)
    except msgspec.ValidationError as error:
        raise _type_error(str(error), text, name) from error
    _refuse_shapes(profile, text, name)
    _refuse_slips(profile, text, name)
    if profile.driver.source == "keep" and (profile.driver.branch or profile.driver.flavor):
        key = "driver.branch" if profile.driver.branch else "driver.flavor"
        raise InputError("profile-keep", file=name, line=_line(text, key), key=key)
    for field in ("proxy", "apt", "pypi", "torch_index", "conda", "find_links"):
        if holds_credentials(getattr(profile.network, field) or ""):
            raise InputError("profile-secret", file=name, line=_line(text, f"network.{field}"), key=f"network.{field}")
    if profile.network.apt is not None:
        # Nothing reads it: to accept it would promise a mirror that apt is never told of.
        raise InputError("profile-apt-mirror", file=name, line=_line(text, "network.apt"), key="network.apt")
    _refuse_answers(profile, text, name)
    return profile


def _refuse_shapes(profile: Profile, text: str, name: str) -> None:
    """Raise for the first value, or key of a person's naming, that cannot be what it stands for: it would end up in a command or a file."""
    tables = as_tables(profile)
    for where, (shape, example) in _SHAPES.items():
        table, _, key = where.partition(".")
        found = tables.get(table, {}).get(key) if key else tables.get(table)
        named = found if isinstance(found, Mapping) else {}
        for one, value in named.items():
            key_shape, key_example = _KEYS[where]
            if re.fullmatch(key_shape, one) is None:
                raise _shape_error(where, one, key_example, text, name, below=one)
            if re.fullmatch(shape, value) is None and one != "variant":
                raise _shape_error(where, value, example, text, name, below=one)
        values = () if named or found is None else (found,) if isinstance(found, str) else found
        for value in values:
            if re.fullmatch(shape, value) is None:
                raise _shape_error(where, value, example, text, name)


def _shape_error(where: str, found: str, example: str, text: str, name: str, *, below: str | None = None) -> InputError:
    """Return the error for a value of a key, or of the key `below` it; a table in one line has only the line of its own."""
    key = where if below is None else f"{where}.{below}"
    line = next((number for number, one in _keys(text) if one == key), _line(text, where))
    shown, value = ("".join(char if char.isprintable() else "�" for char in one) for one in (key, found[:40]))
    return InputError("profile-shape", file=name, line=line, key=shown, found=value, example=example)


def _refuse_slips(profile: Profile, text: str, name: str) -> None:
    """Raise for a framework that the catalogue has not, one letter away from one that it has: an index may have something so named."""
    known = package_names()
    for key in profile.frameworks:
        plain = key.lower().replace("_", "-")
        if key == "variant" or plain in known:
            continue
        near = next((one for one in known if len(one) >= _LONG and _is_slip(plain, one) and not _is_other_build(plain, one)), None)
        if near is not None:
            raise InputError("profile-key-near", file=name, line=_line(text, f"frameworks.{key}"), key=key, near=near)


def _is_slip(typed: str, meant: str) -> bool:
    """Return whether one letter was typed too many, too few, wrong, or two in the wrong order."""
    if len(typed) == len(meant):
        wrong = [at for at, (one, other) in enumerate(zip(typed, meant, strict=True)) if one != other]
        swapped = len(wrong) == 2 and wrong[1] == wrong[0] + 1 and (typed[wrong[0]], typed[wrong[1]]) == (meant[wrong[1]], meant[wrong[0]])
        return len(wrong) == 1 or swapped
    short, long = sorted((typed, meant), key=len)
    return len(long) == len(short) + 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))


def _is_other_build(one: str, other: str) -> bool:
    """Return whether two names differ by a number or a short word alone, as tensorrt-cu14 and -cu13, tensorflow-cpu and -gpu do."""
    if re.sub(r"\d", "", one) == re.sub(r"\d", "", other):
        return True
    parts, others = one.split("-"), other.split("-")
    return len(parts) == len(others) > 1 and all(mine == theirs or len(mine) < _LONG for mine, theirs in zip(parts, others, strict=True))


def _refuse_answers(profile: Profile, text: str, name: str) -> None:
    """Raise for the first answer to a program's question that cannot be given beforehand."""
    rows = {f"prompts.{row.id}": row for row in prompt_rows()}
    for id, answer in profile.prompts.items():
        key = f"prompts.{id}"
        if key not in rows:
            raise _unknown_key(key, tuple(rows), text, name)
        answers = rows[key].profile_answers
        if answers is None:
            raise InputError("profile-prompt-person", file=name, line=_line(text, key), key=key)
        if answers and answer not in answers:
            raise InputError("profile-prompt", file=name, line=_line(text, key), key=key, found=answer, answers=", ".join(answers))


def dump(profile: Profile, made_for: str = "") -> str:
    """Return `profile` as TOML; `made_for` (the machine's headline) goes into a comment that `made_for_line` finds again."""
    heading = f"{_MADE_FOR}{made_for}\n" if made_for else ""
    return heading + tomli_w.dumps(as_tables(profile))


def made_for_line(text: str) -> str | None:
    """Return the headline of the machine that a profile was written on, or `None` when the file does not say."""
    for line in text.splitlines():
        if line.startswith(_MADE_FOR):
            return line.removeprefix(_MADE_FOR).strip()
    return None


def _refuse_unknown(tables: Mapping[str, Any], text: str, name: str) -> None:
    """Raise for the first table or key that no profile has."""
    known = {field.encode_name: field.type for field in msgspec.structs.fields(Profile)}
    for table, entries in tables.items():
        if table not in known:
            raise _unknown_key(table, tuple(known), text, name)
        if table in _OPEN_TABLES or not isinstance(entries, Mapping) or not hasattr(known[table], "__struct_fields__"):
            continue
        keys = tuple(field.encode_name for field in msgspec.structs.fields(known[table]))
        for key in entries:
            if key not in keys:
                raise _unknown_key(f"{table}.{key}", tuple(f"{table}.{one}" for one in keys), text, name)


def _unknown_key(key: str, known: tuple[str, ...], text: str, name: str) -> InputError:
    """Return the error for a key that is not one, with the nearest that is."""
    short = key.rpartition(".")[2]
    near = difflib.get_close_matches(short, [one.rpartition(".")[2] for one in known], n=1)
    if near:
        return InputError("profile-key-near", file=name, line=_line(text, key), key=short, near=near[0])
    return InputError("profile-key", file=name, line=_line(text, key), key=short)


def _type_error(problem: str, text: str, name: str) -> InputError:
    """Return the error for a value of the wrong type, from msgspec's "… - at `$.table.key`"."""
    detail, _, where = problem.partition(" - at ")
    key = where.strip("`").removeprefix("$.").split("[")[0].removesuffix(".")
    if (chosen := re.fullmatch(r"Invalid enum value '(.*)'", detail, re.DOTALL)) and (answers := _answers(key)):
        found = "".join(char if char.isprintable() else "�" for char in chosen[1][:40])
        return InputError("profile-choice", file=name, line=_line(text, key), key=key, found=found, answers=", ".join(answers))
    if detail.startswith("Expected `str") and re.search(r"got `(int|float)`", detail):
        return InputError("profile-quotes", file=name, line=_line(text, key), key=key)
    return InputError("profile-type", file=name, line=_line(text, key), key=key or "?", detail=detail)


def _answers(dotted: str) -> tuple[str, ...]:
    """Return the words that a key may have; empty where it may have any."""
    table, _, key = dotted.partition(".")
    records = {field.encode_name: field.type for field in msgspec.structs.fields(Profile)}
    if not hasattr(records.get(table), "__struct_fields__"):
        return ()
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(records[table])}
    parts = (fields.get(key), *get_args(fields.get(key)))
    return tuple(word for part in parts if get_origin(part) is Literal for word in get_args(part))


def _line(text: str, dotted: str) -> int:
    """Return the line (from 1) on which a dotted key or a table stands, else that of the table around it; 1 when neither is found."""
    while dotted:
        for number, found in _keys(text):
            if found == dotted or found.startswith(f"{dotted}."):
                return number
        dotted = dotted.rpartition(".")[0]  # a table that is written in one line
    return 1


def _keys(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the full dotted name of every table heading and key."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if heading := _TABLE.match(line):
            table = heading[1].replace('"', "").replace(" ", "")
            yield number, table
        elif key := _KEY.match(line):
            name = next(part for part in key.groups() if part is not None)
            yield number, f"{table}.{name}" if table else name
