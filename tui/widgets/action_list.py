"""The list of a run's actions: a mark and its word, the number, the name, the time and a note."""

from __future__ import annotations

from collections.abc import Mapping

from steps.model.action import AnyAction, Reboot
from steps.model.base import phrase
from steps.model.plan import Plan
from steps.model.run import ActionState, ActionStatus, RunState
from steps.text import Language, say
from tui.cells import Line, Span, cut, pad, width
from tui.theme import MARKS
from tui.watching import AtWork, about, clock, focus, of, taken

WINDOW = 9
"""Rows of the list; it moves so that the action that runs stays in view."""
_WORD, _TIME, _GAP = 9, 5, 3
_NAME, _LONG_NAME = 33, 41
"""Cells of the name at 80 columns: the second where a name of the plan is longer; notes have what is left."""
_INK: Mapping[ActionStatus, str] = {
    "waiting": "info", "running": "running", "asks": "catch", "done": "good", "already": "good", "failed": "bad", "skipped": "info",
    "undone": "good", "kept": "info",
}  # fmt: skip
_LOUD = frozenset({"running", "asks", "failed"})


def action_rows(
    plan: Plan, state: RunState, now: float, language: Language, *, columns: int, most: int = WINDOW, work: AtWork | None = None
) -> list[Line]:
    """Return at most `most` rows, those around the action that matters now; `work` is what its package manager says."""
    total = len(plan.actions)
    here = focus(plan, state)
    count = min(total, most)
    first = max(0, min(here - 2, total - count))
    rows = range(first, first + count)
    return [_row(at, plan, state, now, language, columns=columns, work=work if at == here else None) for at in rows]


def _row(index: int, plan: Plan, state: RunState, now: float, language: Language, *, columns: int, work: AtWork | None = None) -> Line:
    """Return one row."""
    action = plan.actions[index]
    one = of(state, action.id)
    needs_reboot = state.status == "reboot" and isinstance(action, Reboot)
    ink = "catch" if needs_reboot else _INK[one.status]
    word = say(language, phrase("run.word.reboot" if needs_reboot else f"run.word.{one.status}"))
    loud = one.status in _LOUD or needs_reboot
    text = "strong" if loud else "text"
    name = say(language, action.title)
    seconds = taken(one, now)
    time = (
        clock(seconds, language)
        if seconds is not None and one.status not in ("waiting", "already", "kept", "undone") and not needs_reboot
        else ""
    )
    note = _note(action, one, language, among_root=plan.needs_root, work=work)
    # In wide windows the name gets what is left; without a time and a note it may run on over their columns.
    longest = max(width(say(language, one.title)) for one in plan.actions)
    name_cells = (_NAME if longest <= _NAME else _LONG_NAME) + max(0, min(columns - 80, 30))
    if not time and not note:
        return (Span(" "), Span(MARKS[ink], ink), Span(f" {pad(word, _WORD)}{index + 1:2} ", text), Span(cut(name, columns - 16), text))
    return (
        Span(" "),
        Span(MARKS[ink], ink),
        Span(f" {pad(word, _WORD)}{index + 1:2} ", text),
        Span(pad(name, name_cells), text),
        Span(" " * (_TIME - width(time)) + time if width(time) <= _TIME else time, text),
        Span(" " * _GAP + note, "mute"),
    )


def _note(action: AnyAction, one: ActionState, language: Language, *, among_root: bool, work: AtWork | None) -> str:
    """Return the last column: what is normal, or what came of it."""
    if one.status == "failed" and one.exit is not None:
        return say(language, phrase("run.note.exit", exit=one.exit))
    if one.status == "asks":
        return say(language, phrase("run.note.no-limit"))
    if one.status in ("already", "skipped", "kept"):
        return say(language, phrase(f"run.note.{one.status}"))
    if one.status == "running":
        if work is not None and work.phase == "download":
            return say(language, phrase("run.note.download", percent=int(work.percent)))
        if action.by == "user" and among_root:
            return say(language, phrase("run.note.as-you"))
        if action.quiet_seconds is not None or (action.seconds or 0) >= 60:
            return say(language, phrase("run.note.usual", time=about(max(action.seconds or 0.0, action.quiet_seconds or 0.0), language)))
    return ""


def rule(label: str, right: str, columns: int, ink: str = "strong") -> Line:
    """Return the line between the list and what is below it."""
    right = cut(right, columns - 20)
    label = cut(label, columns - width(right) - 12)
    if not right:
        return (Span("── ", "rule"), Span(label, ink), Span(" " + "─" * max(1, columns - width(label) - 5), "rule"))
    dashes = max(1, columns - width(label) - width(right) - 9)
    return (Span("── ", "rule"), Span(label, ink), Span(f" {'─' * dashes} ", "rule"), Span(right, "mute"), Span(" ──", "rule"))
