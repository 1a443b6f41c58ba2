"""The proof: every rung that was tried for real, what was seen, and what can be done now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from steps import plot
from steps.compat.framework_plan import tries_of
from steps.managers.makers import CONDA, activation
from steps.managers.python import place
from steps.model.action import AnyAction
from steps.model.base import Param, phrase
from steps.model.run import left_out
from steps.model.verdict import Reach, Rung, gpus_in, reach
from steps.text import say, say_rung
from tui.cells import BLANK, Line, Span, beside, cut, pad, width, wrap
from tui.follow import exit_code
from tui.screens.base import Key, Page
from tui.screens.run_seen import hours
from tui.theme import MARKS
from tui.watching import Watched, clock
from tui.widgets.header import header

LEFT, _BOTH = 38, 25
"""Cells of the left side, and of a rung's name with its measure."""
_NAME, _FIGURE = 12, 11
"""Cells of a figure's name beside its bar, and of the figure."""
_WORDS = {"failed": "open", "nothing": "nothing", "mounted": "mounted", "without": "without", "proven": "proven"}
_ENDS = {"failed": "bad", "nothing": "info", "mounted": "info", "without": "catch", "proven": "good"}
_INK = {"passed": "good", "failed": "bad", "skipped": "info"}


def _key(keys: tuple[str, ...], action: str, cap: str, words: str, *, footer: bool = True) -> Key:
    """Return a key with words of this file."""
    return Key(keys, action, cap, phrase(f"run.{words}"), footer)


LEAVE = _key(("q", "ctrl+q", "ctrl+c"), "leave", "q", "key.leave-plain")
COPY = _key(("c",), "copy", "c", "verify.copy")
UNDO = _key(("u",), "undo", "u", "key.undo")
LOG = _key(("l",), "log", "l", "verify.log")
MONITOR = _key(("g",), "monitor", "g", "verify.monitor")
MOVES = (
    _key(("down", "j"), "down", "↑↓", "verify.choose"),
    _key(("up", "k"), "up", "", "verify.choose", footer=False),
    _key(("escape", "b", "enter"), "close", "Esc", "verify.back", footer=False),
)


