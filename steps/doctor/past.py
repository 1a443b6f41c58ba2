"""Troubles of the past: what a log tells and what later success, a later boot, or the present state has overtaken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from steps.doctor import numbers
from steps.doctor.diagnosis import Foreign
from steps.doctor.events.base import Event, Events
from steps.doctor.events.builds import CompilerRefused
from steps.doctor.events.dkms import BuildFailed, BuildFor, CodeError, HeadersMissing, OptionRefused
from steps.doctor.events.faults import FellOff, GspTimeout, PowerUnitHalted, ResetWanted, Xid
from steps.doctor.events.kernel import ApiMismatch, FirmwareMissing, InitFailed, Loading, ModuleMix, NoGpuFound
from steps.doctor.events.nvml import NvmlError
from steps.doctor.events.outcomes import Booted, LogAsked
from steps.doctor.events.peers import CardNamed
from steps.doctor.events.runs import NouveauRunning
from steps.doctor.events.signatures import KeyRefused
from steps.doctor.facts.cards import Cards
from steps.doctor.facts.packages import Packages
from steps.doctor.facts.system import System
from steps.doctor.facts.versions import Versions, fit
from steps.doctor.overcome import in_log_overcome
from steps.host.rooted import version_key

_OVERTAKEN = (ApiMismatch, ModuleMix, NvmlError, BuildFailed, CodeError, HeadersMissing, OptionRefused, CompilerRefused, NouveauRunning)
"""What a driver that works, in one version everywhere, has behind it."""
_OF_A_CARD = (Xid, FellOff, InitFailed)
"""What a card has behind it that answers after its driver was loaded anew."""
_OF_A_BOOT = (*_OF_A_CARD, ApiMismatch, ModuleMix, KeyRefused, ResetWanted, GspTimeout, PowerUnitHalted, NoGpuFound, FirmwareMissing)
"""What the kernel says of itself: true until the machine is started anew."""
_EARLIER = re.compile(r"^(?:log )?\S*journalctl\b.*(?:-b|--boot)[ =]?-[1-9]")
_REVERSED = re.compile(r"^journalctl\b.* (?:-[a-z]*r[a-z]*|--reverse)(?: |$)")
"""The newest line first: a mark of a boot stands behind what came after it."""
_WRITTEN = ("/var/log/", "/var/lib/dkms/")
_KERNELS = re.compile(r"/var/log/(?:kern|messages|syslog|dmesg)[\w.-]*$")
_STARTED = re.compile(r"^Log started: .*$", re.MULTILINE)
_TROUBLE = re.compile(r"^(?:dpkg: |E: |Errors were encountered)|bad exit status|Bad return status", re.MULTILINE)
_BUILD = re.compile(r"bad exit status|Bad return status")


def unfinished(text: str) -> str:
    """Return the sections of apt's log that still count: of those before a later one without any trouble only failed builds do.

    What dpkg could not do it tries again at every later call, and complains again; a module is built anew for its own reasons only.
    """
    starts = [found.start() for found in _STARTED.finditer(text)]
    if not starts:
        return text
    sections = [text[: starts[0]], *(text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True))]
    clean = [at for at, one in enumerate(sections) if "Setting up " in one and not _TROUBLE.search(one)]
    last = max(clean, default=0)
    return "".join(one for at, one in enumerate(sections) if at >= last or _BUILD.search(one))


def in_one_version(versions: Versions, packages: Packages, answers: bool | None) -> bool:
    """Return whether the driver answers and nothing of it, loaded or installed, is of another version; `versions` come from no log."""
    if answers is not True or not versions.loaded:
        return False
    told = [*versions.loaded, *versions.on_disk, *versions.user]
    return all(fit(one, versions.loaded[0]) for one in told) and not any(row.half for row in packages.driver())


class Seen(NamedTuple):
    """What tells one machine from another: of this one, and of the one that handed logs are of."""

    versions: Versions
    system: System
    cards: Cards
    names: frozenset[str]
    """The names of the cards as nvidia-smi tells them: the bus knows them by others."""
    strangers: tuple[str, ...] = ()
    """The versions of the driver's libraries that somebody put beside the system's, where programs find them."""


def foreign(events: Events, there: Seen, here: Seen, kernels: set[str]) -> Foreign | None:
    """Return what shows that handed logs are of another machine or time: system, driver, cards or kernel in them are none that is here.

    `None` where one of its versions is here, or nothing is known. `events` are those of the logs, `kernels` those that are installed.
    """
    if there.system.wsl and here.system.wsl is False:
        return Foreign(there="WSL", here=here.system.id or "Linux", what="system")
    theirs, ours = _release(there.system), _release(here.system)
    if theirs is not None and ours is not None and theirs != ours:
        return Foreign(there=theirs, here=ours, what="system")
    told = [version for event in events.all(ApiMismatch) for version in (event.client, event.module) if version]
    told += [event.library for event in events.all(NvmlError) if event.library]
    told += [event.version for event in events.all(Loading)]
    told += _of(there.versions)
    own = _of(here.versions)
    if own and told:
        same = any(numbers.agree(one, other) for one in told for other in (*own, *here.strangers))
        return None if same else Foreign(there=told[0], here=own[0])
    return _other_card(events, there, here) or _other_kernel(events, there.system, kernels)


def _of(versions: Versions) -> list[str]:
    return [one.value for one in (*versions.loaded, *versions.on_disk, *versions.user)]


def _release(system: System) -> str | None:
    return f"{system.id} {system.version}" if system.id and system.version else None


def _other_card(events: Events, there: Seen, here: Seen) -> Foreign | None:
    """Return that no card in the logs is one of this machine's: by the chip where both tell it, else by the name."""
    theirs, ours = ({one.pci_id for one in side.cards.cards if one.pci_id} for side in (there, here))
    if theirs and ours:
        return None if theirs & ours else Foreign(there=min(theirs), here=min(ours), what="card")
    named = [_card(name) for name in (*(event.name for event in events.all(CardNamed)), *sorted(there.names))]
    mine = {_card(name): name for name in here.names}
    return Foreign(there=named[0], here=min(mine.values()), what="card") if named and mine and not set(named) & set(mine) else None


