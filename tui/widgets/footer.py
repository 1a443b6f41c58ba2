"""The last row: the keys that work here, the ones a person needs first."""

from __future__ import annotations

from collections.abc import Sequence

from tui.cells import Line, Span, fit, width

GAP = "   "
MOST = 6


def footer(columns: int, keys: Sequence[tuple[str, str]], *, standing: int = 1) -> Line:
    """Return the footer for (cap, words) pairs in `columns` cells.

    At most six are shown. Where room is short they are dropped from behind; the last ones that are `standing`, mostly `?`, never.
    """
    if not keys:
        return fit((Span(" ", "text", "bar"),), columns, ground="bar")
    split = max(0, len(keys) - standing)
    others, kept = list(keys[:split])[: MOST - standing], keys[split:]

    def wide(shown: Sequence[tuple[str, str]]) -> int:
        return 1 + sum(width(cap) + 1 + width(words) for cap, words in shown) + len(GAP) * (len(shown) - 1)

    while others and wide([*others, *kept]) > columns:
        others.pop()
    spans: list[Span] = [Span(" ", "text", "bar")]
    for at, (cap, words) in enumerate([*others, *kept]):
        spans += [Span(GAP if at else "", "text", "bar"), Span(cap, "key", "bar"), Span(f" {words}", "text", "bar")]
    return fit(spans, columns, ground="bar")
