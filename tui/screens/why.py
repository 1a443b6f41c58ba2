"""The why page: everything that is known about one option, and the nearest ways out of what forbids it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events

from steps.model.base import phrase
from steps.model.choice import Choice, Option
from steps.model.finding import Finding, Patch
from steps.text import say_finding
from tui.cells import BLANK, Line, Span, wrap
from tui.screens.base import Key, event_name, ui
from tui.screens.reading import ReadingPage
from tui.summary import MARK_OF
from tui.theme import MARKS
from tui.widgets.hint import LABEL, labelled

if TYPE_CHECKING:
    from tui.screens.step import StepScreen


class WhyPage(ReadingPage):
    """Facts first, then consequences; a number takes a way out."""

    below: StepScreen

    def __init__(self, below: StepScreen, choice: Choice, option: Option) -> None:
        super().__init__(below)
        self._choice = choice
        self._option = option

    def title_words(self) -> str:
        """Return "Why not 580 proprietary?"."""
        key = "why.title" if self._option.takeable else "why.title-not"
        return self.shell.say(ui(key, name=self.shell.say(self._option.label)))

    def sub_words(self) -> str:
        """Return that nothing is taken by reading."""
        return self.shell.say(ui("why.sub" if self._option.takeable else "why.sub-not"))

    def about_words(self) -> str:
        """Return what this page is."""
        return self.shell.say(ui("why.about"))

    def ways(self) -> list[tuple[str, Patch]]:
        """Return (words, patch) of the nearest ways out: the fixes, then the recommended answer of the question."""
        language = self.shell.language
        ways: list[tuple[str, Patch]] = []
        fixable = [(finding, finding.fix) for finding in self._option.findings if finding.fix]
        ways += [(say_finding(language, finding, "remedy") or self.shell.say(ui("fix")), fix) for finding, fix in fixable]
        if not self._option.takeable:
            for option in self._choice.options:
                if option.recommended and option.takeable and option.patch and all(option.patch != patch for _, patch in ways):
                    ways.append((self.shell.say(ui("why.take", name=self.shell.say(option.label))), option.patch))
        return ways[:9]

    def lines(self, columns: int) -> Sequence[Line]:
        """Return verdict, findings with all their facts, notes, and the ways out."""
        say = self.shell.say
        lines: list[Line] = [(Span(line),) for sentence in self._option.sentences for line in wrap(say(sentence), columns)]
        for finding in self._option.findings:
            lines += [*([BLANK] if lines else []), *self._finding(finding, columns)]
        if self._option.notes:
            lines.append(BLANK)
        for note in self._option.notes:
            ink = "primary" if note.command else "text"
            lines += labelled(say(phrase(f"ui.note.{note.label}")), say(note.text), LABEL[self.shell.language] + 1, columns, ink)
        ways = self.ways()
        if ways:
            lines += [BLANK, (Span(say(ui("why.ways")), "strong"),)]
        for number, (words, _) in enumerate(ways, 1):
            for at, line in enumerate(wrap(words, columns - 3)):
                lines.append((Span(f"{number}  " if at == 0 else "   ", "accent-strong"), Span(line)))
        return [*lines, *self._sources(columns)]

    def _sources(self, columns: int) -> list[Line]:
        """Return where the rules are written, each once; they come last, for those who check."""
        sources = dict.fromkeys(finding.source for finding in self._option.findings if finding.source)
        indent = LABEL[self.shell.language] + 1
        lines = [line for source in sources for line in labelled(self.shell.say(phrase("ui.note.source")), source, indent, columns, "mute")]
        return [BLANK, *lines] if lines else []

    def _finding(self, finding: Finding, columns: int) -> list[Line]:
        language = self.shell.language
        mark = MARK_OF[finding.severity]
        indent = LABEL[language] + 1
        text = say_finding(language, finding, "sentence")
        lines: list[Line] = [
            (Span(f"{MARKS[mark]} " if at == 0 else "  ", f"{mark}-strong"), Span(line, "strong"))
            for at, line in enumerate(wrap(text, columns - 2))
        ]
        why = say_finding(language, finding, "why")
        lines += [(Span("  "), Span(line)) for line in wrap(why, columns - 2)] if why else []
        for at, link in enumerate(finding.because):
            label = self.shell.say(phrase("ui.note.because")) if at == 0 else ""
            lines += labelled(label, self.shell.say(link), indent, columns)
        remedy = "" if finding.fix else say_finding(language, finding, "remedy")
        lines += labelled(self.shell.say(ui("why.remedy")), remedy, indent, columns) if remedy else []
        return lines

    def next_words(self) -> str:
        """Return what a number does."""
        if self.ways():
            return self.shell.say(ui("why.next"))
        return super().next_words()

    def key_table(self) -> Sequence[Key]:
        """Return the numbers of the ways, then the keys of every page."""
        ways = self.ways()
        if not ways:
            return super().key_table()
        cap = "1" if len(ways) == 1 else f"1-{len(ways)}"
        return (Key(tuple(str(at) for at in range(1, len(ways) + 1)), "way", cap, ui("why.key")), *super().key_table())

    def on_key(self, event: events.Key) -> None:
        """Remember the digit, then do what the key says."""
        name = event_name(event)
        self._number = int(name) if name.isdigit() and name.isascii() else 0
        super().on_key(event)

    def do_way(self) -> None:
        """Take the way of the digit, and close."""
        ways = self.ways()
        if 0 < self._number <= len(ways):
            wizard = self.below.wizard
            wizard.take(ways[self._number - 1][1])
            wizard.remark = self.shell.say(ui("step.fixed"))
            self.dismiss()
