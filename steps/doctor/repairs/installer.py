"""The end of what NVIDIA's own installer wrote: kept first, since its uninstaller has no way back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from steps.doctor.diagnosis import Step
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.base import back, made_of, run
from steps.model.action import RemovePath, Run, Write
from steps.model.base import phrase

_KEPT = "/var/lib/nvidia-installer"
"""What the names begin with of what is kept; a number follows where an earlier repair has that name."""
_FOLDER = "/var/lib/nvidia"
"""Where the installer keeps the list of its files, and those that it replaced."""


def taken_away(seen: Evidence, uninstaller: str, version: str, kernel: str | None) -> tuple[Step, ...]:
    """Return the uninstaller's run, after its files were kept; undo puts them back where they lay."""
    paths = tuple(sorted({uninstaller, *_paths(seen, version)}))
    name = _free(seen)
    kept, listed = f"{name}.disabled.tar", f"{name}.disabled.list"
    title = phrase("repair.step.keep-installer", path=kept, count=len(paths))
    tar = ("tar", "--absolute-names", "--file", kept)
    keep = made_of(
        "keep-installer",
        (
            Write(
                id="keep-list",
                title=phrase("repair.step.keep-list", path=listed),
                lane="packages",
                path=listed,
                text="\n".join((*paths, "")),
            ),
            Run(
                id="keep-installer",
                title=title,
                lane="packages",
                argv=(*tar, "--ignore-failed-read", "--create", "--files-from", listed),
                undo=(RemovePath(path=kept),),
                quiet_seconds=300,
            ),
        ),
        path=kept,
        count=len(paths),
    )
    index = (back("depmod", kernel),) if kernel else ()
    return (keep, run("uninstall", uninstaller, "--silent", undo=(back(*tar, "--extract"), *index), quiet=120))


def _free(seen: Evidence) -> str:
    """Return what the names of a repair's own begin with: what an earlier one keeps under its name is for its undo."""
    names = (_KEPT, *(f"{_KEPT}-{number}" for number in range(2, 100)))
    return next((name for name in names if not seen.host.glob(f"{name}.disabled.*")), _KEPT)


def _paths(seen: Evidence, version: str) -> Iterator[str]:
    """Yield what the installer is known to have written: its traces, what its list names, and files of its version."""
    listed = re.findall(r"(?:^|\s)(/[\w./+-]+)$", seen.host.read(f"{_FOLDER}/log") or "", re.MULTILINE)
    for path in (*(left.value for left in seen.modules.leftovers), *listed):
        if seen.host.exists(path) and "/../" not in path and not path.startswith(f"{_FOLDER}/"):
            yield path
    if seen.host.exists(_FOLDER):
        yield _FOLDER
    if re.fullmatch(r"\d+(\.\d+)+", version):
        for pattern in ("/usr/lib/*-linux-gnu/lib*", "/usr/lib64/lib*", "/usr/lib/lib*"):
            yield from seen.host.glob(f"{pattern}.so.{version}")
    yield from seen.host.glob("/lib/modules/*/kernel/drivers/video/nvidia*.ko*")
