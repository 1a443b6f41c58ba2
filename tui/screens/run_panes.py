"""The log's rule, and what takes the log's place: why it failed and the ways out, a reboot, a word to type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from steps.model.action import Reboot
from steps.model.base import Param
from steps.text import say
from tui.cells import Line, Span, cut, pad, wrap
from tui.screens.run_seen import Seen, hours
from tui.theme import MARKS
from tui.watching import background, cause, for_unknown_reason, title
from tui.widgets.action_list import rule
from tui.widgets.light_vt import plain
from tui.widgets.log_pane import LogPane

if TYPE_CHECKING:
    from tui.screens.run_doctor import Told


def log_rule(seen: Seen, pane: LogPane, shown: str | None, columns: int, *, closed: bool = False) -> Line:
    """Return the line above the log of the action `shown`: which log it is, and where in it the pane stands, or how it is opened."""
    at = next((at for at, action in enumerate(seen.plan.actions) if action.id == shown), seen.at)
    label = seen.say("rule.log", n=at + 1, title=cut(title(seen.plan.actions[at], seen.language), 30))
    if closed:
        place = seen.say("rule.closed")
    elif pane.searching:
        place = seen.say("rule.searching")
    elif pane.missed:
        place = seen.say("rule.not-found")
    elif pane.top is None:
        key = "screen" if pane.pictured else "following-one" if pane.total == 1 else "following"
        place = seen.say(f"rule.{key}", lines=f"{pane.total:,}")
    else:
        place = seen.say("rule.place", at=f"{pane.last_shown:,}", lines=f"{pane.total:,}")
    return rule(label, place, columns)


def last_line(pane: LogPane, columns: int) -> list[Line]:
    """Return the last line of the log, which stands for it while it is closed."""
    lines = pane.lines.tail(1) if pane.lines is not None else []
    return [(Span(" " + cut(plain(line).strip(), columns - 2), "mute"),) for line in lines]


class WayOut(NamedTuple):
    """One way out of a failure: its key, the action it performs and what it does."""

    key: str
    action: str
    words: str
    advised: bool = False


def ways_out(seen: Seen, told: Told | None = None) -> list[WayOut]:
    """Return what can be done after a failure, the advised one first: the doctor's repair where he knows one that was not made yet.

    Nothing is advised where only a program's exit code is known.
    """
    number = seen.at + 1
    rest = len(seen.plan.actions) - number
    left_out = seen.say("way.skip", n=number) if rest else seen.say("way.skip-last", n=number)
    cause = told.cause if told is not None else None
    steps = cause.repair.steps if cause is not None else ()
    mended = told.mended if told is not None else None
    repair = [WayOut("f", "repair", say(seen.language, steps[0].says).rstrip(".。"), advised=mended is None)] if steps else []
    again = seen.say("way.retry", n=number) if mended is None else seen.say("way.retry-mended", n=number, run=mended)
    retry = [WayOut("r", "again", again, advised=mended is not None or (not repair and not for_unknown_reason(seen.one)))]
    back = WayOut("u", "undo", seen.say("way.undo", time=hours(seen.state.started or seen.now)))
    undo = [] if seen.plan.target.rehearsal else [back]
    return [
        *(repair + retry if mended is None else retry + repair),
        WayOut("n", "leave_out", left_out),
        *undo,
        WayOut("q", "leave", seen.say("way.leave")),
    ]


def failure_lines(seen: Seen, deciding: Sequence[str], cursor: int, columns: int, rows: int, *, told: Told | None = None) -> list[Line]:
    """Return why it failed and the ways out: cause, background, at most three lines of output, then what can be done.

    The background is said whole where there is room, before any output: it names what is in the way.
    """
    found = told.cause if told is not None else None
    why = say(seen.language, found.title) if found is not None else cause(seen.action, seen.one, seen.language)
    more = say(seen.language, found.because) if found is not None else background(seen.one, seen.language)
    lines: list[Line] = [(Span(" " + line, "strong"),) for line in wrap(why, columns - 2)]
    ways = ways_out(seen, told)
    said = [line for line in wrap(more, columns - 2) if line]
    most = max(2, rows - len(lines) - len(ways))
    if len(said) > most:
        said = [*said[: most - 1], cut(f"{said[most - 1]} {said[most]}", columns - 2)]
    lines += [(Span(" " + line),) for line in said]
    room = rows - len(lines) - len(ways)
    quoted = list(deciding)[-max(0, min(3, room - 2 if room > 2 else room)) :] if room > 0 else []
    air = room - len(quoted)
    if air > 0 and quoted:
        lines.append(())
        air -= 1
    lines += [(Span(" " + cut(line, columns - 2), "mute"),) for line in quoted]
    if air > 0:
        lines.append(())
    return [*lines, *(_way(way, at == cursor, seen, columns) for at, way in enumerate(ways))]


def _way(way: WayOut, here: bool, seen: Seen, columns: int) -> Line:
    """Return the row of one way out."""
    ground, room = "cursor" if here else "page", min(56, columns - 22)
    advised = (Span(MARKS["good"], "good", ground), Span(" " + seen.say("way.advised"), "text", ground)) if way.advised else ()
    return (
        Span(" "),
        Span("› " if here else "  ", "primary", ground),
        Span(way.key, "key", ground),
        Span("  " + pad(cut(way.words, room - 1), room), "strong" if here else "text", ground),
        *advised,
        Span(" " * (0 if advised else 2), "text", ground),
    )


def reboot_lines(seen: Seen, columns: int) -> list[Line]:
    """Return why a reboot is needed."""
    reasons = [say(seen.language, action.reason) for action in seen.plan.actions if isinstance(action, Reboot)]
    return [(Span(" " + line),) for reason in reasons for line in wrap(reason, columns - 2) if line]


class Ask(NamedTuple):
    """What wants a typed word: the word, what is said before the field, and the action it performs."""

    word: Literal["stop", "undo", "reboot"]
    action: str
    gone: tuple[str, ...] = ()
    """The folders that go with everything in them."""
    back: int = 0
    """How many steps an undo takes back."""


def ask_lines(seen: Seen, ask: Ask, refused: bool, columns: int) -> list[Line]:
    """Return what is lost, what is kept and what to type."""
    known = seen.progress
    params: dict[str, Param] = {"n": seen.at + 1, "done": known.done, "time": hours(seen.state.started or seen.now), "back": ask.back}
    lines: list[Line] = []
    for at, key in enumerate(("lose", "keep")):
        words = seen.say(f"ask.{ask.word}.{key}", **params)
        lines += [(Span(" " + line, "strong" if at == 0 else "text"),) for line in wrap(words, columns - 2)]
    for path in ask.gone:
        lines += [(Span(" " + line, "catch"),) for line in wrap(seen.say("ask.undo.gone", path=path), columns - 2)]
    lines.append(())
    if refused:
        lines.append((Span(" " + seen.say("ask.nothing-done", word=ask.word), "catch"),))
    return lines
