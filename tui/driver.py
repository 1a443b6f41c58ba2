"""The real terminal as Textual reads it, made patient with bytes that are no UTF-8."""

from __future__ import annotations

import codecs
from typing import Any

from textual.drivers import linux_driver


def _patient(encoding: str) -> Any:
    """Return the maker of a decoder that drops what is no text."""
    strict = codecs.getincrementaldecoder(encoding)
    return lambda: strict("ignore")


class PatientDriver(linux_driver.LinuxDriver):
    """Drops what was typed or pasted in another encoding (a GBK keyboard, line noise), where Textual's own driver ends the program."""

    def run_input_thread(self) -> None:
        """Read keys until the program ends."""
        # Textual makes its decoder inside the loop that reads, by this name; there is no other place to ask for another one.
        linux_driver.__dict__["getincrementaldecoder"] = _patient
        super().run_input_thread()
