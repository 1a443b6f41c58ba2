"""What a report says: facts, findings, the topology, the last run; every text goes through the redaction on its way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import msgspec

from steps import plot
from steps.detect import measures, topology, ways
from steps.model.base import Phrase, Record, Words, phrase
from steps.model.finding import Finding
from steps.model.machine import Machine, judged
from steps.model.run import RunState
from steps.model.verdict import Rung
from steps.report import drawing
from steps.report.block import Block, Heading, Output, Picture, Prose, Report, Table
from steps.text import Language, say, say_finding, say_rung

Clean = Callable[[str], str]
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|\r(?!\n)|\x08")
_MARKS = {"error": "✗", "warning": "!", "info": "·", "ok": "✓"}
TAIL = 60
"""How many lines of the last run's log are handed over."""


class ToldRun(Record):
    """The last run: how it ended, what it proved, and the end of the log that matters most."""

    id: str
    state: RunState
    titles: tuple[tuple[str, Words], ...]
    """The plan's actions: id and title."""
    verdict: tuple[Rung, ...] = ()
    log_of: str | None = None
    """The action whose log follows; `None` when there is none."""
    log: str = ""


class Told(Record):
    """Everything a report is made from."""

    machine: Machine
    findings: tuple[Finding, ...]
    run: ToldRun | None = None
    version: str = ""
    made: str = ""
    """The day it was made."""


def report(told: Told, language: Language, clean: Clean) -> Report:
    """Return the report in one language, with `clean` applied to every text from the machine."""
    writer = _Writer(told, language, clean)
    return Report(title=writer.word("title", machine=writer.headline()), language=language, blocks=tuple(writer.blocks()))


def plain(log: str) -> str:
    """Return the last lines of a log without what a terminal would obey; of a line that was overwritten only its last state."""
    kept = [line.rsplit("\r", 1)[-1] for line in log.replace("\r\n", "\n").split("\n")]
    return "\n".join(_CONTROL.sub("", line) for line in kept[-TAIL:])


