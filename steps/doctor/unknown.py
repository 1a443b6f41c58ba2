"""What is said where something is wrong and no rule knows why: the symptom, the broad cause it mostly has, and what to ask next."""

from __future__ import annotations

import re
from typing import Literal

from steps.catalog.diagnoses import diagnoses
from steps.doctor.diagnosis import Diagnosis
from steps.doctor.events.base import Event
from steps.doctor.events.complaints import Complaint
from steps.doctor.events.dkms import BuildFailed, HeadersMissing
from steps.doctor.events.faults import FellOff, GspTimeout, PowerUnitHalted, ResetWanted, Xid
from steps.doctor.events.kernel import InitFailed, InsertFailed, NoGpuFound
from steps.doctor.events.nvml import NvmlError
from steps.doctor.events.signatures import KeyRefused
from steps.doctor.evidence import Evidence
from steps.doctor.rules.base import WEAK, Candidate
from steps.doctor.told import Place, fact
from steps.model.base import phrase

Silence = Literal["hangs", "no-driver", "no-devices", "lost", "failing"]
_MOSTLY: dict[Silence, str] = {
    "hangs": "gsp-not-responding",
    "no-driver": "no-module-for-running-kernel",
    "no-devices": "module-finds-no-usable-gpu",
    "lost": "gpu-fell-off-bus",
    "failing": "userspace-from-other-install",
}
"""The most common cause of each symptom; no more than that is claimed, and nothing is repaired on it."""
_ASKS: dict[Silence, tuple[str, ...]] = {
    "hangs": ("dmesg", "lspci -nnk", "ps -eo pid,ppid,stat,args"),
    "no-driver": ("dmesg", "lsmod", "modinfo nvidia", "dkms status", "uname -r", "mokutil --sb-state", "lspci -nnk"),
    "no-devices": ("dmesg", "lspci -nnk", "modinfo nvidia", "nvidia-smi -L"),
    "lost": ("dmesg", "nvidia-smi -q", "lspci -vvv"),
    "failing": ("dmesg", "which -a nvidia-smi", "ldconfig -p", "nvidia-smi -q"),
}
_ALARMS: tuple[type[Event], ...] = (
    Complaint, NvmlError, Xid, InitFailed, KeyRefused, HeadersMissing, FellOff, ResetWanted, GspTimeout, PowerUnitHalted, NoGpuFound,
    InsertFailed, BuildFailed,
)  # fmt: skip
"""What in a log must not pass for health, though no rule made a cause of it."""
_OF_THE_PROGRAM = frozenset((8, 13, 31, 43, 45))
"""Xids that mostly a program causes: it is stopped, and the card goes on."""
_LAST = "nvidia-bug-report.sh"
"""NVIDIA's own collection of all logs, for when everything else was asked."""
_WANTS_CARD = re.compile(r"CUDA|NVIDIA", re.IGNORECASE)
_BY_FILES = ("dpkg", "rpm", "lsmod", "uname", "cat", "ls")
"""Programs that nobody has to run on a real machine: what they print was read from files."""


def unanswered(seen: Evidence) -> Diagnosis | None:
    """Return that the driver does not answer, where that is all that is known; `None` where it does, or nobody asked."""
    error = seen.first(NvmlError, lambda event: not event.place.in_container)
    if seen.driver_answers is False:
        kind, place = _kind(seen), error.place if error is not None else _said(seen)
    elif seen.driver_answers is None and error is not None:
        kind, place = _of_error(error), error.place
    else:
        return None
    return Diagnosis(
        id=_MOSTLY[kind],
        part="cause",
        severity=diagnoses()[_MOSTLY[kind]].severity,
        confidence=round(WEAK - 0.05, 2),
        title=phrase(f"doctor.unknown.{kind}.title"),
        because=phrase(f"doctor.unknown.{kind}.because"),
        evidence=(place,),
        asks=_asks(seen, _ASKS[kind]),
        known=False,
    )


def _kind(seen: Evidence) -> Silence:
    if seen.smi.hangs:
        return "hangs"
    if seen.smi.trouble == "no-driver" and seen.modules.loads("nvidia"):
        return "no-devices"
    if seen.smi.trouble in ("no-driver", "no-devices"):
        return "no-driver" if seen.smi.trouble == "no-driver" else "no-devices"
    lost = re.search(r"device handle|GPU is lost|Unknown Error", seen.smi.said or "")
    return "lost" if lost or seen.nvml("lost", "no-handle") else "failing"


def _of_error(error: NvmlError) -> Silence:
    match error.trouble:
        case "no-driver":
            return "no-driver"
        case "no-devices":
            return "no-devices"
        case "no-handle" | "lost" | "unknown-error":
            return "lost"
        case "timeout":
            return "hangs"
        case _:
            return "failing"


def _said(seen: Evidence) -> Place:
    asked = next((argv for argv, _ in seen.host.answers() if argv[0].rsplit("/", 1)[-1].startswith("nvidia-smi")), ("nvidia-smi",))
    return fact(seen.smi.said or "-", " ".join(asked), seen.smi.said or "…").place


def unexplained(seen: Evidence, harmless: dict[str, Candidate]) -> Diagnosis | None:
    """Return that a log which was handed over tells of an error that nothing here explains, or `None`.

    One whose meaning is known goes before those that merely end the log.
    """
    facts = [told for one in harmless.values() for told in one.facts]
    quoted = {told.place.text for told in facts}
    # Of many alike a rule quotes the first ones only.
    known = {told.number for told in facts if isinstance(told, Xid)}
    lines = [event for kind in _ALARMS for event in seen.all(kind) if event.place.source in seen.handed]
    strange = [
        event
        for event in lines
        if not (isinstance(event, Xid) and event.number in known)
        and not any(event.place.text in text or text in event.place.text for text in quoted)
    ]
    if not strange:
        return None
    last = max(strange, key=lambda event: (_meaning(event) is not None, event.place.order))
    meaning = _meaning(last) or ("no-card" if _WANTS_CARD.search(last.place.text) and _without_card(seen) else None)
    words = f"doctor.unknown.line-{meaning}" if meaning else "doctor.unknown.line"
    return Diagnosis(
        id="none",
        part="cause",
        severity="not-a-fault",
        confidence=0.0,
        title=phrase(f"{words}.title", line=last.place.text.splitlines()[-1].strip()[:200]),
        because=phrase(f"{words}.because"),
        evidence=(last.place,),
        known=False,
    )


def _without_card(seen: Evidence) -> bool:
    """Return whether this machine has no NVIDIA card: none on a bus that was seen, none of Windows', none within the processor."""
    elsewhere = seen.system.wsl is not False or bool(seen.smi.gpus) or bool(seen.host.exists("/sys/firmware/devicetree/base/compatible"))
    return seen.cards.bus_seen and not seen.cards.cards and not elsewhere


def _meaning(event: Event) -> str | None:
    """Return which sentence says what a line means; `None` where nobody knows."""
    if isinstance(event, Xid):
        return "stopped" if event.number in _OF_THE_PROGRAM else None
    return event.meaning if isinstance(event, Complaint) else None


def _asks(seen: Evidence, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands that would tell more and were not asked yet; of those refused, the same with root's rights."""
    refused = {one.probe for one in seen.unseen if one.reason == "refused"}
    by_files = () if seen.rehearsal else _BY_FILES
    left = [line for line in wanted if not seen.asked(*line.split()) and line.split()[0] not in by_files]
    return tuple(dict.fromkeys((*(f"sudo {line}" for line in wanted if line in refused), *left, *(() if left else (_LAST,)))))[:4]
