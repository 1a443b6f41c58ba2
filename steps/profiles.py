"""Profiles as TOML text: read strictly, with the line of every slip, and written back."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import tomli_w

from steps.catalog.prompts import prompt_rows
from steps.errors import InputError
from steps.model.profile import Profile, as_tables, holds_credentials

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SCHEMA = 1
_TABLE = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""^\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_.-]+))\s*=""")
_MADE_FOR = "# made for: "
_OPEN_TABLES = ("frameworks", "prompts")
"""Tables whose keys are names of the catalogue, not of the profile."""


def parse(text: str, name: str) -> Profile:
    """Return the profile that `text` (of the file `name`) holds.

    Raises `InputError` that names the file, the line and the key: `profile-syntax`, `profile-schema`, `profile-key`,
    `profile-type`, `profile-keep`, `profile-secret`, `profile-prompt`, `profile-prompt-person`.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError("profile-syntax", file=name, detail=str(error)) from error
    schema = tables.get("schema", _SCHEMA)
    if type(schema) is not int or schema != _SCHEMA:
        raise InputError("profile-schema", file=name, line=_line(text, "schema"), found=str(schema), known=_SCHEMA)
    _refuse_unknown(tables, text, name)
    try:
        profile = msgspec.convert(tables, Profile)
    except msgspec.ValidationError as error:
        raise _type_error(str(error), text, name) from error
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
    near = difflib.get_close_matches(key, known, n=1)
    short = key.rpartition(".")[2]
    if near:
        return InputError("profile-key-near", file=name, line=_line(text, key), key=short, near=near[0].rpartition(".")[2])
    return InputError("profile-key", file=name, line=_line(text, key), key=short)


def _type_error(problem: str, text: str, name: str) -> InputError:
    """Return the error for a value of the wrong type, from msgspec's "… - at `$.table.key`"."""
    detail, _, where = problem.partition(" - at ")
    key = where.strip("`").removeprefix("$.").split("[")[0].removesuffix(".")
    return InputError("profile-type", file=name, line=_line(text, key), key=key or "?", detail=detail)


def _line(text: str, dotted: str) -> int:
    """Return the line (from 1) on which a dotted key or a table stands; 1 when it cannot be found."""
    for number, found in _keys(text):
        if found == dotted or found.startswith(f"{dotted}."):
            return number
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
