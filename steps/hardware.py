"""The hardware step: the machine as it is, held against the guide."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from steps.catalog import guide
from steps.compat import firmware
from steps.compat import hardware as rules
from steps.compat.case import architecture_title
from steps.detect import measures, topology, ways
from steps.model.action import AnyAction
from steps.model.base import Phrase, Words, phrase
from steps.model.choice import Choice, Mark, Note, Option
from steps.model.finding import Finding, Patch, Severity, StepKey
from steps.model.hardware import Accelerator
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile

KEY: StepKey = "hardware"


def applies(machine: Machine) -> bool:
    """Every machine has hardware to look at."""
    return True


def intro(machine: Machine, answers: Profile) -> Words:
    """Return the goal, and how many measures fall short of it: the rows that are marked so, remarks not counted."""
    count, goal = sum(option.mark == "catch" for option in choices(machine, answers)[0].options), say_goal(answers)
    how = {0: "enough", 1: "short-one"}.get(count, "short")
    return Phrase(key=f"hardware.intro.{how}.{goal}", params={"count": count})


def choices(machine: Machine, answers: Profile) -> tuple[Choice, ...]:
    """Return one group of facts."""
    found = {one.code: one for one in _graded(machine, answers)}
    rows = (
        _gpu(machine, found),
        _row("cpu", _cores(machine), found, ("cpu-cores-low",), (machine.cpu.model or "",)),
        _row("l3", _optional(machine.cpu.l3_bytes, measures.cache), found, ("cpu-l3-small",), (phrase("hardware.explain.l3"),)),
        _pcie(machine, found),
        _row("memory", _memory(machine), found, ("memory-small", "memory-no-ecc"), (phrase("hardware.explain.memory"),)),
        _disks(machine, found, "nvme", "storage-no-nvme"),
        _disks(machine, found, "data", "storage-no-data-tier"),
        _disks(machine, found, "archive", "storage-no-backup-tier"),
        _nvlink(machine, found),
        _network(machine),
    )
    return (Choice(key="hardware", kind="facts", options=tuple(row for row in rows if row is not None)),)


def check(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what falls short of the guide, and what could not be known."""
    return (*_graded(machine, answers), *(gap for gap in machine.gaps if gap.step == KEY))


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Hardware is bought, not installed."""
    return ()


GOALS = ("learn", "fine-tune", "train", "many-gpus")
"""What a machine may be wanted for, the least demanding first."""


def next_goal(answers: Profile) -> Patch:
    """Return the answer that takes the goal after the present one, the first after the last."""
    return {f"{KEY}.goal": GOALS[(GOALS.index(say_goal(answers)) + 1) % len(GOALS)]}


def say_goal(answers: Profile) -> str:
    """Return what the machine is wanted for; training where nothing was said."""
    return answers.hardware.goal or "train"


def _graded(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what falls short, as grave as it is for the goal; what does not matter for it is left out."""
    goal = guide.goal(say_goal(answers))
    graded: list[Finding] = []
    for one in rules.judge_hardware(machine):
        if one.code in goal.none:
            continue
        severity: Severity = "warning" if one.code in goal.much else "info" if one.code in goal.some else one.severity
        graded.append(msgspec.structs.replace(one, severity=severity))
    return tuple(graded)


def _row(
    value: str,
    detail: Words | None,
    found: dict[str, Finding],
    codes: tuple[str, ...],
    sentences: tuple[Words, ...] = (),
    *,
    notes: tuple[Note, ...] = (),
) -> Option:
    """Return one fact row: unknown without a detail, short with a finding, else enough."""
    mine = tuple(found[code] for code in codes if code in found)
    mark: Mark = "unknown" if detail is None else "good"
    tag: Words = phrase("hardware.tag.unknown") if detail is None else phrase("hardware.tag.enough")
    if mine:
        worst = next((one for one in mine if one.severity != "info"), mine[0])
        mark = "info" if worst.severity == "info" else "catch"
        tag = phrase(f"hardware.finding.{worst.code}.tag", **worst.params)
    told = tuple(
        note
        for one in mine[:1]
        for note in (
            Note(label="matters", text=phrase(f"hardware.matters.{'some' if one.severity == 'info' else 'much'}")),
            Note(label="change", text=phrase(f"hardware.finding.{one.code}.remedy", **one.params)),
        )
    )
    sources = tuple(Note(label="source", text=one.source) for one in mine[:1] if one.source) or _wanted(value)
    said = tuple(sentence for sentence in sentences if sentence)
    return Option(
        value=value,
        label=phrase(f"hardware.row.{value}"),
        mark=mark,
        tag=tag,
        detail=detail or "",
        sentences=said,
        findings=mine,
        notes=notes + told + sources,
    )


