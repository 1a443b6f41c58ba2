"""The processes of a machine, and the locks that they hold, as ps, pstree or lslocks list them."""

from __future__ import annotations

import re

from steps.detect.probes import Probes
from steps.doctor.told import Fact, fact

_ASKED = ("ps", "-eo", "pid,ppid,stat,args")
_LISTS = ("ps", "pstree", "lslocks", "pgrep", "top")


def processes(host: Probes) -> tuple[Fact, ...] | None:
    """Return the lines of every list of processes; `None` when nobody looked."""
    asked = host.forms(lambda argv: argv[0] in _LISTS, _ASKED)
    if not asked:
        return None
    return tuple(
        fact(" ".join(line.split()), " ".join(argv))
        for argv in asked
        for line in host.run(argv, timeout=5).stdout.splitlines()
        if line.strip()
    )


def running(listed: tuple[Fact, ...] | None, programs: str) -> Fact | None:
    """Return the first process whose program or script matches, or `None`."""
    pattern = re.compile(rf"(?:^|[\s/├└─`|-])(?:{programs})(?=[\s(:]|$)")
    return next((one for one in listed or () if pattern.search(one.value) and "grep" not in one.value), None)
