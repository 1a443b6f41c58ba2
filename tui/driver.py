"""The real terminal as Textual reads it, made patient with bytes that are no UTF-8."""

from __future__ import annotations

import codecs
import re
import time
from threading import Event
from typing import Any, cast

from textual import events
from textual.drivers import linux_driver
from textual.message import Message

from tui.gate import Gate
from tui.lean import LeanApp

_ANSWER = re.compile(r"\x1b?\[\d+;\d+R")
_BEGUN = re.compile(r"\x1b?(\[(\d+(;\d*)?)?)?")


def _patient(encoding: str) -> Any:
    """Return the maker of a decoder that drops what is no text."""
    strict = codecs.getincrementaldecoder(encoding)
    return lambda: strict("ignore")


class Pieces:
    """Puts an answer together again that the link cut in two for longer than any sequence is waited for.

    Textual then hands its letters on as keys, and an answer's digits are keys of ours.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._held: list[events.Key] = []

    def take(self, message: Message) -> tuple[Message, ...]:
        """Return what goes on now that `message` came: itself, nothing yet, what was held before it, or the answer that it completes.

        A key is held only while an answer is to come, and never longer than until that answer: whatever comes next lets it go.
        """
        if isinstance(message, events.Key) and message.character and self._may_begin(message):
            text = "".join(key.character or "" for key in self._held) + message.character
            if _ANSWER.fullmatch(text):
                self._held.clear()
                return (events.CursorPosition(*_place(text)),)
            if _BEGUN.fullmatch(text):
                self._held.append(message)
                return ()
        held, self._held = self._held, []
        return (*held, message)

    def _may_begin(self, key: events.Key) -> bool:
        """Whether `key` may belong to an answer: a lone Escape only where one is sure to come, or it would be held for ever."""
        return bool(self._held) or (self._gate.answer_is_sure if key.key == "escape" else not self._gate.all_answered)


def _place(answer: str) -> tuple[int, int]:
    """Return the column and the row that an answer names, counted from 0."""
    row, column = answer.rpartition("[")[2].rstrip("R").split(";")
    return int(column) - 1, int(row) - 1


class PatientDriver(linux_driver.LinuxDriver):
    """Drops what was typed or pasted in another encoding (a GBK keyboard, line noise), where Textual's own driver ends the program.

    It also counts the terminal's answers as they come, and does not leave the terminal while some are under way: they would be
    typed into whatever reads it next.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._all_answered = Event()
        self._pieces = Pieces(self._lean.gate)

    @property
    def _lean(self) -> LeanApp:
        return cast("LeanApp", self._app)

    def start_application_mode(self) -> None:
        """Take the terminal."""
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual says no types here
        self._lean.given_back()

    def stop_application_mode(self) -> None:
        """Leave the terminal, once its answers have come or will not come."""
        self._all_answered.clear()
        if patience := self._lean.gate.patience(time.monotonic()):
            self._all_answered.wait(patience)
        super().stop_application_mode()

    def process_message(self, message: Message) -> None:
        """Count an answer of the terminal at once; everything goes on to the application."""
        for one in self._pieces.take(message):
            if isinstance(one, events.CursorPosition):
                self._lean.gate.answered(one.time)
                if self._lean.gate.all_answered:
                    self._all_answered.set()
            super().process_message(one)

    def run_input_thread(self) -> None:
        """Read keys until the program ends."""
        # Textual makes its decoder inside the loop that reads, by this name; there is no other place to ask for another one.
        linux_driver.__dict__["getincrementaldecoder"] = _patient
        super().run_input_thread()
