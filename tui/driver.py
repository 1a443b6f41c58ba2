"""The real terminal as Textual reads it, made patient with bytes that are no UTF-8."""

from __future__ import annotations

import codecs
import time
from threading import Event
from typing import Any, cast

from textual import events
from textual.drivers import linux_driver
from textual.message import Message

from tui.lean import LeanApp


def _patient(encoding: str) -> Any:
    """Return the maker of a decoder that drops what is no text."""
    strict = codecs.getincrementaldecoder(encoding)
    return lambda: strict("ignore")


class PatientDriver(linux_driver.LinuxDriver):
    """Drops what was typed or pasted in another encoding (a GBK keyboard, line noise), where Textual's own driver ends the program.

    It also counts the terminal's answers as they come, and does not leave the terminal while some are under way: they would be
    typed into whatever reads it next.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._all_answered = Event()

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
        if isinstance(message, events.CursorPosition):
            self._lean.gate.answered(message.time)
            if self._lean.gate.all_answered:
                self._all_answered.set()
        super().process_message(message)

    def run_input_thread(self) -> None:
        """Read keys until the program ends."""
        # Textual makes its decoder inside the loop that reads, by this name; there is no other place to ask for another one.
        linux_driver.__dict__["getincrementaldecoder"] = _patient
        super().run_input_thread()
