"""The help page: this screen in two sentences, the keys that work here, the keys that work everywhere."""

from __future__ import annotations

from collections.abc import Sequence

from tui.cells import BLANK, Line, Span, cut, pad, wrap
from tui.screens.base import EVERYWHERE, Key, Page, ui
from tui.screens.reading import ReadingPage

_CAP = 12


class HelpPage(ReadingPage):
    """What can be done on the screen below."""

    def title_words(self) -> str:
        """Return "Help"."""
        return self.shell.say(ui("help.title"))

    def sub_words(self) -> str:
        """Return the title of the screen below."""
        return self.below.title_words()

    def lines(self, columns: int) -> Sequence[Line]:
        """Return the sentences and the two lists of keys."""
        say = self.shell.say
        lines: list[Line] = [(Span(line),) for line in wrap(self.below.about_words(), columns)]
        lines += [BLANK, (Span(say(ui("help.here")), "mute"),), *_keys(self.below.key_table(), self.below, columns)]
        return [*lines, BLANK, (Span(say(ui("help.everywhere")), "mute"),), *_keys(EVERYWHERE, self.below, columns)]

    def do_help(self) -> None:
        """Close: the help key is a switch."""
        self.dismiss()


def _keys(keys: Sequence[Key], page: Page, columns: int) -> list[Line]:
    drawn = [(key.cap, page.shell.say(key.words)) for key in keys if key.cap]
    return [(Span(pad(cap, _CAP), "key"), Span(cut(words, columns - _CAP))) for cap, words in dict(drawn).items()]
