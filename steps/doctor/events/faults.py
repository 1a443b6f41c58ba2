"""Faults of a running GPU in the kernel's log: Xid and SXid, lost cards, requests for a reset, heat."""

from __future__ import annotations

import re

from steps.doctor.events.base import Event, parses
from steps.doctor.told import Place


class Xid(Event):
    """One Xid: its number, the card's address on the bus, the process, and the words behind it."""

    number: int
    address: str
    process: str | None = None
    text: str = ""
    caused_by: int | None = None
    """The Xid that the driver itself names as the cause."""

    @property
    def contained(self) -> bool:
        """Return whether the words say that an error was contained and asks for no reset."""
        return "Contained" in self.text and "Uncontained" not in self.text and "RST: Yes" not in self.text


@parses(
    r"(?<!S)Xid \((?:PCI:)?(?P<address>[0-9a-fA-F:.]+)(?: GPU-I:\d+)?\): (?P<number>\d{1,3})\b"
    r"(?:, pid='?(?P<pid>\d+|<unknown>)'?)?(?P<text>[^\n]*)",
    "Xid (",
)  # fmt: skip
def xid(found: re.Match[str], at: Place) -> Xid:
    """Recognise an Xid of any branch; the process is named since 470."""
    text = found["text"].strip(" ,")
    cause = re.search(r"caused by previous Xid (\d+)", text)
    pid = found["pid"]
    return Xid(
        place=at,
        number=int(found["number"]),
        address=found["address"].lower(),
        process=pid if pid and pid.isdecimal() else None,
        text=text,
        caused_by=int(cause[1]) if cause else None,
    )


class SwitchXid(Event):
    """One SXid of an NVSwitch; `fatal` as the line says it, `None` when it says neither."""

    number: int
    fatal: bool | None


@parses(
    r"SXid \([^)]*\): (?P<number>\d+),? ?(?P<text>[^\n]*)",
    "SXid (",
)
def switch_xid(found: re.Match[str], at: Place) -> SwitchXid:
    """Recognise a line of the switch's driver."""
    text = found["text"].lower()
    harmless = "non-fatal" in text or "nonfatal" in text or "severity 0 " in text
    fatal = False if harmless else True if "fatal" in text else None
    return SwitchXid(place=at, number=int(found["number"]), fatal=fatal)


class LinkSaid(Event):
    """A program met an error of NVLink that could not be corrected."""


@parses(
    r"uncorrectable NVLink error|CUDA_ERROR_NVLINK_UNCORRECTABLE|cudaErrorNvlinkUncorrectable",
    "NVLink error",
    "NVLINK_UNCORRECTABLE",
    "NvlinkUncorrectable",
)
def link_said(found: re.Match[str], at: Place) -> LinkSaid:
    """Recognise CUDA's error 220."""
    return LinkSaid(place=at)


class FellOff(Event):
    """The driver lost a card on the bus."""

    address: str | None = None


@parses(
    r"(?:GPU (?:at )?(?:PCI:)?(?P<address>[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.\d)?)[^\n]{0,20}?.{0,80}?)?"
    r"(?:has )?fallen off the bus",
    "fallen off the bus", "The NVIDIA GPU",
    lines=4,
    flags=re.DOTALL,
)  # fmt: skip
def fell_off(found: re.Match[str], at: Place) -> FellOff:
    """Recognise the message in one line or in several."""
    return FellOff(place=at, address=found["address"])


class ResetWanted(Event):
    """The driver refuses a card until it is reset."""


@parses(
    r"unexpected WPR2 already up|NV_ERR_RESET_REQUIRED|Assertion failed: Reset required|GPU requires reset|"
    r"GPU is likely in a bad state and may need to be reset|status=0x0*62\b",
    "WPR2 already up", "RESET_REQUIRED", "Reset required", "requires reset", "need to be reset", "=0x00000062",
)  # fmt: skip
def reset_wanted(found: re.Match[str], at: Place) -> ResetWanted:
    """Recognise the sentences that ask for a reset."""
    return ResetWanted(place=at)


