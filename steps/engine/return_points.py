"""Where packages lie that runs have put aside for their undo, and how much they take."""

from __future__ import annotations

import contextlib
from pathlib import Path

from steps.engine.folder import ROOT_STATE, Owner, state_folder


def return_points(target: str, owner: Owner) -> Path:
    """Return the folder that holds what runs have put aside in the system at `target`: a folder a run."""
    if target == "/":
        return state_folder(root=True, owner=owner) / "return"
    return Path(f"{target}{ROOT_STATE}/return")


def bytes_below(folder: Path) -> int:
    """Return how much the files below a folder take, or a file itself; those that may not be seen do not count."""
    found = 0
    for path in (folder, *folder.rglob("*")):
        with contextlib.suppress(OSError):
            found += path.lstat().st_size if path.is_file() else 0
    return found
