"""The keys of a run's screen, and which of them there are in which state."""

from __future__ import annotations

from collections.abc import Sequence

from steps.model.base import phrase
from steps.model.run import is_taken_back
from tui.screens.base import Key
from tui.screens.run_seen import Seen, face


def _key(keys: tuple[str, ...], action: str, cap: str, words: str, *, footer: bool = True) -> Key:
    """Return a key with words of this file."""
    return Key(keys, action, cap, phrase(f"run.key.{words}"), footer)


LEAVE = _key(("q", "ctrl+q", "ctrl+c"), "leave", "q", "leave")
LEAVE_OPEN = _key(("q", "ctrl+q", "ctrl+c"), "leave", "q", "leave-open")
LEAVE_PLAIN = _key(("q", "ctrl+q", "ctrl+c"), "leave", "q", "leave-plain")
LEAVE_PAUSED = _key(("q", "ctrl+q", "ctrl+c"), "leave", "q", "leave-paused")
LOG = _key(("l",), "log", "l", "log")
SEARCH = _key(("/",), "search", "/", "search")
PAUSE = _key(("p",), "pause", "p", "pause")
PROCEED = _key(("p",), "pause", "p", "proceed")
STOP = _key(("x",), "stop", "x", "stop")
UNDO = _key(("u",), "undo", "u", "undo")
AGAIN = _key(("r",), "again", "r", "again")
REPAIR = _key(("f",), "repair", "f", "repair")
LEAVE_OUT = _key(("n",), "leave_out", "n", "leave-out")
GO_ON = _key(("enter",), "go_on", "Enter", "go-on")
BACK = _key(("escape", "b"), "back", "Esc", "back")
UNDO_AGAIN = _key(("enter", "u"), "undo", "Enter", "undo")
RESUME = _key(("enter",), "resume", "Enter", "resume")
VERDICT = _key(("enter", "v"), "verdict", "Enter", "verdict")
VERDICT_TOO = _key(("v",), "verdict", "v", "verdict", footer=False)
ANSWER = _key(("enter",), "answer", "Enter", "answer")
CHOOSE = _key(("up", "down", "j", "k"), "nothing", "↑↓", "choose")
TAKE = _key(("enter",), "take_way", "Enter", "take")
REBOOT = _key(("r",), "reboot", "r", "reboot")
CLOSE = _key(("escape", "b"), "close_over", "Esc", "close")
OTHER = _key(("tab",), "other", "Tab", "other", footer=False)
SAVE = _key(("s",), "save", "s", "save", footer=False)
MOVES = _key(("pageup", "pagedown", "home", "end", "up", "down", "j", "k"), "nothing", "PgUp PgDn", "move", footer=False)
SIDEWAYS = _key(("left", "right"), "nothing", "←→", "sideways")
MOVING = (MOVES, _key(("left", "right"), "nothing", "←→", "sideways", footer=False))


QUIT = _key(("ctrl+q", "ctrl+c"), "leave", "Ctrl+Q", "leave-plain", footer=False)
TYPED_WORD = (_key(("enter",), "nothing", "Enter", "do-it"), _key(("escape",), "nothing", "Esc", "close"), QUIT)
SEARCHING = (
    _key(("enter",), "nothing", "Enter", "further"),
    _key(("up", "down"), "nothing", "↑↓", "further-both"),
    _key(("escape",), "nothing", "Esc", "close"),
    QUIT,
)
ANSWERING = (_key(("enter",), "nothing", "Enter", "answer"), _key(("escape",), "nothing", "Esc", "out-of-field"), QUIT)
DIALOG = (_key(("f10",), "nothing", "F10", "out-of-dialog"), _key((), "nothing", "Enter Tab ↑↓", "to-dialog"))


def keys_of(seen: Seen, *, full: bool, proof: bool, repair: bool = False) -> Sequence[Key]:
    """Return the keys for what the run shows by itself, or for its full log; there is no undo of a rehearsal."""
    keys = _keys(seen, full=full, proof=proof, repair=repair)
    return tuple(key for key in keys if key is not UNDO) if seen.plan.target.rehearsal else keys


def _keys(seen: Seen, *, full: bool, proof: bool, repair: bool) -> Sequence[Key]:
    """Return the keys of a run that changes the machine."""
    if full:
        return (CLOSE, SEARCH, SIDEWAYS, MOVES, SAVE, OTHER, LEAVE_PLAIN, Key(LOG.keys, LOG.action, LOG.cap, LOG.words, footer=False))
    match face(seen):
        case "question":
            return (ANSWER, CHOOSE, LOG, LEAVE_OPEN, SAVE, OTHER)
        case "failed":
            seeing = (VERDICT_TOO,) if proof else ()
            back = (BACK,) if seen.repaired is not None else ()
            return (*((REPAIR,) if repair else ()), TAKE, AGAIN, *back, LEAVE_OUT, UNDO, LOG, LEAVE_PLAIN, *seeing, SEARCH, SAVE, *MOVING)
        case "reboot":
            return (REBOOT, LOG, UNDO, LEAVE_PLAIN, SEARCH, SAVE, *MOVING)
        case "gone":
            # What an undo was begun of is not gone on with.
            first = (UNDO_AGAIN,) if is_taken_back(seen.state) else (RESUME, UNDO)
            return (*first, LOG, LEAVE_PLAIN, SEARCH, SAVE, *MOVING, OTHER)
        case "ended":
            return _ended_keys(seen, proof=proof)
        case "log":
            paused = seen.state.status == "paused"
            if seen.state.status == "undoing":
                return (LEAVE, LOG, SEARCH, SAVE, *MOVING, OTHER)
            return (LEAVE_PAUSED if paused else LEAVE, LOG, SEARCH, PROCEED if paused else PAUSE, STOP, SAVE, *MOVING, OTHER)


def _ended_keys(seen: Seen, *, proof: bool) -> Sequence[Key]:
    """Return the keys of a run that is over."""
    back = (BACK,) if seen.repaired is not None else ()
    moving = (*back, LOG, SEARCH, SAVE, *MOVING, OTHER)
    match seen.state.status:
        case "done" if seen.repaired is not None:
            return (GO_ON, *moving[:2], UNDO, LEAVE_PLAIN, *moving[2:])
        case "cancelled":
            return (RESUME, UNDO, LEAVE_PLAIN, *moving)
        case "undo-failed":
            return (UNDO_AGAIN, LEAVE_PLAIN, *moving)
        case "done":
            return (*((VERDICT,) if proof else ()), UNDO, LEAVE_PLAIN, *moving)
        case _:
            return (LEAVE_PLAIN, *moving)
