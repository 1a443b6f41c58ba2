"""The proof's figures as bars: what was measured, beside what it is to be held against."""

from __future__ import annotations

from collections.abc import Iterable

from steps.model.base import Record
from steps.model.verdict import Rung

_NOT_SIZES = ("GPUs", "difference", "loss")
"""Units of figures that are counts, or that ought to be small: a long bar would say the wrong thing."""
_EVEN = {"×": 1.0}
"""What stands for no gain where a figure is a ratio."""


class Bar(Record):
    """One figure: how long its bar is and where its mark stands, both as shares of the longest of its unit."""

    rung: str
    value: float
    unit: str
    share: float
    mark: float | None = None
    """Where what was expected stands, or the break-even of a ratio; `None` where nothing is known to hold it against."""
    failed: bool = False


def bars(rungs: Iterable[Rung]) -> tuple[Bar, ...]:
    """Return a bar for each figure that stands beside another of its unit, or beside what was expected of it."""
    found = [(rung, rung.value, rung.unit) for rung in rungs if rung.value is not None and rung.unit and rung.unit not in _NOT_SIZES]
    drawn: list[Bar] = []
    for rung, value, unit in found:
        against = rung.expected if rung.expected is not None else _EVEN.get(unit)
        beside = [one for _, one, its in found if its == unit]
        expected = [other.expected for other, _, its in found if its == unit and other.expected is not None]
        most = max((*beside, *expected, *((against,) if against is not None else ())))
        if most <= 0 or value < 0 or (against is None and len(beside) < 2):
            continue
        mark = None if against is None else against / most
        drawn.append(Bar(rung=rung.id, value=value, unit=unit, share=value / most, mark=mark, failed=rung.state == "failed"))
    return tuple(drawn)


def drawn(bar: Bar, cells: int) -> str:
    """Return a bar in `cells` cells, a line where its mark stands."""
    full = max(1, round(bar.share * cells)) if bar.value else 0
    letters = ["█"] * full + ["·"] * (cells - full)
    if bar.mark is not None:
        letters[min(cells - 1, max(0, round(bar.mark * cells) - 1))] = "│"
    return "".join(letters)


def figure(bar: Bar) -> str:
    """Return a figure with its unit: "432 GB/s", "2.1×"."""
    return measure(bar.value, bar.unit)


def measure(value: float, unit: str | None) -> str:
    """Return a figure with the digits that matter, the same wherever it stands: "432 GB/s", "2.15×", "1.5e-08 difference"."""
    number = f"{value:.0f}" if value >= 100 else f"{value:.2g}" if unit == "difference" else f"{value:.3g}"
    return f"{number}{unit}" if unit in _EVEN else f"{number} {unit or ''}".strip()
