"""What every screen stands on: the language, the palette, the marks, the header's machine, and the real terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypedDict, runtime_checkable

from textual.driver import Driver
from textual.theme import BUILTIN_THEMES, Theme

from steps.model.base import Param, Words, phrase
from steps.text import Language, say
from tui import terminal
from tui.lean import LeanApp
from tui.theme import COLOURS, Marks, PaletteName, ground_colour

if TYPE_CHECKING:
    from tui.screens.monitor import Feed

_TOUCHING = re.compile(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[\u4e00-\u9fff])")


def spaced(text: str) -> str:
    """Return `text` with one blank between Han and Latin letters or digits, which a filled-in name may have lost."""
    return _TOUCHING.sub(" ", text)


def _theme(name: PaletteName) -> Theme:
    """Return the Textual theme of a palette: only what Textual's own style sheets need; our rows carry their styles."""
    colours = COLOURS[name]
    if colours.page is None:
        ansi = BUILTIN_THEMES["ansi-dark"]
        return Theme(
            name=f"bringup-{name}", primary=ansi.primary, ansi=True, dark=True, variables={**ansi.variables, "page": "ansi_default"}
        )
    return Theme(
        name=f"bringup-{name}", primary=colours.primary or "", accent=colours.accent, foreground=colours.text, background=colours.page,
        surface=colours.page, panel=colours.bar, success=colours.good, warning=colours.catch, error=colours.bad, dark=name == "dark",
        variables={"page": ground_colour(name)},
    )  # fmt: skip


@runtime_checkable
class Lasting(Protocol):
    """A screen over something that goes on without it."""

    def words_at_the_end(self) -> str:
        """Return how to come back to it; "" when nothing goes on."""
        ...


@runtime_checkable
class Drawn(Protocol):
    """A screen that draws itself anew from what is true now."""

    def redraw(self) -> None:
        """Draw what changed."""
        ...


class Look(TypedDict, total=False):
    """How an application looks and speaks; what is left out is as `Shell` has it."""

    language: Language
    palette: PaletteName
    marks: Marks
    low_bandwidth: bool
    probe: bool
    over_ssh: bool
    han: bool
    lacks_han: bool


def look_here(told: terminal.Terminal, language: str, *, low_bandwidth: bool) -> Look:
    """Return how to look on this terminal; Chinese only where it has the letters."""
    return Look(
        language="zh_CN" if language == "zh_CN" and told.han else "en",
        palette=told.palette,
        marks=told.marks,
        low_bandwidth=low_bandwidth,
        probe=told.marks == "unicode",
        over_ssh=told.ssh,
        han=told.han,
        lacks_han=language == "zh_CN" and not told.han,
    )


class Shell(LeanApp):
    """The application without the wizard: enough for one screen, such as a run that is attached to."""

    CSS_PATH = None
    CSS = "Screen { background: $page; overflow: hidden; layers: base; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = []

    def __init__(
        self,
        *,
        language: Language = "en",
        palette: PaletteName = "dark",
        marks: Marks = "unicode",
        low_bandwidth: bool = False,
        probe: bool = False,
        over_ssh: bool = False,
        han: bool = True,
        lacks_han: bool = False,
    ) -> None:
        super().__init__(marks=marks, low_bandwidth=low_bandwidth, probe=probe, over_ssh=over_ssh)
        self.animation_level = "none"
        self.language: Language = language
        self.palette: PaletteName = palette
        self.broke = False
        """Whether a fault of ours ended it."""
        self.can_show_han = han
        """Whether this terminal has Chinese letters; a bare Linux console does not."""
        self.lacks_han = lacks_han
        """Whether Chinese was asked for, and English is shown because the letters are not there."""
        for name in ("dark", "light", "ansi", "mono"):
            self.register_theme(_theme(name))
        self.theme = f"bringup-{palette}"

    def get_driver_class(self) -> type[Driver]:
        """Return how the terminal is read."""
        from textual.drivers.linux_driver import LinuxDriver

        chosen = super().get_driver_class()
        if chosen is not LinuxDriver:
            return chosen
        from tui.driver import PatientDriver

        return PatientDriver

    def on_mount(self) -> None:
        """Leave in order when the program is told to end."""
        if not self.is_headless:
            terminal.when_told_to_end(self.told_to_end)

    def link_changed(self) -> None:
        """Draw the screen on top anew."""
        for screen in self.screen_stack[-1:]:
            if isinstance(screen, Drawn):
                screen.redraw()

    def told_to_end(self, code: int) -> None:
        """Leave with `code`; what a screen has to say for such a moment stands on the terminal afterwards."""
        words = (screen.words_at_the_end() for screen in reversed(self.screen_stack) if isinstance(screen, Lasting))
        self.exit(code, code, next((said for said in words if said), None))

    def panic(self, *renderables: Any) -> None:
        """End for a fault of ours; Textual forgets to make that an exit code."""
        self.broke = True
        super().panic(*renderables)

    def ran(self) -> int:
        """Run until it is left, and return the exit code."""
        code = self.run()
        return self.return_code or code or int(self.broke)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the value of our own style variable before a theme is known."""
        return {"page": ground_colour(getattr(self, "palette", "dark"))}

    def say(self, words: Words, /, **params: Param) -> str:
        """Return `words` in the language of the screen."""
        said = say(self.language, words, **params)
        return said if self.language == "en" else spaced(said)

    def use_palette(self, palette: PaletteName) -> None:
        """Change the colours at once."""
        self.palette = palette
        self.theme = f"bringup-{palette}"

    @property
    def machine_line(self) -> str:
        """What the header says about the machine."""
        return ""

    @property
    def notice(self) -> str:
        """What the header says before the state of a screen: REHEARSAL, another root, a slow link; "" for nothing."""
        return self.say(phrase("ui.low-bandwidth")) if self.low_bandwidth else ""

    @property
    def recorded(self) -> bool:
        """Whether what is shown is another machine than this one: a recording, on which nothing goes on."""
        return False

    def gauges(self) -> Feed | None:
        """Return what the GPUs of this machine do, for a monitor that closes it; `None` on a recorded machine."""
        from steps.host.gauge_feed import GaugeFeed

        return None if self.recorded else GaugeFeed()

    def leave(self) -> None:
        """End the program; a run goes on."""
        self.exit(0)