class VerifyScreen(Page):
    """What was proven of a run."""

    def __init__(self, handle: Watched, verdict: tuple[Rung, ...], reopen: Callable[[Watched, bool, bool], Page]) -> None:
        """Show `verdict`; `reopen` makes the run's own screen again (with its full log, or asking for the undo word)."""
        super().__init__()
        self.handle = handle
        self._verdict = verdict
        self._reopen = reopen
        self._cursor = next((at for at, rung in enumerate(verdict) if rung.state == "failed"), 0)
        self._said = ""

    def _words(self, key: str, /, **params: Param) -> str:
        """Return the words `run.verify.<key>`."""
        return say(self.shell.language, phrase(f"run.verify.{key}", **params))

    # --- words ----------------------------------------------------------------------------------------

    def header_line(self, columns: int) -> Line:
        """Return the header: the machine, and whether it is proven."""
        target = self.handle.plan.target
        machine = " · ".join(part for part in (target.name, target.summary) if part)
        notice = say(self.shell.language, phrase("run.rehearsal")) if target.rehearsal else ""
        return header(columns, machine, " · ".join(part for part in (notice, self.state_words()) if part))

    @property
    def _end(self) -> Reach | Literal["without"]:
        """How much was proven; what held without the steps that were left out is not what was planned."""
        found = reach(self._verdict)
        return "without" if found in ("proven", "mounted") and self._left() else found

    def _left(self) -> tuple[AnyAction, ...]:
        """Return the steps that were left out."""
        return left_out(self.handle.plan.actions, self.handle.state())

    def state_words(self) -> str:
        """Return whether it is proven."""
        return self._words("state-proven" if self._end == "proven" else "state-open")

    def title_words(self) -> str:
        """Return the verdict, with the names of what failed or was left out."""
        comma = say(self.shell.language, phrase("run.comma"))
        what = comma.join(self._rung_name(rung) for rung in self._verdict if rung.state == "failed")
        left = comma.join(say(self.shell.language, action.title) for action in self._left())
        word = "open-without" if left and what else _WORDS[self._end]
        return self._words(f"title-{word}", what=what, left=left)

    def sub_words(self) -> str:
        """Return how long it took and that it can be undone."""
        state = self.handle.state()
        seconds = state.ended - state.started if state.started is not None and state.ended is not None else 0.0
        return self._words("sub", time=clock(seconds, self.shell.language), id=self.handle.id)

    def next_words(self) -> str:
        """Return what is left to do; a remark stands until the next key."""
        return self._said or self._words("next-open" if self._end in ("failed", "without") else "next-proven")

    def about_words(self) -> str:
        """Return what the help page says first."""
        return self._words("about")

    def _rung_name(self, rung: Rung) -> str:
        """Return what a rung is called."""
        return say_rung(self.shell.language, rung.id)

    # --- the body -------------------------------------------------------------------------------------

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return the rungs and, beside them, the verdict."""
        first = max(0, min(self._cursor - rows // 2, len(self._verdict) - rows))
        left = [self._row(rung, first + at == self._cursor) for at, rung in enumerate(self._verdict[first : first + rows])]
        right = self._hint(columns - LEFT - 3, rows)
        return beside(left, LEFT, right, rows, (Span("│ ", "rule"),))

    def _row(self, rung: Rung, here: bool) -> Line:
        """Return the row of a rung: its name, a version or measure, the mark and the word."""
        ground = "cursor" if here else "page"
        ink = _INK[rung.state]
        detail = say(self.shell.language, rung.detail)
        name = self._rung_name(rung)
        # The measure stands in its column, and further left where it is long; the name gives way last.
        kept = max(width(name), min(12, _BOTH - 1 - width(detail)))
        both = pad(f"{pad(name, kept)} {detail}" if detail else name, _BOTH)
        return (
            Span("› " if here else "  ", "primary", ground),
            Span(both + " ", "strong" if here else "text", ground),
            Span(MARKS[ink], ink, ground),
            Span(" " + pad(self._words(rung.state), LEFT - _BOTH - 5), "strong" if here else "text", ground),
        )

    def _hint(self, columns: int, rows: int) -> list[Line]:
        """Return the verdict, the rung under the cursor, and what can be done now."""
        good = self._end == "proven"
        failed = sum(rung.state == "failed" for rung in self._verdict)
        skipped = sum(rung.state == "skipped" for rung in self._verdict)
        ink = _ENDS[self._end]
        lines: list[Line] = [(Span(f"{MARKS[ink]} ", ink), Span(self._words("proven" if good else "not-proven"), f"{ink}-strong"))]
        if good:
            sentences = [self._words("machine-trains"), self._words("tried", n=len(self._verdict) - skipped, skipped=skipped)]
        elif failed:
            sentences = [self._words("what-failed", n=failed, total=len(self._verdict))]
        else:
            sentences = [self.title_words(), self._words("tried", n=len(self._verdict) - skipped, skipped=skipped)]
        lines += [BLANK, *((Span(line),) for sentence in sentences for line in wrap(sentence, columns))]
        if self._verdict:
            lines += [BLANK, *self._about(self._verdict[self._cursor], columns)]
        figures = self._figures(columns)
        lines += [BLANK, *figures] if figures and len(lines) + len(figures) < rows else []
        ways = self._use(columns)
        return [*lines, *([BLANK, *ways] if len(lines) + len(ways) < rows else [])]

    def _about(self, rung: Rung, columns: int) -> list[Line]:
        """Return what was seen of a rung."""
        ink = _INK[rung.state]
        lines: list[Line] = [(Span(f"{MARKS[ink]} ", ink), Span(cut(self._rung_name(rung), columns - 2), "strong"))]
        lines += [(Span(line),) for line in wrap(say(self.shell.language, rung.because), columns) if line]
        if rung.value is not None:
            lines.append((Span(self._words("measured", value=plot.measure(rung.value, rung.unit)), "mute"),))
        if rung.expected is not None:
            lines.append((Span(self._words("expected", value=plot.measure(rung.expected, rung.unit)), "mute"),))
        return lines

    def _figures(self, columns: int) -> list[Line]:
        """Return the figures as bars: name, bar with a line at what was expected, figure."""
        room = columns - _NAME - _FIGURE - 2
        return [
            (
                Span(pad(say_rung(self.shell.language, bar.rung), _NAME) + " "),
                Span(plot.drawn(bar, room), "bad" if bar.failed else "primary"),
                Span(" " + plot.figure(bar).rjust(_FIGURE), "strong" if bar.rung == self._here() else "text"),
            )
            for bar in plot.bars(self._verdict)
        ]

    def _here(self) -> str:
        """Return the rung under the cursor."""
        return self._verdict[self._cursor].id if self._verdict else ""

    def _use(self, columns: int) -> list[Line]:
        """Return how the result is used and taken back."""
        lines: list[Line] = []
        if command := self._command():
            tried = tries_of(self.handle.plan, gpus_in(self._verdict))[:1]
            commands = [(Span(line, "primary"),) for one in (command, *tried) for line in wrap(f"$ {one}", columns)]
            lines += [(Span(self._words("use"), "strong"),), *commands, BLANK]
        time = hours(self.handle.state().started or 0.0)
        return [*lines, (Span(self._words("keep"), "strong"),), (Span("u ", "key"), Span(self._words("undo", time=time)))]

    def _command(self) -> str:
        """Return the command that enters the new environment; "" when none was made."""
        made = next((rung.because for rung in self._verdict if rung.id == "environment" and rung.state == "passed"), "")
        if not isinstance(made, str) or not made.startswith("/"):
            return ""
        plan = self.handle.plan
        if plan.profile.environment.manager in CONDA:
            return activation(place(plan.profile, plan.target))[0]
        return f"source {made}/bin/activate"

    # --- keys -----------------------------------------------------------------------------------------

    def key_table(self) -> Sequence[Key]:
        """Return the keys."""
        copy = (COPY,) if self._command() else ()
        return (LEAVE, *copy, UNDO, LOG, MONITOR, *MOVES)

    def perform(self, action: str) -> None:
        """Do what a key says; a remark stands until the next key."""
        self._said = ""
        super().perform(action)

    def do_down(self) -> None:
        """To the next rung."""
        self._cursor = min(self._cursor + 1, max(0, len(self._verdict) - 1))

    def do_up(self) -> None:
        """To the rung before."""
        self._cursor = max(self._cursor - 1, 0)

    def do_copy(self) -> None:
        """Copy the command that enters the environment."""
        self.app.copy_to_clipboard(self._command())
        self._said = self._words("copied", command=self._command())

    def do_close(self) -> None:
        """Back to the run."""
        self.app.switch_screen(self._reopen(self.handle, False, False))

    def do_log(self) -> None:
        """Open the log of the proof."""
        self.app.switch_screen(self._reopen(self.handle, True, False))

    def do_undo(self) -> None:
        """Ask for the word that takes the run back, on the run's own screen."""
        self.app.switch_screen(self._reopen(self.handle, False, True))

    def do_leave(self) -> None:
        """Leave with the run's exit code."""
        code = exit_code(self.handle.state())
        self.app.exit(code, code)
