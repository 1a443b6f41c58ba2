"""The live monitor: what each GPU does now, a few times a second, over whatever screen it was opened from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from steps.model.base import Words, phrase
from steps.model.gauge import Gauges
from tui.cells import Line, Span, wrap
from tui.screens.base import Key, Page, ui
from tui.widgets import gauges

_PERIOD, _SLOW_PERIOD, _FIRST = 0.5, 1.0, 0.1
"""Seconds between two looks: usual, on a slow link, and before the first answer."""
_SILENT = 3.0
"""Seconds without an answer after which that is said."""
_KNOWN = (4, 9, 12, 17, 18)
"""NVML's codes that have words of their own: no permission, not loaded, no library, blocked by the system, mismatch."""

_KEYS = (
    Key(("down", "j"), "down", "↑↓", ui("key.move")),
    Key(("up", "k"), "up", "", ui("key.move"), footer=False),
    Key(("escape", "b", "q", "enter", "g"), "close", "Esc", ui("key.back")),
)


class Feed(Protocol):
    """What the GPUs do; asking never waits."""

    def turn(self) -> Gauges | None:
        """Return the newest whole answer; `None` before the first."""
        ...

    @property
    def silent(self) -> float:
        """For how many seconds a question has had no answer."""
        ...

    def close(self) -> None:
        """Ask no more."""
        ...


class MonitorPage(Page):
    """Every GPU of this machine; of a recorded machine there is nothing to watch."""

    def __init__(self, below: Page, feed: Feed | None) -> None:
        super().__init__()
        self._below = below
        self._feed = feed
        self._seen: Gauges | None = None
        self._cursor = 0

    def on_mount(self) -> None:
        """Draw, and begin to look."""
        super().on_mount()
        self._tick()

    def on_unmount(self) -> None:
        """Ask no more."""
        if self._feed is not None:
            self._feed.close()

    def _tick(self) -> None:
        """Look, draw what changed, and come again."""
        if self._feed is None:
            return
        self._seen = self._feed.turn()
        self.redraw()
        usual = _SLOW_PERIOD if self.shell.low_bandwidth else _PERIOD
        self.set_timer(_FIRST if self._seen is None and self._feed.silent < _SILENT else usual, self._tick)

    # --- words ----------------------------------------------------------------------------------------

    def state_words(self) -> str:
        """Return the state of the screen below: a run that goes on stays in view."""
        return self._below.state_words()

    def title_words(self) -> str:
        """Return the question."""
        return self.shell.say(phrase("monitor.title"))

    def sub_words(self) -> str:
        """Return how many cards answer and what they draw together; that nothing answers, once it is so."""
        if self._feed is not None and self._feed.silent >= _SILENT:
            return self.shell.say(phrase("monitor.sub.silent", seconds=int(self._feed.silent)))
        if self._seen is None or not self._seen.cards:
            return ""
        cards = self._seen.cards
        well = [card for card in cards if card.error is None and not card.late]
        watts = [card.watts for card in well if card.watts is not None]
        parts = [self.shell.say(phrase("monitor.sub.count", count=len(well), all=len(cards)))]
        if self._seen.driver:
            parts.append(self.shell.say(phrase("monitor.sub.driver", version=self._seen.driver)))
        if watts:
            parts.append(self.shell.say(phrase("monitor.sub.watts", watts=round(sum(watts)))))
        return " · ".join(parts)

    def next_words(self) -> str:
        """Return how often it looks."""
        return self.shell.say(phrase("monitor.next-slow" if self.shell.low_bandwidth else "monitor.next"))

    def about_words(self) -> str:
        """Return what the page is, for the help."""
        return self.shell.say(phrase("monitor.about-page"))

    # --- the body -------------------------------------------------------------------------------------

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return the cards, or why there are none."""
        seen = self._seen
        if seen is not None and seen.cards:
            self._cursor = min(self._cursor, len(seen.cards) - 1)
            return gauges.draw(seen.cards, self._cursor, columns, rows, self.shell.say)
        return [(Span(" " + line),) for line in wrap(self.shell.say(self._nothing(seen)), columns - 2)]

    def _nothing(self, seen: Gauges | None) -> Words:
        """Return why there is no card to show."""
        if self._feed is None:
            return phrase("monitor.none.recorded")
        if seen is None:
            return phrase("monitor.none.asking" if self._feed.silent < _SILENT else "monitor.none.silent")
        if seen.error is None:
            return phrase("monitor.none.cards")
        if seen.error in _KNOWN:
            return phrase(f"monitor.none.{seen.error}")
        return phrase("monitor.none.failing", code=seen.error, said=seen.said or "?")

    # --- keys -----------------------------------------------------------------------------------------

    def key_table(self) -> Sequence[Key]:
        """Return the keys; where there is one card or none, there is nothing to move to."""
        many = self._seen is not None and len(self._seen.cards) > 1
        return _KEYS if many else _KEYS[2:]

    def do_down(self) -> None:
        """To the next card."""
        self._cursor = min(self._cursor + 1, max(0, len(self._seen.cards) - 1 if self._seen is not None else 0))

    def do_up(self) -> None:
        """To the card before."""
        self._cursor = max(self._cursor - 1, 0)

    def do_monitor(self) -> None:
        """Stay: this is it."""
