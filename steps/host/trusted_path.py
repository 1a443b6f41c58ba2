"""Whom root may trust: the folders and programs that nobody else can change, and the person behind sudo."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import MutableMapping
from pathlib import Path
from typing import Literal

_FIRST_OF_PEOPLE = 100
"""Groups below are the system's own on every distribution, such as `staff`, which may write /usr/local on Debian; `users` is 100."""


def secure(environ: MutableMapping[str, str]) -> None:
    """Leave in the PATH of a process of root's only what root alone can change; another person's process keeps its own.

    Plain `su`, and sudo without `secure_path`, hand on the PATH of the person, and with it programs which that person can replace.
    """
    if os.geteuid() == 0 and "PATH" in environ:
        environ["PATH"] = trusted(environ["PATH"])


def trusted(path: str) -> str:
    """Return the folders of `path` that belong to root all the way up and that only root can write; order kept."""
    return ":".join(folder for folder in path.split(":") if folder.startswith("/") and _roots_alone(Path(folder)))


def person_uid() -> int:
    """Return who is at the keyboard: behind sudo the one who typed it, otherwise this process's user."""
    told = os.environ.get("SUDO_UID", "")
    # Anybody may set the variable: what is no account's number says nothing, and without an account there is no home to work in.
    if os.geteuid() == 0 and told.isascii() and told.isdigit() and _has_account(int(told)):
        return int(told)
    return os.geteuid()


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except (KeyError, OverflowError):
        return False
    return True


def person_home() -> str:
    """Return the home folder of who is at the keyboard."""
    uid = person_uid()
    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return home_without_entry(uid)


def home_without_entry(uid: int) -> str:
    """Return the home folder of an account that the database does not know: what HOME says to a process of its own, else "/".

    Containers are often started with a number that no entry has, and with HOME where its owner may write.
    """
    told = os.environ.get("HOME", "")
    return told if uid == os.geteuid() and told.startswith("/") else "/"


def roots_alone(path: str) -> bool:
    """Return whether nobody but root can change a folder or a program, where its links lead."""
    return _roots_alone(Path(path))


def works_on(folder: str, *programs: str) -> Literal["root", "user"] | None:
    """Return who may run `programs` in `folder`: root where only root can change them, the person at the keyboard in a folder of theirs.

    `None` where it is somebody else's: neither root nor another person starts what they have put there.
    """
    if all(roots_alone(path) for path in (folder, *programs)):
        return "root"
    try:
        found = Path(folder).stat()
    except OSError:
        return None
    return "user" if found.st_uid == person_uid() != 0 else None


def _roots_alone(folder: Path) -> bool:
    """Return whether nobody but root can change what is found at `folder`, where its links lead."""
    try:
        real = folder.resolve(strict=True)
        return _is_roots(real.stat(), sticky=False) and all(_is_roots(above.stat(), sticky=True) for above in real.parents)
    except OSError:
        return False


def _is_roots(seen: os.stat_result, *, sticky: bool) -> bool:
    """Return whether a folder is root's and no person can write it; where `sticky` will do, others cannot replace what root put there."""
    open_to_people = seen.st_mode & stat.S_IWOTH or (seen.st_mode & stat.S_IWGRP and seen.st_gid >= _FIRST_OF_PEOPLE)
    return seen.st_uid == 0 and (not open_to_people or (sticky and bool(seen.st_mode & stat.S_ISVTX)))
