"""The topology as SVG: boxes with elbows between them, sizes in one unit of text, no fonts or colours from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steps.detect.topology import Node
from steps.model.base import Record
from steps.plot import Bar, figure
from steps.report.html import text

_ROW, _STEP, _HEIGHT, _CELL, _MARGIN = 34, 44, 24, 7.6, 10


class Box(Record):
    """One node with its place on the page; `parent` is the row of the box that it hangs from."""

    node: Node
    row: int
    depth: int
    parent: int | None

    @property
    def left(self) -> float:
        """Where the box begins."""
        return _MARGIN + self.depth * _STEP

    @property
    def middle(self) -> float:
        """The height of its middle."""
        return _MARGIN + self.row * _ROW + _HEIGHT / 2

    @property
    def width(self) -> float:
        """Wide enough for its text in a common monospaced font."""
        return 16 + _CELL * len(self.node.wide)


def svg(roots: Sequence[Node]) -> str:
    """Return the tree as one `<svg>` element, "" without anything to draw."""
    boxes = list(_placed(roots))
    if not boxes:
        return ""
    width = max(box.left + box.width for box in boxes) + _MARGIN
    height = 2 * _MARGIN + len(boxes) * _ROW
    drawn = (*(_elbow(box, boxes) for box in boxes if box.parent is not None), *(_box(box) for box in boxes))
    size = f'viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>' + "".join(drawn) + "</svg>"


def _placed(roots: Sequence[Node]) -> Iterable[Box]:
    """Yield every node with its place, from the top."""
    waiting: list[tuple[Node, int, int | None]] = [(root, 0, None) for root in reversed(roots)]
    row = 0
    while waiting:
        node, depth, parent = waiting.pop()
        yield Box(node=node, row=row, depth=depth, parent=parent)
        waiting += [(child, depth + 1, row) for child in reversed(node.children)]
        row += 1


def _elbow(box: Box, boxes: Sequence[Box]) -> str:
    """Return the line from a box to the one that it hangs from; dashed where it is narrow."""
    above = boxes[box.parent or 0]
    corner = above.left + _STEP / 2
    kind = "narrow" if box.node.narrow else "wire"
    return f'<path class="{kind}" d="M{corner:.0f} {above.middle + _HEIGHT / 2:.0f} V{box.middle:.0f} H{box.left:.0f}"/>'


def _box(box: Box) -> str:
    """Return a box with its text."""
    kind = f"{box.node.kind} narrow-box" if box.node.narrow else box.node.kind
    return (
        f'<rect class="{kind}" x="{box.left:.0f}" y="{box.middle - _HEIGHT / 2:.0f}" width="{box.width:.0f}" height="{_HEIGHT}" rx="3"/>'
        f'<text x="{box.left + 8:.0f}" y="{box.middle + 4:.0f}">{text(box.node.wide)}</text>'
    )


_NAME, _BAR, _FIGURE = 190, 320, 110
"""Widths of the columns of a plot: the rung's name, its bar at most, its figure."""


def plot(bars: Sequence[Bar], names: Sequence[str]) -> str:
    """Return the figures of a proof as one `<svg>` element: a bar each, and a line where what was expected stands."""
    width, height = _NAME + _BAR + _FIGURE + 2 * _MARGIN, 2 * _MARGIN + len(bars) * _ROW
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    rows = (_figure(bar, name, _MARGIN + at * _ROW) for at, (bar, name) in enumerate(zip(bars, names, strict=True)))
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>' + "".join(rows) + "</svg>"


def _figure(bar: Bar, name: str, top: float) -> str:
    """Return one row of the plot."""
    left, base = _MARGIN + _NAME, top + _HEIGHT * 0.7
    long = max(1.0, bar.share * _BAR)
    kind = "failed" if bar.failed else "passed"
    mark = ""
    if bar.mark is not None:
        at = left + bar.mark * _BAR
        mark = f'<line class="expected" x1="{at:.1f}" y1="{top:.1f}" x2="{at:.1f}" y2="{top + _HEIGHT:.1f}"/>'
    return (
        f'<text x="{_MARGIN}" y="{base:.1f}">{text(name)}</text>'
        f'<rect class="bar {kind}" x="{left}" y="{top + 4:.1f}" width="{long:.1f}" height="{_HEIGHT - 8}"/>{mark}'
        f'<text x="{left + _BAR + 8}" y="{base:.1f}">{text(figure(bar))}</text>'
    )
