"""An application whose every update is painted twice, as Textual would and as we do, on two terminals that are compared."""

from __future__ import annotations

from typing import Any

import pyte
from rich.console import Console
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Offset, Size

from tui.painter import Painter, Update
from tui.shell import Shell

Cells = list[list[tuple[object, ...]]]


def console() -> Console:
    """Return a console with all colours."""
    return Console(force_terminal=True, color_system="truecolor", legacy_windows=False)


def cells(screen: pyte.Screen) -> Cells:
    """Return what is seen of every cell: of a blank only its ground, for its ink shows nothing."""
    rows = [[screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines)]
    return [
        [
            (cell.data, cell.bg) if cell.data == " " and not (cell.underscore or cell.reverse or cell.strikethrough) else tuple(cell)
            for cell in row
        ]
        for row in rows
    ]


class Terminals:
    """Two terminals of one size; what is sent to the second is our own frame."""

    def __init__(self, columns: int, rows: int, *, erases_in_colour: bool = True) -> None:
        self.console = console()
        self.painter = Painter(self.console, erases_in_colour=erases_in_colour)
        self.resize(columns, rows)
        self.plain_bytes = self.lean_bytes = self.frames = 0

    def resize(self, columns: int, rows: int) -> None:
        """Begin with two empty terminals of another size."""
        self.size = Size(columns, rows)
        self.plain, self.lean = pyte.Screen(columns, rows), pyte.Screen(columns, rows)
        self._to_plain, self._to_lean = pyte.ByteStream(self.plain), pyte.ByteStream(self.lean)

    def take(self, update: Update) -> None:
        """Paint an update as Textual does, and note it for ours."""
        data = "\x1b[m" + update.render_segments(self.console)
        self.plain_bytes += len(data.encode())
        self._to_plain.feed(data.replace("\n", "\r\n").encode())
        self.painter.take(update, self.size)

    def send(self) -> int:
        """Paint our frame; return its bytes."""
        frame = self.painter.frame(Offset(0, 0)).encode()
        self.lean_bytes += len(frame)
        self.frames += bool(frame)
        # As a terminal in cooked mode passes it on.
        self._to_lean.feed(frame.replace(b"\n", b"\r\n"))
        return len(frame)

    def compare(self) -> None:
        """Fail when the two terminals show different things now, with both pictures."""
        alike = cells(self.plain) == cells(self.lean)
        assert alike, "\n".join((*self.plain.display, "-" * self.size.width, *self.lean.display))


def painted_twice(app: Shell, columns: int, rows: int, *, at_once: bool = True) -> Terminals:
    """Return the terminals that show what an application without one paints from now on; without `at_once` frames are sent by hand."""
    terminals = Terminals(columns, rows)

    def display(screen: Any, renderable: Any) -> None:
        if screen is app.screen and isinstance(renderable, (ChopsUpdate, LayoutUpdate)) and not app._batch_count:
            if app.size != terminals.size:
                terminals.resize(*app.size)
            terminals.take(renderable)
            if at_once:
                terminals.send()
        app.post_display_hook()

    app._display = display  # type: ignore[method-assign]
    return terminals