_MEASURED: dict[str, tuple[str, Callable[[int], str]]] = {
    "cpu": ("cpu-cores", str),
    "l3": ("cpu-l3", measures.cache),
    "pcie": ("cpu-lanes", str),
    "gpu": ("gpu-memory", measures.memory),
    "memory": ("memory", measures.memory),
    "nvme": ("nvme", measures.storage),
    "data": ("data-tier", measures.storage),
    "archive": ("archive-tier", measures.storage),
}
"""Which demand of the guide a row is held against, and how its measure is said."""


def _wanted(row: str) -> tuple[Note, ...]:
    """Return what the guide wants of a row, and where it says so; empty for a row that the guide asks nothing of."""
    if row not in _MEASURED:
        return ()
    item, said = _MEASURED[row]
    demand = guide.demand(item)
    words = phrase(f"hardware.note.wanted-{row}" if said is str else "hardware.note.wanted", minimum=said(int(demand.minimum)))
    return (Note(label="from", text=words), Note(label="source", text=demand.source))


def _optional(value: int | None, said: Callable[[int], str]) -> str | None:
    """Return a measure in words; `None` stays `None`."""
    return None if value is None else said(value)


def _cores(machine: Machine) -> Words | None:
    """Return the cores in words."""
    return None if machine.cpu.cores is None else phrase("hardware.detail.cores", cores=machine.cpu.cores)


def _memory(machine: Machine) -> Words | None:
    """Return the memory's size, with ECC where that is known to be on."""
    if machine.memory.total_bytes is None:
        return None
    return measures.memory(machine.memory.total_bytes) + (" ECC" if machine.memory.ecc else "")


def _gpu(machine: Machine, found: dict[str, Finding]) -> Option:
    """Return the row of the accelerators, with the topology as its picture."""
    mine = judged(machine)
    notes = tuple(Note(label="from", text=f"PCI id {pci}") for pci in sorted({card.pci_id for card in mine if card.pci_id})[:2])
    within = [card for card in machine.accelerators if card.vendor == "nvidia" and card.integrated]
    if not mine and within:
        row = _row("gpu", measures.short_name(within[0]), found, (), (phrase("hardware.explain.gpu-within"),))
        return msgspec.structs.replace(row, mark="info", tag=phrase("hardware.tag.not-judged"), notes=())
    if not mine:
        others = tuple(measures.short_name(card) for card in machine.accelerators)
        return _row("gpu", phrase("hardware.detail.none"), found, ("no-accelerator",), (phrase("hardware.explain.gpu-none"), *others))
    facts = tuple(_card(machine, position) for position in _distinct(machine))
    codes = ("gpu-architecture-old", "gpu-memory-small")
    open_questions: tuple[Words, ...] = ()
    if any(card.architecture is None for card in mine):
        open_questions = (phrase("hardware.explain.architecture-unknown"),)
    elif any(card.memory_bytes is None for card in mine):
        open_questions = (phrase("hardware.explain.memory-unknown"),)
    row = _row("gpu", measures.cards(mine), found, codes, (*open_questions, *facts, " ", *topology.tree(machine)), notes=notes)
    if row.mark == "good" and open_questions:
        return msgspec.structs.replace(row, mark="unknown", tag=phrase("hardware.tag.unknown"))
    return row


def _distinct(machine: Machine) -> tuple[int, ...]:
    """Return the first position of each kind of judged card."""
    seen: dict[str, int] = {}
    for card in judged(machine):
        seen.setdefault(measures.short_name(card), machine.accelerators.index(card))
    return tuple(seen.values())


def _card(machine: Machine, position: int) -> Words:
    """Return one kind of card in a sentence."""
    card = machine.accelerators[position]
    parts = [measures.short_name(card)]
    parts += [architecture_title(card.architecture)] if card.architecture else []
    parts += [f"compute capability {card.compute_capability}"] if card.compute_capability else []
    parts += [measures.card_memory(card.memory_bytes)] if card.memory_bytes else []
    return ", ".join(parts)


