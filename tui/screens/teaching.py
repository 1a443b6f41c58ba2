"""The teaching text of a row: what it is, what breaks without it, the command a person would type, the way back, more to read."""

from __future__ import annotations

from steps.model.base import phrase
from steps.model.choice import Choice, Option
from steps.text import Language, lookup, say
from tui.cells import BLANK, Line, Span, cut, wrap
from tui.widgets.hint import LABEL, labelled

_PARTS = ("without", "command", "undo", "more")


def lines(language: Language, step: str, choice: Choice | None, option: Option | None, columns: int) -> list[Line]:
    """Return the lesson of a row, else of its question, else of the step."""
    key = lesson_of(step, choice, option)
    lesson = {part: _text(language, f"{key}.{part}") for part in ("title", "what", *_PARTS)}
    drawn: list[Line] = [(Span(cut(lesson["title"], columns), "strong"),), BLANK]
    drawn += [(Span(line),) for line in wrap(lesson["what"], columns)]
    drawn.append(BLANK)
    for part in _PARTS:
        label, text = _text(language, f"ui.teach.{part}"), lesson[part]
        if text and part == "command":
            drawn += [(Span(label, "mute"),), (Span(cut(text, columns), "primary"),)]
        elif text:
            drawn += labelled(label, text, LABEL[language], columns)
    return drawn


def lesson_of(step: str, choice: Choice | None, option: Option | None) -> str:
    """Return the key of the lesson that is nearest to a row; every step has one of its own."""
    value = option.value if option is not None else ""
    names = [value, value.rpartition("-")[2], value.partition("-")[0]] if value else []
    if choice is not None:
        names.append(choice.key.replace(".", "-"))
    found = next((name for name in names if name and lookup("en", f"teach.{step}.{name}.what") is not None), "step")
    return f"teach.{step}.{found}"


def _text(language: Language, key: str) -> str:
    """Return a part of a lesson, "" when it has none."""
    return say(language, phrase(key)) if lookup("en", key) is not None else ""
