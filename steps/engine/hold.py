"""Holding the system that a run changes: no other run works on it, and none has left anything at work there."""

from __future__ import annotations

import os
import time

from steps.engine.folder import Origin, RunFolder, all_folders
from steps.engine.lock import Holder, busy, holder, take_target, target_lock
from steps.engine.orphans import left_by_others
from steps.errors import Busy
from steps.model.plan import Plan

_LOOK = 0.5
"""Seconds between two looks whether the system is free."""


def take_system(folder: RunFolder, plan: Plan, origin: Origin, *, patient: bool) -> None:
    """Hold the system that the plan changes until we end; raises `Busy` while another run does, or has left something at work there.

    Where it is `patient`, that is waited for: of two runs that go on by themselves after a boot, neither is asked for again.
    """
    me = Holder(run=folder.id, user=origin.owner.name, started=time.time())
    lock = target_lock(plan.target.root, root=os.geteuid() == 0, owner=origin.owner)
    while True:
        try:
            take_target(lock, me)
            break
        except Busy:
            if not patient:
                raise
            time.sleep(_LOOK)
    # Root's runs and a person's lie in two places, and have a lock in each.
    elsewhere = target_lock(plan.target.root, root=os.geteuid() != 0, owner=origin.owner)
    while elsewhere != lock and (held := holder(elsewhere)) is not None:
        if not patient:
            raise busy(held)
        time.sleep(_LOOK)
    while (left := left_by_others(folder, plan.target.root, all_folders(origin.owner))) is not None:
        if not patient:
            raise Busy("run-left", run=left[0], pid=left[1])
        time.sleep(_LOOK)