def _pcie(machine: Machine, found: dict[str, Finding]) -> Option | None:
    """Return the row of the links; absent without a card, unknown where no slot was read."""
    mine = judged(machine)
    if not mine:
        return None
    beside = {chip.link for card in mine if (chip := guide.on_board(card.name)) is not None}
    known = sorted({said for card in mine if (said := measures.card_link(card))})
    if beside and beside == set(known):
        joined = ", ".join(known)
        return _row("pcie", joined, {}, (), (phrase("hardware.explain.on-board", link=joined),))
    detail = known[0] if known else None
    sentences: tuple[Words, ...] = (*known[1:], phrase("hardware.explain.idle")) if known else (phrase("hardware.explain.pcie-unknown"),)
    row = _row("pcie", detail, found, ("cpu-pcie-lanes-few",), (*sentences, *_lanes(machine)))
    narrow = bool(firmware.reduced(machine))
    if narrow and row.mark == "good":
        return msgspec.structs.replace(row, mark="info", tag=phrase("hardware.tag.see-bios"))
    return row


def _lanes(machine: Machine) -> tuple[Words, ...]:
    """Return the lane budget of the slots as they are filled; empty where the processor's lanes are not known."""
    budget = ways.lanes(machine)
    if budget is None:
        return ()
    said: list[Words] = [phrase("hardware.lanes.budget", lanes=budget.all, cards=budget.cards, disks=budget.disks)]
    if budget.chipset:
        said.append(phrase("hardware.lanes.chipset", count=budget.chipset))
    if budget.short:
        said.append(phrase("hardware.lanes.short", count=budget.short))
    slots = [f"{_place(card)} ×{card.pcie.width}/{card.pcie.max_width or '?'}" for card in judged(machine) if card.pcie and card.pcie.width]
    return (*said, phrase("hardware.lanes.slots", slots=", ".join(slots[:8]))) if slots else tuple(said)


def _place(card: Accelerator) -> str:
    """Return a card's address in its short form."""
    return (card.address or "-").removeprefix("0000:").removesuffix(".0")


def _disks(machine: Machine, found: dict[str, Finding], row: str, code: str) -> Option:
    """Return the row of one storage tier."""
    sizes = {
        "nvme": sum(one.bytes or 0 for one in machine.disks if one.tier == "nvme"),
        "data": rules.data_bytes(machine),
        "archive": rules.archive_bytes(machine),
    }
    empty: dict[str, Words] = {
        "nvme": phrase("hardware.detail.none"),
        "data": phrase("hardware.detail.no-ssd"),
        "archive": phrase("hardware.detail.no-hdd"),
    }
    size = sizes[row]
    detail: Words | None = measures.storage(size) if size else empty[row]
    hidden = any(one.tier in (None, "virtual", "raid") for one in machine.disks)
    if not machine.disks or (hidden and not size):
        detail = None
    told = ((one.name, measures.storage(one.bytes) if one.bytes else "", one.model) for one in machine.disks[:6])
    disks = tuple("  ".join(part for part in parts if part) for parts in told)
    return _row(row, detail, found, (code,), (phrase(f"hardware.explain.{row}"), *disks))


def _nvlink(machine: Machine, found: dict[str, Finding]) -> Option | None:
    """Return the row of NVLink where several cards could use it."""
    if sum(card.vendor == "nvidia" for card in judged(machine)) < 2:
        return None
    kinds = sorted({one.kind for one in machine.links if one.kind.startswith("NV")})
    detail: Words | None = ", ".join(kinds) or (phrase("hardware.detail.none") if "gpu-no-nvlink" in found else None)
    return _row("nvlink", detail, found, ("gpu-no-nvlink",), (phrase("hardware.explain.nvlink"), *topology.links(machine)[:8]))


def _network(machine: Machine) -> Option | None:
    """Return the row of the fastest real card that is up; it matters for several machines only, so it is never short."""
    real = [one for one in machine.networks if one.kind in ("ethernet", "infiniband", "wifi") and one.up]
    if not machine.networks:
        return None
    speeds = [one.speed_mbps for one in real if one.speed_mbps]
    detail = measures.speed(max(speeds)) if speeds else None
    sentences: tuple[Words, ...] = (phrase("hardware.explain.network"), *(f"{one.name}  {one.driver or ''}" for one in real[:4]))
    row = _row("network", detail, {}, (), sentences)
    if speeds and max(speeds) < 10_000:
        return msgspec.structs.replace(row, mark="info", tag=phrase("hardware.tag.one-box"))
    return row
