"""The first row: the program, the machine, and at the right the state in words."""

from __future__ import annotations

from tui.cells import Line, Span, cut, width

NARROW = 80


def header(columns: int, machine: str, state: str, *, alone: str = "bringup") -> Line:
    """Return the header in `columns` cells; the machine gives way first, then the state is cut."""
    name = f" {alone}"
    state = cut(state, columns - width(name) - 2)
    room = columns - width(name) - width(state) - 1 - 5
    shown = cut(machine, room) if machine and room > 7 and columns >= NARROW else ""
    left = f"   {shown}" if shown else ""
    gap = columns - width(name) - width(left) - width(state) - 1
    return (
        Span(name, "strong", "bar"),
        Span(left, "mute", "bar"),
        Span(" " * gap, "text", "bar"),
        Span(state, "strong", "bar"),
        Span(" ", "text", "bar"),
    )
