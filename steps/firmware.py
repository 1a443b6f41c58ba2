"""The firmware step: a BIOS checklist that measures itself; nothing here writes to hardware."""

from __future__ import annotations

from steps import checklist, tuning
from steps.catalog import boards, guide
from steps.compat import firmware as rules
from steps.compat import power
from steps.compat.case import Case
from steps.compat.setting import guest
from steps.compat.system_rules import signed
from steps.model.action import AnyAction
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Note, Option
from steps.model.finding import Finding, Patch, StepKey
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile

KEY: StepKey = "firmware"


def applies(machine: Machine) -> bool:
    """Return whether there is a BIOS to visit: not in WSL, not where a container is all there is."""
    return machine.os.wsl is not True


def intro(machine: Machine, answers: Profile) -> Words:
    """Return how many items measured themselves and how many want eyes."""
    options = choices(machine, answers)[0].options
    eyes = sum(option.mark == "unknown" for option in options)
    change = sum(option.mark in ("catch", "bad") for option in options)
    return phrase("firmware.intro", measured=len(options) - eyes, all=len(options), change=change, eyes=eyes)


def choices(machine: Machine, answers: Profile) -> tuple[Choice, ...]:
    """Return the checklist, where taking an item says that it was set or seen by eye, and what Linux can do instead."""
    found = {one.code: one for one in rules.judge_firmware(machine)}
    confirmed = answers.firmware.acknowledged or ()
    options = tuple(_option(machine, item, found, confirmed) for item in checklist.PROBES)
    checked = Choice(key="firmware.acknowledged", kind="facts", options=options, taken=confirmed)
    instead = tuning.question(machine, answers)
    return (checked,) if instead is None else (checked, instead)


