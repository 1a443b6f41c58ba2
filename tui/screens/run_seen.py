"""What is seen of a run, and the words and state lines that stand around its log."""

from __future__ import annotations

import time
from typing import Literal, NamedTuple

from steps.model.action import AnyAction
from steps.model.base import Param, phrase
from steps.model.plan import Plan
from steps.model.run import LOG_IN_AGAIN, ActionState, RunState, is_taken_back, stays
from steps.text import Language, say
from tui.cells import Line, Span, width
from tui.theme import MARKS
from tui.watching import AtWork, Progress, about, clock, focus, installing, of, progress, remaining, stillness, title

Face = Literal["log", "question", "failed", "reboot", "gone", "ended"]
"""What the run shows by itself, when nothing else is opened over it."""
_ROW = 76
"""Cells that a sentence has beside its mark at 80 columns."""
_NOTED = 15.0
"""Seconds of silence before anything is said about it."""
_UNUSUAL = 120.0
"""Seconds of silence that are worth a word where nothing says what is normal."""


class Seen(NamedTuple):
    """All that the screen draws from."""

    plan: Plan
    state: RunState
    run: str
    now: float
    language: Language
    gone: bool
    quiet: float
    """Seconds without output of the action that matters now."""
    work: AtWork | None = None
    """What the package manager says of the action that matters now."""
    attached: int | None = None
    """Lines that were there when this viewer came back to the run, while that is worth saying."""
    left: float | None = None
    """The seconds that the run will probably still need; `None` when that cannot be said."""
    repaired: str | None = None
    """The run that this one was to repair, when this one is over and that one can be gone on with."""

    def say(self, key: str, /, **params: Param) -> str:
        """Return the words `run.<key>`."""
        return say(self.language, phrase(f"run.{key}", **params))

    @property
    def at(self) -> int:
        """The action that matters now, counted from 0."""
        return focus(self.plan, self.state)

    @property
    def action(self) -> AnyAction:
        """The action that matters now."""
        return self.plan.actions[self.at]

    @property
    def one(self) -> ActionState:
        """How far that action is."""
        return of(self.state, self.action.id)

    @property
    def progress(self) -> Progress:
        """How far the run is."""
        return progress(self.plan, self.state, self.now)

    @property
    def at_work(self) -> bool:
        """Whether something is done for the action now: it runs, or is being taken back."""
        return self.state.status == "undoing" or (self.state.status == "running" and self.one.status == "running")

    @property
    def too_quiet(self) -> bool:
        """Whether the silence is longer than is normal for the action."""
        usual = self.action.quiet_seconds
        return self.at_work and usual is not None and stillness(self.quiet, self.work, self.now) > usual


def face(seen: Seen) -> Face:
    """Return what the run shows by itself."""
    if seen.gone:
        return "gone"
    if seen.state.prompt is not None and seen.state.status not in ("cancelled", "undone"):
        return "question"
    match seen.state.status:
        case "failed":
            return "failed"
        case "reboot":
            return "reboot"
        case "done" | "cancelled" | "undone" | "undo-failed":
            return "ended"
        case "starting" | "running" | "paused" | "asks" | "undoing":
            return "log"


def state_words(seen: Seen) -> str:
    """Return the state of the run as the header says it."""
    if seen.gone:
        return seen.say("state.gone")
    known = seen.progress
    if seen.too_quiet:
        return seen.say("state.quiet")
    if seen.state.prompt is not None:
        return seen.say("state.asks")
    if seen.attached is not None and seen.state.status == "running":
        return seen.say("state.attached")
    return seen.say(f"state.{seen.state.status}", n=known.number, total=known.total, next=known.done + 1)


def header_words(seen: Seen, room: int) -> str:
    """Return the run's name and start, as the header says them beside the machine; the start only where it fits whole."""
    name = f"{seen.plan.target.name} · " if seen.plan.target.name else ""
    short = name + seen.say("header.new", id=seen.run)
    if seen.state.started is None:
        return short
    long = name + seen.say("header.started", id=seen.run, time=hours(seen.state.started))
    return long if width(long) <= room else short


def title_words(seen: Seen) -> str:
    """Return the title: what is installed, or how it ended."""
    match seen.state.status:
        case "failed":
            return seen.say("title.failed", n=seen.at + 1, title=title(seen.action, seen.language))
        case "done" if seen.repaired is not None:
            return seen.say("title.repaired", run=seen.repaired)
        case "done" if seen.plan.target.rehearsal:
            return seen.say("title.rehearsed")
        case "cancelled" | "undone" if seen.plan.target.rehearsal:
            return seen.say("title.rehearsal-over")
        case "undone" if what := stays(seen.plan.actions, seen.state):
            return seen.say("title.undone-but", what=say(seen.language, what))
        case "cancelled" | "reboot" | "undoing" | "undone" | "undo-failed" | "done":
            return seen.say(f"title.{seen.state.status}", time=hours(seen.state.started or seen.now))
        case "starting" | "running" | "paused" | "asks":
            return installing(seen.plan, seen.language)


def hours(at: float) -> str:
    """Return a moment as the person's own clock shows it."""
    return time.strftime("%H:%M", time.localtime(at))


# --- the state lines --------------------------------------------------------------------------------


