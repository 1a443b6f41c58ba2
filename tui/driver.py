"""The real terminal as Textual reads it, made patient with bytes that are no UTF-8."""

from __future__ import annotations

import codecs
import contextlib
import re
import time
from threading import Event, Lock
from typing import Any, cast

from textual import events
from textual.drivers import linux_driver
from textual.message import Message

from tui.gate import Gate
from tui.lean import LeanApp

_ANSWER = re.compile(r"\x1b?\[\d+;\d+R")
_SHORT = 1.0
"""Seconds for which the beginning of an answer is held that is later than any is waited for."""
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
        self._until = 0.0
        """When the answer counts as lost for which the first of them is held."""

    def take(self, message: Message, now: float) -> tuple[Message, ...]:
        """Return what goes on now that `message` came: itself, nothing yet, what was held before it, or the answer that it completes.

        A key is held only while an answer is to come: whatever comes next lets it go, and so does `let_go` once the answer is lost.
        """
        if isinstance(message, events.Key) and message.character and self._may_begin(message, now):
            text = "".join(key.character or "" for key in self._held) + message.character
            if _ANSWER.fullmatch(text):
                self._held.clear()
                return (events.CursorPosition(*_place(text)),)
            if _BEGUN.fullmatch(text):
                if not self._held:
                    self._until = self._gate.lost_at(now) or now + _SHORT
                self._held.append(message)
                return ()
        held, self._held = self._held, []
        return (*held, message)

    @property
    def held_until(self) -> float | None:
        """When what is held is to be let go at the latest; `None` where nothing is held."""
        return self._until if self._held else None

    def let_go(self, now: float) -> tuple[Message, ...]:
        """Return the keys that were held for an answer which did not come: a person typed them."""
        if now < self._until:
            return ()
        held, self._held = self._held, []
        return tuple(held)

    def _may_begin(self, key: events.Key, now: float) -> bool:
        """Whether `key` may belong to an answer: one is to come, for a lone Escape soon, from a terminal that is known to answer."""
        if self._held or key.key != "escape":
            return bool(self._held) or not self._gate.all_answered
        return self._gate.answers and self._gate.lost_at(now) is not None


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
        self._order = Lock()
        """Keys go on in the order in which they came, from whichever thread."""

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
        now = time.monotonic()
        with self._order:
            self._pass_on(self._pieces.take(message, now))
            until = self._pieces.held_until
        if until is not None:
            self._look_later(until - now)

    def _look_later(self, seconds: float) -> None:
        """Let go, after so many seconds, of what is held until then; nothing needs to come for that."""
        with contextlib.suppress(RuntimeError):  # the program ends: nobody is left to read a key
            self._loop.call_soon_threadsafe(self._loop.call_later, seconds, self._let_go)

    def _let_go(self) -> None:
        """Hand on the keys whose answer is lost."""
        with self._order:
            self._pass_on(self._pieces.let_go(time.monotonic()))

    def _pass_on(self, messages: tuple[Message, ...]) -> None:
        for one in messages:
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
