"""What all screens share: the grid, the keys, and drawing only what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from textual import events
from textual.screen import Screen

from steps.model.base import Param, Words, phrase
from tui.cells import BLANK, Line, Span, cut, wrap
from tui.shell import Shell
from tui.widgets.footer import footer
from tui.widgets.header import header
from tui.widgets.sheet import Sheet

if TYPE_CHECKING:
    from textual.app import ComposeResult

LEAST_COLUMNS, LEAST_ROWS = 60, 18
"""The smallest window that a screen is drawn in."""
FIXED_ROWS = 6
"""Header, title, sub, the empty row, next and keys."""


class Key(NamedTuple):
    """A key of a screen: the events it answers, the method `do_<action>`, how its cap is drawn and what it does."""

    keys: tuple[str, ...]
    action: str
    cap: str
    words: Words
    footer: bool = True
    """Whether the last row shows it; the help page shows all."""


def ui(key: str, /, **params: Param) -> Words:
    """Return the phrase `ui.<key>`."""
    return phrase(f"ui.{key}", **params)


EVERYWHERE: tuple[Key, ...] = (
    Key(("L",), "language", "L", ui("key.language"), footer=False),
    Key(("ctrl+p",), "palette", "Ctrl+P", ui("key.palette"), footer=False),
    Key(("g",), "monitor", "g", ui("key.monitor"), footer=False),
    Key(("ctrl+t",), "plain_marks", "Ctrl+T", ui("key.marks"), footer=False),
    Key(("B",), "speed", "B", ui("key.speed"), footer=False),
    Key(("ctrl+l",), "repaint", "Ctrl+L", ui("key.repaint"), footer=False),
    Key(("ctrl+q", "ctrl+c"), "leave", "Ctrl+Q", ui("key.leave"), footer=False),
)
HELP = Key(("?", "f1"), "help", "?", ui("key.help"))
FULL_SPEED = Key(("B",), "speed", "B", ui("key.full-speed"))


def event_name(event: events.Key) -> str:
    """Return the letter that was typed, or the name of a key that types none."""
    if event.character == " ":
        return "space"
    return event.character if event.is_printable and event.character else event.key


class Page(Screen[None]):
    """A screen of the grid: header, title, sub, an empty row, the body, what comes next, the keys."""

    AUTO_FOCUS = ""
    ALLOW_SELECT = False
    CSS = ""
    TYPE_AHEAD: ClassVar = True
    """Whether keys that were typed before this screen was seen count here."""

    def compose(self) -> ComposeResult:
        """Return the screen's widgets: one sheet."""
        yield Sheet()

    # --- what a screen says; each is asked again at every drawing -------------------------------------

    @property
    def shell(self) -> Shell:
        """The application."""
        return cast("Shell", self.app)

    def state_words(self) -> str:
        """Return the right end of the header."""
        return ""

    def title_words(self) -> str:
        """Return the title: the question, or the result."""
        return ""

    def sub_words(self) -> str:
        """Return the sentence below the title."""
        return ""

    def next_words(self) -> str:
        """Return what Enter does here."""
        return ""

    def about_words(self) -> str:
        """Return the two sentences that the help page begins with."""
        return ""

    def body(self, columns: int, rows: int) -> Sequence[Line]:
        """Return the body in `columns` cells and `rows` rows."""
        return ()

    def key_table(self) -> Sequence[Key]:
        """Return the keys of this screen, the most needed first; help and the keys that work everywhere are added."""
        return ()

    # --- drawing --------------------------------------------------------------------------------------

    def all_keys(self) -> Iterator[Key]:
        """Yield every key that works here."""
        yield from self.key_table()
        yield HELP
        yield from EVERYWHERE

    def header_line(self, columns: int) -> Line:
        """Return the first row."""
        state = " · ".join(part for part in (self.shell.notice, self.state_words()) if part)
        return header(columns, self.shell.machine_line, state)

    def frame(self, columns: int, rows: int) -> list[Line]:
        """Return the whole picture."""
        if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
            sentence = self.shell.say(ui("small", columns=columns, rows=rows))
            return list[Line]((Span(line),) for line in wrap(sentence, columns))[:rows]
        lines: list[Line] = [
            self.header_line(columns),
            (Span(" " + cut(self.title_words(), columns - 2), "strong"),),
            (Span(" " + cut(self.sub_words(), columns - 2), "mute"),),
            BLANK,
        ]
        room = rows - FIXED_ROWS
        body = list(self.body(columns, room))[:room]
        lines += [*body, *[BLANK] * (room - len(body))]
        lines.append((Span(" " + cut(self.next_words(), columns - 2), "mute"),))
        lines.append(self.footer_line(columns))
        return lines

    def footer_line(self, columns: int) -> Line:
        """Return the last row."""
        standing = self.standing_keys()
        keys = (*(key for key in self.key_table() if key.footer), *standing)
        return footer(columns, [(key.cap, self.shell.say(key.words)) for key in keys], standing=len(standing))

    def standing_keys(self) -> Sequence[Key]:
        """Return the keys that the last row shows whatever the room: help, and the way out of the low-bandwidth mode."""
        return (FULL_SPEED, HELP) if self.shell.low_bandwidth else (HELP,)

    def redraw(self) -> None:
        """Show what is true now; cells that are equal are not painted."""
        if not self.is_mounted or not self.is_current:
            return
        columns, rows = self.size
        if columns and rows:
            try:
                frame = self.frame(columns, rows)
            except Exception as error:  # noqa: BLE001 - the last door of a screen: a fault of ours is said on a page, not as a traceback
                self.went_wrong(error)
                return
            # While the program ends a screen is without its sheet for a moment.
            for sheet in self.query(Sheet):
                sheet.show(frame, columns, self.shell.palette, self.shell.marks)

    def went_wrong(self, error: Exception) -> None:
        """Say a fault of ours on a page of its own; in tests it is raised."""
        from tui.screens.wrong import WrongPage

        if self.app.is_headless or isinstance(self, WrongPage):
            raise error
        self.app.push_screen(WrongPage(error, self))

    def on_mount(self) -> None:
        """Draw for the first time."""
        self.redraw()

    def on_resize(self) -> None:
        """Draw for the new size; cursor and answers are kept."""
        self.redraw()

    def on_screen_resume(self) -> None:
        """Draw again: a page above may have changed the answers or the language."""
        self.redraw()

    # --- keys -----------------------------------------------------------------------------------------

    def typing(self, event: events.Key) -> bool:
        """Return whether an open text field took the key."""
        return False

    def on_key(self, event: events.Key) -> None:
        """Do what the key says, and draw."""
        event.stop()
        event.prevent_default()
        if self.app.screen is not self:
            # A key of one burst with the key that opened the screen above; it belongs there, unless that one asks before it acts.
            above = self.app.screen
            if isinstance(above, Page) and above.TYPE_AHEAD:
                above.post_message(events.Key(event.key, event.character))
            return
        # The application knows its size before a new screen does: keys that come in one burst must not be lost between screens.
        columns, rows = self.app.size
        if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
            if event_name(event) in ("q", "ctrl+q", "ctrl+c"):
                self.do_leave()
            return
        if not self.typing(event):
            name = event_name(event)
            for key in self.all_keys():
                if name in key.keys:
                    self.perform(key.action)
                    break
        self.redraw()

    def perform(self, action: str) -> None:
        """Call the method of an action."""
        try:
            getattr(self, f"do_{action}")()
        except Exception as error:  # noqa: BLE001 - as above, for what a key does
            self.went_wrong(error)

    def do_help(self) -> None:
        """Open the help page."""
        from tui.screens.help import HelpPage

        self.app.push_screen(HelpPage(self))

    def do_palette(self) -> None:
        """List every action by its name."""
        from tui.screens.palette import PalettePage

        self.app.push_screen(PalettePage(self))

    def do_monitor(self) -> None:
        """Show what the GPUs do now."""
        from tui.screens.monitor import MonitorPage

        self.app.push_screen(MonitorPage(self, self.shell.gauges()))

    def do_language(self) -> None:
        """Change the language at once, where the terminal has the letters."""
        shell = self.shell
        if shell.language == "en" and not shell.can_show_han:
            self.remark(shell.say(ui("no-han")))
            return
        shell.language = "zh_CN" if shell.language == "en" else "en"

    def do_plain_marks(self) -> None:
        """Change between the marks of the terminal and ASCII without colour."""
        shell = self.shell
        if shell.marks == "ascii" and shell.palette == "mono":
            shell.marks = "unicode"
            shell.use_palette("dark")
        else:
            shell.marks = "ascii"
            shell.use_palette("mono")

    def do_speed(self) -> None:
        """Paint few frames and close the log, or no longer."""
        self.shell.low_bandwidth = not self.shell.low_bandwidth

    def do_repaint(self) -> None:
        """Paint every cell again."""
        self.shell.painter.forget()
        self.refresh(repaint=True, layout=True)
        self.query_one(Sheet).refresh()

    def do_leave(self) -> None:
        """Leave the program."""
        self.shell.leave()

    def do_close(self) -> None:
        """Close this page."""
        self.dismiss()

    def remark(self, sentence: str) -> None:
        """Say something once, where the screen has a place for it."""
