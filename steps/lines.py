"""Facts, findings and plans as readable lines for a terminal without a screen."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from steps import plot
from steps.detect import measures
from steps.managers.shown import brief, line, shown
from steps.model.action import AnyAction
from steps.model.base import Param, Words, phrase
from steps.model.finding import Finding
from steps.model.machine import Machine
from steps.model.plan import Plan, digest
from steps.model.profile import EnvironmentAnswers, as_tables
from steps.model.run import RunSummary
from steps.model.verdict import Rung, reach
from steps.nodes import Meeting, launch_line
from steps.text import Language, say, say_finding, say_rung

if TYPE_CHECKING:
    from steps.catalog.tables import Table
    from steps.compat.solve import Recommendation
    from steps.knowledge.update import Update

Lines = Iterable[str]
_GIB = 1 << 30


def facts(machine: Machine, language: Language) -> Iterator[str]:
    """Yield what was detected, one fact a line."""
    unknown = say(language, phrase("cli.unknown"))

    def row(key: str, *parts: str | None) -> str:
        return f"{padded(say(language, phrase(f'cli.fact.{key}')), 13)}{' · '.join(part for part in parts if part) or unknown}"

    def word(table: str, value: str | None) -> str | None:
        return None if value is None else say(language, phrase(f"cli.{table}.{value}"))

    os, firmware, cpu, memory, driver = machine.os, machine.firmware, machine.cpu, machine.memory, machine.driver
    yield row("os", os.name, os.kernel, os.arch)
    yield row("board", firmware.vendor, firmware.board or firmware.product, firmware.bios_version)
    yield row("secure-boot", word("secure-boot", firmware.secure_boot))
    cores = phrase("cli.cores", cores=cpu.cores, threads=cpu.threads or cpu.cores) if cpu.cores else ""
    yield row("cpu", cpu.model, say(language, cores))
    yield row("memory", measures.memory(memory.total_bytes) if memory.total_bytes else None, memory.type, "ECC" if memory.ecc else None)
    for disk in machine.disks:
        yield row("disk", disk.name, disk.model, size(disk.bytes), disk.tier)
    for network in machine.networks:
        if network.kind not in ("loopback", "virtual"):
            speed = f"{network.speed_mbps} Mbit/s" if network.speed_mbps else None
            yield row("network", network.name, network.kind, speed, word("link", {True: "up", False: "down", None: None}[network.up]))
    for one in machine.accelerators:
        memory_size = size(one.memory_bytes, binary=True)
        yield row(
            "gpu", one.address, one.name, one.pci_id, one.architecture, one.compute_capability or one.gfx, memory_size, one.kernel_driver
        )
    if not machine.accelerators:
        yield row("gpu", say(language, phrase("cli.no-gpu")))
    yield row("driver", word("driver-state", driver.state), driver.kernel_version, driver.flavor, driver.source)
    for key, parts in _around_the_driver(machine):
        yield row(key, *parts)
    for toolkit in machine.toolkits:
        # ROCm is AMD's toolkit; both are listed as one kind of fact.
        yield row("rocm" if (toolkit.path or "").startswith("/opt/rocm") else "cuda", toolkit.version, toolkit.path)
    for environment in machine.environments:
        frameworks = (f"{name} {version}" for name, version in environment.frameworks.items())
        yield row("python-env", environment.path, environment.python, *frameworks)
    for gap in machine.gaps:
        yield f"{padded(say(language, phrase('cli.mark.unknown')), 13)}{say_finding(language, gap, 'sentence')}"


def padded(text: str, cells: int) -> str:
    """Return `text` with blanks to so many cells, at least one."""
    return text + " " * max(1, cells - cells_of(text))


def shortened(text: str, cells: int) -> str:
    """Return a text in at most so many cells: a title may hold a whole address."""
    if cells_of(text) <= cells:
        return text
    kept = text
    while cells_of(kept) > cells - 1:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def cells_of(text: str) -> int:
    """Return how many cells a text takes in a monospaced font: a Han character takes two."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


def _around_the_driver(machine: Machine) -> Iterator[tuple[str, tuple[str | None, ...]]]:
    """Yield the module of each kernel, who uses the accelerators, and the RDMA ports."""
    for module in machine.driver.modules:
        yield "module", (module.kernel, module.version or ("-" if module.present is False else None), module.flavor, module.dkms)
    for user in machine.users or ():
        yield "used-by", (f"{user.name or '?'} ({user.pid})", " ".join(user.devices), user.container)
    for port in machine.infiniband:
        yield "rdma", (f"{port.device}/{port.port}", port.interface, port.link_layer, port.state)


