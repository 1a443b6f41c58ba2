"""What may stand in a command of root's: much of it was read in logs and settings that anybody may have written."""

from __future__ import annotations

import posixpath
import re

_WORD = re.compile(r"[\w.+:/~@=,][\w.+:/~@=,-]*")
_PACKAGE = re.compile(r"[a-zA-Z0-9][\w.+-]*(?::\w+)?(?:=[\w.:~+^*-]+)?")
_PATH = re.compile(r"/[^/\s\0-\x1f\x7f][^\s\0-\x1f\x7f]*")
_NAME = re.compile(r"\w[\w.+~-]*")


def is_word(text: str) -> bool:
    """Return whether a text is one word to a shell, and no option to a program."""
    return _WORD.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return whether a text is the name of a module, a version or a kernel: a part of a path, and never the way up."""
    return _NAME.fullmatch(text) is not None


def are_packages(*names: str) -> bool:
    """Return whether package managers take each for a package: "name", "name:arch", "name=version", or "name-", which removes it."""
    return all(_PACKAGE.fullmatch(name) for name in names)


def is_path(text: str) -> bool:
    """Return whether a text is an absolute path that lies where it says: without a way up, a blank or a control character."""
    return _PATH.fullmatch(text) is not None and posixpath.normpath(text) == text