class _Writer:
    """Writes the sections in their order."""

    def __init__(self, told: Told, language: Language, clean: Clean) -> None:
        self._told = told
        self._language: Language = language
        self._clean = clean

    def word(self, key: str, /, **params: str | int) -> str:
        """Return one of the report's own words."""
        return self._say(Phrase(key=f"report.{key}", params=params))

    def _say(self, words: Words) -> str:
        return self._clean(say(self._language, words))

    def headline(self) -> str:
        """Return accelerators and system in a few names."""
        cards = measures.cards(judged(self._told.machine)) if judged(self._told.machine) else ""
        return self._clean(" · ".join(part for part in (cards, self._told.machine.os.name or "") if part)) or self.word("unknown")

    def blocks(self) -> Iterator[Block]:
        """Yield every section that has something to say."""
        yield Prose(text=self.word("made", version=self._told.version, day=self._told.made))
        yield Heading(text=self.word("section.machine"))
        yield Table(rows=tuple(self._facts()))
        yield from self._topology()
        yield from self._findings()
        yield from self._unknown()
        yield from self._run()

    # --- the machine --------------------------------------------------------------------------------

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Yield the facts as names and values; a value that is not known says so."""
        machine = self._told.machine
        os, firmware, cpu, memory, driver = machine.os, machine.firmware, machine.cpu, machine.memory, machine.driver
        yield self._row("os", os.name, os.kernel, os.arch)
        yield self._row("board", firmware.vendor, firmware.board or firmware.product, firmware.bios_version, firmware.bios_date)
        switches = {
            "Secure Boot": firmware.secure_boot and self._say(phrase(f"cli.secure-boot.{firmware.secure_boot}")),
            "IOMMU": {"on": True, "off": False}.get(firmware.iommu or "", firmware.iommu),
            "Above 4G": firmware.above_4g,
            "Resizable BAR": firmware.resizable_bar,
        }
        yield self._row("switches", *(f"{name}: {self._state(value)}" for name, value in switches.items()))
        cores = None if cpu.cores is None else phrase("hardware.detail.cores", cores=cpu.cores)
        yield self._row("cpu", cpu.model, cores, cpu.l3_bytes and f"L3 {measures.cache(cpu.l3_bytes)}", cpu.governor)
        size = None if memory.total_bytes is None else measures.memory(memory.total_bytes)
        yield self._row("memory", size, memory.type, memory.ecc and "ECC")
        for card in machine.accelerators:
            size = None if card.memory_bytes is None else measures.card_memory(card.memory_bytes)
            yield self._row("gpu", card.address, card.name, card.pci_id, card.architecture, size, measures.card_link(card))
        budget = ways.lanes(machine)
        if judged(machine) and budget is not None:
            yield self.word("fact.lanes"), self.word("lanes", lanes=budget.all, cards=budget.cards, disks=budget.disks)
        for disk in machine.disks:
            yield self._row("disk", disk.name, disk.model, disk.bytes and measures.storage(disk.bytes), disk.tier)
        for network in machine.networks:
            if network.kind in ("ethernet", "infiniband", "wifi"):
                rate = measures.speed(network.speed_mbps) if network.speed_mbps else None
                yield self._row("network", network.name, network.driver, rate)
        yield self._row(
            "driver",
            phrase(f"cli.driver-state.{driver.state}"),
            driver.kernel_version or driver.library_version,
            driver.flavor,
            driver.source,
        )
        for toolkit in machine.toolkits:
            yield self._row("cuda", toolkit.version, toolkit.path, toolkit.source)
        for environment in machine.environments:
            inside = (f"{name} {version}" for name, version in environment.frameworks.items())
            yield self._row("environment", environment.path or environment.name, environment.python, *inside)

    def _row(self, key: str, *parts: Words | bool | int | None) -> tuple[str, str]:
        """Return one fact; numbers and switches among the parts stand for what is said elsewhere or not at all."""
        said = [self._say(part) for part in parts if isinstance(part, str | Phrase) and part]
        return self.word(f"fact.{key}"), " · ".join(said) or self.word("unknown")

    def _state(self, value: str | bool | None) -> str:
        """Return a switch in a word."""
        if value is None:
            return self.word("unknown")
        return value if isinstance(value, str) else self.word("on" if value else "off")

    def _topology(self) -> Iterator[Block]:
        """Yield the drawn tree, and the table of pairs where several cards are."""
        roots = tuple(_cleaned(root, self._clean) for root in topology.forest(self._told.machine))
        if roots:
            yield Heading(text=self.word("section.topology"))
            yield Picture(svg=drawing.svg(roots), lines=topology.drawn(roots, 120))
            if any(line.endswith("!") for line in topology.drawn(roots, 120)):
                yield Prose(text=self.word("narrow"))
        pairs = topology.matrix(self._told.machine)
        if pairs:
            yield Table(heading=pairs[0], rows=pairs[1:])

    # --- what was found ---------------------------------------------------------------------------------

    def _findings(self) -> Iterator[Block]:
        """Yield the findings, the gravest first, with their reasons and remedies."""
        yield Heading(text=self.word("section.findings"))
        found = sorted((one for one in self._told.findings if one.severity != "ok"), key=lambda one: list(_MARKS).index(one.severity))
        if not found:
            yield Prose(text=self.word("nothing"))
            return
        heading = tuple(self.word(f"column.{name}") for name in ("code", "says", "because", "remedy"))
        yield Table(heading=heading, rows=tuple(self._finding(one) for one in found))

    def _finding(self, one: Finding) -> tuple[str, ...]:
        """Return a finding as a row."""
        because = "; ".join(self._say(fact) for fact in one.because)
        sentence, remedy = (self._clean(say_finding(self._language, one, part)) for part in ("sentence", "remedy"))
        return f"{_MARKS[one.severity]} {one.code}", sentence, because, remedy

    def _unknown(self) -> Iterator[Block]:
        """Yield what could not be known."""
        told = {(one.code, one.subject) for one in self._told.findings}
        gaps = [one for one in self._told.machine.gaps if (one.code, one.subject) not in told]
        if gaps:
            yield Heading(text=self.word("section.unknown"))
            yield Table(rows=tuple((one.code, self._clean(say_finding(self._language, one, "sentence"))) for one in gaps))

    # --- the last run -------------------------------------------------------------------------------------

    def _run(self) -> Iterator[Block]:
        """Yield how the last run went, what it proved, and the end of its log."""
        run = self._told.run
        if run is None:
            return
        yield Heading(text=self.word("section.run"))
        yield Prose(text=self.word("run", run=run.id, state=self._say(phrase(f"cli.run.{run.state.status}"))))
        yield Table(
            heading=tuple(self.word(f"column.{name}") for name in ("action", "state", "seconds", "why")), rows=tuple(self._actions(run))
        )
        if run.verdict:
            heading = tuple(self.word(f"column.{name}") for name in ("rung", "state", "detail", "measured", "expected", "why"))
            yield Table(heading=heading, rows=tuple(self._rung(rung) for rung in run.verdict))
            yield from self._figures(run.verdict)
        if run.log_of is not None:
            yield Prose(text=self.word("log", action=run.log_of))
            yield Output(text=self._clean(_readable(plain(run.log))))

    def _actions(self, run: ToldRun) -> Iterable[tuple[str, ...]]:
        """Yield the actions with how each ended."""
        for id, title in run.titles:
            state = run.state.actions.get(id)
            if state is None:
                yield self._say(title), self.word("waiting"), "", ""
                continue
            seconds = "" if state.started is None or state.ended is None else f"{state.ended - state.started:.0f}"
            yield self._say(title), self._say(phrase(f"run.word.{state.status}")), seconds, self._say(state.error or "")

    def _rung(self, rung: Rung) -> tuple[str, ...]:
        """Return one rung of the proof."""
        name, state = say_rung(self._language, rung.id), self._say(phrase(f"cli.rung.{rung.state}"))
        measured, expected = ("" if one is None else plot.measure(one, rung.unit) for one in (rung.value, rung.expected))
        return name, state, self._say(rung.detail), measured, expected, self._say(rung.because)

    def _figures(self, verdict: tuple[Rung, ...]) -> Iterator[Block]:
        """Yield the figures of the proof as bars, where there are any to compare."""
        bars = plot.bars(verdict)
        if not bars:
            return
        names = tuple(say_rung(self._language, bar.rung) for bar in bars)
        lines = tuple(f"{name:<16}  {plot.drawn(bar, 40)}  {plot.figure(bar)}" for bar, name in zip(bars, names, strict=True))
        yield Prose(text=self.word("figures"))
        yield Picture(svg=drawing.plot(bars, names), lines=lines)


def _readable(log: str) -> str:
    """Return a log without what the proof writes for programs: its document, whose rungs stand in a table above."""
    return "\n".join(line for line in log.split("\n") if not (line.startswith("{") and '"bringup/verify"' in line[:80]))


def _cleaned(node: topology.Node, clean: Clean) -> topology.Node:
    """Return a tree whose names are clean: an interface may be called after its machine."""
    children = tuple(_cleaned(child, clean) for child in node.children)
    return msgspec.structs.replace(node, name=clean(node.name), children=children)
