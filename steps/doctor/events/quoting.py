"""Whether words in a log were printed by what they tell of, or only typed, searched for, quoted or denied by somebody."""

from __future__ import annotations

import re

from steps.host.prompts import HISTORY, PROMPT

_PROMPT = re.compile(
    rf"(?P<shell>(?!#){PROMPT}(?<= ) *(?=\S))|"
    rf"\+{{1,4}} (?=[a-z./$'\"]|[A-Z_]+=)|[ \t]{{1,6}}{HISTORY}(?=[./~]|[A-Z_]+=|[a-z][\w.+-]*(?:[ \t]|$))|"
    r"[ \t]*(?:#|//|[Rr][Ee][Mm] )[ \t]*(?=[^\W\d])",
    re.MULTILINE,
)
"""What stands before a command that was typed, in a trace of a shell, or in its history, and before a comment."""
_GLUED = re.compile(r"(?<=[ \t])(?:NVRM: |\[ *\d+\.\d+\] |[A-Z][a-z]+ )")
"""How a program's message begins that was pasted on the line of the command: no command has words like these outside of quotes."""
_SEARCH = re.compile(
    r"(?:^|[|;&({`]|\$\(|\b(?:if|while|until|sudo|then|do|time|xargs|\d+(?=  ))|!)[ \t]*(?:[\w./-]*/)?"
    r"(?P<program>[efz]?grep|rg|ag|awk|gawk|sed|echo|printf|logger)(?=[ \t])(?P<rest>[^\n]*)$"
)
"""Programs that look for words, or print them without their having happened."""
_PRINTS = frozenset(("echo", "printf", "logger"))
_OPTIONS = re.compile(r"^[ \t]*(?:-{1,2}[\w=-]+[ \t]+(?:\d+[ \t]+)?)*")
"""What stands between such a program and what it looks for."""
_BRANCH = re.compile(r"^[ \t]*(?:if|elif|assert|while)\b")
_BRANCH_CODE = re.compile(r"[\"'] in \w|==|!=|\w\(|\bthen\b|:[ \t]*$")
_CODE = re.compile(r"^[ \t]*case\b[^\n]*$|\b(?:re\.\w+|print|println|match|contains|startswith|includes|find)\(r?[\"'][^\n]*$")
_DENIED = re.compile(
    r"[\"'`.]?[ \t]*[:=?][ \t]*(?:no|none|never|false|0|no match(?:es)?|not (?:found|seen)|n/?a|absent|否|无|沒有|没有)[.!]?[ \t]*(?:\n|$)",
    re.IGNORECASE,
)
_GOT = re.compile(
    r"\b(?:(?:i|we) (?:get|got|see|saw)|getting|errors?|shows?|showed|gives?|gave|fail(?:s|ed)? with|says|return(?:s|ed)?|print(?:s|ed)?)"
    r"(?: me| us)?(?: is| was| the| an?| this| following| error| message)*[ \t]*:?[ \t]*(?:`[^`]*`(?:,| and|;)*[ \t]*)*`$",
    re.IGNORECASE,
)
"""How a person says in prose that a program printed what stands in backticks behind it."""
_ADVICE = re.compile(r"\b(?:if|when|whenever|should|in case) (?:you|your|it|there)\b", re.IGNORECASE)

_FAR = 1000
"""Characters before a match that are looked at."""


def is_quoted(text: str, found: re.Match[str], *, typed: bool = False) -> bool:
    """Return whether a match is no message of a program's own; with `typed` what was typed counts as said."""
    before, after = _around(text, found)
    return (
        _in_backticks(before, after)
        or (not typed and _typed(text, found, before, after))
        or _searched(before, after)
        or _in_code(before, after)
        or _DENIED.match(text, found.end()) is not None
    )


def was_no_output(text: str, found: re.Match[str]) -> bool:
    """Return whether words were certainly printed by nothing: somebody searched for them, or says that they are not there."""
    return _DENIED.match(text, found.end()) is not None or _searched(*_around(text, found))


def _around(text: str, found: re.Match[str]) -> tuple[str, str]:
    """Return what stands before and behind a match in its lines."""
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    return text[start : found.start()], text[found.end() : len(text) if end < 0 else end]


def _typed(text: str, found: re.Match[str], before: str, after: str) -> bool:
    """Return whether a match lies behind a prompt, and is no message that was pasted behind the command on its line."""
    start = found.start() - len(before)
    prompt = _PROMPT.match(text, start)
    if prompt is None or found.end() <= prompt.end():
        return False
    command = text[prompt.end() : found.start()]
    if not prompt["shell"] or not command.strip() or _quotes(before, after) or re.search(r"(?:^|\s)#", command):
        return True
    return _GLUED.search(text, prompt.end(), found.end()) is None


def _searched(before: str, after: str) -> bool:
    """Return whether a match stands in what a program of a search was given to look for, or one that prints to print."""
    search = _SEARCH.search(before[-_FAR:])
    if search is None:
        return False
    rest = search["rest"]
    if search["program"] in _PRINTS:
        return _quotes(rest, after) or not re.search(r"[\"'][ \t]|[;|&>]", rest)
    given = _OPTIONS.sub("", rest, count=1)
    if _quotes(given, after):
        return True
    return not re.search(r"\s", given) and given[:1] not in ("'", '"')


def _in_backticks(before: str, after: str) -> bool:
    """Return whether a match stands between backticks in a line of prose; what compilers write so ends with an apostrophe.

    A line that is in backticks as a whole was printed, and so was what a person says to have got.
    """
    if not (before.count("`") % 2 == 1 and "'" not in before.rpartition("`")[2] and "`" in after):
        return False
    opened, closed = before.rpartition("`")[0], after.partition("`")[2]
    whole = not re.search(r"\w", opened + closed)
    got = _GOT.search(f"{opened}`"[-_FAR:]) is not None and not _ADVICE.search(opened)
    return not (whole or got)


def _in_code(before: str, after: str) -> bool:
    """Return whether a match is a string in the source of a program that looks for it or prints it."""
    if not _quotes(before, after):
        return False
    if _BRANCH.match(before) and _BRANCH_CODE.search(f"{before}{after}"[-_FAR:]):
        return True
    near = before[-_FAR:]
    return _CODE.search(near) is not None and (not near.lstrip().startswith("case") or ")" in after)


def _quotes(before: str, after: str) -> bool:
    """Return whether a match stands between quotation marks."""
    return any(before.count(mark) % 2 == 1 and mark in after for mark in "\"'")
