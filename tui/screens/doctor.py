"""The doctor: the chain of what happened and what it is not on the left; the cause, its repair and the proof on the right."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from steps.errors import BringupError
from steps.model.base import Phrase, phrase
from steps.model.plan import Plan
from steps.text import say, say_error
from tui.cells import BLANK, Line, Span, beside, cut, wrap
from tui.screens.base import Key, Page, ui
from tui.screens.reading import HIDDEN, SCROLL, ReadingPage
from tui.theme import MARKS
from tui.widgets.hint import labelled

if TYPE_CHECKING:
    from steps.doctor.diagnosis import Diagnosis, Verdict
    from tui.app import BringupApp

_LEFT = 37
_RULE: Line = (Span("│ ", "rule"),)
_CERTAIN, _LIKELY = 0.9, 0.65
_MOST_EVIDENCE, _LABEL = 4, 8


class DoctorPage(ReadingPage):
    """Asks the doctor beside the screen, shows what he says, and leads to the run of the repair."""

    def __init__(self, below: Page) -> None:
        super().__init__(below)
        self._verdict: Verdict | None = None
        self._plan: Plan | None = None
        self._trouble: BringupError | None = None

    def on_mount(self) -> None:
        """Ask the doctor, who may wait for slow programs."""
        self.run_worker(self._ask, thread=True, exit_on_error=False)

    def _ask(self) -> None:
        try:
            verdict, plan = self._bringup.wizard.backend.diagnosed()
        except BringupError as error:
            self.app.call_from_thread(self._hear, None, None, error)
        else:
            self.app.call_from_thread(self._hear, verdict, plan, None)

    def _hear(self, verdict: Verdict | None, plan: Plan | None, trouble: BringupError | None) -> None:
        self._verdict, self._plan, self._trouble = verdict, plan, trouble
        self.redraw()

    @property
    def _bringup(self) -> BringupApp:
        return cast("BringupApp", self.app)

    # --- what stands above and below ------------------------------------------------------------------

    def state_words(self) -> str:
        """Return "doctor"."""
        return self._say("state")

    def _say(self, key: str, **params: str | int) -> str:
        return self.shell.say(phrase(f"ui.doctor.{key}", **params))

    def title_words(self) -> str:
        """Return whether a cause was found."""
        if self._trouble is not None:
            return say_error(self.shell.language, self._trouble.code, self._trouble.params)
        if self._verdict is None:
            return self._say("looking")
        cause = self._verdict.cause
        return self._say("healthy" if self._verdict.healthy or cause is None else "found" if cause.known else "unknown")

    def sub_words(self) -> str:
        """Return how much was seen, and how sure it is."""
        cause = self._verdict.cause if self._verdict is not None else None
        if self._verdict is None:
            return ""
        if cause is None or self._verdict.healthy:
            return self._say("by-log")
        sure = "certain" if cause.confidence >= _CERTAIN else "likely" if cause.confidence >= _LIKELY else "unsure"
        return self._say("counts", facts=len(cause.evidence), out=len(self._verdict.ruled_out), sure=self._say(sure))

    def about_words(self) -> str:
        """Return what this page is for."""
        return self._say("about")

    def next_words(self) -> str:
        """Return what Enter does."""
        if self._verdict is None or self._verdict.healthy:
            return ""
        return self._say("next" if self._plan is not None and self._plan.actions else "next-by-hand")

    def key_table(self) -> Sequence[Key]:
        """Return repair, evidence and leave."""
        repair = (Key(("enter",), "repair", "Enter", ui("doctor.key-repair")),) if self._plan is not None and self._plan.actions else ()
        details = (Key(("d",), "details", "d", ui("doctor.key-evidence")),) if self._verdict is not None else ()
        return (*repair, *details, Key(("escape", "b", "q"), "close", "Esc", ui("key.back")), SCROLL, *HIDDEN)

    # --- the picture ----------------------------------------------------------------------------------

    def lines(self, columns: int) -> Sequence[Line]:
        """Return both columns beside each other."""
        cause = self._verdict.cause if self._verdict is not None else None
        if self._verdict is None or cause is None or (self._verdict.healthy and cause.id == "none"):
            return ()
        left = list(self._happened(self._verdict, cause, _LEFT - 1))
        right = list(self._repair(cause, columns - _LEFT - 3))
        return beside(left, _LEFT, right, max(len(left), len(right)), _RULE)

    def _happened(self, verdict: Verdict, cause: Diagnosis, columns: int) -> Iterator[Line]:
        """Yield the chain, the root cause first and marked, then what was ruled out."""
        links = [cause, *(one for one in verdict.diagnoses if one.part == "consequence")]
        yield (Span(self._say("happened"), "strong"),)
        yield BLANK
        for number, one in enumerate(links, 1):
            more = number < len(links)
            yield from self._link(one, number, columns, rail="│ " if more else "  ")
            if more:
                yield (Span("│", "rule"),)
        yield from self._listed("beside", [one.title for one in verdict.diagnoses if one.part == "beside" and one.id != "none"], columns)
        yield from self._listed("ruled-out", [one.title for one in verdict.ruled_out], columns)
        yield from self._listed("open", [one.title for one in verdict.open], columns)

    def _link(self, one: Diagnosis, number: int, columns: int, *, rail: str) -> Iterator[Line]:
        root = one.primary
        for at, text in enumerate(wrap(self.shell.say(one.title), columns - 2)):
            yield (Span(f"{number} " if not at else rail, "mute"), Span(text, "strong" if root else "text"))
        for place in one.evidence[: _MOST_EVIDENCE if root else 1]:
            yield (Span(f"{rail}  ", "rule"), Span(cut(" ".join(place.text.split()), columns - 4)))
            yield (Span(f"{rail}    ", "rule"), Span(cut(place.source, columns - 6), "mute"))
        if root and one.known:
            yield (Span(f"{rail}  ", "rule"), Span(f"{MARKS['bad']} {self._say('this')}", "bad-strong"))

    def _listed(self, key: str, titles: Sequence[Phrase], columns: int) -> Iterator[Line]:
        if titles:
            yield BLANK
            yield (Span(self._say(key), "strong"),)
        for title in titles:
            for at, text in enumerate(wrap(self.shell.say(title), columns - 2)):
                yield (Span("  " if at else "· ", "mute"), Span(text))

    def _repair(self, cause: Diagnosis, columns: int) -> Iterator[Line]:
        """Yield the verdict in two sentences, the repair, its undo and proof, and what to avoid."""
        for text in wrap(self.shell.say(cause.because), columns):
            yield (Span(text),)
        repair, language = cause.repair, self.shell.language
        if repair.steps:
            yield BLANK
            yield (Span(self._say("smallest"), "strong"),)
        for number, step in enumerate(repair.steps, 1):
            for at, text in enumerate(wrap(self.shell.say(step.says), columns - 2)):
                yield (Span("  " if at else f"{number} ", "mute"), Span(text))
            for argv in step.commands:
                yield (Span("  "), Span(cut(shlex.join(argv), columns - 2), "primary"))
            for file in step.files:
                yield (Span("  "), Span(cut(f"> {file.path}", columns - 2), "primary"))
        yield BLANK
        undo = any(step.undo for step in repair.steps)
        yield from labelled(self._say("undo"), self._say("undo-one" if undo else "undo-none"), _LABEL, columns)
        if repair.verify is not None:
            yield from labelled(
                self._say("proof"), f"{shlex.join(repair.verify.command)} → {say(language, repair.verify.expect)}", _LABEL, columns
            )
        for words in repair.avoid:
            yield from labelled(self._say("avoid"), self.shell.say(words), _LABEL, columns)

    # --- keys -----------------------------------------------------------------------------------------

    def do_details(self) -> None:
        """Show all evidence and the commands."""
        from tui.screens.run_doctor import RepairPage

        if self._verdict is not None:
            by_hand = self._plan is None or not self._plan.actions
            self.app.push_screen(RepairPage(self, self._verdict, read="by-hand" if by_hand else "evidence"))

    def do_repair(self) -> None:
        """Show the plan; the run starts when it is agreed to."""
        from tui.screens.confirm import ConfirmPage
        from tui.screens.details import DetailsPage

        plan = self._plan
        if plan is None or not plan.actions:
            return
        listed = [f"{number}  {self.shell.say(action.title)}" for number, action in enumerate(plan.actions, 1)]

        def details() -> None:
            self.app.push_screen(DetailsPage(self, lambda: plan, contents=True))

        page = ConfirmPage(
            self._say("start"),
            (*listed, "", self._say("promise")),
            lambda: self._bringup.start(plan),
            state=self.state_words(),
            details=details,
        )
        self.app.push_screen(page)
