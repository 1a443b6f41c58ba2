"""Sentences about what is not known: a second one where a value is missing, never a question mark in its place."""

from __future__ import annotations

import re

from steps.model.base import Phrase
from steps.text import lookup

MISSING = "?"
_BRACES = re.compile(r"\{(\w+)\}")


def worded(words: Phrase) -> Phrase:
    """Return the words, or their second form (`KEY-unknown`) where they would name a value that is missing and there is one."""
    template = lookup("en", words.key) or ""
    missing = any(MISSING in str(words.params.get(name, "")) for name in _BRACES.findall(template))
    other = f"{words.key}-unknown"
    return Phrase(key=other, params=words.params) if missing and lookup("en", other) is not None else words
