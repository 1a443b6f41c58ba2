"""Faults of a running GPU: what the kernel's log counts as Xid and SXid, read by card and in order."""

from __future__ import annotations

import re
from collections.abc import Iterable

from steps.doctor.events.bus import RecoveryFailed, SurpriseDown, Unreachable
from steps.doctor.events.faults import (
    Busy,
    EccSaid,
    FellOff,
    GspCrash,
    GspTimeout,
    IllegalAccess,
    LinkErrors,
    LinkSaid,
    PowerUnitHalted,
    ResetWanted,
    SwitchXid,
    TooHot,
    Xid,
)
from steps.doctor.events.nccl import MulticastFailed
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, WEAK, Answer, found, out, rule
from steps.doctor.told import Fact, fact

# NVIDIA's numbers: https://docs.nvidia.com/deploy/xid-errors/
MEMORY_ACCESS, ENGINE, CHANNEL, PREEMPTIVE = 31, 13, 43, 45
DOUBLE_BIT, REMAPPED, REMAP_FAILED, CONTAINED, UNCONTAINED, FIRMWARE_ECC = 48, 63, 64, 94, 95, 140
DRAM_ECC, SRAM_ECC = 171, 172
HARD = (DOUBLE_BIT, UNCONTAINED, FIRMWARE_ECC, DRAM_ECC, SRAM_ECC)
HALTED, NVLINK, FELL_OFF, GSP_SILENT, GSP_CRASHED, RECOVERY = 62, 74, 79, 119, 120, 154
BLACKWELL_LINKS = range(144, 151)
AFTER_EFFECTS = frozenset((PREEMPTIVE, RECOVERY))
"""Numbers that only say that something else came before."""
MEMORY = frozenset((*HARD, REMAPPED, REMAP_FAILED, CONTAINED))


def xids(seen: Evidence, *numbers: int) -> tuple[Xid, ...]:
    """Return the Xids of these numbers, in order."""
    return tuple(event for event in seen.all(Xid) if event.number in numbers)


def _first_fault(seen: Evidence) -> Xid | None:
    """Return the first Xid that is no after-effect."""
    return next((event for event in seen.all(Xid) if event.number not in AFTER_EFFECTS), None)


# --- the GPU System Processor, power unit, reset --------------------------------------------------


@rule("gsp-firmware-crash")
def gsp_crash(seen: Evidence) -> Answer:
    """The firmware reports an exception of its own."""
    crash = next(iter(xids(seen, GSP_CRASHED)), None)
    if crash is None:
        silent, said = next(iter(xids(seen, GSP_SILENT)), None), seen.first(GspCrash)
        if said is not None:
            return found(STRONG, said)
        return out(silent) if silent is not None else None
    return found(CERTAIN, crash)


@rule("gsp-not-responding")
def gsp_silent(seen: Evidence) -> Answer:
    """Calls to the firmware time out."""
    silent = next(iter(xids(seen, GSP_SILENT)), None) or seen.first(GspTimeout)
    if silent is None:
        return None
    crash = next(iter(xids(seen, GSP_CRASHED)), None)
    if crash is not None:
        return found(POSSIBLE, silent)
    first = _first_fault(seen)
    other = (
        first is not None
        and first.number not in (GSP_SILENT, MEMORY_ACCESS, ENGINE, CHANNEL)
        # What comes after the silence is its effect: nobody serves the card any more.
        and not (isinstance(silent, GspTimeout) and silent.place.source == first.place.source and silent.place.order < first.place.order)
    )
    return found(POSSIBLE if other else STRONG, silent)


@rule("gpu-needs-reset-after-fault")
def needs_reset(seen: Evidence) -> Answer:
    """The driver asks for a reset, and the log has no fault that explains it."""
    wanted = seen.first(ResetWanted)
    asked = next((event for event in xids(seen, RECOVERY) if "Reset" in event.text or "Reboot" in event.text), None)
    if wanted is None and asked is None:
        return None
    first = _first_fault(seen)
    if first is not None or seen.has(PowerUnitHalted):
        return found(WEAK, wanted, asked)
    return found(STRONG if wanted is not None else LIKELY, wanted, asked, seen.first(Busy))


@rule("gpu-power-controller-halted")
def power_unit(seen: Evidence) -> Answer:
    """The power-management unit stopped; what follows are consequences."""
    halted, said = next(iter(xids(seen, HALTED)), None), seen.first(PowerUnitHalted)
    if halted is None and said is None:
        return None
    return found(CERTAIN if said else STRONG, halted, said)


@rule("gpu-fell-off-bus")
def fell_off(seen: Evidence) -> Answer:
    """The card does not answer on the bus."""
    gone, said, lost = next(iter(xids(seen, FELL_OFF)), None), seen.first(FellOff), seen.nvml("lost", "no-handle")
    if gone is None and said is None:
        dead = seen.first(Unreachable) or _unrecovered(seen)
        if (lost is None and dead is None) or seen.system.wsl:
            return None
        return found(LIKELY if dead or (lost and lost.trouble == "lost") else POSSIBLE, lost, dead)
    earlier = seen.first(TooHot) or seen.first(LinkErrors)
    first = gone or said
    before = earlier is not None and first is not None and earlier.place.order < first.place.order
    return found(LIKELY if before else STRONG + 0.05, gone, said, lost)


def _unrecovered(seen: Evidence) -> RecoveryFailed | None:
    """Return that a card's link went down and was not brought back; an error alone that nobody recovers from is mostly harmless."""
    return seen.first(RecoveryFailed) if seen.has(SurpriseDown) and not seen.driver_answers else None


