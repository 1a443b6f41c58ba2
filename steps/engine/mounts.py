"""Disks that a run's files lie on: what is not mounted now can be neither taken back nor called gone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from steps.errors import PreflightError


def mount_above(path: str, root: str) -> str | None:
    """Return the mount point that `path` lies on, as this machine spells it; `None` where that is the system's own disk."""
    top = Path(root)
    # Links of a mounted system lead within it, and not where we would follow them.
    at = Path(os.path.realpath(path)) if root == "/" else top / path.lstrip("/")
    # Folders only: on a layered system, as one from a USB stick, a plain file shows another device than the folder that it lies in.
    above = (folder for folder in (at, *at.parents) if folder != top and top in folder.parents and folder.is_dir())
    return next((str(folder) for folder in above if os.path.ismount(folder)), None)


def expect_mounted(mount: str | None) -> None:
    """Raise `PreflightError` where a disk that was there at the change is not there now."""
    if mount is None:
        return
    with contextlib.suppress(OSError):
        # What is mounted when it is used is so only by opening it.
        os.close(os.open(mount, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    if not os.path.ismount(mount):
        raise PreflightError("disk-gone", path=mount)
