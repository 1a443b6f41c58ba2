"""A person's fresh machine, for tests: a home of its own, a PATH of few programs, a copy of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
TOOLS = ("cat", "chmod", "cksum", "cp", "cut", "date", "df", "dirname", "env", "grep", "head", "id", "ls", "mkdir", "mktemp", "mount", "mv",
         "printf", "readlink", "rm", "sed", "sh", "sleep", "stat", "tail", "tr", "uname", "unshare")  # fmt: skip
"""What any Linux has before anybody installed anything."""
BASE_PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def copy_checkout(target: Path) -> Path:
    """Copy what a clone has and a start needs; return its folder."""
    target.mkdir(parents=True)
    for name in ("pyproject.toml", "bringup", "README.md", "LICENSE"):
        shutil.copy2(CHECKOUT / name, target / name)
    for name in ("tui", "steps", "assets"):
        shutil.copytree(CHECKOUT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def make_path(folder: Path, extra: Mapping[str, str | Path] | None = None) -> str:
    """Make a folder of links to `TOOLS` and to `extra` (name → program); return it as a PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, program in {**{tool: shutil.which(tool) for tool in TOOLS}, **(extra or {})}.items():
        if program is not None:
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(program)
    return str(folder)


def stand_in(path: Path, *lines: str) -> Path:
    """Write a shell program; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    path.chmod(0o755)
    return path


def package_settings() -> dict[str, str]:
    """Return the caller's ways to packages (index, certificates, proxy, caches), for a person whose home is empty."""
    prefixes = ("PIP_", "UV_", "SSL_", "REQUESTS_CA", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    kept = {name: value for name, value in os.environ.items() if name.upper().startswith(prefixes)}
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return {"XDG_CONFIG_HOME": config, "UV_CACHE_DIR": str(cache / "uv"), "PIP_CACHE_DIR": str(cache / "pip"), **kept}


def run(
    argv: Iterable[str | Path], environment: Mapping[str, str], *, cwd: Path | None = None, user: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program in exactly this environment, as `user` if one is given; return what it said."""
    return subprocess.run(
        [str(part) for part in argv],
        env=dict(environment),
        cwd=cwd,
        user=user,
        group=user,
        extra_groups=None if user is None else (),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )


def uv() -> str | None:
    """Return a uv of this machine or of the tests' own environment, or `None`."""
    return shutil.which("uv") or next((str(found) for found in [Path(sys.executable).with_name("uv")] if found.exists()), None)