def check(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what the BIOS should be asked for; what a person has confirmed by eye is only a remark until it is measured again.

    Of a refused module there is nothing to say once the answers put a signed one in its place.
    """
    replaced = {"secure-boot-unsigned-module"} if signed(Case(machine, answers)) else set()
    return (*(one for one in rules.judge_firmware(machine) if one.code not in replaced), *(gap for gap in machine.gaps if gap.step == KEY))


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return what was ticked of the Linux side; the person changes the BIOS, bringup writes none of it."""
    return tuning.actions(machine, answers, target)


# --- rows ---------------------------------------------------------------------------------------


def _option(machine: Machine, item: str, found: dict[str, Finding], confirmed: tuple[str, ...]) -> Option:
    """Return the row of one item."""
    seen = checklist.seen(machine, item)
    findings = tuple(found[code] for code in checklist.CODES.get(item, ()) if code in found)
    mark, tag = seen.mark, seen.tag
    if findings:
        finding = findings[0]
        mark = "info" if finding.severity == "info" else "catch"
        tag = phrase(f"firmware.finding.{finding.code}.tag", **finding.params)
    if item in confirmed and mark in ("unknown", "catch"):
        mark, tag = "info", phrase("firmware.tag.noted")
    notes = [Note(label="measured", text=one) for one in seen.measured]
    translates = item == "iommu" and machine.firmware.iommu == "on"
    if (mark in ("catch", "unknown") or translates) and not guest(machine):
        notes += _menu_notes(machine, item)
    elif item in _LOADED and not guest(machine):
        notes += _linux_notes(machine, item)
    if item == "c-states":
        notes.append(Note(label="source", text=guide.limit("idle-latency").source))
    return Option(
        value=item,
        label=phrase(f"firmware.row.{item}"),
        mark=mark,
        tag=tag,
        sentences=(phrase(f"firmware.explain.{item}"), *_besides(machine, item, findings)),
        findings=findings,
        notes=tuple(notes),
        patch=_toggled(item, confirmed),
    )


def _besides(machine: Machine, item: str, findings: tuple[Finding, ...]) -> tuple[Words, ...]:
    """Return what is to be said of an item on this machine only: an IOMMU that translates between cards that copy through memory anyway."""
    harmless = item == "iommu" and machine.firmware.iommu == "on" and not findings and len(judged(machine)) > 1
    return (phrase("firmware.explain.iommu-no-peers"),) if harmless and not guest(machine) else ()


def _toggled(item: str, confirmed: tuple[str, ...]) -> Patch:
    """Return the patch that confirms an item, or takes its confirmation back."""
    left = tuple(one for one in confirmed if one != item) if item in confirmed else (*confirmed, item)
    return {"firmware.acknowledged": left or None}


def _menu_notes(machine: Machine, item: str) -> list[Note]:
    """Return where this board keeps the switch, the way around it in Linux, and where the path is written."""
    board, menus = paths(machine, item)
    if menus and board is not None:
        notes = [Note(label="bios", text=where(board.vendor, one)) for one in menus[:2]]
        notes.append(Note(label="after", text=phrase("firmware.note.after", key=board.setup_key)))
        notes.append(Note(label="source", text=menus[0].source))
    else:
        notes = [Note(label="bios", text=unlisted(machine, item))]
    return notes + _linux_notes(machine, item)


def paths(machine: Machine, item: str) -> tuple[boards.Board | None, tuple[boards.Menu, ...]]:
    """Return this board's family and where it keeps a switch; `None` and empty where no source says so."""
    told = machine.firmware
    names = machine.told.names or tuple(name for name in (told.vendor, told.board, told.product) if name)
    board = boards.board(names, portable=machine.told.portable)
    return board, boards.menus(board, item, machine.cpu.vendor) if board else ()


def unlisted(machine: Machine, item: str) -> Words:
    """Return what to look for where no path is known; few laptops have such a switch at all."""
    word = "laptop" if machine.told.portable and item not in _ON_LAPTOPS else "manual"
    return phrase(f"firmware.note.{word}", entry=ENTRIES[item])


def where(vendor: str, menu: boards.Menu) -> Words:
    """Return a path in one line, with the boards that it was seen on; where nobody but a third one says so, with that."""
    seen = menu.seen if menu.seen.startswith(vendor) else f"{vendor} {menu.seen}".rstrip()
    path = f"{seen}: {menu.path} > {menu.entry}"
    return phrase("firmware.note.by-eye", path=path) if menu.by_eye else path


def _linux_notes(machine: Machine, item: str) -> list[Note]:
    """Return what a person types in Linux instead, or to look at it."""
    if item == "acs":
        return [Note(label="linux", text=f"setpci -s {one} ECAP_ACS+0x6.w=0000", command=True) for one in _redirecting(machine)[:1]]
    if item == "power":
        return _power_notes(machine)
    if item in _LOADED:
        return _look_notes(machine, _LOADED[item])
    if item == "iommu":
        return [Note(label="linux", text=phrase("firmware.note.kernel-line", parameter="iommu=pt"))]
    command = _LINUX.get(item)
    return [Note(label="linux", text=command, command=True)] if command else []


def _look_notes(machine: Machine, file: str) -> list[Note]:
    """Return how a link is looked at while its card works; empty without a card."""
    cards = [card.address for card in judged(machine) if card.address]
    if not cards:
        return []
    return [
        Note(label="linux", text=f"cat /sys/bus/pci/devices/{cards[0]}/{file}", command=True),
        Note(label="after", text=phrase("firmware.note.under-load")),
    ]


def _power_notes(machine: Machine) -> list[Note]:
    """Return how a lowered limit is raised again, or else how limits, fans and slow-downs are looked at."""
    lowered = ((card.address, usual) for card, _, usual in power.lowered(machine) if card.vendor == "nvidia" and card.address)
    raised = [f"nvidia-smi -i {address} -pl {usual:.0f}" for address, usual in lowered]
    if not raised and any(card.vendor == "nvidia" for card in judged(machine)):
        raised = ["nvidia-smi -q -d POWER,PERFORMANCE"]
    return [Note(label="linux", text=one, command=True) for one in raised[:2]]


def _redirecting(machine: Machine) -> tuple[str, ...]:
    """Return the bridges that send copies between cards up to the processor."""
    return tuple(bridge.address for bridge in machine.bridges if bridge.redirects)


_LINUX: dict[str, str] = {
    "c-states": "cpupower idle-set -D 100",
    "governor": "cpupower frequency-set -g performance",
}
_ON_LAPTOPS = {"boot-mode", "secure-boot"}
"""What a laptop's BIOS lets its owner set too."""
_LOADED = {"pcie-generation": "current_link_speed", "pcie-width": "current_link_width"}
"""What counts only while the card works, and the file that says it then."""
ENTRIES: dict[str, str] = {
    "resizable-bar": "Re-Size BAR Support",
    "above-4g": "Above 4G Decoding",
    "pcie-generation": "PCIe Speed, Link Speed",
    "pcie-width": "PCIe Bifurcation",
    "c-states": "Global C-state Control, Package C State",
    "sr-iov": "SR-IOV Support",
    "iommu": "IOMMU, VT-d",
    "acs": "ACS Enable, PCIe ACS",
    "boot-mode": "CSM, Boot Mode",
    "secure-boot": "Secure Boot",
    "ecc": "ECC",
    "numa": "NUMA nodes per socket",
    "governor": "Power Profile",
    "power": "Fan Control, Power Limit, Performance Mode",
}