def _other_kernel(events: Events, there: System, kernels: set[str]) -> Foreign | None:
    """Return that no kernel that the logs tell of is installed here."""
    started = [event.kernel for event in events.all(Booted) if event.kernel]
    started += [there.kernel.value] if there.kernel else []
    return Foreign(there=started[-1], here=max(kernels), what="kernel") if started and kernels and not set(started) & kernels else None


def _card(name: str) -> str:
    """Return a card's name without its maker's."""
    return re.sub(r"^NVIDIA +", "", name).strip().casefold()


class Now(NamedTuple):
    """What is known of a machine as it is now."""

    works: bool
    """The driver answers in one version everywhere."""
    loaded: str | None
    """The version of the module in the running kernel."""
    answering: frozenset[str]
    """The addresses of the cards that answer."""
    log_of_boot: bool
    """The kernel's log of this boot was read itself, from its beginning."""
    boots_count: bool
    """What an earlier boot left is over; not so of a report in which no driver answers: such a boot is what it is about."""
    unbuilt: Callable[[Event], bool]
    """Whether an event tells of a build for a newer kernel, for which no module is known yet."""


def overtaken(events: Events, handed: set[str], now: Now) -> Callable[[Event], bool]:
    """Return the test for events that are of the past."""
    overcome = in_log_overcome(events)
    boots = _last(events.all(Booted)) if now.boots_count else {}
    loads = _last(events.all(Loading)) if now.works else {}

    def past(event: Event) -> bool:
        source = event.place.source
        if overcome(event):
            return True
        # The kernel's ring is of one boot; everything else may hold several.
        several = source in handed or (source.startswith(("journalctl", "/var/log/")) and not _REVERSED.search(source))
        old = now.boots_count and _of_an_old_boot(events, event)
        if several and isinstance(event, _OF_A_BOOT) and (event.place.order < boots.get(source, 0) or old):
            return True
        if (
            several
            and isinstance(event, _OF_A_CARD)
            and event.place.order < loads.get(source, 0)
            and _is_back(event.address, now.answering)
        ):
            return True
        if source in handed:
            return False
        if now.log_of_boot and _KERNELS.match(source):
            return True
        # A program with an old library is still refused by the module that runs now.
        refused = isinstance(event, ApiMismatch) and event.module is not None and event.module == now.loaded
        if not now.works or not isinstance(event, _OVERTAKEN) or refused or now.unbuilt(event):
            return False
        return source == "dmesg" or source.startswith(_WRITTEN)

    return past


def unbuilt(events: Events, running: str | None, built: set[str], installed: set[str] | None) -> Callable[[Event], bool]:
    """Return the test for events of a build for a kernel that is newer than the running one, and has no module yet.

    `installed` are the kernels that are there, `None` when nobody looked: one that went again needs none.
    """
    heads = {one.place.source: one.kernel for one in events.all(BuildFor)}

    def test(event: Event) -> bool:
        own = event.kernel if isinstance(event, (BuildFailed, HeadersMissing)) else None
        kernel = own or heads.get(event.place.source)
        if kernel is None or running is None or kernel in built or (installed is not None and kernel not in installed):
            return False
        return version_key(kernel) > version_key(running)

    return test


def _last(events: Iterable[Event]) -> dict[str, int]:
    """Return where in each source the last of some events stands."""
    return {one.place.source: one.place.order for one in events}


def _of_an_old_boot(events: Events, event: Event) -> bool:
    """Return whether a line is part of what somebody asked of the log of an earlier boot."""
    if _EARLIER.search(event.place.source):
        return True
    asked = [one for one in events.all(LogAsked) if one.place.source == event.place.source and one.place.order < event.place.order]
    return bool(asked) and asked[-1].old


def _is_back(address: str | None, answering: frozenset[str]) -> bool:
    """Return whether a card answers that a line tells of; one that names none tells of any."""
    if address is None:
        return bool(answering)
    short = address.lower().removeprefix("pci:").partition(".")[0]
    return any(one.lower().partition(".")[0].endswith(short[-7:]) for one in answering)
