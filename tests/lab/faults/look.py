"""What a machine is like: what differs from the root it was made of, which packages it has, and who is at work on it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

_VOLATILE = re.compile(
    r"/(?:proc|sys|dev|run|tmp)(?:/|$)|/var/(?:log|cache|tmp|backups)(?:/|$)|/var/lib/(?:apt|bringup)(?:/|$)"
    r"|/etc/(?:lab|ld\.so\.cache|ld\.so\.preload|[a-z]+-|\.pwd\.lock)(?:/|$)|/var/lib/dpkg(?:/|$)|/root(?:/|$)|/etc$|/var/lib$|/var$"
)
"""What no undo has to put back: logs, caches, what the test itself writes; packages are compared by dpkg's own words."""
_FORMAT = "${Package} ${Version} ${db:Status-Abbrev}\n"
_OURS = ("tests.lab.faults", "serve.py", "enter.sh")


def looks(root: Path, lower: Path, upper: Path) -> dict[str, str]:
    """Return the packages with their marks, and every path that is not as in `lower`."""
    return {**_packages(root), **_files(lower, upper)}


def _packages(root: Path) -> dict[str, str]:
    told = subprocess.run(
        ("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", _FORMAT), capture_output=True, text=True, check=True
    ).stdout
    marks = (root / "var/lib/apt/extended_states").read_text().split("\n\n") if (root / "var/lib/apt/extended_states").exists() else []
    automatic = {mark.split()[1] for mark in marks if "Auto-Installed: 1" in mark}
    found: dict[str, str] = {}
    for line in told.splitlines():
        name, version, status = line.split(maxsplit=2)
        if status.strip() != "un":
            found[f"package {name}"] = f"{version} {status.strip()}{' auto' if name in automatic else ''}"
    return found


def _files(lower: Path, upper: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in _below(upper):
        name = f"/{path.relative_to(upper)}"
        if _VOLATILE.match(name):
            continue
        was, now = _said(lower / name[1:]), _said(path)
        if now == "folder" and _is_opaque(path):
            found |= {f"{name}/{gone}": "gone" for gone in _hidden(lower / name[1:], path)}
        if now != was and not (now == "gone" and was is None):
            found[name] = now or "?"
    return found


def _below(folder: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        yield from (Path(base, name) for name in (*folders, *names))


def _hidden(lower: Path, upper: Path) -> list[str]:
    """Return what a folder that was made anew hides of the one below it."""
    return [str(path.relative_to(lower)) for path in _below(lower) if not os.path.lexists(upper / path.relative_to(lower))]


def _is_opaque(path: Path) -> bool:
    try:
        return os.getxattr(path, "trusted.overlay.opaque") == b"y"
    except OSError:
        return False


def _said(path: Path) -> str | None:
    """Return what is at a path, "gone" for what an overlay hides; `None` for nothing."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "gone"
    if stat.S_ISDIR(found.st_mode):
        return "folder"
    if stat.S_ISLNK(found.st_mode):
        return f"-> {path.readlink()}"
    if not stat.S_ISREG(found.st_mode):
        return f"special {found.st_mode:o}"
    return f"{stat.S_IMODE(found.st_mode):o} {found.st_uid}:{found.st_gid} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def processes() -> dict[int, str]:
    """Return the command lines of everything that lives in these namespaces and is not the test's own."""
    own = {os.getpid(), 1, *_ancestors()}
    found: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) in own:
            continue
        try:
            state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        if state not in (b"Z", b"X") and words and not any(part in words for part in _OURS) and words != "cat":
            found[int(folder.name)] = words
    return found


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 1:
        yield pid
        pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
