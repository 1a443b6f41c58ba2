"""A line of text that is being typed."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["open", "done", "left"]


class Field:
    """What was typed so far; letters are letters here, whatever they mean elsewhere."""

    def __init__(self, text: str = "", *, limit: int = 200, suggested: bool = False) -> None:
        """Begin with a text; of a `suggested` one the first letter typed takes the place, and Backspace goes on from it."""
        self.text = text
        self._limit = limit
        self._suggested = suggested

    def key(self, name: str, character: str | None) -> Outcome:
        """Take a key and return whether the field is still open, was finished with Enter, or was left with Esc."""
        if name == "enter":
            return "done"
        if name == "escape":
            return "left"
        suggested, self._suggested = self._suggested, False
        if name in ("backspace", "ctrl+h"):
            self.text = self.text[:-1]
        elif name == "ctrl+u":
            self.text = ""
        elif character is not None and character.isprintable() and (suggested or len(self.text) < self._limit):
            self.text = character if suggested else self.text + character
        return "open"

    def paste(self, text: str) -> None:
        """Add the first line of what was pasted."""
        line = text.splitlines()[0] if text else ""
        kept, self._suggested = "" if self._suggested else self.text, False
        self.text = (kept + "".join(ch for ch in line if ch.isprintable()))[: self._limit]
