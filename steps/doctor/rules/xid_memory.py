"""Memory of GPUs that errs: what was corrected by itself, what waits for a reset, and what does not mend any more."""

from __future__ import annotations

from collections import Counter

from steps.doctor.events.faults import EccCounted, EccSaid, RemapFailed
from steps.doctor.evidence import Evidence
from steps.doctor.facts.readings import Readings
from steps.doctor.numbers import whole
from steps.doctor.rules.base import CERTAIN, LIKELY, POSSIBLE, STRONG, WEAK, Answer, found, out, rule
from steps.doctor.rules.xid import CONTAINED, HARD, MEMORY, REMAP_FAILED, REMAPPED, xids
from steps.doctor.told import Fact, Told

SRAM_LIMIT = 4
"""More aggregate errors of this kind are a reason to replace a card (NVIDIA's GPU memory error management)."""
MANY_ROWS = 8
"""Remapped rows from which on repetition is no chance any more: a bank has as many spares."""


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


def _sram(one: Readings) -> Fact | None:
    """Return the aggregate of SRAM errors where it is above the limit; since 550 it is told apart by how they were noticed."""
    paths = ("Aggregate/SRAM Uncorrectable", "Aggregate/SRAM Uncorrectable Parity", "Aggregate/SRAM Uncorrectable SEC-DED")
    told = [value for path in paths if (value := one.at(path)) is not None]
    return max(told, key=_count) if sum(map(_count, told)) > SRAM_LIMIT else None


@rule("gpu-memory-failing")
def memory_failing(seen: Evidence) -> Answer:
    """The card cannot repair its memory any more, or has to again and again."""
    failed = next(iter(xids(seen, REMAP_FAILED)), None) or seen.first(RemapFailed) or _rows(seen, "Remapping Failure Occurred")
    failed = failed or next(
        (value for line in seen.answers if (value := line.at("remapped_rows.failure")) and value.value.lower() in ("yes", "1")), None
    )
    if failed is not None:
        return found(CERTAIN, failed, _rows(seen, "Remapped Rows/Uncorrectable Error"))
    sram = next((value for one in seen.readings if (value := _sram(one)) is not None), None)
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
    hard = next(iter(xids(seen, *HARD)), None)
    said = seen.first(EccSaid)
    waits = _pending(seen)
    if waits is not None:
        # The repair that this error led to is on record: what is to be done follows from that.
        return found(POSSIBLE, hard, said) if hard is not None or said is not None else None
    volatile: Told | None = next((value for path in _VOLATILE if (value := _rows(seen, path)) is not None and _count(value)), None)
    volatile = volatile or seen.first(EccCounted)
    contained = next((event for event in xids(seen, CONTAINED) if event.contained), None)
    if hard is None and contained is not None:
        return out(contained)
    if hard is None:
        return found(LIKELY if said else POSSIBLE, said, volatile) if said is not None or volatile is not None else None
    return found(STRONG, hard, said, volatile)


_VOLATILE = (
    "Volatile/DRAM Uncorrectable",
    "Volatile/SRAM Uncorrectable",
    "Volatile/SRAM Uncorrectable Parity",
    "Volatile/SRAM Uncorrectable SEC-DED",
    "Volatile/Double Bit/Total",
)
"""Where `nvidia-smi -q` counts what could not be corrected since the driver was loaded: of today, since 550, and before Ampere."""


@rule("ecc-error-contained")
def contained(seen: Evidence) -> Answer:
    """The error ended one program only, and the card needs no reset."""
    events = [event for event in xids(seen, CONTAINED) if "RST: Yes" not in event.text]
    hard = next(iter(xids(seen, *HARD)), None)
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
