"""The wizard's lists: options of the screen, earlier runs, recorded machines, all findings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steps import hardware
from steps.errors import BringupError
from steps.model.base import phrase
from steps.model.profile import Profile
from steps.text import FindingPart, say_finding
from tui.cells import BLANK, Line, Span, wrap
from tui.screens.base import ui
from tui.screens.list_page import ListPage
from tui.summary import MARK_OF
from tui.theme import PaletteName
from tui.widgets.hint import LABEL, chain, labelled
from tui.widgets.menu import Item

if TYPE_CHECKING:
    from steps.model.finding import Finding
    from steps.model.run import RunSummary

_PALETTES: tuple[PaletteName, ...] = ("dark", "light", "ansi", "mono")
_RUN_MARKS = {"done": "good", "undone": "info", "failed": "bad", "undo-failed": "bad", "cancelled": "catch", "reboot": "catch"}
_SEVERITIES = ("error", "warning", "info", "ok")


class OptionsPage(ListPage):
    """How the screens look; every change is seen at once."""

    NAME = "options"

    def items(self) -> Sequence[Item]:
        """Return colours, marks, link, language, each with what it is now."""
        say, shell = self.shell.say, self.shell
        goal = (Item("goal", say(ui("options.goal")), say(ui(f"options.goal-{self._goal()}"))),) if self.wizard.ready else ()
        return (
            *goal,
            Item("theme", say(ui("options.theme")), say(ui(f"options.palette-{shell.palette}"))),
            Item("marks", say(ui("options.marks")), say(ui(f"options.marks-{shell.marks}"))),
            Item("speed", say(ui("options.speed")), say(ui("options.speed-slow" if shell.low_bandwidth else "options.speed-normal"))),
            Item("tongue", say(ui("options.language")), "English" if shell.language == "en" else "中文"),
        )

    def _goal(self) -> str:
        """Return what the machine is wanted for."""
        return hardware.say_goal(self.wizard.answers)

    def explained(self, key: str) -> str:
        """Return what the option changes."""
        return self.shell.say(ui(f"options.about-{key}"))

    def chosen(self, key: str) -> None:
        """Change an option to its next value."""
        shell = self.shell
        match key:
            case "goal":
                self.wizard.take(hardware.next_goal(self.wizard.answers))
            case "theme":
                shell.use_palette(_PALETTES[(_PALETTES.index(shell.palette) + 1) % len(_PALETTES)])
            case "marks":
                shell.marks = "unicode" if shell.marks in ("ascii", "bare") else "ascii"
            case "speed":
                shell.low_bandwidth = not shell.low_bandwidth
            case _:
                self.do_language()


def _mark(run: RunSummary) -> str:
    """Return the mark of a run's row."""
    if not run.readable:
        return "unknown"
    return "info" if run.rehearsal else _RUN_MARKS.get(run.status, "running")


class RunsPage(ListPage):
    """The runs of this machine, newest first."""

    NAME = "runs"

    def items(self) -> Sequence[Item]:
        """Return one row a run with how it ended."""
        return [Item(run.id, run.id, mark=_mark(run), word=self._ended(run)) for run in self.bringup.earlier or ()]

    def _ended(self, run: RunSummary) -> str:
        """Return how the run ended, that it was a rehearsal, or that it cannot be read."""
        return self.shell.say(phrase(f"cli.run.{'rehearsal' if run.readable and run.rehearsal else run.word}"))

    def explained(self, key: str) -> str:
        """Return what it installs, when and by whom it was started, and that it was a rehearsal."""
        run = next((run for run in self.bringup.earlier or () if run.id == key), None)
        if run is None:
            return ""
        started = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started)) if run.started is not None else "?"
        words = [self.shell.say(ui("runs.about", started=started, owner=run.owner or "?"))]
        if title := run.title or self.shell.say(run.first):
            words.insert(0, self.shell.say(ui("runs.what", title=title)))
        if run.rehearsal:
            words.append(self.shell.say(ui("runs.rehearsed")))
        return ("" if self.shell.language == "zh_CN" else " ").join(words)

    def chosen(self, key: str) -> None:
        """Watch the run."""
        backend = self.wizard.backend
        try:
            self.app.push_screen(backend.watch(backend.find(key)))
        except BringupError as error:
            self.remark(self.said(error))


class RecordedPage(ListPage):
    """Recordings of real machines to learn on."""

    NAME = "recorded"

    def items(self) -> Sequence[Item]:
        """Return one row a recording."""
        return [Item(path, name) for name, path in self.wizard.backend.recorded()]

    def explained(self, key: str) -> str:
        """Return what a recording is."""
        return self.shell.say(ui("recorded.about"))

    def chosen(self, key: str) -> None:
        """Go on with this machine; nothing real is touched."""
        self.dismiss()
        self.bringup.rehearse(key)


class CheckPage(ListPage):
    """Every finding with its reasons and its source."""

    NAME = "check"
    CHOOSES = False

    def __init__(self, *, as_it_is: bool) -> None:
        """Judge what is installed, as the verb `check` does, or what the answers come to."""
        super().__init__()
        self._as_it_is = as_it_is
        self._findings: tuple[Finding, ...] | None = None

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings, asked for once."""
        wizard = self.wizard
        if self._findings is None and wizard.machine is not None:
            found = wizard.backend.judged(wizard.machine, Profile() if self._as_it_is else wizard.answers)
            self._findings = tuple(sorted(found, key=lambda one: _SEVERITIES.index(one.severity)))
        return self._findings or ()

    def title_words(self) -> str:
        """Return what was judged."""
        return self.shell.say(ui("check.title-as-it-is" if self._as_it_is else "check.title"))

    def items(self) -> Sequence[Item]:
        """Return one row a finding."""
        language = self.shell.language
        return [
            Item(
                str(at),
                say_finding(language, found, "topic") or found.subject or self.shell.say(phrase(f"{found.step}.name")),
                mark=MARK_OF[found.severity],
                word=say_finding(language, found, "tag"),
            )
            for at, found in enumerate(self.findings())
        ]

    def hint_lines(self, columns: int, rows: int) -> list[Line]:
        """Return the sentence, why, the remedy, the facts and the source of the finding under the cursor."""
        if not self.findings():
            return []
        found = self.findings()[self.cursor()]
        language, indent = self.shell.language, LABEL[self.shell.language]
        parts: tuple[FindingPart, ...] = ("sentence", "why", "remedy")
        lines: list[Line] = [(Span(line, "strong"),) for line in wrap(found.subject, columns)]
        for part in parts:
            text = say_finding(language, found, part)
            lines += [BLANK, *[(Span(line),) for line in wrap(text, columns)]] if text else []
        because = [self.shell.say(link) for link in found.because]
        if because:
            lines += [BLANK, *chain(self.shell.say(phrase("ui.note.because")), because, (), indent, columns)]
        if found.source and len(lines) < rows - 2:
            lines += [BLANK, *labelled(self.shell.say(phrase("ui.note.source")), found.source, indent, columns, "mute")]
        return lines[:rows]
