"""What NVIDIA's own installer (a `.run` file) has left on disk: its traces, and the files that its uninstaller takes away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.detect.probes import Probes
from steps.model.software import RunFile

KEPT = "/var/lib/nvidia-installer"
"""What the names begin with of what a removal keeps for its undo."""
_FOLDER = "/var/lib/nvidia"
"""Where the installer keeps the list of its files, and those that it replaced."""
LIST = f"{_FOLDER}/log"
"""The list; it is for root alone, and so is its folder (`BACKUP_LOG_PERMS` in NVIDIA/nvidia-installer backup.c)."""
_LEFTOVERS = ("/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer", "/var/log/nvidia-installer.log", LIST)
_LIBRARIES = ("/usr/lib/*-linux-gnu/lib*", "/usr/lib64/lib*", "/usr/lib/lib*")
_MODULES = ("/lib/modules/*/kernel/drivers/video/nvidia*.ko*", "/lib/modules/*/updates/dkms/nvidia*.ko*")


def leftovers(host: Probes) -> tuple[str, ...]:
    """Return the traces that tell of the installer."""
    return tuple(path for path in _LEFTOVERS if host.exists(path))


def run_file(host: Probes, version: str | None, uninstaller: str | None = None) -> RunFile | None:
    """Return what the uninstaller would take away of the driver `version`; `None` where there is no uninstaller.

    `uninstaller` is where it lies, where that is known to be elsewhere than usual.
    """
    uninstaller = uninstaller or next((path for path in leftovers(host) if path.endswith("nvidia-uninstall")), None)
    if uninstaller is None:
        return None
    files = tuple(sorted({uninstaller, *_written(host, version or "")}))
    return RunFile(uninstaller=uninstaller, files=files, kept=host.glob(f"{KEPT}*.disabled.*"))


def _written(host: Probes, version: str) -> Iterator[str]:
    """Yield what the installer is known to have written: its traces, what its list names where we may read it, and files of its version."""
    listed = re.findall(r"(?:^|\s)(/[\w./+-]+)$", host.read(LIST) or "", re.MULTILINE)
    for path in (*leftovers(host), *listed):
        if host.exists(path) and "/../" not in path and not path.startswith(f"{_FOLDER}/"):
            yield path
    if host.exists(_FOLDER):
        yield _FOLDER
    if re.fullmatch(r"\d+(\.\d+)+", version):
        for pattern in _LIBRARIES:
            yield from host.glob(f"{pattern}.so.{version}")
        yield from (path for path in (f"/usr/src/nvidia-{version}", f"/var/lib/dkms/nvidia/{version}") if host.exists(path))
    for pattern in _MODULES:
        yield from host.glob(pattern)
