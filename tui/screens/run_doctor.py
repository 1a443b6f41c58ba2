"""What the doctor says to a failed action: asked in a thread, and its repair as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from steps.errors import BringupError
from steps.model.base import phrase
from steps.text import say
from tui.cells import Line, Span, wrap
from tui.screens.base import Page
from tui.screens.reading import ReadingPage
from tui.watching import Watched

if TYPE_CHECKING:
    from steps.doctor.diagnosis import Verdict

_BLOCK = 1 << 20
_MOST = 16 << 20
"""Bytes of a log's end that are looked at."""


def asked(handle: Watched, action: str) -> Verdict | None:
    """Return what is behind the failure of an action, or `None` when the doctor knows of nothing; takes seconds on a real machine."""
    from steps.headless.doctor import behind

    try:
        return behind(handle.plan.target, action, _blocks(handle, action))
    except BringupError:
        # A machine that cannot be looked at has no diagnosis; the exit code and the log's own lines stand there.
        return None


def _blocks(handle: Watched, action: str) -> Iterator[bytes]:
    """Yield the end of an action's log in blocks."""
    spool = handle.spool(action)
    at, size = max(0, spool.size() - _MOST), spool.size()
    while at < size and (block := spool.read(at, min(_BLOCK, size - at))):
        yield block
        at += len(block)


class Doctor:
    """Asks once for each failed action, in a thread beside the screen, which is drawn anew when there is an answer."""

    def __init__(self, screen: Page, handle: Watched) -> None:
        self._screen = screen
        self._handle = handle
        self._said: dict[str, Verdict | None] = {}

    def ask(self, action: str) -> None:
        """Begin to find out what is behind the failure of an action, unless that was asked already."""
        if action not in self._said:
            self._said[action] = None
            self._screen.run_worker(lambda: self._hear(action), thread=True, exit_on_error=False)

    def said_of(self, action: str) -> Verdict | None:
        """Return what is behind the failure; `None` when nothing is known of it, or not yet."""
        return self._said.get(action)

    def forget(self) -> None:
        """Forget what was said: a step that is tried again may fail for another reason."""
        self._said.clear()

    def _hear(self, action: str) -> None:
        verdict = asked(self._handle, action)
        if verdict is not None and self._screen.is_running:
            self._screen.app.call_from_thread(self._take, action, verdict)

    def _take(self, action: str, verdict: Verdict) -> None:
        self._said[action] = verdict
        self._screen.redraw()


class RepairPage(ReadingPage):
    """The cause with its evidence, the repair step by step with the commands to type, what to avoid, and the proof."""

    def __init__(self, below: Page, verdict: Verdict) -> None:
        super().__init__(below)
        self._verdict = verdict

    def title_words(self) -> str:
        """Return how to repair it."""
        return self.shell.say(phrase("run.repair.title"))

    def sub_words(self) -> str:
        """Return how to go on afterwards."""
        return self.shell.say(phrase("run.repair.sub"))

    def about_words(self) -> str:
        """Return what this page is."""
        return self.shell.say(phrase("run.repair.sub"))

    def lines(self, columns: int) -> Sequence[Line]:
        """Return the cause and its repair, then the whole verdict; commands stand out."""
        from steps import medical

        language, cause = self.shell.language, self._verdict.cause
        if cause is None:
            return ()
        texts = [say(language, cause.title), *medical.repair(cause, language), "", *list(medical.lines(self._verdict, language))[1:]]
        return [
            (Span(part, "primary" if line.lstrip().startswith("$ ") else "strong" if line and not line.startswith(" ") else "text"),)
            for line in _once(texts)
            for part in _wrapped(line, columns)
        ]


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
