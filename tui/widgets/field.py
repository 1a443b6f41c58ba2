"""A line of text that is being typed."""

from __future__ import annotations

from typing import Literal

Outcome = Literal["open", "done", "left"]


class Field:
    """What was typed so far; letters are letters here, whatever they mean elsewhere."""

    def __init__(self, text: str = "", *, limit: int = 200) -> None:
        self.text = text
        self._limit = limit

    def key(self, name: str, character: str | None) -> Outcome:
        """Take a key and return whether the field is still open, was finished with Enter, or was left with Esc."""
        if name == "enter":
            return "done"
        if name == "escape":
            return "left"
        if name in ("backspace", "ctrl+h"):
            self.text = self.text[:-1]
        elif name == "ctrl+u":
            self.text = ""
        elif character is not None and character.isprintable() and len(self.text) < self._limit:
            self.text += character
        return "open"

    def paste(self, text: str) -> None:
        """Add the first line of what was pasted."""
        line = text.splitlines()[0] if text else ""
        self.text = (self.text + "".join(ch for ch in line if ch.isprintable()))[: self._limit]