def size(count: int | None, *, binary: bool = False) -> str | None:
    """Return a size in bytes as people know it: memory in binary gigabytes, disks in decimal ones; `None` when it is not known."""
    if count is None:
        return None
    gigabytes = count / (_GIB if binary else 1e9)
    if binary:
        return f"{gigabytes:.0f} GB" if gigabytes >= 10 else f"{gigabytes:.1f} GB"
    return f"{gigabytes / 1000:.1f} TB" if gigabytes >= 1000 else f"{gigabytes:.0f} GB"


_EXPLAINED = frozenset({"older-release"})
"""No fault, and yet not what one expects: why is said too."""


def findings(found: Iterable[Finding], language: Language) -> Iterator[str]:
    """Yield each finding with its reasons; `ok` ones last and short."""
    ordered = sorted(found, key=lambda one: ("error", "warning", "info", "ok").index(one.severity))
    if not ordered:
        yield say(language, phrase("cli.nothing-found"))
    for one in ordered:
        word = say(language, phrase(f"cli.severity.{one.severity}"))
        yield f"{padded(word, 9)}{one.code:<28}{say_finding(language, one, 'sentence')}"
        if one.severity in ("error", "warning") or one.code in _EXPLAINED:
            for fact in one.because:
                yield f"{'':<9}{say(language, phrase('cli.because'))} {say(language, fact)}"
            if remedy := say_finding(language, one, "remedy"):
                yield f"{'':<9}{remedy}"
            if one.source:
                yield f"{'':<9}{say(language, phrase('cli.source'))} {one.source}"


def advice(found: Recommendation, language: Language) -> Iterator[str]:
    """Yield the recommended profile, or the conflict and the nearest wish that can be met."""
    if found.choices is None:
        yield say(language, phrase("cli.conflict"))
        yield from (f"  {say(language, fact)}" for fact in found.conflict)
        if found.nearest is not None:
            yield say(language, phrase("cli.nearest"))
    chosen = found.choices or found.nearest
    if chosen is not None:
        for table, entries in as_tables(chosen).items():
            if isinstance(entries, dict):
                yield from (f"  {table}.{key} = {value}" for key, value in entries.items())
    yield from findings((one for one in found.findings if one.severity != "ok"), language)


def plan(made: Plan, found: Iterable[Finding] | None, language: Language, *, scripts: bool = False) -> Iterator[str]:
    """Yield the numbered actions with their commands and sizes; `found` are its findings, `None` where nobody looked for any.

    `scripts` shows whole what a command carries, else words say it.
    """
    asked, found = found is not None, tuple(found or ())
    if not made.actions:
        forbidden = any(one.severity == "error" for one in found)
        # An environment is made for what goes into it: its name or its Python alone asks for nothing.
        alone = made.profile.environment != EnvironmentAnswers() and not made.profile.frameworks
        yield say(language, phrase(f"cli.{'nothing-possible' if forbidden else 'environment-alone' if alone else 'nothing-to-do'}"))
    unsure = {one.params.get("action"): one for one in found if one.code == "unverified"}
    cut = False
    for number, action in enumerate(made.actions, start=1):
        yield f"{number:>3}  {say(language, action.title)}"
        if action.id in unsure:
            reasons = " ".join(say(language, reason) for reason in unsure[action.id].because)
            yield f"       {say(language, phrase('cli.unverified'))}: {reasons}"
        command = shown(action)
        said = command if scripts else brief(command)
        if said != command and action.why:
            yield f"       {say(language, action.why)}"
        if command:
            yield f"       {'#' if action.by == 'root' else '$'} {line(said)}"
        cut = cut or said != command
    if cut:
        yield say(language, phrase("cli.scripts-cut"))
    if made.actions:
        yield say(language, phrase("cli.plan-end", digest=digest(made)[:8], **_totals(made.actions)))
    if asked:
        yield from findings((one for one in found if one.severity in ("error", "warning")), language)


def _totals(actions: Iterable[AnyAction]) -> dict[str, Param]:
    """Return what the actions cost together: how much to fetch, and minutes."""
    listed = tuple(actions)
    return {
        "size": measures.download(sum(one.download_bytes or 0 for one in listed)),
        "minutes": max(1, round(sum(one.seconds or 0 for one in listed) / 60)),
        "count": len(listed),
    }


def request(made: Plan, language: Language) -> Iterator[str]:
    """Yield what a person without root hands to the administrator: the root actions as commands, then what they can do alone."""
    yield say(language, phrase("cli.request.head", machine=made.target.name))
    for action in made.actions:
        if action.by == "root":
            yield f"  - {say(language, action.title)}"
            command = shown(action)
            if command:
                yield f"      # {shlex.join(command)}"
    own = [action for action in made.actions if action.by == "user"]
    if own:
        yield say(language, phrase("cli.request.own"))
        yield from (f"  - {say(language, action.title)}" for action in own)


