"""The application as its terminal is painted: differences only, few frames under way, fewer still where the link is slow."""

from __future__ import annotations

import time
from typing import Any

from textual import constants, events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.timer import Timer

from tui import terminal
from tui.gate import FAR, Gate
from tui.painter import Painter
from tui.theme import Marks

_NEAR_ESCAPE, _UNKNOWN_ESCAPE, _MOST_ESCAPE = 0.1, 0.5, 1.0
"""Seconds that the rest of a sequence is waited for: at hand, over SSH before anything is known of the link, and at most."""


class LeanApp(App[int]):
    """Sends what changed on the screen, and no more of it than the link carries.

    Textual hands every update to `_display`, which paints it whole; that is private, so the version of Textual is pinned.
    """

    def __init__(self, *, marks: Marks = "unicode", low_bandwidth: bool = False, probe: bool = False, over_ssh: bool = False) -> None:
        super().__init__()
        self.marks: Marks = marks
        self.gate = Gate()
        self.gate.slow = low_bandwidth
        self.painter = Painter(self.console, erases_in_colour=terminal.erases_in_colour(terminal.environment()))
        self._over_ssh = over_ssh
        self._decided = low_bandwidth
        """Whether a person said how fast the link is: that is not judged anew."""
        self._probe: bool | None = True if probe else None
        """Whether the width of an ambiguous sign is still to be asked; `None` when it is known or does not matter."""
        self._later: Timer | None = None
        if over_ssh:
            _wait_for_sequences(_UNKNOWN_ESCAPE)

    # --- the link -------------------------------------------------------------------------------

    @property
    def low_bandwidth(self) -> bool:
        """Whether few frames are sent and logs stay closed."""
        return self.gate.slow

    @low_bandwidth.setter
    def low_bandwidth(self, slow: bool) -> None:
        """Say how fast the link is, for good."""
        self._decided = True
        self.gate.slow = slow
        self.link_changed()

    def link_changed(self) -> None:
        """Draw what depends on the link and on the terminal's signs anew."""

    def on_cursor_position(self, event: events.CursorPosition) -> None:
        """Send what waited for this answer; the first of all answers says how wide an ambiguous sign is."""
        if self._probe is False:
            self._probe = None
            # The answer names the column behind the sign, counted from 0: 1 for a sign of one cell, 2 for a wide one.
            if event.x >= 2 and self.marks == "unicode":
                self.marks = "narrow"
                self.painter.forget()
                self.link_changed()
        self._judge_link()
        self.send_frame()

    def _judge_link(self) -> None:
        """Choose the low-bandwidth mode where answers take long, unless a person said otherwise."""
        trip = self.gate.trip
        if trip is None or not self._over_ssh:
            return
        _wait_for_sequences(min(_MOST_ESCAPE, max(_UNKNOWN_ESCAPE, 3 * trip)) if trip > FAR else _NEAR_ESCAPE)
        if self.gate.far and not self._decided and not self.gate.slow:
            self.gate.slow = True
            self.link_changed()

    # --- painting -------------------------------------------------------------------------------

    def _display(self, screen: Any, renderable: Any) -> None:
        """Take an update of Textual, and send the difference as soon as the link is free."""
        whole = isinstance(renderable, (ChopsUpdate, LayoutUpdate))
        if not whole or not self._paints:
            if renderable is not None and not whole:
                self.painter.forget()
            super()._display(screen, renderable)
            return
        self.painter.take(renderable, self.size)
        self.send_frame()
        self.post_display_hook()

    @property
    def _paints(self) -> bool:
        """Whether there is a terminal of ours to paint on now."""
        return self._running and not self._closed and not self._batch_count and not self.is_headless and self._driver is not None

    def send_frame(self) -> None:
        """Send what the terminal does not show yet, or come back when the link is free."""
        if self._later is not None:
            self._later.stop()
            self._later = None
        if not self._paints or self._driver is None:
            return
        now = time.monotonic()
        wait = self.gate.wait(now)
        if wait:
            self._later = self.set_timer(wait, self.send_frame)
            return
        frame = self.painter.frame(self.size.clamp_offset(self.cursor_position))
        if not frame:
            return
        asked = ""
        if self._probe:
            self._probe = False
            asked = terminal.PROBE + self.gate.sent(now)
        self._begin_update()
        self._driver.write(asked + frame)
        self._end_update()
        self._driver.write(self.gate.sent(now))
        self._driver.flush()

    def given_back(self) -> None:
        """Take note that the terminal was somebody else's: nothing of ours stands on it, and no answer is under way."""
        self.painter.forget()
        self.gate.begin_again()

    def on_resize(self) -> None:
        """Paint everything at the new size: terminals move what they show in ways of their own."""
        self.painter.forget()
        self.call_after_refresh(self.send_frame)


def _wait_for_sequences(seconds: float) -> None:
    """Let Textual wait so long for the rest of a sequence: one that the link cuts in two must not be taken for Escape and letters."""
    # Textual reads this name at every sequence; it has no other setting for it than the environment of its import.
    constants.__dict__["ESCAPE_DELAY"] = seconds
