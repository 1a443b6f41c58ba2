"""The end of a driver that NVIDIA's own installer wrote: its files are kept first, since its uninstaller has no way back."""

from __future__ import annotations

import re
from typing import Literal

from steps.detect.run_file import KEPT, LIST
from steps.model.action import Command, RemovePath, Run, Succeeds, Write
from steps.model.base import Phrase, phrase
from steps.model.software import RunFile

_ALL = '(sub(/^[0-9]+: /, "") || FNR == NR) && /^\\// && !seen[$0]++ { print > out }'
"""Of the first file each line, of the second each name behind a number; a name in both once, for tar would pack it twice."""
_NO_LIST = 2
"""How awk ends where the installer's list is gone: it has taken what the plan knew."""


def keeping(there: RunFile) -> tuple[Write, Run, Run]:
    """Return what packs the files into an archive of root's, with the list of them beside it.

    The installer's own list is for root alone: whoever made the plan may not have read it, and so the run does.
    """
    kept, listed, whole = (_name(there, what) for what in ("tar", "list", "all"))
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
            id="driver.uninstall-all",
            title=phrase("driver.action.uninstall-all", path=whole),
            why=phrase("driver.why.uninstall-all"),
            lane="packages",
            argv=("awk", "-v", f"out={whole}", _ALL, listed, LIST),
            passes=(_NO_LIST,),
            needs=("driver.uninstall-list",),
            undo=(RemovePath(path=whole),),
        ),
        Run(
            id="driver.uninstall-keep",
            title=keeps(there),
            why=phrase("driver.why.uninstall-keep"),
            lane="packages",
            argv=(*_tar(kept), "--ignore-failed-read", "--create", "--files-from", whole),
            needs=("driver.uninstall-all",),
            undo=(RemovePath(path=kept),),
            quiet_seconds=300,
            seconds=20,
        ),
    )


def keeps(there: RunFile) -> Phrase:
    """Return what the keeping is called."""
    return phrase("driver.action.uninstall-keep", path=_name(there, "tar"))


def removing(there: RunFile) -> Run:
    """Return the uninstaller's run; undo puts the kept files back where they lay."""
    kept = _name(there, "tar")
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


def _name(there: RunFile, what: Literal["tar", "list", "all"]) -> str:
    """Return the name of the archive or of a list of its files: what an earlier removal keeps under its name is for its undo."""
    names = (KEPT, *(f"{KEPT}-{number}" for number in range(2, 100)))
    name = next((name for name in names if not any(path.startswith(f"{name}.disabled.") for path in there.kept)), KEPT)
    return f"{name}.disabled.{what}"


def _tar(kept: str) -> tuple[str, ...]:
    return ("tar", "--absolute-names", "--file", kept)