def runs(found: Iterable[RunSummary], language: Language) -> Iterator[str]:
    """Yield one line a run, the newest first, and below them what is kept for their undo."""
    listed = tuple(found)
    if not listed:
        yield say(language, phrase("cli.no-runs"))
    rows: list[tuple[str, str, str, str, str]] = []
    for one in listed:
        started = "" if one.started is None else datetime.fromtimestamp(one.started).astimezone().strftime("%Y-%m-%d %H:%M")
        word = "done-without" if one.status == "done" and one.exit in (1, 20) else one.word
        state = say(language, phrase(f"cli.run.{word if one.readable else 'unreadable'}"))
        if one.rehearsal:
            state = f"{state} · {say(language, phrase('cli.run.rehearsal'))}"
        title = shortened(one.title or say(language, one.first), 48)
        rows.append((one.id, started, one.owner or "", state, title))
    # As wide as what stands in them: the title is to begin on the line of a small terminal.
    cells = [max((cells_of(row[at]) for row in rows), default=0) + 2 for at in range(4)]
    for row in rows:
        yield ("".join(padded(text, wide) for text, wide in zip(row[:4], cells, strict=True)) + row[4]).rstrip()
    kept: dict[str, int] = {}
    for one in listed:
        kept[one.kept_in] = kept.get(one.kept_in, 0) + one.kept_bytes - sum(one.kept_beside.values())
    for folder, count in kept.items():
        if count:
            yield say(language, phrase("cli.kept", size=measures.download(count), folder=folder))
    for one in listed:
        for path, count in one.kept_beside.items():
            yield say(language, phrase("cli.kept-beside", run=one.id, size=measures.download(count), path=path))


def verdict(rungs: Iterable[Rung], language: Language, *, tried: bool = False, without: Iterable[Words] = ()) -> Iterator[str]:
    """Yield one line a rung (only those that were `tried`, if so), and the verdict; `without` names the steps that were left out."""
    listed = tuple(rungs)
    for one in listed:
        if tried and one.state == "skipped":
            continue
        word = say(language, phrase(f"cli.rung.{one.state}"))
        detail, said = say(language, one.detail), say(language, one.because)
        # A figure that the words hold already is not said again beside them.
        value = "" if one.value is None or detail or (one.unit == "difference" and said) else plot.measure(one.value, one.unit)
        name = say_rung(language, one.id)
        yield "  ".join(part for part in (padded(word, 8), padded(name, 24), detail, value, said) if part)
    for bar in plot.bars(listed):
        yield f"{'':<8}  {padded(say_rung(language, bar.rung), 24)}  {plot.drawn(bar, 30)}  {plot.figure(bar)}"
    failed = sum(one.state == "failed" for one in listed)
    passed = sum(one.state == "passed" for one in listed)
    left = say(language, phrase("run.comma")).join(say(language, one) for one in without)
    if left:
        yield say(language, phrase("cli.verdict.without", what=left))
    far = reach(listed)
    # The package database alone was looked at: that is something, and nothing of what was promised.
    word = "nothing-but" if far == "nothing" and passed else far
    yield say(language, phrase(f"cli.verdict.{word}", failed=failed, passed=passed, skipped=len(listed) - failed - passed))


def launch(names: tuple[str, ...], meeting: Meeting, processes: int, language: Language) -> Iterator[str]:
    """Yield how one job is started over several machines: a line for each."""
    yield say(language, phrase("cli.launch"))
    for rank, name in enumerate(names):
        yield f"  {name}$ {shlex.join(launch_line(meeting, rank, processes, 'ddp_amp.py'))}"


def knowledge(known: Iterable[Table], language: Language) -> Iterator[str]:
    """Yield one line a table: name, rows, when it was checked, and the file that lies over it."""
    unknown = say(language, phrase("cli.unknown"))
    for one in known:
        over = f"  {say(language, phrase('cli.knowledge.overlay', file=one.overlay))}" if one.overlay else ""
        yield f"{one.name:<24}{one.rows:>6}  {one.checked or unknown}{over}"


def changes(made: Update, language: Language) -> Iterator[str]:
    """Yield what an update would change, as a diff by table and row, and what it found but does not know."""
    for change in made.changes:
        name = f"{change.table} {change.row}"
        if change.field:
            name = f"{name} {change.field}"
        if change.before:
            yield f"- {name}: {change.before}"
        if change.after:
            yield f"+ {name}: {change.after}"
    if not made.changes:
        yield say(language, phrase("cli.knowledge.same"))
    if made.untold:
        yield say(language, phrase("cli.knowledge.untold", branches=", ".join(made.untold)))
    for name, file in made.files.items():
        yield say(language, phrase("cli.knowledge.file", name=name, site=file.site, date=file.checked))
