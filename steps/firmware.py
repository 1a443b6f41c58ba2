"""The firmware step: a BIOS checklist that measures itself; nothing here writes to hardware."""

from __future__ import annotations

from collections.abc import Callable

from steps.catalog import guide
from steps.compat import firmware as rules
from steps.detect.measures import short_name
from steps.model.action import AnyAction
from steps.model.base import Record, Words, phrase
from steps.model.choice import Choice, Mark, Note, Option
from steps.model.finding import Finding, Patch, StepKey
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile

KEY: StepKey = "firmware"


class Seen(Record):
    """What was measured of one item; a mark of "unknown" asks for the person's eyes."""

    mark: Mark
    tag: Words
    measured: tuple[Words, ...] = ()


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
    """Return the checklist; taking an item says that it was set or seen by eye."""
    found = {one.code: one for one in rules.judge_firmware(machine)}
    confirmed = answers.firmware.acknowledged or ()
    options = tuple(_option(machine, item, found, confirmed) for item in _PROBES)
    return (Choice(key="firmware.acknowledged", kind="facts", options=options, taken=confirmed),)


def check(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what the BIOS should be asked for; what a person has confirmed by eye is only a remark until it is measured again."""
    return (*rules.judge_firmware(machine), *(gap for gap in machine.gaps if gap.step == KEY))


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """The person changes the BIOS; bringup writes none of it."""
    return ()


# --- rows ---------------------------------------------------------------------------------------

_CODES: dict[str, str] = {
    "resizable-bar": "resizable-bar-off",
    "above-4g": "above-4g-off",
    "pcie-width": "pcie-width-reduced",
    "c-states": "c-states-deep",
    "iommu": "iommu-breaks-p2p",
    "secure-boot": "secure-boot-unsigned-module",
    "governor": "governor-not-performance",
}


def _option(machine: Machine, item: str, found: dict[str, Finding], confirmed: tuple[str, ...]) -> Option:
    """Return the row of one item."""
    seen = _seen(machine, item)
    finding = found.get(_CODES.get(item, ""))
    mark, tag = seen.mark, seen.tag
    if finding is not None:
        mark = "info" if finding.severity == "info" else "catch"
        tag = phrase(f"firmware.finding.{finding.code}.tag", **finding.params)
    if item in confirmed and mark in ("unknown", "catch"):
        mark, tag = "info", phrase("firmware.tag.noted")
    notes = [Note(label="measured", text=one) for one in seen.measured]
    translates = item == "iommu" and machine.firmware.iommu == "on"
    if (mark in ("catch", "unknown") or translates) and not rules.guest(machine):
        notes += _menu_notes(machine, item)
    return Option(
        value=item,
        label=phrase(f"firmware.row.{item}"),
        mark=mark,
        tag=tag,
        sentences=(phrase(f"firmware.explain.{item}"), *_besides(machine, item, finding)),
        findings=(finding,) if finding else (),
        notes=tuple(notes),
        patch=_toggled(item, confirmed),
    )


def _besides(machine: Machine, item: str, finding: Finding | None) -> tuple[Words, ...]:
    """Return what is to be said of an item on this machine only: an IOMMU that translates between cards that copy through memory anyway."""
    harmless = item == "iommu" and machine.firmware.iommu == "on" and finding is None and len(judged(machine)) > 1
    return (phrase("firmware.explain.iommu-no-peers"),) if harmless and not rules.guest(machine) else ()


def _toggled(item: str, confirmed: tuple[str, ...]) -> Patch:
    """Return the patch that confirms an item, or takes its confirmation back."""
    left = tuple(one for one in confirmed if one != item) if item in confirmed else (*confirmed, item)
    return {"firmware.acknowledged": left or None}


def _menu_notes(machine: Machine, item: str) -> list[Note]:
    """Return where this board keeps the switch, the way around it in Linux, and where the path is written."""
    board = guide.board(machine.firmware.vendor, machine.firmware.board, machine.firmware.product)
    where = guide.menu(board.vendor, item) if board else None
    if where is not None and board is not None:
        notes = [Note(label="bios", text=f"{board.vendor}: {where.path} > {where.entry}")]
        notes.append(Note(label="after", text=phrase("firmware.note.after", key=board.setup_key)))
        notes.append(Note(label="source", text=where.source))
    else:
        notes = [Note(label="bios", text=phrase("firmware.note.manual", entry=_ENTRIES[item]))]
    command = _LINUX.get(item)
    if command:
        notes.insert(1, Note(label="linux", text=command, command=True))
    return notes


_LINUX: dict[str, str] = {
    "c-states": "cpupower idle-set -D 100",
    "governor": "cpupower frequency-set -g performance",
    "iommu": "iommu=pt on the kernel command line",
    "pcie-generation": "nvidia-smi --query-gpu=pcie.link.gen.gpucurrent --format=csv",
}
_ENTRIES: dict[str, str] = {
    "resizable-bar": "Re-Size BAR Support",
    "above-4g": "Above 4G Decoding",
    "pcie-generation": "PCIe Speed, Link Speed",
    "pcie-width": "PCIe Bifurcation",
    "c-states": "Global C-state Control, Package C State",
    "sr-iov": "SR-IOV Support",
    "iommu": "IOMMU, VT-d",
    "secure-boot": "Secure Boot",
    "ecc": "ECC",
    "numa": "NUMA nodes per socket",
    "governor": "Power Profile",
}


def _seen(machine: Machine, item: str) -> Seen:
    """Return what was measured of one item; in a guest the host's firmware decides and nothing applies."""
    if rules.guest(machine) and item not in ("secure-boot", "numa", "governor"):
        return Seen(mark="info", tag=phrase("firmware.tag.host"), measured=(phrase("firmware.measured.guest"),))
    return _PROBES[item](machine)


def _resizable_bar(machine: Machine) -> Seen:
    """Return whether the whole memory of the cards can be seen at once, by those that offer it."""
    if machine.firmware.resizable_bar is False and not rules.resizable(machine):
        return Seen(mark="info", tag=phrase("firmware.tag.not-offered"), measured=_bars(machine))
    return _switch(machine.firmware.resizable_bar, _bars(machine))


def _above_4g(machine: Machine) -> Seen:
    """Return whether card memory is mapped above 4 GB."""
    return _switch(machine.firmware.above_4g, ())


def _switch(on: bool | None, measured: tuple[Words, ...]) -> Seen:
    """Return a switch as on, off, or for the eyes."""
    if on is None:
        return by_eye()
    return Seen(mark="good" if on else "catch", tag=phrase("firmware.tag.on") if on else phrase("firmware.tag.off"), measured=measured)


def by_eye() -> Seen:
    """Return what stands for an item that no probe could read."""
    return Seen(mark="unknown", tag=phrase("firmware.tag.by-eye"))


def _bars(machine: Machine) -> tuple[Words, ...]:
    """Return the memory window of each judged card."""
    return tuple(f"BAR1 {card.address} = {card.bar1_bytes >> 20} MB" for card in judged(machine) if card.bar1_bytes)[:4]


def _generation(machine: Machine) -> Seen:
    """Return what the links can do; what they do now is seen under load only."""
    able = [(card, card.pcie.max_generation) for card in judged(machine) if card.pcie and card.pcie.max_generation]
    if not judged(machine):
        return Seen(mark="info", tag=phrase("firmware.tag.no-gpu"))
    if not able:
        return by_eye()
    least = min(generation for _, generation in able)
    measured = tuple(f"{card.address} {short_name(card)}: Gen{generation}" for card, generation in able)[:4]
    return Seen(
        mark="good" if least >= 4 else "info",
        tag=phrase("firmware.tag.able", generation=least),
        measured=(*measured, phrase("firmware.measured.idle")),
    )


def _width(machine: Machine) -> Seen:
    """Return how many lanes the cards have now."""
    links = [(card, card.pcie.width, card.pcie.max_width) for card in judged(machine) if card.pcie and card.pcie.width]
    if not judged(machine):
        return Seen(mark="info", tag=phrase("firmware.tag.no-gpu"))
    if not links:
        return by_eye()
    measured = tuple(f"{card.address} {short_name(card)}: ×{width} / ×{most or '?'}" for card, width, most in links)[:4]
    return Seen(mark="good", tag=f"×{min(width for _, width, _ in links)}", measured=measured)


def _sleep(machine: Machine) -> Seen:
    """Return how long the deepest allowed sleep takes to wake from."""
    state = rules.deepest(machine)
    if state is None and machine.cpu.idle_driver == "none":
        return Seen(mark="good", tag=phrase("firmware.tag.none"), measured=("cpuidle: none",))
    if state is None:
        return by_eye()
    states = tuple(f"{one.name}: {one.latency_us} µs" for one in machine.cpu.idle_states or () if one.latency_us)[-4:]
    return Seen(mark="good", tag=f"{state.latency_us} µs", measured=states)


def _virtual_functions(machine: Machine) -> Seen:
    """Return whether devices are split; only virtual machines want that."""
    sriov = machine.firmware.sriov
    if sriov is None:
        return Seen(mark="info", tag=phrase("firmware.tag.not-needed"))
    measured: Words = phrase("firmware.measured.sriov", capable=len(sriov.capable), enabled=sriov.enabled or 0)
    tag = phrase("firmware.tag.on") if sriov.enabled else phrase("firmware.tag.not-needed")
    return Seen(mark="info", tag=tag, measured=(measured,))


def _iommu(machine: Machine) -> Seen:
    """Return whether the IOMMU translates."""
    return _known(machine.firmware.iommu, "iommu")


def _secure_boot(machine: Machine) -> Seen:
    """Return whether only signed modules are loaded."""
    return _known(machine.firmware.secure_boot, "secure-boot")


def _known(value: str | None, item: str) -> Seen:
    """Return a value that the kernel names."""
    if value is None:
        return by_eye()
    calm = value in ("off", "passthrough", "disabled", "unsupported")
    return Seen(mark="good" if calm else "info", tag=phrase(f"firmware.value.{item}.{value}"))


def _ecc(machine: Machine) -> Seen:
    """Return whether memory corrects errors."""
    if machine.memory.ecc is None:
        return by_eye()
    measured = (machine.memory.type,) if machine.memory.type else ()
    on = machine.memory.ecc
    return Seen(
        mark="good" if on else "info", tag=phrase("firmware.tag.on") if on else phrase("firmware.tag.none-fitted"), measured=measured
    )


def _numa(machine: Machine) -> Seen:
    """Return the memory nodes, and which card hangs on which."""
    nodes = machine.cpu.numa_nodes
    if nodes is None:
        return by_eye()
    cards = tuple(
        f"{card.address}: node {card.numa_node}" for card in judged(machine) if card.numa_node is not None and card.numa_node >= 0
    )
    tag = phrase("firmware.tag.one-node") if nodes == 1 else phrase("firmware.tag.nodes", count=nodes)
    return Seen(mark="good" if nodes == 1 else "info", tag=tag, measured=cards[:4] if nodes > 1 else ())


def _governor(machine: Machine) -> Seen:
    """Return who decides the clock."""
    governor = machine.cpu.governor
    if governor is None:
        return Seen(mark="info", tag=phrase("firmware.tag.host")) if rules.guest(machine) else by_eye()
    return Seen(mark="good" if governor == "performance" else "info", tag=governor[:11])


_PROBES: dict[str, Callable[[Machine], Seen]] = {
    "resizable-bar": _resizable_bar,
    "above-4g": _above_4g,
    "pcie-generation": _generation,
    "pcie-width": _width,
    "c-states": _sleep,
    "sr-iov": _virtual_functions,
    "iommu": _iommu,
    "secure-boot": _secure_boot,
    "ecc": _ecc,
    "numa": _numa,
    "governor": _governor,
}
"""The checklist in the order of the screen."""
