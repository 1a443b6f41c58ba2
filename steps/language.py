"""Which language is spoken; light, since it is asked before the first screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "zh_CN"]


def spoken(asked: str | None, environ: Mapping[str, str], preferred: str | None) -> Language:
    """Return the language: asked for › BRINGUP_LANG › the config's `preferred` › the locale (`zh*`) › English."""
    for wish in (asked, environ.get("BRINGUP_LANG"), preferred):
        if wish in ("en", "zh_CN"):
            return "zh_CN" if wish == "zh_CN" else "en"
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh_CN" if locale.startswith("zh") else "en"


def config_files(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the paths of the two config files; the second decides."""
    home = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '/root')}/.config"
    return "/etc/bringup/config.toml", f"{home}/bringup/config.toml"
