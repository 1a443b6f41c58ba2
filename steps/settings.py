"""What a person prefers: language, plain lines, slow link; from the command line, the environment and two files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Literal

import msgspec

from steps.errors import InputError
from steps.host.base import Host
from steps.language import config_files
from steps.model.base import Record

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Config(Record):
    """The config file: `/etc/bringup/config.toml`, then `$XDG_CONFIG_HOME/bringup/config.toml`."""

    lang: Literal["en", "zh_CN"] | None = None
    plain: bool | None = None
    color: bool | None = None
    low_bandwidth: bool | None = None


def config(host: Host, environ: Mapping[str, str]) -> Config:
    """Return both files laid over each other; raises `InputError` (`config-wrong`) for one that cannot be read as it should."""
    merged: dict[str, object] = {}
    for path in config_files(environ):
        text = host.read(path)
        if text is None:
            continue
        try:
            merged |= msgspec.to_builtins(msgspec.convert(tomllib.loads(text), _Partial))
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise InputError("config-wrong", file=path, detail=str(error)) from error
    return msgspec.convert(merged, Config)


class _Partial(Config, omit_defaults=True):
    """A config whose absent keys stay absent."""
