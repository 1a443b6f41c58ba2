"""Whether a cause is gone after its repair: what decided it must be seen anew, or else nothing is proven."""

from __future__ import annotations

import re
import shlex
from typing import Literal

from steps.catalog.diagnoses import diagnoses
from steps.catalog.repairs import ProofRow, proofs
from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.facts.cdi import specs
from steps.doctor.facts.params import counters_for_root
from steps.doctor.repairs.base import manager_of, proof
from steps.doctor.repairs.own_python import is_own_python
from steps.doctor.repairs.table import row_of
from steps.model.base import Param, Phrase, Record

_OF_THE_DRIVER = frozenset(
    ("driver-mismatch", "kernel", "mixed-install", "dkms", "nouveau", "pcie-firmware", "secure-boot", "xid", "power-thermal", "wsl")
)
"""Categories whose causes show in a driver that does not answer."""
_BY_THE_LOG = frozenset(("xid", "pcie-firmware"))
"""Those of them that also show in the kernel's log alone, while the driver answers."""
_OF_PACKAGES = frozenset(("apt-state", "ssh-installer", "disk-network"))
_LASTING = frozenset(
    ("dpkg-interrupted", "conffile-question-unanswered", "apt-repo-key-rotated", "apt-signed-by-conflict", "repo-for-other-distro",
     "repo-inconsistent-on-server", "disk-full-during-install", "boot-partition-full")
)  # fmt: skip
"""Causes of packages that last until they are repaired, so that the package manager still complains of them when it is asked."""
_OF_LISTS = frozenset(("apt-repo-key-rotated", "apt-signed-by-conflict", "repo-for-other-distro", "repo-inconsistent-on-server"))
_BY_ROOM = frozenset(("disk-full-during-install", "boot-partition-full"))
_NOTHING_TO_RUN = frozenset(("log", "kernel-log"))
"""Proofs that are this look itself."""
_OF_FILES = frozenset(("packages", "lists", "module"))
"""Proofs that a mounted system can give as well."""
_PATIENCE = 300.0
"""Seconds for the command of a proof: package lists are fetched by some."""


class Second(Record):
    """The second look: whether the cause is still here, is gone, or cannot be told, and then why."""

    state: Literal["gone", "here", "unproven"]
    because: Phrase | None = None


def second_look(seen: Evidence, verdict: Verdict, id: str, command: tuple[str, ...] = (), *, after_run: bool = False) -> Second:
    """Return what is proven of a cause that was repaired; `command` is its own proof, else the table's for the cause is taken.

    `after_run` says that every step of the repair has succeeded: an installation that was refused before was made by them.
    """
    if any(one.id == id and one.known for one in verdict.diagnoses) or (id in _BY_ROOM and any(one.full for one in seen.space)):
        return Second(state="here")
    category, told = diagnoses()[id].category, _command(seen, id) if not command or id in _BY_ROOM else command
    if (still := _looked_at(seen, id)) is not None:
        return Second(state="here" if still else "gone")
    if is_own_python(told):
        return Second(state="gone") if seen.patient.run(told, timeout=_PATIENCE).status == 0 else _unproven("command", command=told[-1])
    if category in _OF_THE_DRIVER:
        return _of_the_driver(seen, category, told)
    if id not in _LASTING and not (after_run and category in _OF_PACKAGES):
        return _unproven("by-hand", command=shlex.join(told))
    if any(one.severity == "broken" and diagnoses()[one.id].category in _OF_PACKAGES for one in verdict.diagnoses):
        return Second(state="here")
    return _unproven("room") if id in _BY_ROOM and not seen.space else _ran(seen, told)


def _looked_at(seen: Evidence, id: str) -> bool | None:
    """Return whether the machine itself still shows what decided, for causes of which a file tells; `None` of all others."""
    if id == "cdi-spec-stale" and (described := specs(seen.host)):
        return any(spec.missing for spec in described)
    return counters_for_root(seen.host) if id == "operation-needs-admin-rights" else None


def _of_the_driver(seen: Evidence, category: str, told: tuple[str, ...]) -> Second:
    """Return what is proven of a cause in the driver: it answers, its log can be read, the proof succeeds; a mounted system runs none.

    Of that one, what its files and its package manager tell is all that there is.
    """
    if seen.host.host.root != "/":
        return _ran(seen, told) if any(row.id in _OF_FILES for row in _rows(told)) else Second(state="gone")
    if seen.driver_answers is not True:
        return _unproven("driver")
    if category in _BY_THE_LOG and any(one.probe == "dmesg" for one in seen.unseen):
        return _unproven("log")
    own = any(row.id in _NOTHING_TO_RUN for row in _rows(told))
    return Second(state="gone") if own or not told else _ran(seen, told)


def _rows(told: tuple[str, ...]) -> tuple[ProofRow, ...]:
    return tuple(row for row in proofs().values() if told in (row.command, row.apt, row.dnf, row.pacman))


def _ran(seen: Evidence, told: tuple[str, ...]) -> Second:
    """Return what a proof says that may be run from here."""
    if not any(row.probe for row in _rows(told)):
        return _unproven("by-hand", command=shlex.join(told))
    said = seen.patient.run(told, timeout=_PATIENCE)
    # apt goes on with the lists that it has, says so, and ends well.
    fine = said.status == 0 and not re.search(r"^(?:W|E|Err)(?::|!)", said.text, re.MULTILINE)
    return Second(state="gone") if fine else _unproven("command", command=shlex.join(told))


def _command(seen: Evidence, id: str) -> tuple[str, ...]:
    """Return the proof that the table has for a cause: of one in the packages at least that they fit each other."""
    row = row_of(id, "")
    usual = "lists" if id in _OF_LISTS else "packages" if diagnoses()[id].category in _OF_PACKAGES else "log"
    # A look at the room that is left says nothing by its exit status; whether the packages are whole does.
    wanted = row.proof if row is not None and row.proof != "space" else usual
    return proof(wanted, manager_of(seen)).command


def _unproven(why: str, **params: Param) -> Second:
    return Second(state="unproven", because=Phrase(key=f"repair.flow.unproven-{why}", params=dict(params)))
