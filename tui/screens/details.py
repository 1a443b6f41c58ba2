"""The whole plan: every action with the command a person would type, who runs it, and how it is taken back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from steps.model.base import phrase
from tui.cells import BLANK, Line, Span, wrap
from tui.screens.base import ui
from tui.screens.reading import ReadingPage

if TYPE_CHECKING:
    from steps.model.plan import Plan
    from tui.screens.base import Page


class DetailsPage(ReadingPage):
    """Nothing is left out here; with `contents` also what the files will hold."""

    def __init__(self, below: Page, plan: Callable[[], Plan | None], *, contents: bool = False) -> None:
        super().__init__(below)
        self._plan = plan
        self._contents = contents

    def title_words(self) -> str:
        """Return "The whole plan"."""
        return self.shell.say(ui("details.title"))

    def sub_words(self) -> str:
        """Return that this is exactly what will be run."""
        return self.shell.say(ui("details.sub"))

    def about_words(self) -> str:
        """Return what this page is."""
        return self.shell.say(ui("details.sub"))

    def lines(self, columns: int) -> Sequence[Line]:
        """Return the actions."""
        from steps.managers import shown
        from steps.model.action import Write

        plan = self._plan()
        if plan is None:
            return ()
        lines: list[Line] = []
        cut = False
        for number, action in enumerate(plan.actions, 1):
            lines += [BLANK] if lines else []
            lines += [
                (Span(f"{number:2d} " if at == 0 else "   ", "mute"), Span(line, "strong"))
                for at, line in enumerate(wrap(self.shell.say(action.title), columns - 3))
            ]
            why = self.shell.say(action.why)
            lines += [(Span("   "), Span(line)) for line in wrap(why, columns - 3)] if why else []
            command = shown.run(action)
            if command:
                sign = "#" if action.by == "root" else "$"
                said = shown.line(shown.brief(command))
                lines += [(Span("   "), Span(line, "primary")) for line in wrap(f"{sign} {said}", columns - 3)]
                cut = cut or shown.brief(command) != command
            if self._contents and isinstance(action, Write):
                lines += [(Span("   "), Span(line, "primary")) for line in wrap(f"> {action.path}", columns - 3)]
                lines += [(Span("     "), Span(part)) for line in shown.written(action) for part in wrap(line, columns - 5) or ("",)]
        if cut:
            words = self.shell.say(phrase("cli.scripts-cut"))
            lines += [BLANK, *((Span(line, "mute"),) for line in wrap(words, columns))]
        return lines
