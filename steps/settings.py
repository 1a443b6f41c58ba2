"""What a person prefers: language, plain lines, colour, slow link; read from two files, below what the command line says."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from steps.errors import InputError
from steps.host.base import Host
from steps.language import Language, config_files
from steps.model.base import Record

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Config(Record):
    """The config file: `/etc/bringup/config.toml`, then `$XDG_CONFIG_HOME/bringup/config.toml`. Its keys are options."""

    lang: Language | None = None
    plain: bool | None = None
    no_color: bool | None = None
    low_bandwidth: bool | None = None

    def under(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the command line asks for and, beside it, what is preferred here; `language.spoken` orders the languages."""
        switches = ("plain", "no_color", "low_bandwidth")
        return {**asked, **{name: True for name in switches if getattr(self, name) and not asked.get(name)}}


def config(host: Host, environ: Mapping[str, str]) -> Config:
    """Return both files laid over each other; raises `InputError` (`config-wrong`) for one that cannot be read as it should."""
    merged: dict[str, object] = {}
    for path in config_files(environ):
        text = host.read(path)
        if text is None:
            continue
        try:
            merged |= msgspec.to_builtins(msgspec.convert(tomllib.loads(text), _Partial))
        except tomllib.TOMLDecodeError as error:
            raise InputError("config-wrong", file=path, detail=str(error)) from error
        except msgspec.ValidationError as error:
            raise _refused(path, str(error)) from error
    return msgspec.convert(merged, Config)


def _refused(path: str, problem: str) -> InputError:
    """Return the error for a key or a value of it that there is not, with those that there are."""
    if unknown := re.search(r"unknown field `(.*)`", problem):
        return InputError("config-key", file=path, key=unknown[1][:40], keys=", ".join(Config.__struct_fields__))
    key = problem.rpartition("$.")[2].strip("`")
    answers = ", ".join(f'"{one}"' for one in get_args(Language)) if key == "lang" else "true, false"
    return InputError("config-value", file=path, key=key, answers=answers)


class _Partial(Config, omit_defaults=True):
    """A config whose absent keys stay absent."""
