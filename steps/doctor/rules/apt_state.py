"""Runs of a package manager: one that was cut off, and one that others wait for."""

from __future__ import annotations

from steps.doctor.events.dkms import BuildFailed, DkmsTreeBroken
from steps.doctor.events.packages import Overwrite
from steps.doctor.events.runs import Conffile, Interrupted, Locked, NoSpace, NoTerminal
from steps.doctor.evidence import Evidence
from steps.doctor.facts.processes import running
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, Answer, found, out, rule
from steps.doctor.rules.ssh_installer import half_configured
from steps.doctor.told import Told


@rule("dpkg-interrupted")
def interrupted(seen: Evidence) -> Answer:
    """An earlier run died, and nothing says of what."""
    said = seen.first(Interrupted)
    half = half_configured(seen)
    if said is None and not half:
        return None
    holder = _holder(seen)
    if holder is not None and said is None:
        return out(holder)
    asked = seen.first(Conffile) or (seen.first(NoTerminal) if half and not said else None)
    reasons: tuple[Told | None, ...] = (
        seen.first(BuildFailed),
        seen.first(DkmsTreeBroken),
        seen.first(Overwrite),
        seen.first(NoSpace),
        asked,
    )
    reason = next((one for one in reasons if one is not None), None)
    if reason is not None:
        return found(POSSIBLE - 0.1, said, *half[:2], package=half[0].value if half else "?")
    if said is None:
        failed = next((row for row in seen.packages.rows if row.state[1:2] == "F"), None)
        return found(POSSIBLE, *half[:3], package=failed.name if failed else half[0].value, variant="failed" if failed else "")
    return found(CERTAIN if half else STRONG + 0.05, said, *half[:3], package=half[0].value if half else "?")


def _holder(seen: Evidence) -> Told | None:
    """Return who holds a lock and lives, as a list of processes tells, or `None`."""
    return running(seen.processes, r"unattended-upgr\S*|packagekitd|apt|apt-get|dpkg|aptitude|aptd|dnf|yum|zypper|synaptic|update-manager")


@rule("apt-lock-held")
def lock_held(seen: Evidence) -> Answer:
    """Another package manager lives and holds the lock."""
    locks = sorted(seen.all(Locked), key=lambda event: (event.holder is None, event.pid is None))
    if not locks:
        return None
    lock, holder = locks[0], _holder(seen)
    if seen.first(Interrupted) and lock.pid is None and holder is None:
        return None
    name = lock.holder or (holder.place.text if holder else None) or "?"
    return found(CERTAIN if lock.holder or lock.pid or holder else LIKELY, lock, holder, holder=name[:60], pid=str(lock.pid or "?"))
