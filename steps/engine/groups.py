"""Whether the run put its person into new groups: what is logged in already does not have them."""

from __future__ import annotations

import contextlib
import grp
import os
from collections.abc import Iterable

from steps.engine.folder import Owner
from steps.model.run import Entry


def groups_of(owner: Owner) -> tuple[str, ...]:
    """Return the names of an account's groups as the account database has them now, sorted; empty for root, who needs none."""
    if owner.uid == 0:
        return ()
    found: set[str] = set()
    for gid in os.getgrouplist(owner.name, owner.gid):
        with contextlib.suppress(KeyError):
            found.add(grp.getgrgid(gid).gr_name)
    return tuple(sorted(found))


def gained(entries: Iterable[Entry], now: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups that the person has now and did not have when the run began; empty where that was not written down."""
    first = next((entry for entry in entries if entry.kind == "run-started"), None)
    before = first.data.get("groups") if first is not None else None
    return tuple(name for name in now if name not in before.split(",")) if isinstance(before, str) else ()