def state_lines(seen: Seen) -> list[Line]:
    """Return the two rows that say how far it is and what is normal."""
    known = seen.progress
    count = Span(" " + seen.say("count", n=known.number, total=known.total), "strong")
    gone = clock(known.gone, seen.language)
    if seen.gone:
        return [
            (count, Span("   " + seen.say("time.gone", time=gone))),
            _marked("bad", seen.say("line.gone-undo" if is_taken_back(seen.state) else "line.gone")),
        ]
    match seen.state.status:
        case "failed":
            return [(count, Span("   " + seen.say("time.stopped", time=gone) + "   " + seen.say("line.failed", done=known.done)))]
        case "reboot":
            return [
                (
                    Span(" " + seen.say("count", n=known.done, total=known.total), "strong"),
                    Span("   " + seen.say("time.gone", time=gone) + "   " + seen.say("line.reboot")),
                )
            ]
        case "done" | "cancelled" | "undone" | "undo-failed":
            back, kept = (sum(one.status == word for one in seen.state.actions.values()) for word in ("undone", "kept"))
            undone = seen.say("count-undone-kept" if kept else "count-undone", n=back, kept=kept)
            done = undone if back else seen.say("count-done", n=known.done, total=known.total)
            return [(Span(" " + done, "strong"), Span("   " + seen.say("time.took", time=gone))), _marked(*_ending(seen))]
        case "starting" | "running" | "paused" | "asks" | "undoing":
            return [_running_line(seen, count, gone), _second_line(seen)]


def _ending(seen: Seen) -> tuple[str, str]:
    """Return the mark and the sentence of a run that is over."""
    ink = {"done": "good", "undone": "good", "cancelled": "info"}.get(seen.state.status, "bad")
    if seen.state.status == "done" and seen.repaired is not None:
        return ink, seen.say("line.repaired", run=seen.repaired)
    if seen.state.status == "undone" and stays(seen.plan.actions, seen.state):
        return "info", seen.say("line.undone-but")
    rehearsed = (
        {"done": "rehearsed", "cancelled": "rehearsal-cancelled", "undone": "rehearsal-undone"} if seen.plan.target.rehearsal else {}
    )
    return ink, seen.say(f"line.{rehearsed.get(seen.state.status, seen.state.status)}")


def _running_line(seen: Seen, count: Span, gone: str) -> Line:
    """Return how many steps, how long so far, how long still, and when anything was printed last."""
    times = seen.say("time.gone", time=gone)
    # A rehearsal takes seconds; what the plan would take says nothing of it.
    if seen.state.status == "running" and not seen.plan.target.rehearsal:
        times = seen.say("time.left", time=gone, left=remaining(seen.left, seen.language))
    last = ""
    if seen.one.status == "running" or seen.at_work:
        last = "   " + seen.say("time.last", time=clock(seen.quiet, seen.language))
    return (count, Span("   " + times), Span(last, "mute"))


def _second_line(seen: Seen) -> Line:
    """Return what is to be known now: a question, a pause, a silence; empty when nothing is."""
    if seen.state.prompt is not None:
        return _marked("catch", seen.say("line.asks"))
    if seen.state.status == "paused":
        known = seen.progress
        return _marked("info", seen.say("line.paused", n=known.done, total=known.total))
    if seen.attached is not None:
        return _marked("good", seen.say("line.attached", n=f"{seen.attached:,}"))
    if not seen.at_work or seen.quiet < _NOTED:
        return ()
    usual = seen.action.quiet_seconds
    quiet = clock(seen.quiet, seen.language)
    if usual is None:
        return _marked("info", seen.say("line.no-output", time=quiet)) if seen.quiet >= _UNUSUAL else ()
    if not seen.too_quiet:
        return _marked("running", _compiled(seen) or _normal(seen, usual), mark="·")
    return _marked("catch", seen.say("line.too-quiet", time=quiet, usual=clock(usual, seen.language)))


def _compiled(seen: Seen) -> str:
    """Return how far the build of a module is; empty while none is built, or none of an unknown number is compiled."""
    work = seen.work
    if work is None or work.objects is None or not (work.objects or work.of):
        return ""
    if work.of is None:
        return seen.say("line.objects", n=f"{work.objects:,}")
    return seen.say("line.objects-of", n=f"{min(work.objects, work.of):,}", total=f"{work.of:,}")


def _normal(seen: Seen, usual: float) -> str:
    """Return why silence is normal; the reason alone where both do not fit in one row."""
    why = say(seen.language, seen.action.quiet_why)
    if not why:
        return seen.say("line.silence", time=about(usual, seen.language))
    whole = seen.say("line.normal", why=why)
    return whole if width(whole) <= _ROW else why


def _marked(ink: str, sentence: str, mark: str | None = None) -> Line:
    """Return a sentence with its mark before it."""
    return (Span(" "), Span(mark or MARKS[ink], ink), Span(f" {sentence}"))


def next_words(seen: Seen, room: int = _ROW) -> str:
    """Return the row above the keys; where a command with a long path leaves no room for a sentence, only what to type."""
    if seen.gone:
        key = "undo-failed" if is_taken_back(seen.state) else "gone"
    elif seen.state.prompt is not None:
        key = "asks"
    elif seen.state.status == "paused" and any(one.status == "running" for one in seen.state.actions.values()):
        key = "pausing"
    elif seen.state.status == "done" and seen.repaired is not None:
        key = "repaired"
    elif seen.state.status in ("done", "cancelled", "undone") and seen.plan.target.rehearsal:
        key = "rehearsed"
    elif seen.state.status == "done" and seen.state.exit == LOG_IN_AGAIN:
        key = "login"
    elif seen.state.status == "reboot" and seen.state.unit is not None:
        key = "reboot-unit"
    else:
        key = seen.state.status
    words = seen.say(f"next.{key}", run=seen.repaired or "")
    return seen.say(f"next-short.{key}", run=seen.repaired or "") if width(words) > room and key in _WITH_A_COMMAND else words


_WITH_A_COMMAND = frozenset(
    ["repaired", "running", "asks", "failed", "cancelled", "reboot", "reboot-unit", "undoing", "undone", "undo-failed", "done", "gone"],
)
