"""Which distribution a host says it is, in the words of the `distro` package."""

from __future__ import annotations

from pathlib import Path

import distro

from steps.host.base import Host
from steps.host.files import FileTree
from steps.model.base import Record

_MOST = 16 << 10
"""No release file is longer; the package that reads them takes time with the square of a word's length."""
_TOLD_BY = ("/etc/os-release", "/usr/lib/os-release", "/etc/debian_version", "/etc/redhat-release", "/etc/system-release")


class Release(Record):
    """The distribution; what it does not say is `None`."""

    id: str | None = None
    version: str | None = None
    codename: str | None = None
    name: str | None = None
    like: tuple[str, ...] = ()


def release(host: Host) -> Release:
    """Return what the host's release files say.

    `distro` reads files of a root folder and nothing else, so a host that is no folder (a capture) is given one for a moment.
    """
    if isinstance(host, FileTree) and host.root == "/":
        return _told(None)
    texts = {path: text for path in _TOLD_BY if (text := host.read(path)) is not None}
    if not texts:
        return Release()
    import tempfile

    with tempfile.TemporaryDirectory(prefix="bringup-") as folder:
        for path, text in texts.items():
            at = Path(folder, path.lstrip("/"))
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_text(text[:_MOST], encoding="utf-8", errors="replace")
        return _told(folder)


def _told(root: str | None) -> Release:
    """Return what the files below a root say; nothing for a file that is no release file: a broken quote, a name that is a folder."""
    told = distro.LinuxDistribution(include_lsb=False, include_uname=False, include_oslevel=False, root_dir=root)
    try:
        return Release(
            # `distro` renames some ("opensuse" for `opensuse-leap`, "oracle" for `ol`); the tables go by the system's own word.
            id=told.os_release_attr("id") or told.id() or None,
            version=told.version() or None,
            codename=told.codename() or None,
            name=told.name(pretty=True) or None,
            like=tuple(told.like().split()),
        )
    except (ValueError, OSError):
        return Release()
