"""What the doctor says to a failed action: asked in a thread, and its repair as a page that leads to a run of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from steps.errors import BringupError
from steps.model.base import phrase
from steps.text import say
from tui.cells import BLANK, Line, Span, wrap
from tui.screens.base import Key, Page
from tui.screens.reading import HIDDEN, SCROLL, ReadingPage
from tui.watching import Watched
from tui.widgets.hint import labelled

if TYPE_CHECKING:
    from steps.doctor.diagnosis import Diagnosis, Verdict
    from steps.model.plan import Plan

_LABEL = {"en": 9, "zh_CN": 6}
"""Cells of the words before an undo."""


class Told(NamedTuple):
    """What is known of a failure; `plan` has no actions where a person has to do all."""

    verdict: Verdict
    plan: Plan
    mended: str | None = None
    """The run that repaired this one since it failed."""

    @property
    def cause(self) -> Diagnosis | None:
        """The one cause."""
        return self.verdict.cause


def asked(handle: Watched, action: str) -> Told | None:
    """Return what is behind the failure of an action, or `None` when the doctor knows of nothing; takes seconds on a real machine."""
    from steps.engine import client
    from steps.headless.doctor import behind, end_of, repair_of_run

    try:
        verdict = behind(handle.plan.target, action, end_of(handle.spool(action)))
        if verdict is None:
            return None
        repair, one = client.find_repair(handle.id), handle.state().actions[action]
        since = repair is not None and (repair.state().started or 0.0) >= (one.ended or 0.0)
        plan = repair_of_run(handle.plan.target, verdict, handle.id)
        return Told(verdict, plan, repair.id if repair is not None and since else None)
    except BringupError:
        # A machine that cannot be looked at has no diagnosis; the exit code and the log's own lines stand there.
        return None


class Doctor:
    """Asks once for each failed action, in a thread beside the screen, which is drawn anew when there is an answer."""

    def __init__(self, screen: Page, handle: Watched) -> None:
        self._screen = screen
        self._handle = handle
        self._said: dict[str, Told | None] = {}

    def ask(self, action: str) -> None:
        """Begin to find out what is behind the failure of an action, unless that was asked already."""
        if action not in self._said:
            self._said[action] = None
            self._screen.run_worker(lambda: self._hear(action), thread=True, exit_on_error=False)

    def said_of(self, action: str) -> Told | None:
        """Return what is behind the failure; `None` when nothing is known of it, or not yet."""
        return self._said.get(action)

    def forget(self) -> None:
        """Forget what was said: a step that is tried again may fail for another reason."""
        self._said.clear()

    def _hear(self, action: str) -> None:
        told = asked(self._handle, action)
        if told is not None and self._screen.is_running:
            self._screen.app.call_from_thread(self._take, action, told)

    def _take(self, action: str, told: Told) -> None:
        self._said[action] = told
        self._screen.redraw()


class RepairPage(ReadingPage):
    """The repair to agree to: what each action does, its command, how it is taken back; then the doctor's whole verdict.

    `start` begins the run of `plan`; without it, or where a person has to do all, the page is only read: `read` says what for.
    """

    TYPE_AHEAD = False

    def __init__(
        self,
        below: Page,
        verdict: Verdict,
        plan: Plan | None = None,
        start: Callable[[], None] | None = None,
        *,
        read: Literal["step-again", "by-hand", "evidence"] = "step-again",
    ) -> None:
        super().__init__(below)
        self._verdict = verdict
        self._read = read
        self._plan = plan if plan is not None and plan.actions else None
        self._start = start if self._plan is not None else None

    def title_words(self) -> str:
        """Return how to repair it."""
        return self._say("start" if self._start is not None else "title")

    def sub_words(self) -> str:
        """Return what Enter does, or how to go on afterwards."""
        return self._say("own-run" if self._start is not None else self._read)

    def about_words(self) -> str:
        """Return what this page is."""
        return self.sub_words()

    def _say(self, key: str, **params: str | int) -> str:
        return self.shell.say(phrase(f"run.repair.{key}", **params))

    def key_table(self) -> Sequence[Key]:
        """Return start where a run can do it, else only what a page to read has."""
        if self._start is None:
            return super().key_table()
        start = Key(("enter",), "start", "Enter", phrase("run.repair.key-start"))
        back = Key(("escape", "b", "q", "n"), "close", "Esc", phrase("run.repair.key-back"))
        return (start, back, SCROLL, *HIDDEN)

    def do_start(self) -> None:
        """Close, and start the run of the repair."""
        self.dismiss()
        if self._start is not None:
            self._start()

    def lines(self, columns: int) -> Sequence[Line]:
        """Return the cause, the plan, and the whole verdict; commands stand out."""
        from steps import medical

        language, cause = self.shell.language, self._verdict.cause
        if cause is None:
            return ()
        head = list(self._planned(cause, columns))
        first = [] if head else [say(language, cause.title), *medical.repair(cause, language), ""]
        texts = [*first, *list(medical.lines(self._verdict, language))[1:]]
        rest = [
            (Span(part, "primary" if line.lstrip().startswith("$ ") else "strong" if line and not line.startswith(" ") else "text"),)
            for line in _once(texts)
            for part in _wrapped(line, columns)
        ]
        return [*head, BLANK, *rest] if head else rest

    def _planned(self, cause: Diagnosis, columns: int) -> Iterator[Line]:
        """Yield what the run will do, action by action, and how each is taken back; nothing where a person has to do all."""
        from steps import documents
        from steps.managers.shown import brief, line, shown

        if self._plan is None:
            return
        language = self.shell.language
        yield from ((Span(part, "strong"),) for part in wrap(self.shell.say(cause.title), columns))
        yield BLANK
        for number, action in enumerate(self._plan.actions, 1):
            for at, part in enumerate(wrap(self.shell.say(action.title), columns - 3)):
                yield (Span(f"{number:2d} " if not at else "   ", "mute"), Span(part, "strong"))
            if action.lane == "proof":
                continue
            yield from ((Span("   "), Span(part, "primary")) for part in wrap(line(brief(shown(action))), columns - 3) if part)
            undo = labelled(self._say("undo"), documents.undo(action, language), _LABEL[language], columns - 3)
            yield from ((Span("   "), *line) for line in undo)


def _once(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines of both parts, without what the second would repeat of the first."""
    seen: set[str] = set()
    for line in lines:
        if not line or line not in seen:
            yield line
        seen.add(line)


def _wrapped(line: str, columns: int) -> list[str]:
    """Return a line in as many rows as it needs, all as far in as the first."""
    inner = line.lstrip()
    indent = " " * (len(line) - len(inner))
    return [indent + part for part in wrap(inner, columns - len(indent))] or [""]
