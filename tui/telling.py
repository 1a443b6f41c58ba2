"""What an option does to other answers, in words: changes, what stays, what a fix takes, what a plan would then cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from steps.model.choice import Note, Option
from steps.model.finding import Patch
from tui import summary
from tui.screens.base import ui

if TYPE_CHECKING:
    from steps.compat.effects import Change, Effects
    from steps.model.base import Words
    from tui.shell import Shell
    from tui.wizard import Wizard


class Told(NamedTuple):
    """What a hint says besides the option's own words."""

    notes: tuple[Note, ...] = ()
    fix: str = ""
    """What `f` does; "" when there is nothing that it could do."""


def change_words(shell: Shell, change: Change) -> str:
    """Return "cuDNN 9.28 → 9.10", "+CUDA 13.0" or "without PyTorch 2.15.0"."""
    title = shell.say(change.title)
    before, after = (None if words is None else shell.say(words) for words in (change.before, change.after))
    if after is None:
        return shell.say(ui("effects.without", what=f"{title} {before}"))
    return f"{title} {before} → {after}" if before is not None else f"+{title} {after}"


def changes_words(shell: Shell, changes: Sequence[Change]) -> str:
    """Return all changes in one line."""
    return summary.joined(shell, tuple(change_words(shell, change) for change in changes))


def way_words(shell: Shell, changes: Sequence[Change], *, instead: bool = False) -> str:
    """Return what a way takes: "take 580 open", "take TensorFlow 2.21.0 instead of PyTorch 2.15.0", "leave out JAX 0.12"."""
    taken = summary.joined(shell, tuple(_called(shell, change, change.after) for change in changes if change.after is not None))
    gone = [change for change in changes if change.after is None and change.before is not None]
    left = summary.joined(shell, tuple(_called(shell, change, change.before) for change in gone))
    if taken and left:
        return shell.say(ui("effects.take-for", what=taken, left=left))
    if left:
        return shell.say(ui("effects.leave", what=left))
    return shell.say(ui("effects.take" if instead else "effects.take-plain", what=taken))


def _called(shell: Shell, change: Change, words: Words | None) -> str:
    """Return an answer with its title; the driver's own words come with it."""
    said = shell.say(words or "")
    return said if change.topic == "driver" and not isinstance(words, str) else f"{shell.say(change.title)} {said}"


def effect_notes(shell: Shell, effects: Effects) -> tuple[Note, ...]:
    """Return Changes and Keeps of a hint; empty where nothing is said."""
    notes = []
    if effects.changes:
        notes.append(Note(label="changes", text=changes_words(shell, effects.changes)))
    if effects.keeps:
        notes.append(Note(label="keeps", text=summary.joined(shell, tuple(shell.say(words) for words in effects.keeps))))
    return tuple(notes)


def fix_of(wizard: Wizard, option: Option) -> Patch | None:
    """Return the change of the first finding that answers really remove, or `None`."""
    return next((found.fix for found in option.findings if found.fix and wizard.removed_by(found.fix, found)), None)


def fix_words(shell: Shell, wizard: Wizard, option: Option) -> str:
    """Return what `f` does on this row: what it takes, or that what is taken stays; "" without a fix."""
    fix = fix_of(wizard, option)
    if fix is None:
        return ""
    changes = wizard.differences(fix)
    if changes:
        return way_words(shell, changes, instead=True)
    if wizard.would_change(fix):
        return shell.say(ui("fix"))
    taken = wizard.named_of(fix)
    return shell.say(ui("effects.stay", what=shell.say(taken))) if taken and not option.takeable else ""


def told(shell: Shell, wizard: Wizard, option: Option, *, taken: bool) -> Told:
    """Return what the hint of an option says besides its own words."""
    notes = effect_notes(shell, wizard.effects(option)) if option.patch and option.takeable and not taken else ()
    return Told(notes, fix_words(shell, wizard, option))


def command_of(option: Option) -> str | None:
    """Return the command that the hint shows, without the sign of who types it, or `None` when it shows none."""
    shown = next((note.text for note in option.notes if note.command and isinstance(note.text, str) and note.label != "file"), None)
    return shown.removeprefix("# ").removeprefix("$ ") if shown else None