class PowerUnitHalted(Event):
    """The GPU's power-management unit stopped."""


@parses(
    r"PMU has halted|PmuHalted|PMU Halt",
    "PMU has halted",
    "PmuHalted",
    "PMU Halt",
)
def power_unit_halted(found: re.Match[str], at: Place) -> PowerUnitHalted:
    """Recognise the signal of the GSP."""
    return PowerUnitHalted(place=at)


class GspTimeout(Event):
    """The driver waited in vain for the GPU System Processor."""


@parses(
    r"Timeout after \d+s? of waiting for RPC response from GPU\d*|[Tt]imeout (?:while )?waiting for (?:RPC|GSP)|GSP RPC timeout|"
    r"GSP Timeout \*|_kgspIsHeartbeatTimedOut: Heartbeat timed out|(?:GSP RM|LibOS) heartbeat timed out",
    "RPC response from GPU",
    "GSP Timeout",
    "IsHeartbeatTimedOut",
    "heartbeat timed out",
    "waiting for RPC",
    "waiting for GSP",
    "GSP RPC",
)
def gsp_timeout(found: re.Match[str], at: Place) -> GspTimeout:
    """Recognise the sentence, which mostly stands in an Xid 119."""
    return GspTimeout(place=at)


class GspCrash(Event):
    """The GPU System Processor reports an exception of its firmware."""


@parses(r"GSP-CrashCat Report|GSP task (?:exception|watchdog timeout|panic)", "GSP-CrashCat", "GSP task ")
def gsp_crash(found: re.Match[str], at: Place) -> GspCrash:
    """Recognise the heading of its report, and the sentence, which mostly stands in an Xid 120."""
    return GspCrash(place=at)


class TooHot(Event):
    """A driver or a diagnostic says that a thermal limit was reached; `where` is what was hot, "" where it is not said."""

    where: str = ""


@parses(
    r"(?:thermal throttling temperature reached[^\n]{0,60}?(?P<part>HBM|junction|edge|hotspot|memory)?\.?$|"
    r"[Tt]hermal [Vv]iolations?\D{0,30}[1-9]\d*|GPU (?:has )?(?:reached|exceeded) (?:its )?(?:max|thermal|"
    r"critical)\w* ?(?:operating )?temp\w*|"
    r"over(?:heat|temperature)[^\n]{0,40}(?:GPU|shutdown)|GPU over temperature range ?\(\w+ CTF\)|Critical Temperature Fault ?\(aka CTF\)|"
    r"(?:HW|SW) Thermal Slowdown +: Active)",
    "thermal throttling", "hermal violation", "hermal Violation", "thermal limit", "critical temp", "overtemp", "overheat",
    "Thermal Slowdown", "over temperature range", "Temperature Fault",
)  # fmt: skip
def too_hot(found: re.Match[str], at: Place) -> TooHot:
    """Recognise amdgpu's warnings and its last word, DCGM's violations and nvidia-smi's reasons."""
    return TooHot(place=at, where=found["part"] or "")


class RemapFailed(Event):
    """A card could not repair its memory any more."""


@parses(
    r"Failed to persist row remap|ROW_REMAP_FAILURE[^\n]{0,40}[=: ]1\b|[Rr]emapping [Ff]ailure [Oo]ccurred +: Yes|"
    r"row remap(?:ping)? fail(?:ure|ed)",
    "row remap", "ROW_REMAP_FAILURE", "apping Failure Occurred", "Remapping Failure",
)  # fmt: skip
def remap_failed(found: re.Match[str], at: Place) -> RemapFailed:
    """Recognise Xid 64's words, DCGM's field and nvidia-smi."""
    return RemapFailed(place=at)


class EccSaid(Event):
    """A program met an uncorrectable memory error."""


