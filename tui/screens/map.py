"""The map: how processors, bridges, cards and network devices hang together, and what there is of memory, disks and lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steps.model.base import phrase
from tui.cells import BLANK, Line, Span, pad, wrap
from tui.screens.base import ui
from tui.screens.reading import ReadingPage

if TYPE_CHECKING:
    from steps.model.machine import Machine
    from tui.screens.step_acts import StepActs

_CELL = 7


class MapPage(ReadingPage):
    """A drawn tree, the pairs as a table, and an overview."""

    below: StepActs

    def __init__(self, below: StepActs) -> None:
        super().__init__(below)

    def title_words(self) -> str:
        """Return the question."""
        return self.shell.say(ui("map.title"))

    def sub_words(self) -> str:
        """Return how to read it."""
        return self.shell.say(ui("map.sub"))

    def about_words(self) -> str:
        """Return what this page is."""
        return self.shell.say(ui("map.about"))

    def lines(self, columns: int) -> Sequence[Line]:
        """Return tree, pairs and overview."""
        from steps.detect import topology

        machine = self.below.wizard.machine
        if machine is None:
            return ()
        tree = topology.drawn(topology.forest(machine), columns)
        lines: list[Line] = [(Span(line, "catch" if line.endswith("!") else "text"),) for line in tree]
        if not tree:
            lines = [(Span(line),) for line in wrap(self.shell.say(ui("map.empty")), columns)]
        pairs = topology.matrix(machine)
        if pairs:
            lines += [BLANK, (Span(self.shell.say(ui("map.pairs")), "strong"),)]
            lines += [(Span("".join(pad(cell, _CELL) for cell in row), "mute" if at == 0 else "text"),) for at, row in enumerate(pairs)]
        return [*lines, BLANK, (Span(self.shell.say(ui("map.overview")), "strong"),), *self._overview(machine, columns)]

    def _overview(self, machine: Machine, columns: int) -> list[Line]:
        """Return memory, its nodes, disks and the lane budget, a line each."""
        from steps.detect import measures, ways

        said: list[str] = []
        memory = machine.memory
        if memory.total_bytes:
            parts = (measures.memory(memory.total_bytes), memory.type, "ECC" if memory.ecc else None)
            nodes = (f"node {one.node}: {measures.memory(one.bytes)}" for one in memory.nodes if one.bytes and len(memory.nodes) > 1)
            said.append("  ".join(part for part in (*parts, *nodes) if part))
        said += [
            "  ".join(part for part in (one.name, one.tier, measures.storage(one.bytes) if one.bytes else None, one.model) if part)
            for one in machine.disks
        ]
        budget = ways.lanes(machine)
        if budget is not None:
            said.append(self.shell.say(phrase("hardware.lanes.budget", lanes=budget.all, cards=budget.cards, disks=budget.disks)))
        return [(Span(line),) for text in said for line in wrap(text, columns)]
