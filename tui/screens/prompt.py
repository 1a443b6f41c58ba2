"""A question of a program, in the log's place: what it means, its known answers or a field; or the keys of its dialog."""

from __future__ import annotations

from typing import NamedTuple

from textual import events

from steps.catalog.prompts import answer_words, prompt_row
from steps.model.base import Words, phrase
from steps.model.run import Prompt
from steps.text import Language, say
from tui.cells import Line, Span, cut, pad, wrap
from tui.theme import MARKS
from tui.widgets.answer_field import AnswerField

_PROGRAMS = frozenset({"apt", "dpkg", "debconf", "ucf", "needrestart", "sudo", "ssh", "git", "pip", "conda"})
"""What the first word of a row's name may be, to be named as who asks."""
_EXCERPT = 16
"""Lines of the program's own text that are shown, where there is room."""


class Answer(NamedTuple):
    """One answer of a known question; Enter on a fresh question takes the safe one."""

    id: str
    label: Words
    safe: bool = False


class Known(NamedTuple):
    """What is known about a question: who asks ("" when its name does not say), what it means, and its answers."""

    asker: str
    sentence: Words
    answers: tuple[Answer, ...] = ()


def known(prompt: Prompt) -> Known | None:
    """Return what the catalogue knows about a prompt, or `None`."""
    row = prompt_row(prompt.id)
    if row is None:
        return None
    answers = tuple(Answer(answer.id, answer_words(row, answer), answer.id == row.default) for answer in row.answers)
    first = row.id.partition("-")[0]
    return Known(first if first in _PROGRAMS else "", phrase(f"engine.prompt.{row.id}.explain"), answers)


class Question:
    """One open prompt on the screen: the cursor, or the text typed so far."""

    def __init__(self, prompt: Prompt, known: Known | None, task: Words = "") -> None:
        """`task` is what a person is asked to do by hand, in our own question after such an action."""
        self.task = task
        self.prompt = prompt
        self.known = known
        self.answers = known.answers if known and prompt.kind == "choice" else ()
        self.cursor = next((at for at, answer in enumerate(self.answers) if answer.safe), 0)
        self.field = AnswerField(secret=prompt.kind == "secret")
        self.seen = False
        """Whether it was painted; keys that came before were not meant for it."""

    @property
    def is_dialog(self) -> bool:
        """Whether the program draws the question itself, and takes single keys."""
        return self.prompt.kind == "keys"

    @property
    def typed(self) -> bool:
        """Whether letters go into a field."""
        return not self.is_dialog and not self.answers

    def key(self, event: events.Key) -> str | None:
        """Take a key; return the answer when Enter gives one, `None` as long as there is none."""
        if event.key == "enter":
            return self.answers[self.cursor].id if self.answers else self.field.text
        if self.typed:
            self.field.take(event)
        elif event.key in ("down", "j"):
            self.cursor = min(self.cursor + 1, len(self.answers) - 1)
        elif event.key in ("up", "k"):
            self.cursor = max(self.cursor - 1, 0)
        elif event.character and event.character.isdigit() and 0 < int(event.character) <= len(self.answers):
            self.cursor = int(event.character) - 1
        return None

    # --- drawing ----------------------------------------------------------------------------------

    def title(self, language: Language) -> str:
        """Return the screen's title while the question is open."""
        if self.known and self.known.asker:
            return say(language, phrase("run.prompt.title.known", who=self.known.asker))
        return say(language, phrase("run.prompt.title.manual" if self._ours else f"run.prompt.title.{self.prompt.kind}"))

    def asker(self, language: Language, number: int) -> str:
        """Return what the rule above the question of step `number` says."""
        if self._ours:
            return say(language, phrase("run.prompt.ours"))
        if self.is_dialog:
            return say(language, phrase("run.prompt.dialog", n=number))
        return say(
            language,
            phrase("run.prompt.from", who=self.known.asker) if self.known and self.known.asker else phrase("run.prompt.in", n=number),
        )

    @property
    def _ours(self) -> bool:
        """Whether it is our own question, after something that only a person can do."""
        return self.prompt.id == "manual"

    def hint(self, language: Language) -> str:
        """Return the line above a program's own dialog."""
        return say(language, self.known.sentence if self.known else phrase("run.prompt.dialog-keys"))

    def lines(self, language: Language, columns: int, rows: int) -> list[Line]:
        """Return the question in at most `rows` rows."""
        end = self._answer_lines(language, columns)
        start: list[Line] = [(Span(" " + line, "strong"),) for line in wrap(say(language, self.task), columns - 2) if line]
        if self.known:
            start += [
                (Span(" " + line, "text" if at or self.task else "strong"),)
                for at, line in enumerate(wrap(say(language, self.known.sentence), columns - 2))
            ]
        else:
            start += [(Span(" " + say(language, phrase("run.prompt.unknown")), "strong"),)]
        room = rows - len(start) - len(end)
        quoted = [line for line in self.prompt.excerpt.splitlines() if line.strip()][-_EXCERPT:]
        quoted = quoted[-max(0, room - 2) :] if room > 2 else []
        if quoted:
            start += [(), *((Span(" " + cut(line.expandtabs(), columns - 2), "mute"),) for line in quoted)]
        if len(start) + len(end) < rows:
            start.append(())
        return [*start, *end]

    def _answer_lines(self, language: Language, columns: int) -> list[Line]:
        """Return the known answers as rows, or the field."""
        if not self.answers:
            label = say(language, phrase(f"run.prompt.label.{self.prompt.kind}"))
            lines: list[Line] = [self.field.line(label, columns)]
            if self.field.secret:
                lines.append((Span(" " + say(language, phrase("run.prompt.secret")), "mute"),))
            return lines
        return [self._answer(answer, at == self.cursor, language, columns) for at, answer in enumerate(self.answers)]

    def _answer(self, answer: Answer, here: bool, language: Language, columns: int) -> Line:
        """Return the row of one answer."""
        ground = "cursor" if here else "page"
        ink = "good" if answer.safe else "info"
        note = say(language, phrase("run.prompt.safe")) if answer.safe else ""
        return (
            Span(" "),
            Span("› " if here else "  ", "primary", ground),
            Span(
                ("(•) " if here else "( ) ") + pad(say(language, answer.label), min(50, columns - 24)), "strong" if here else "text", ground
            ),
            Span(" " + (MARKS[ink] if note else " "), ink, ground),
            Span(" " + note, "text", ground),
        )


_KEYS = {
    "enter": b"\r", "escape": b"\x1b", "tab": b"\t", "shift+tab": b"\x1b[Z", "backspace": b"\x7f", "up": b"\x1b[A", "down": b"\x1b[B",
    "right": b"\x1b[C", "left": b"\x1b[D", "home": b"\x1b[H", "end": b"\x1b[F", "pageup": b"\x1b[5~", "pagedown": b"\x1b[6~",
    "delete": b"\x1b[3~", "space": b" ",
}  # fmt: skip


def dialog_keys(event: events.Key) -> bytes | None:
    """Return what a terminal sends for a key, or `None` for one that a dialog has no use for."""
    if event.key in _KEYS:
        return _KEYS[event.key]
    return event.character.encode() if event.is_printable and event.character else None
