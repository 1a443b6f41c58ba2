"""Where the assets are, and how this program is started again; the only file that knows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_ASSETS = _HERE / "_assets" if (_HERE / "_assets").is_dir() else _HERE.parent / "assets"


def read_text(*parts: str) -> str:
    """Return the asset at `parts`; raises `FileNotFoundError` when there is none."""
    return _ASSETS.joinpath(*parts).read_text(encoding="utf-8")


def path_of(*parts: str) -> str:
    """Return the absolute path of an asset, for programs that are handed it."""
    return str(_ASSETS.joinpath(*parts))


def names(*parts: str) -> tuple[str, ...]:
    """Return the sorted names in an asset folder; empty when there is no such folder."""
    folder = _ASSETS.joinpath(*parts)
    return tuple(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else ()


def command_name() -> str:
    """Return what a person types to call this program: what its launcher says of itself, `bringup` where nobody says it."""
    said = os.environ.get("BRINGUP_COMMAND", "")
    return said if said and said.isprintable() else "bringup"


# The one-file program unpacks itself into a folder that is a program of its own; a checkout and site-packages are not.
_TREE = _HERE.parent if (_HERE.parent / "__main__.py").is_file() else None
# What we start may run as root: its bytecode must not end up among the caller's files. It was compiled at install time.
_ISOLATED = (sys.executable, "-I", "-B")


def self_command() -> tuple[str, ...]:
    """Return the argv that starts `bringup` again, isolated from the caller's PYTHONPATH and folder."""
    return (*_ISOLATED, str(_TREE)) if _TREE else (*_ISOLATED, "-m", "tui")


def runner_command() -> tuple[str, ...]:
    """Return the argv that starts the runner; its arguments follow."""
    return (*_ISOLATED, str(_TREE), "--runner") if _TREE else (*_ISOLATED, "-m", "steps.engine.runner")


def module_command(module: str) -> tuple[str, ...]:
    """Return the argv that starts another program of ours, a module that runs as `__main__`."""
    return (*_ISOLATED, str(_TREE), "--module", module) if _TREE else (*_ISOLATED, "-m", module)
