"""The why page: the facts and answers that forbid an option, the numbered ways round, and all that is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from textual import events

from steps.model.base import phrase
from steps.model.choice import Choice, Option
from steps.model.finding import Finding, Patch
from steps.text import say_finding
from tui import summary, telling
from tui.cells import BLANK, Line, Span, wrap
from tui.screens.base import Key, event_name, ui
from tui.screens.reading import ReadingPage
from tui.sources import parts
from tui.summary import MARK_OF
from tui.theme import MARKS
from tui.widgets.hint import LABEL, labelled

if TYPE_CHECKING:
    from tui.screens.wizard_page import WizardPage

KIND = 13
"""The column of "fact" and "your answer"."""


class Way(NamedTuple):
    """A numbered way: what it takes, what it costs, and the change of answers; without one, what is taken stays."""

    words: str
    cost: str
    patch: Patch | None


class WhyPage(ReadingPage):
    """Facts first, then consequences; a number takes a way out."""

    below: WizardPage

    def __init__(self, below: WizardPage, choice: Choice, option: Option) -> None:
        super().__init__(below)
        self._choice = choice
        self._option = option
        self._number = 0
        self._ways: tuple[str, list[Way]] | None = None

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

    # --- the ways -------------------------------------------------------------------------------------

    def ways(self) -> list[Way]:
        """Return the ways in the language of now; asked once for each, since every one of them is planned to say its cost."""
        language = self.shell.language
        if self._ways is None or self._ways[0] != language:
            self._ways = (language, self._found())
        return self._ways[1]

    def _found(self) -> list[Way]:
        wizard, say = self.below.wizard, self.shell.say
        found = [
            Way(telling.way_words(self.shell, way.changes), self._cost(way.patch), way.patch)
            for way in wizard.ways(self._choice, self._option)
            if not self._option.takeable or wizard.would_change(way.patch)
        ]
        if found or self._option.takeable:
            return found
        taken = [say(option.label) for option in self._choice.options if option.value in self._choice.taken and option.takeable]
        return [Way(say(ui("effects.stay", what=summary.joined(self.shell, tuple(taken)))), say(ui("why.free")), None)] if taken else []

    def _cost(self, patch: Patch) -> str:
        """Return what the plan would come to with a way taken; "" where no plan can be made."""
        plan = self.below.wizard.plan_with(patch)
        return self.shell.say(ui("why.cost", totals=summary.joined(self.shell, summary.totals_of(self.shell, plan)))) if plan else ""

    # --- the lines ------------------------------------------------------------------------------------

    def lines(self, columns: int) -> Sequence[Line]:
        """Return the reasons, the ways, then everything else that is known."""
        say, findings = self.shell.say, self._option.findings
        lines: list[Line] = [(Span(line),) for sentence in self._option.sentences for line in wrap(say(sentence), columns)]
        forbidden = not self._option.takeable and bool(findings)
        if forbidden:
            lines += [*self._sentence(findings[0], columns), BLANK, *self._reasons(columns)]
        lines += self._way_lines(columns)
        for finding in findings[1:] if forbidden else findings:
            lines += [*([BLANK] if lines else []), *self._finding(finding, columns)]
        return [*lines, *self._notes(columns), *self._sources(columns)]

    def _reasons(self, columns: int) -> list[Line]:
        """Return the smallest set that forbids the option: each line a fact or an answer, the option itself last."""
        say = self.shell.say
        lines: list[Line] = [(Span(say(ui("why.because")), "strong"),)]
        for reason in self.below.wizard.reasons(self._option):
            label = say(ui(f"why.{reason.kind}"))
            mark = f"{MARKS['bad']} " if reason.kind == "option" else ""
            ink = {"fact": "text", "answer": "accent", "option": "bad-strong"}[reason.kind]
            lines += labelled(label, f"{mark}{say(reason.words)}", KIND, columns, ink)
        return lines

    def _way_lines(self, columns: int) -> list[Line]:
        """Return the numbered ways, each with its cost below it."""
        ways = self.ways()
        lines: list[Line] = [BLANK, (Span(self.shell.say(ui("why.ways")), "strong"),)] if ways else []
        for number, way in enumerate(ways, 1):
            cap = str(number) if way.patch is not None else MARKS["info"]
            for at, line in enumerate(wrap(way.words, columns - 3)):
                lines.append((Span(f"{cap}  " if at == 0 else "   ", "accent-strong"), Span(line)))
            lines += [(Span("   "), Span(line, "mute")) for line in wrap(way.cost, columns - 3)] if way.cost else []
        return lines

    def _notes(self, columns: int) -> list[Line]:
        """Return the notes of the option, commands whole."""
        say, lines = self.shell.say, list[Line]()
        for note in self._option.notes:
            if note.label == "source":
                continue
            ink = "primary" if note.command else "text"
            lines += labelled(say(phrase(f"ui.note.{note.label}")), say(note.text), LABEL[self.shell.language] + 1, columns, ink)
        return [BLANK, *lines] if lines else []

    def _sources(self, columns: int) -> list[Line]:
        """Return where the rules are written, each place once and whole; they come last, for those who check."""
        written = [finding.source for finding in self._option.findings if finding.source]
        written += [self.shell.say(note.text) for note in self._option.notes if note.label == "source"]
        places = dict.fromkeys(place for source in written for place in parts(source))
        indent, lines = LABEL[self.shell.language] + 1, list[Line]()
        for at, place in enumerate(places):
            lines += labelled(self.shell.say(phrase("ui.note.source")) if at == 0 else "", place, indent, columns, "mute")
        return [BLANK, *lines] if lines else []

    def _sentence(self, finding: Finding, columns: int) -> list[Line]:
        """Return a finding's sentence with its mark, and why it is so."""
        language, mark = self.shell.language, MARK_OF[finding.severity]
        lines: list[Line] = [
            (Span(f"{MARKS[mark]} " if at == 0 else "  ", f"{mark}-strong"), Span(line, "strong"))
            for at, line in enumerate(wrap(say_finding(language, finding, "sentence"), columns - 2))
        ]
        why = say_finding(language, finding, "why")
        return [*lines, *[(Span("  "), Span(line)) for line in wrap(why, columns - 2)]] if why else lines

    def _finding(self, finding: Finding, columns: int) -> list[Line]:
        """Return a finding with its facts and, where no way can be numbered, what helps."""
        say, indent = self.shell.say, LABEL[self.shell.language] + 1
        lines = self._sentence(finding, columns)
        for at, link in enumerate(finding.because):
            lines += labelled(say(phrase("ui.note.because")) if at == 0 else "", say(link), indent, columns)
        remedy = "" if finding.fix else say_finding(self.shell.language, finding, "remedy")
        return [*lines, *(labelled(say(ui("why.remedy")), remedy, indent, columns) if remedy else [])]

    # --- keys -----------------------------------------------------------------------------------------

    def _numbered(self) -> int:
        return sum(way.patch is not None for way in self.ways())

    def next_words(self) -> str:
        """Return what a number does."""
        return self.shell.say(ui("why.next")) if self._numbered() else super().next_words()

    def key_table(self) -> Sequence[Key]:
        """Return the numbers of the ways, then the keys of every page."""
        count = self._numbered()
        if not count:
            return super().key_table()
        cap = "1" if count == 1 else f"1-{count}"
        return (Key(tuple(str(at) for at in range(1, count + 1)), "way", cap, ui("why.key")), *super().key_table())

    def on_key(self, event: events.Key) -> None:
        """Remember the digit, then do what the key says."""
        name = event_name(event)
        self._number = int(name) if name.isdigit() and name.isascii() else 0
        super().on_key(event)

    def do_way(self) -> None:
        """Take the way of the digit, say what changed, and close."""
        ways, wizard = self.ways(), self.below.wizard
        patch = ways[self._number - 1].patch if 0 < self._number <= len(ways) else None
        if patch is not None:
            changed = telling.changes_words(self.shell, wizard.differences(patch))
            wizard.take(patch)
            wizard.remark = self.shell.say(ui("step.changed-to", what=changed)) if changed else self.shell.say(ui("step.fixed"))
            self.dismiss()