@parses(
    r"uncorrectable ECC error encountered|CUDA_ERROR_ECC_UNCORRECTABLE|cudaErrorECCUncorrectable",
    "uncorrectable ECC",
    "ECC_UNCORRECTABLE",
    "ECCUncorrectable",
)
def ecc_said(found: re.Match[str], at: Place) -> EccSaid:
    """Recognise CUDA's error 214."""
    return EccSaid(place=at)


class EccCounted(Event):
    """The table of nvidia-smi counts errors of a card that could not be corrected."""

    count: int


@parses(r"\.\d +O(?:n|ff) +\| +(?P<count>[1-9]\d*) \|\s*$", ".0 Off |", ".0  On |", ".0 On |")
def ecc_counted(found: re.Match[str], at: Place) -> EccCounted:
    """Recognise a card's row by its address and the display before the count."""
    return EccCounted(place=at, count=int(found["count"]))


class IllegalAccess(Event):
    """A program reached for memory that is not its own."""


@parses(
    r"illegal memory access was encountered|(?:CUDA|HIP)_ERROR_ILLEGAL_ADDRESS|\w*Error(?:Illegal|Misaligned)Address|misaligned address|"
    r"CUDA_ERROR_MISALIGNED_ADDRESS|(?:Warp|Lane|Device) (?:Out-of-range|Illegal|Misaligned|User Stack) (?:Address|Overflow)|"
    r"CUDA_EXCEPTION_(?:1|2|3|5|6|14)\b|"
    r"device-side assert triggered|Invalid __(?:global|shared|local)__ (?:read|write)|Memory access fault by GPU node",
    "illegal memory access", "ILLEGAL_ADDRESS", "IllegalAddress", "MisalignedAddress", "isaligned address", "MISALIGNED_ADDRESS",
    "device-side assert", "Invalid __", "Out-of-range", "Illegal Address", "Misaligned Address", "CUDA_EXCEPTION_", "Memory access fault",
)  # fmt: skip
def illegal_access(found: re.Match[str], at: Place) -> IllegalAccess:
    """Recognise CUDA's errors 700 and 716 as any program spells them, its debugger, compute-sanitizer and AMD's runtime."""
    return IllegalAccess(place=at)


class Busy(Event):
    """CUDA says that a card is busy or not available."""


@parses(
    r"CUDA-capable device\(s\) is/are busy or unavailable|all CUDA-capable devices are busy|cudaErrorDevicesUnavailable",
    "busy or unavailable",
    "devices are busy",
    "DevicesUnavailable",
)
def busy(found: re.Match[str], at: Place) -> Busy:
    """Recognise CUDA's error 46."""
    return Busy(place=at)


class LinkErrors(Event):
    """PCIe's own error reporting about a device."""


@parses(
    r"AER: (?:Multiple )?(?:Corrected|Uncorrected|Correctable|Uncorrectable)|PCIe Bus Error: severity=",
    "AER: ",
    "PCIe Bus Error",
)
def link_errors(found: re.Match[str], at: Place) -> LinkErrors:
    """Recognise AER's lines."""
    return LinkErrors(place=at)


class PowerBrake(Event):
    """The board's management says that a card gets less power than it wants."""


@parses(
    r"(?:HW )?Power Brake(?: Slowdown)? +: Active|[Pp]ower brake (?:assert|active|signal)|GPU[^\n]{0,60}not (?:in|"
    r"listed in)[^\n]{0,30}power table|"
    r"[Pp]ower [Ss]upply[^\n]{0,60}(?:failed|fail|lost|redundancy lost|AC lost)",
    "ower Brake", "ower brake", "power table", "ower Supply", "ower supply",
)  # fmt: skip
def power_brake(found: re.Match[str], at: Place) -> PowerBrake:
    """Recognise nvidia-smi's reason and what management controllers log."""
    return PowerBrake(place=at)
