"""What the screen of a run knows and draws: the list, the log or what stands in its place, the state lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from steps.errors import BringupError
from steps.model.action import Manual
from steps.model.base import Words, phrase
from steps.model.run import RunState
from steps.model.verdict import Rung
from steps.text import say, say_error
from tui.cells import BLANK, Line, Span, cut, width
from tui.reasons import TAIL, deciding
from tui.screens.base import LEAST_COLUMNS, LEAST_ROWS, Key, Page
from tui.screens.prompt import Question, known
from tui.screens.run_doctor import Doctor
from tui.screens.run_panes import Ask, ask_lines, failure_lines, last_line, log_rule, reboot_lines
from tui.screens.run_seen import Seen, face, header_words, next_words, state_lines, state_words, title_words
from tui.theme import spelled, style
from tui.watching import ENDED, PROOF_FAILED, AtWork, Quiet, Watched, focus, gone, of
from tui.widgets.action_list import WINDOW, action_rows, rule
from tui.widgets.answer_field import AnswerField
from tui.widgets.header import header
from tui.widgets.light_vt import plain
from tui.widgets.log_pane import LEFT_OUT, LogPane
from tui.widgets.sheet import Sheet

if TYPE_CHECKING:
    from steps.engine.client import RunHandle
    from tui.screens.run_doctor import Told

_SLOW_CLOCK = 5.0
"""Seconds in which times count on a slow link."""
POLL = 0.25
"""Seconds between two looks at the journal."""
_POLLS_A_LOOK = 4
"""At every so many looks the programs' own progress is read too (a build's whole log), and with it how long the run still needs."""
_GONE_AFTER = 8
"""Looks without a runner before it counts as gone: one is starting in the first of them."""
_WELCOME = 10.0
"""Seconds that "nothing was lost" stays."""
_SETTLE = 0.3
"""Seconds after a question was painted in which keys were not yet meant for it."""


class RunView(Page):
    """One run, watched."""

    CSS = "RunView { layers: base log; }"

    def __init__(self, handle: Watched, *, attached: bool = False, ended: bool = False, now: Callable[[], float] = time.time) -> None:
        """Watch `handle`; `attached` says that this viewer came back to it, `ended` that its end was shown already."""
        super().__init__()
        self.handle = handle
        self._end_shown = ended
        self.busy = False
        """Whether a runner is being started right now; the journal is left alone for so long."""
        self._now = now
        self._ticks = self._polls = 0
        self._work: AtWork | None = None
        self._left: float | None = None
        self._state: RunState = handle.state()
        self._back_at: float | None = now() if attached else None
        self._without = 0
        self._gone = False
        self._quiet = Quiet()
        self._silence = 0.0
        self._shown: str | None = None
        self._pinned: int | None = None
        self._full = False
        self._question: Question | None = None
        self._typing = True
        self._ask: Ask | None = None
        self._refused = False
        self._field = AnswerField()
        self._searching = False
        self._cursor = 0
        self._doctor = Doctor(self, handle)
        self._telling: tuple[str, tuple[str, ...]] = ("", ())
        self._said = ""
        self._placed = (0, 0)
        self._proof: tuple[Rung, ...] | None = handle.verdict() if ended else None
        self._repaired: RunHandle | None = self._find_repaired() if ended else None

    def compose(self) -> ComposeResult:
        """Return the sheet and, over it, the log."""
        yield Sheet()
        yield LogPane()

    @property
    def pane(self) -> LogPane:
        """The log."""
        return self.query_one(LogPane)

    # --- looking at the run ---------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Draw, and look at the journal from now on."""
        self.set_interval(POLL, self._tick)
        self.poll()

    def _tick(self) -> None:
        """Look at the journal; on a slow link only every fourth time."""
        self._ticks += 1
        if not self.shell.low_bandwidth or self._ticks % LEFT_OUT == 0:
            self.poll()

    def poll(self) -> None:
        """Take note of what the journal says now."""
        if self.busy:
            return
        try:
            alive, state = self.handle.alive(), self.handle.state()
        except BringupError as error:
            self.app.exit(error.exit_code, error.exit_code, say_error(self.shell.language, error.code, error.params))
            return
        self._state = state
        self._without = 0 if alive or state.status in ENDED else self._without + 1
        self._gone = gone(state, alive) and self._without >= _GONE_AFTER
        index = focus(self.handle.plan, state)
        action = self.handle.plan.actions[index]
        size = self.handle.spool(action.id).size()
        self._silence = self._quiet.seconds(action.id, size, of(state, action.id), self._now())
        if self._polls % _POLLS_A_LOOK == 0:
            # The way back builds modules too.
            at_work = state.status == "undoing" or of(state, action.id).status == "running"
            self._work = self.handle.work(action.id) if at_work else None
            self._left = self.handle.left(self._now()) if state.status == "running" else None
        self._polls += 1
        self._follow_question()
        self._choose_log(index)
        if state.status not in ENDED:
            self._end_shown, self._proof, self._repaired = False, None, None
        elif not self._end_shown:
            self._end_shown = True
            self._cursor = 0
            self._proof, self._repaired = self.handle.verdict(), self._find_repaired()
            if self._over():
                return
        if state.status == "failed":
            self._doctor.ask(action.id)
        else:
            self._doctor.forget()
        self.redraw()

    def _find_repaired(self) -> RunHandle | None:
        """Return the run that this one repaired, when it can be gone on with."""
        if self.handle.plan.repairs is None:
            return None
        from steps.engine import client

        return client.find_repaired(self.handle.plan.repairs)

    @property
    def told(self) -> Told | None:
        """What the doctor said to the failure that is shown, or `None`."""
        return self._doctor.said_of(self.seen.action.id) if self._state.status == "failed" else None

    def on_log_pane_moved(self) -> None:
        """Say the new place in the rule."""
        self.redraw()

    def _over(self) -> bool:
        """Go to the proof's screen when the run ended with one; return whether it did."""
        if self._state.status == "done" or self._state.exit == PROOF_FAILED:
            return self.show_verdict()
        return False

    def _choose_log(self, index: int) -> None:
        """Show the log of the action that matters, unless a person looks at another one or back in this one."""
        if self._pinned is not None:
            index = self._pinned
        elif self._shown is not None and self.pane.top is not None:
            return
        action = self.handle.plan.actions[index].id
        if action != self._shown:
            self._shown = action
            self.pane.show(self.handle.spool(action))

    def _follow_question(self) -> None:
        """Open a new question, close one that was answered."""
        prompt = self._state.prompt
        if prompt is None:
            self._question = None
        elif self._question is None or self._question.prompt.seq != prompt.seq:
            self._question = Question(prompt, known(prompt), self._manual(prompt.action))
            self._typing, self._full = True, False
            self._pinned = None
            self.app.bell()
            question = self._question
            self.call_after_refresh(lambda: self.set_timer(_SETTLE, lambda: setattr(question, "seen", True)))

    def _manual(self, action: str) -> Words:
        """Return what a person is asked to do by hand; "" for an action that is not of that kind."""
        return next((one.text for one in self.handle.plan.actions if one.id == action and isinstance(one, Manual)), "")

    @property
    def seen(self) -> Seen:
        """All that is drawn from."""
        now = self._now()
        if self.shell.low_bandwidth:
            now -= now % _SLOW_CLOCK
        back = None
        if self._back_at is not None and now - self._back_at < _WELCOME:
            back = self.pane.total
        language = self.shell.language
        repaired = self._repaired.id if self._repaired is not None else None
        return Seen(
            self.handle.plan, self._state, self.handle.id, now, language, self._gone, self._silence, self._work, back, self._left, repaired
        )

    # --- words ----------------------------------------------------------------------------------------

    def state_words(self) -> str:
        """Return the state of the run."""
        return state_words(self.seen)

    def title_words(self) -> str:
        """Return what is installed, or asked, or how it ended."""
        if self._question and not self._full:
            return self._question.title(self.shell.language)
        return title_words(self.seen)

    def about_words(self) -> str:
        """Return what the help page says first."""
        return say(self.shell.language, phrase("run.about"))

    def header_line(self, columns: int) -> Line:
        """Return the header: machine, run and start; rehearsals and other roots are named."""
        target = self.handle.plan.target
        parts = [self.shell.notice]
        if target.rehearsal:
            parts.append(say(self.shell.language, phrase("run.rehearsal")))
        elif target.root != "/":
            parts.append(say(self.shell.language, phrase("run.target", root=target.root)))
        words = dict.fromkeys(part for whole in parts for part in whole.split(" · ") if part)
        state = " · ".join([*words, self.state_words()])
        return header(columns, header_words(self.seen, columns - width(state) - 14), state)

    def next_words(self, room: int = 78) -> str:
        """Return the row above the keys: a remark until the next key, else what is to be known."""
        return self._said or next_words(self.seen, room)

    # --- the picture ----------------------------------------------------------------------------------

    def frame(self, columns: int, rows: int) -> list[Line]:
        """Return the whole picture; the log pane lies over its part of it."""
        seen = self.seen
        lines_of_state = state_lines(seen)
        if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
            self._place(None, 0)
            return [*lines_of_state, BLANK, *super().frame(columns, rows)][:rows]
        foot = [*lines_of_state, (Span(" " + cut(self.next_words(columns - 2), columns - 2), "mute"),), self.footer_line(columns)]
        if self._searching:
            foot = [self._search_line(columns), *foot[-2:]]
        head: list[Line] = [self.header_line(columns), (Span(" " + cut(self.title_words(), columns - 2), "strong"),)]
        if not self._full:
            most = self._list_rows(rows)
            head += action_rows(seen.plan, seen.state, seen.now, seen.language, columns=columns, most=most, work=seen.work)
        head.append(self._rule(columns))
        room = rows - len(head) - len(foot)
        body = self._body(columns, room)
        if body is None:
            self._place(len(head), room)
            body = []
        elif self._question is not None and self._question.is_dialog and self._ask is None:
            self._place(len(head) + len(body), room - len(body))
        else:
            self._place(None, 0)
        body = body[:room]
        return [*head, *body, *[BLANK] * (room - len(body)), *foot]

    def _list_rows(self, rows: int) -> int:
        """Return how many actions are listed: fewer where a question or a low window needs the rows."""
        if rows < 24:
            return max(3, rows - 15)
        if self._question is not None and self._ask is None:
            return 3 if self._question.is_dialog else WINDOW - 2
        # A high window shows more of the list, and gives the log the larger half of what it has more.
        return WINDOW + (rows - 24) // 2

    def _place(self, row: int | None, height: int) -> None:
        """Put the log pane over these rows, or take it away."""
        pane = self.pane
        pane.base = style(self.shell.palette, "text")
        pane.more = spelled("…", self.shell.marks)
        pane.slow = self.shell.low_bandwidth
        pane.dialog = self._question is not None and self._question.is_dialog
        shown = row is not None and height > 0
        if pane.display != shown:
            pane.display = shown
        if row is None:
            return
        place = (row, height)
        if self._placed != place:
            self._placed = place
            pane.styles.offset = (0, row)
            pane.styles.height = height

    def _body(self, columns: int, rows: int) -> list[Line] | None:
        """Return what stands in the log's place, or `None` for the log."""
        seen = self.seen
        if self._ask is not None:
            label = seen.say("ask.type", word=self._ask.word)
            return [*ask_lines(seen, self._ask, self._refused, columns), self._field.line(label, columns)]
        if self._full:
            return None
        match face(seen):
            case "question" if self._question is not None:
                if self._question.is_dialog:
                    return [(Span(" " + cut(self._question.hint(self.shell.language), columns - 2), "accent"),)]
                return self._question.lines(self.shell.language, columns, rows)
            case "failed":
                return failure_lines(seen, self._deciding(seen.action.id), self._cursor, columns, rows, told=self.told)
            case "reboot":
                return reboot_lines(seen, columns)
            case _:
                return last_line(self.pane, columns) if self.shell.low_bandwidth else None

    def _deciding(self, action: str) -> tuple[str, ...]:
        """Return the lines that decide why an action failed; read once."""
        if self._telling[0] != action:
            spool = self.handle.spool(action)
            tail = spool.read(max(0, spool.size() - TAIL), TAIL)
            self._telling = (action, deciding(plain(raw) for raw in tail.split(b"\n")))
        return self._telling[1]

    def _rule(self, columns: int) -> Line:
        """Return the line above the log, or above what stands in its place."""
        seen = self.seen
        if self._ask is not None:
            return rule(seen.say(f"rule.{self._ask.word}"), "", columns, "accent-strong")
        if not self._full and self._question is not None:
            return rule(self._question.asker(self.shell.language, seen.at + 1), "", columns, "accent-strong")
        if not self._full and face(seen) in ("failed", "reboot"):
            return rule(
                seen.say(f"rule.{face(seen)}"), seen.say("rule.l-log"), columns, "bad-strong" if face(seen) == "failed" else "accent-strong"
            )
        closed = self.shell.low_bandwidth and not self._full
        return log_rule(seen, self.pane, self._shown, columns, closed=closed)

    def _search_line(self, columns: int) -> Line:
        """Return the row of the search field."""
        return self._field.line(say(self.shell.language, phrase("run.search")), columns)

    def standing_keys(self) -> Sequence[Key]:
        """Return the keys that are always shown: none while letters are typed."""
        return () if self.takes_letters else super().standing_keys()

    @property
    def takes_letters(self) -> bool:
        """Whether letters go into a field now."""
        if self._ask is not None or self._searching:
            return True
        return self._question is not None and not self._full and self._typing and (self._question.typed or self._question.is_dialog)

    def show_verdict(self) -> bool:
        """Open the proof's screen in place of this one; return whether there is a proof."""
        return False
