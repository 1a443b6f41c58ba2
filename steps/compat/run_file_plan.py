"""The end of a driver that NVIDIA's own installer wrote: its files are kept first, since its uninstaller has no way back."""

from __future__ import annotations

import re

from steps.detect.run_file import KEPT
from steps.model.action import Command, RemovePath, Run, Succeeds, Write
from steps.model.base import Phrase, phrase
from steps.model.software import RunFile


def keeping(there: RunFile) -> tuple[Write, Run]:
    """Return what packs the files into an archive of root's, with the list of them beside it."""
    kept, listed = _names(there)
    return (
        Write(
            id="driver.uninstall-list",
            title=phrase("driver.action.uninstall-list", path=listed),
            why=phrase("driver.why.uninstall-keep"),
            lane="packages",
            path=listed,
            text="\n".join((*there.files, "")),
        ),
        Run(
            id="driver.uninstall-keep",
            title=keeps(there),
            why=phrase("driver.why.uninstall-keep"),
            lane="packages",
            argv=(*_tar(kept), "--ignore-failed-read", "--create", "--files-from", listed),
            needs=("driver.uninstall-list",),
            undo=(RemovePath(path=kept),),
            quiet_seconds=300,
            seconds=20,
        ),
    )


def keeps(there: RunFile) -> Phrase:
    """Return what the keeping is called."""
    return phrase("driver.action.uninstall-keep", path=_names(there)[0], count=len(there.files))


def removing(there: RunFile) -> Run:
    """Return the uninstaller's run; undo puts the kept files back where they lay."""
    kept, _ = _names(there)
    kernels = sorted({found[1] for path in there.files if (found := re.match(r"/lib/modules/([^/]+)/", path))})
    index = (*(("depmod", kernel) for kernel in kernels), ("ldconfig",))
    return Run(
        id="driver.uninstall",
        title=phrase("driver.action.uninstall"),
        why=phrase("driver.why.uninstall"),
        lane="packages",
        argv=(there.uninstaller, "--silent"),
        needs=("driver.uninstall-keep",),
        done_when=(Succeeds(argv=("test", "!", "-e", there.uninstaller)),),
        undo=(Command(argv=(*_tar(kept), "--extract")), *(Command(argv=argv) for argv in index)),
        quiet_seconds=120,
        seconds=60,
    )


def _names(there: RunFile) -> tuple[str, str]:
    """Return the names of the archive and of its list: what an earlier removal keeps under its name is for its undo."""
    names = (KEPT, *(f"{KEPT}-{number}" for number in range(2, 100)))
    name = next((name for name in names if not any(path.startswith(f"{name}.disabled.") for path in there.kept)), KEPT)
    return f"{name}.disabled.tar", f"{name}.disabled.list"


def _tar(kept: str) -> tuple[str, ...]:
    return ("tar", "--absolute-names", "--file", kept)