# --- NVLink ---------------------------------------------------------------------------------------


@rule("nvlink-fault")
def nvlink(seen: Evidence) -> Answer:
    """A link between GPUs, or to a switch, failed."""
    fault = next(iter(xids(seen, NVLINK, *BLACKWELL_LINKS)), None)
    fatal = seen.first(SwitchXid, lambda event: event.fatal is True)
    said = seen.first(LinkSaid)
    if fault is None and fatal is None:
        down = _link_down(seen) if said is None else None
        return found(LIKELY, said) if said is not None else found(POSSIBLE, down) if down is not None else None
    return found(CERTAIN if fault else STRONG, fault, fatal, said, next(iter(xids(seen, PREEMPTIVE)), None))


def _link_down(seen: Evidence) -> Fact | None:
    """Return a link that is down on a card whose other links are up: on a board of such cards all of them lead somewhere."""
    for argv in seen.host.forms(lambda argv: argv[0] == "nvidia-smi" and argv[1:2] == ("nvlink",)):
        for card in re.split(r"^(?=GPU \d+: )", seen.host.run(argv).stdout, flags=re.MULTILINE):
            down = re.search(r"^\s+Link \d+: <inactive>", card, re.MULTILINE)
            if down and re.search(r"Link \d+: [\d.]+ GB/s", card) and re.match(r"GPU \d+: .*SXM", card):
                return fact("inactive", " ".join(argv), down[0].strip())
    return None


@rule("nvswitch-nonfatal-events")
def nonfatal(seen: Evidence) -> Answer:
    """A switch logs events that are not fatal, and nothing else failed."""
    told = seen.first(SwitchXid, lambda event: event.fatal is False)
    if told is None:
        return None
    fatal = seen.first(SwitchXid, lambda event: event.fatal is True)
    other = _first_fault(seen)
    return out(fatal, other) if fatal is not None or other is not None else found(STRONG, told)


# --- programs -------------------------------------------------------------------------------------


@rule("xid-after-process-kill")
def after_kill(seen: Evidence) -> Answer:
    """Channels of a process that ended are cleaned up; nothing failed before."""
    cleaned = xids(seen, PREEMPTIVE)
    if not cleaned:
        return None
    before = next((event for event in seen.all(Xid) if event.number not in (*AFTER_EFFECTS, ENGINE)), None)
    caused = next((event for event in cleaned if event.caused_by is not None), None)
    if before is not None or caused is not None:
        return out(before, caused)
    return found(STRONG, *cleaned[:3])


def _by_card(events: Iterable[Xid]) -> dict[str, list[Xid]]:
    cards: dict[str, list[Xid]] = {}
    for event in events:
        cards.setdefault(event.address, []).append(event)
    return cards


@rule("application-illegal-memory-access")
def illegal_access(seen: Evidence) -> Answer:
    """A program reached outside its memory: it says so, or the same fault comes on several cards."""
    said = seen.first(IllegalAccess)
    faults = xids(seen, MEMORY_ACCESS, ENGINE)
    cards = _by_card(faults)
    if said is None and not faults:
        stopped = xids(seen, CHANNEL)
        return found(POSSIBLE, *stopped[:2]) if stopped and _first_fault(seen) == stopped[0] else None
    worse = next((event for event in seen.all(Xid) if event.number in MEMORY or event.number in (FELL_OFF, NVLINK, GSP_SILENT)), None)
    if worse is not None or seen.has(EccSaid) or _unrecovered(seen):
        return out(worse, seen.first(EccSaid), _unrecovered(seen))
    fabric = seen.first(MulticastFailed)
    if fabric is not None:
        return found(POSSIBLE, said, *faults[:2], fabric)
    if len(cards) > 1:
        return found(CERTAIN if said else STRONG, said, *(events[0] for events in cards.values()))
    if said is not None:
        return found(STRONG, said, *faults[:2])
    return found(WEAK if _of_one_card(seen) else LIKELY - 0.1, *faults[:3])


_NAMED = re.compile(r"name=([^,\n]+)")
_FAULTED = re.compile(r"faulted @ (0x[0-9a-f]+_[0-9a-f]+)")


def _of_one_card(seen: Evidence) -> list[Xid]:
    """Return the faults of a card's cores in several processes: what these have in common is the card.

    Where one program reaches for one same address each time it is the program, started again; and what the engines behind
    the hub meet (copying, the host) is a mapping that a driver made.
    """
    faults = [event for event in xids(seen, MEMORY_ACCESS, CHANNEL, ENGINE) if "HUBCLIENT" not in event.text]
    for events in _by_card(faults).values():
        places = {told[1] if (told := _FAULTED.search(event.text)) else None for event in events}
        names = {told[1] if (told := _NAMED.search(event.text)) else None for event in events}
        alike = len(places) == len(names) == 1 and None not in places
        if len({event.process for event in events if event.process}) > 1 and not alike:
            return events
    return []


@rule("suspect-faulty-gpu")
def faulty(seen: Evidence) -> Answer:
    """Faults of programs come again and again on one card, in different processes."""
    access = _by_card(xids(seen, MEMORY_ACCESS, ENGINE))
    repeated = _of_one_card(seen)
    memory = next((event for event in seen.all(Xid) if event.number in MEMORY), None)
    said = seen.first(IllegalAccess)
    if not repeated or len(access) > 1:
        return out(*(events[0] for events in access.values())) if len(access) > 1 else None
    if memory is not None or said is not None:
        return out(memory, said)
    return found(LIKELY + 0.05, *repeated[:3], card=repeated[0].address)
