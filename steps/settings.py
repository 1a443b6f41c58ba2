"""What a person prefers: language, plain lines, slow link; from the command line, the environment and two files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Literal

import msgspec

from steps.errors import InputError
from steps.host.base import Host
from steps.model.base import Record
from steps.text import Language

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
    home = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '/root')}/.config"
    for path in ("/etc/bringup/config.toml", f"{home}/bringup/config.toml"):
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


def language(asked: str | None, environ: Mapping[str, str], preferred: Config) -> Language:
    """Return the language: asked for › BRINGUP_LANG › config › the locale (`zh*`) › English."""
    for wish in (asked, environ.get("BRINGUP_LANG"), preferred.lang):
        if wish in ("en", "zh_CN"):
            return "zh_CN" if wish == "zh_CN" else "en"
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh_CN" if locale.startswith("zh") else "en"
