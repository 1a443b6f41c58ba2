"""The keys of a step: what the row under the cursor answers, then what every step does."""

from __future__ import annotations

from tui.cells import width
from tui.screens.base import Key, ui
from tui.widgets.choice_list import Row

SHORT = 22
"""How many cells of the footer the words of a fix may take; longer ones stand in the hint only."""

_QUIET = (
    Key(("down", "j"), "down", "↑↓", ui("key.move"), footer=False),
    Key(("up", "k"), "up", "", ui("key.move"), footer=False),
    Key(("tab",), "group", "Tab", ui("key.group"), footer=False),
    Key(tuple("123456789"), "number", "1-9", ui("key.number"), footer=False),
    Key(("home",), "first", "Home", ui("key.start"), footer=False),
    Key(("end",), "last", "End", ui("key.end"), footer=False),
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
_MATRIX = Key(("m",), "matrix", "m", ui("key.matrix"))
_COPY = Key(("c",), "copy", "c", ui("key.copy"), footer=False)
_VARIABLES = Key(("v",), "variables", "v", ui("key.variables"))
_OWN = {"hardware": (_MAP,), "firmware": (_CARD, _MAP._replace(footer=False)), "nccl": (_VARIABLES,)}
"""Keys that only one step has."""


def keys_of(row: Row, step: str = "", *, leads: bool = True, fix: str = "", matrix: bool = False, command: bool = False) -> tuple[Key, ...]:
    """Return the keys for a row, the most needed first; `step` adds those that only one step has, `fix` is what `f` would do, in words.

    Enter takes the row of the question that leads the step; in a later one, which may only be read on the way, it goes on and Space takes.
    """
    kind = row.choice.kind if row.choice is not None else "facts"
    option = row.option
    takeable = option is not None and option.takeable
    keys: list[Key] = []
    if kind == "text":
        keys += [Key(("enter",), "edit", "Enter", ui("key.edit")), Key(("space",), "edit", "", ui("key.edit"), footer=False)]
    elif kind == "one" and takeable:
        enter = Key(("enter",), "take_on", "Enter", ui("key.take-on")) if leads else Key(("enter",), "go_on", "Enter", ui("key.go-on"))
        keys += [enter, Key(("space",), "take", "Space", ui("key.take"))]
    elif kind == "one":
        keys.append(Key(("enter", "space"), "why", "Enter", ui("key.why-not")))
    else:
        keys.append(Key(("enter",), "go_on", "Enter", ui("key.go-on")))
        if kind == "many":
            keys.append(Key(("space",), "toggle" if takeable else "why", "Space", ui("key.toggle" if takeable else "key.why-not")))
        elif option is not None and option.patch:
            # A fact that is the question's own answer is confirmed by eye; any other is a setting that changes.
            seen = row.choice is not None and row.choice.key in option.patch
            keys.append(Key(("space",), "toggle", "Space", ui("key.seen" if seen else "key.change")))
    if fix:
        keys.append(Key(("f",), "fix", "f", fix if width(fix) <= SHORT else ui("key.fix")))
    why = _WHY._replace(footer=takeable or kind != "one")
    own = (*_OWN.get(step, ()), *((_MATRIX,) if matrix else ()))
    return (*keys, _BACK, *own, why, _REST, *((_COPY,) if command else ()), *_QUIET)
