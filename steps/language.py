"""Which language is spoken; light, since it is asked before the first screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh_CN"]


def spoken(asked: str | None, environ: Mapping[str, str], preferred: str | None) -> Language:
    """Return the language: asked for › BRINGUP_LANG › the config's `preferred` › the locale (`zh*`) › English."""
    for wish in (asked, environ.get("BRINGUP_LANG"), preferred):
        if named := _named(wish):
            return named
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return _named(locale) or "en"


def _named(name: str | None) -> Language | None:
    """Return the language that a name or a locale begins with (`zh`, `zh_CN.UTF-8`); `None` for one that is not spoken here."""
    beginnings: tuple[tuple[str, Language], ...] = (("zh", "zh_CN"), ("en", "en"))
    return next((language for begin, language in beginnings if name and name.lower().startswith(begin)), None)


def config_files(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the paths of the two config files; the second decides."""
    home = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '/root')}/.config"
    return "/etc/bringup/config.toml", f"{home}/bringup/config.toml"
