"""What is on offer here, for the verbs and the wizard: kept in the person's cache, asked for anew where that may take a while."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from steps.engine.client import invoking_owner
from steps.headless import knowing
from steps.host.base import Host
from steps.host.local import LocalHost
from steps.host.own import OwnFolder
from steps.knowledge.local import joined, local
from steps.model.base import Record
from steps.model.machine import Machine
from steps.model.offers import Offers, fresh
from steps.model.plan import Installer

_FILE = "offers.json"
_MOST = 8 << 20
BEFORE_A_RUN = 1.0
"""Hours for which an answer counts when a plan is made."""
WHILE_CHOOSING = 12.0
"""Hours for which an answer counts when nothing is installed by it."""


class _Cached(Record):
    """An answer, and what it was asked of."""

    asked_of: str
    offers: Offers


def cached(machine: Machine, host: Host, installer: Installer, environ: Mapping[str, str], *, hours: float = WHILE_CHOOSING) -> Machine:
    """Return the machine with what was on offer when it was last asked; as it is, when that is too long ago or of something else."""
    if host.rehearsal:
        return machine
    text = _folder(environ).read(_FILE, most=_MOST)
    try:
        kept = msgspec.json.decode(text, type=_Cached) if text is not None else None
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        kept = None
    if kept is None or kept.asked_of != _asked_of(machine, host, installer) or not fresh(kept.offers, time.time(), hours):
        return machine
    return msgspec.structs.replace(machine, offers=kept.offers)


def asked(
    machine: Machine, host: Host, installer: Installer, environ: Mapping[str, str], *, network: bool = True, hours: float = BEFORE_A_RUN
) -> Machine:
    """Return the machine with what is on offer now: of the cache while that is fresh, else asked for within `offers.SECONDS`.

    A recorded machine, and one that is not to ask the network, has what its own package manager says.
    """
    if host.rehearsal or not network:
        return msgspec.structs.replace(machine, offers=local(machine, host))
    known = cached(machine, host, installer, environ, hours=hours)
    if known.offers is not None:
        # The package lists change with every `apt-get update`, and asking them costs little.
        mixed = joined(local(machine, host), known.offers, asked=known.offers.asked)
        return msgspec.structs.replace(machine, offers=mixed)
    from steps.knowledge import offers  # loads TLS, which most calls do not need
    from steps.managers.access import access

    # Who the person is at an index is asked of this machine, and goes no further than the questions.
    who = access(LocalHost(), environ, home=invoking_owner().home)
    found = offers.live(machine, host, installer, now=time.time(), access=who)
    if found.asked is not None:
        kept = _Cached(asked_of=_asked_of(machine, host, installer), offers=found)
        _folder(environ).write(_FILE, msgspec.json.encode(kept), private=True)
    return msgspec.structs.replace(machine, offers=found)


def _folder(environ: Mapping[str, str]) -> OwnFolder:
    """Return the person's cache folder."""
    return knowing.own_folder(environ, "XDG_CACHE_HOME", ".cache", "")


def _asked_of(machine: Machine, host: Host, installer: Installer) -> str:
    """Return what an answer depends on: another system, root or index makes it worthless."""
    return " ".join(
        (
            host.root,
            machine.os.id or "?",
            machine.os.version or "?",
            machine.os.arch or "?",
            installer.index_url or "",
            *installer.extra_index_urls,
            *(["hidden"] if installer.index_hidden else []),
            *(["none"] if installer.no_index else []),
            invoking_owner().name,
        )
    )
