"""The keys of a step: what the row under the cursor answers, then what every step does."""

from __future__ import annotations

from tui.screens.base import Key, ui
from tui.widgets import hint
from tui.widgets.choice_list import Row

_QUIET = (
    Key(("down", "j"), "down", "↑↓", ui("key.move"), footer=False),
    Key(("up", "k"), "up", "", ui("key.move"), footer=False),
    Key(("tab",), "group", "Tab", ui("key.group"), footer=False),
    Key(tuple("123456789"), "number", "1-9", ui("key.number"), footer=False),
    Key(("n",), "skip", "n", ui("key.skip"), footer=False),
    Key(("z",), "take_back", "z", ui("key.take-back"), footer=False),
    Key(("r",), "again", "r", ui("key.again"), footer=False),
    Key(("s",), "save", "s", ui("key.save"), footer=False),
    Key(("t",), "teach", "t", ui("key.teach"), footer=False),
    Key(("o",), "options", "o", ui("key.options"), footer=False),
    Key(("q",), "leave", "q", ui("key.leave"), footer=False),
)
_BACK = Key(("escape", "b"), "back", "Esc", ui("key.back"))
_WHY = Key(("w",), "why", "w", ui("key.why"))
_REST = Key(("a",), "accept_rest", "a", ui("key.accept-rest"))


_MAP = Key(("m",), "map", "m", ui("key.map"))
_CARD = Key(("e",), "card", "e", ui("key.card"))


_OWN = {"hardware": (_MAP,), "firmware": (_CARD, _MAP._replace(footer=False))}
"""Keys that only one step has."""


def keys_of(row: Row, step: str = "") -> tuple[Key, ...]:
    """Return the keys for a row, the most needed first; `step` adds those that only one step has."""
    kind = row.choice.kind if row.choice is not None else "facts"
    option = row.option
    takeable = option is not None and option.takeable
    keys: list[Key] = []
    if kind == "text":
        keys += [Key(("enter",), "edit", "Enter", ui("key.edit")), Key(("space",), "edit", "", ui("key.edit"), footer=False)]
    elif kind == "one" and takeable:
        keys += [Key(("enter",), "take_on", "Enter", ui("key.take-on")), Key(("space",), "take", "Space", ui("key.take"))]
    elif kind == "one":
        keys.append(Key(("enter", "space"), "why", "Enter", ui("key.why-not")))
    else:
        keys.append(Key(("enter",), "go_on", "Enter", ui("key.go-on")))
        if kind == "many":
            keys.append(Key(("space",), "toggle" if takeable else "why", "Space", ui("key.toggle" if takeable else "key.why-not")))
        elif option is not None and option.patch:
            keys.append(Key(("space",), "toggle", "Space", ui("key.seen")))
    if option is not None and hint.fix_of(option) is not None:
        keys.append(Key(("f",), "fix", "f", ui("key.fix")))
    why = _WHY._replace(footer=takeable or kind != "one")
    return (*keys, _BACK, *_OWN.get(step, ()), why, _REST, *_QUIET)
