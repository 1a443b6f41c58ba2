"""What could not be seen of a machine, and why: probes that were refused, and those that never ended."""

from __future__ import annotations

import re
import shlex
from typing import Literal

from steps.detect.probes import Probes
from steps.detect.smi import TIMED_OUT
from steps.doctor.diagnosis import Unseen
from steps.host.base import Result
from steps.host.local import NO_ANSWER

_REFUSED = re.compile(
    r"permission denied|operation not permitted|access denied|insufficient permissions|root privileges|must be root|superuser",
    re.IGNORECASE,
)
_OWN = frozenset(("bringup", "nvidia-smi", "nvidia-smi.exe", "hl-smi", "rocminfo"))
"""Tools of a driver: when they are refused, that is what is to be explained."""
_KERNEL = ("dmesg",)


def unseen(host: Probes) -> tuple[Unseen, ...]:
    """Return the probes that were asked in vain, in the order of asking; the kernel's log counts once, whichever way it was asked for."""
    answers = dict(host.answers())
    found = [
        Unseen(probe=shlex.join(argv), reason=reason) for argv, result in answers.items() if (reason := _why(argv, result)) is not None
    ]
    journal = next((result for argv, result in answers.items() if argv[:2] == ("journalctl", "-k")), Result())
    told = journal.status in (0, None) and _lines(journal)
    log = next((one for one in found if one.probe == "dmesg"), None)
    others = [one for one in found if one.probe != "dmesg" and not one.probe.startswith("journalctl -k")]
    if log is None or told:
        return tuple(others)
    return (log, *others)


def _lines(result: Result) -> bool:
    return any(line and not line.startswith("--") for line in result.stdout.splitlines())


def _why(argv: tuple[str, ...], result: Result) -> Literal["refused", "hangs", "failed"] | None:
    if NO_ANSWER in result.stderr or result.status == TIMED_OUT:
        return "hangs"
    if argv[0] in _OWN or result.status in (0, 127):
        return None
    if argv == _KERNEL and result.status is not None and not _REFUSED.search(result.stderr or result.stdout):
        return "failed"
    return "refused" if _REFUSED.search(result.stderr or result.stdout) and not (argv == _KERNEL and len(result.stdout) > 400) else None
