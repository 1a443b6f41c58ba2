"""The packages that a change will replace, put aside before it: none of them half, and all of them on disk."""

from __future__ import annotations

import time

from steps.engine.command import run_command
from steps.engine.context import Context
from steps.managers.base import PARTIAL, Kept, NewFile, PackageManager, Simulation, Way
from steps.model.action import Packages

_AT_ONCE = 5.0
"""A fetch that fails later than this waited for a network that is not there; seconds."""

_NEW_ABOVE = 3
"""How many folders above an action's own may have been made with it: the run's, `return`, and what holds it."""


def put_aside(action: Packages, context: Context, tool: PackageManager, simulation: Simulation, folder: str) -> Kept:
    """Return what lies in `folder` of the packages that `simulation` replaces, after trying every way to get it there."""
    partial = f"{folder}/{PARTIAL}"
    context.host.mkdir(folder, 0o755)
    # What a runner that was killed had begun is nobody's.
    context.host.remove(partial)
    context.host.mkdir(partial, 0o755)
    whole: list[str] = []
    network = True
    for keep in tool.keeping(simulation, context.host, folder):
        for way in keep.ways:
            began = time.monotonic()
            if context.switches.cancelled.is_set() or (way.fetches and not network):
                continue
            if _leads(way, action, context, tool):
                whole.append(f"{partial}/{keep.file}")
                break
            network = network and not (way.fetches and time.monotonic() - began > _AT_ONCE)
    if whole:
        # The folders above are new too: of this run, and perhaps of all runs.
        above = (folder.rsplit("/", number)[0] for number in range(_NEW_ABOVE + 1))
        landed = (("sync", *whole), ("mv", "-f", "-t", folder, "--", *whole), ("sync", *above))
        all(run_command(context, action, argv, environment=tool.environment()).code == 0 for argv in landed)
    context.host.remove(partial)
    return tool.kept(simulation, context.host, folder)


def _leads(way: Way, action: Packages, context: Context, tool: PackageManager) -> bool:
    """Return whether every step of a way could be gone."""
    for step in way.steps:
        if isinstance(step, NewFile):
            context.host.write_bytes(step.path, step.data)
        elif run_command(context, action, step, environment=tool.environment()).code:
            return False
    return True
