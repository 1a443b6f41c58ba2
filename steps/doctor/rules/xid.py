"""Faults of a running GPU: what the kernel's log counts as Xid and SXid, read by card and in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from steps.doctor.events.bus import Unreachable
from steps.doctor.events.faults import (
    Busy,
    EccSaid,
    FellOff,
    GspTimeout,
    IllegalAccess,
    LinkErrors,
    LinkSaid,
    PowerUnitHalted,
    RemapFailed,
    ResetWanted,
    SwitchXid,
    TooHot,
    Xid,
)
from steps.doctor.evidence import Evidence
from steps.doctor.numbers import whole
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, WEAK, Answer, found, out, rule
from steps.doctor.told import Fact

# NVIDIA's numbers: https://docs.nvidia.com/deploy/xid-errors/
MEMORY_ACCESS, ENGINE, CHANNEL, PREEMPTIVE = 31, 13, 43, 45
DOUBLE_BIT, REMAPPED, REMAP_FAILED, CONTAINED, UNCONTAINED, FIRMWARE_ECC = 48, 63, 64, 94, 95, 140
HALTED, NVLINK, FELL_OFF, GSP_SILENT, GSP_CRASHED, RECOVERY = 62, 74, 79, 119, 120, 154
BLACKWELL_LINKS = range(144, 151)
AFTER_EFFECTS = frozenset((PREEMPTIVE, RECOVERY))
"""Numbers that only say that something else came before."""
MEMORY = frozenset((DOUBLE_BIT, REMAPPED, REMAP_FAILED, CONTAINED, UNCONTAINED, FIRMWARE_ECC))
SRAM_LIMIT = 4
"""More aggregate errors of this kind are a reason to replace a card (NVIDIA's GPU memory error management)."""
MANY_ROWS = 8
"""Remapped rows from which on repetition is no chance any more: a bank has as many spares."""


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
        silent = next(iter(xids(seen, GSP_SILENT)), None)
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
    other = first is not None and first.number not in (GSP_SILENT, MEMORY_ACCESS, ENGINE, CHANNEL)
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
        dead = seen.first(Unreachable)
        if (lost is None and dead is None) or seen.system.wsl:
            return None
        return found(LIKELY if dead or (lost and lost.trouble == "lost") else POSSIBLE, lost, dead)
    earlier = seen.first(TooHot) or seen.first(LinkErrors)
    first = gone or said
    before = earlier is not None and first is not None and earlier.place.order < first.place.order
    return found(LIKELY if before else STRONG + 0.05, gone, said, lost)


# --- NVLink ---------------------------------------------------------------------------------------


@rule("nvlink-fault")
def nvlink(seen: Evidence) -> Answer:
    """A link between GPUs, or to a switch, failed."""
    fault = next(iter(xids(seen, NVLINK, *BLACKWELL_LINKS)), None)
    fatal = seen.first(SwitchXid, lambda event: event.fatal is True)
    said = seen.first(LinkSaid)
    if fault is None and fatal is None:
        return found(LIKELY, said) if said is not None else None
    return found(CERTAIN if fault else STRONG, fault, fatal, said, next(iter(xids(seen, PREEMPTIVE)), None))


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
        return None
    worse = next((event for event in seen.all(Xid) if event.number in MEMORY or event.number in (FELL_OFF, NVLINK, GSP_SILENT)), None)
    if worse is not None or seen.has(EccSaid):
        return out(worse, seen.first(EccSaid))
    if len(cards) > 1:
        return found(CERTAIN if said else STRONG, said, *(events[0] for events in cards.values()))
    if said is not None:
        return found(STRONG, said, *faults[:2])
    processes = {event.process for event in faults if event.process}
    return found(WEAK if len(processes) > 1 else LIKELY - 0.1, *faults[:3])


@rule("suspect-faulty-gpu")
def faulty(seen: Evidence) -> Answer:
    """Faults of programs come again and again on one card, in different processes."""
    faults = xids(seen, MEMORY_ACCESS, CHANNEL, ENGINE)
    access = _by_card(xids(seen, MEMORY_ACCESS, ENGINE))
    crowded = {card: {event.process for event in events if event.process} for card, events in _by_card(faults).items()}
    repeated = [card for card, processes in crowded.items() if len(processes) > 1]
    memory = next((event for event in seen.all(Xid) if event.number in MEMORY), None)
    said = seen.first(IllegalAccess)
    if not repeated or len(access) > 1:
        return out(*(events[0] for events in access.values())) if len(access) > 1 else None
    if memory is not None or said is not None:
        return out(memory, said)
    events = _by_card(faults)[repeated[0]]
    return found(LIKELY + 0.05, *events[:3], card=repeated[0])


# --- memory ---------------------------------------------------------------------------------------


def _rows(seen: Evidence, path: str) -> Fact | None:
    """Return a reading about memory that is not zero and not "No"."""
    for one in seen.readings:
        value = one.at(path)
        if value is not None and value.value.strip().lower() not in ("0", "no", "n/a", "none", "not active"):
            return value
    return None


def _count(fact: Fact | None) -> int:
    head = (fact.value.split() or ["0"])[0] if fact is not None else "0"
    return whole(head) or 0


@rule("gpu-memory-failing")
def memory_failing(seen: Evidence) -> Answer:
    """The card cannot repair its memory any more, or has to again and again."""
    failed = next(iter(xids(seen, REMAP_FAILED)), None) or seen.first(RemapFailed) or _rows(seen, "Remapping Failure Occurred")
    failed = failed or next(
        (value for line in seen.answers if (value := line.at("remapped_rows.failure")) and value.value.lower() in ("yes", "1")), None
    )
    if failed is not None:
        return found(CERTAIN, failed, _rows(seen, "Remapped Rows/Uncorrectable Error"))
    sram = next((value for one in seen.readings if _count(value := one.at("Aggregate/SRAM Uncorrectable")) > SRAM_LIMIT), None)
    if sram is not None:
        return found(CERTAIN, sram, seen.first(EccSaid))
    threshold = _rows(seen, "SRAM Threshold Exceeded")
    if threshold is not None:
        return found(CERTAIN, threshold)
    rows = _rows(seen, "Remapped Rows/Uncorrectable Error")
    repairs = Counter(event.address for event in xids(seen, REMAPPED))
    repeated = next((card for card, times in repairs.items() if times > 1), None)
    events = [event for event in xids(seen, *MEMORY) if event.address == repeated]
    if repeated is not None:
        return found(STRONG if _count(rows) >= MANY_ROWS or len(events) > 3 else LIKELY, *events[:4], rows)
    if _count(rows) >= MANY_ROWS:
        return found(LIKELY, rows, *xids(seen, *MEMORY)[:2])
    return None


@rule("uncorrectable-memory-error")
def uncorrectable(seen: Evidence) -> Answer:
    """A memory error that could not be corrected, and nothing that says more."""
    hard = next(iter(xids(seen, DOUBLE_BIT, UNCONTAINED, FIRMWARE_ECC)), None)
    said = seen.first(EccSaid)
    waits = _pending(seen)
    if waits is not None:
        # The repair that this error led to is on record: what is to be done follows from that.
        return found(POSSIBLE, hard, said) if hard is not None or said is not None else None
    volatile = _rows(seen, "Volatile/DRAM Uncorrectable") or _rows(seen, "Volatile/SRAM Uncorrectable")
    contained = next((event for event in xids(seen, CONTAINED) if event.contained), None)
    if hard is None and contained is not None:
        return out(contained)
    if hard is None:
        return found(LIKELY, said, volatile) if said is not None else None
    return found(STRONG, hard, said, volatile)


@rule("ecc-error-contained")
def contained(seen: Evidence) -> Answer:
    """The error ended one program only, and the card needs no reset."""
    events = [event for event in xids(seen, CONTAINED) if "RST: Yes" not in event.text]
    hard = next(iter(xids(seen, DOUBLE_BIT, UNCONTAINED, FIRMWARE_ECC)), None)
    if not events:
        return out(hard) if hard is not None else None
    if hard is not None:
        return found(WEAK, *events[:2])
    return found(STRONG if any(event.contained for event in events) else LIKELY, *events[:2])


_WAITS = ("Remapped Rows/Pending", "Retired Pages/Pending", "Retired pages/Pending", "Pending Page Blacklist")


def _pending(seen: Evidence) -> Fact | None:
    """Return the reading that says that a row or a page waits for a reset: of a whole `-q`, of its last lines, or of a query."""
    for one in seen.readings:
        for path in _WAITS:
            if one.active(path) and (value := one.at(path)):
                return value
        if one.active("Pending") and (value := next((told for key, told in one.values if key == "Pending"), None)):
            return value
    names = ("remapped_rows.pending", "retired_pages.pending")
    told = (value for line in seen.answers for name in names if (value := line.at(name)))
    return next((value for value in told if value.value.lower() in ("yes", "1")), None)


def _not_pending(seen: Evidence) -> Fact | None:
    """Return the reading that says that nothing waits for a reset any more, or `None`: then the log is all there is."""
    told = (value for one in seen.readings for path in _WAITS if one.active(path) is False and (value := one.at(path)))
    asked = (value for line in seen.answers if (value := line.at("remapped_rows.pending")) and value.value.lower() in ("no", "0"))
    return next(iter((*told, *asked)), None)


@rule("memory-repair-pending-reset")
def repair_pending(seen: Evidence) -> Answer:
    """A row was replaced, and a reset makes it so."""
    pending, done = _pending(seen), _not_pending(seen)
    noted = next(iter(xids(seen, REMAPPED)), None)
    if pending is None and done is not None:
        return out(done)
    if pending is None and noted is None:
        return None
    return found(STRONG if pending is not None else LIKELY, pending, noted)
