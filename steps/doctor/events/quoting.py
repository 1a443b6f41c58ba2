"""Whether words in a log were printed by what they tell of, or only typed, searched for, quoted or denied by somebody."""

from __future__ import annotations

import re

from steps.host.prompts import HISTORY, PROMPT

_PROMPT = re.compile(
    rf"{PROMPT}(?<= ) *(?=\S)|"
    rf"\+{{1,4}} (?=[\w./$'\"])|[ \t]{{1,6}}{HISTORY}(?=[\w./])|[ \t]*(?:#|//|(?i:rem) )[ \t]*(?=[^\W\d])"
)
"""What stands before a command that was typed, in a trace of a shell, or in its history, and before a comment."""
_SEARCH = re.compile(
    r"(?:^|[|;&({`]|\$\(|\b(?:if|while|until|sudo|then|do|time|xargs|\d+(?=  ))|!)[ \t]*(?:[\w./-]*/)?"
    r"(?:[efz]?grep|rg|ag|awk|gawk|sed|echo|printf|logger)(?=[ \t])[^\n]*$"
)
"""Programs that look for words, or print them without their having happened."""
_CODE = re.compile(
    r"^[ \t]*(?:if|elif|assert|while|case|when)\b|\b(?:re\.\w+|print|println|match|contains|startswith|includes|find)\(r?[\"'][^\n]*$"
)
_DENIED = re.compile(
    r"[\"'`.]?[ \t]*[:=?][ \t]*(?:no|none|never|false|0|no match(?:es)?|not (?:found|seen)|n/?a|absent|否|无|沒有|没有)[.!]?[ \t]*(?:\n|$)",
    re.IGNORECASE,
)


_FAR = 1000
"""Characters before a match that are looked at."""


def is_quoted(text: str, found: re.Match[str], *, typed: bool = False) -> bool:
    """Return whether a match is no message of a program's own; with `typed` what was typed counts as said."""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    before, after = text[start : found.start()], text[found.end() : len(text) if end < 0 else end]
    return (
        _in_backticks(before, after)
        or (not typed and _typed(text, start, found))
        or _SEARCH.search(before[-_FAR:]) is not None
        or _in_code(before, after)
        or _DENIED.match(text, found.end()) is not None
    )


def _typed(text: str, start: int, found: re.Match[str]) -> bool:
    """Return whether a match lies behind a prompt."""
    prompt = _PROMPT.match(text, start)
    return prompt is not None and found.end() > prompt.end()


def _in_backticks(before: str, after: str) -> bool:
    """Return whether a match stands between backticks in a line of prose; what compilers write so ends with an apostrophe."""
    return before.count("`") % 2 == 1 and "'" not in before.rpartition("`")[2] and "`" in after


def _in_code(before: str, after: str) -> bool:
    """Return whether a match is a string in the source of a program that looks for it or prints it."""
    inside = any(before.count(mark) % 2 == 1 and mark in after for mark in "\"'")
    return inside and _CODE.search(before[-_FAR:]) is not None
