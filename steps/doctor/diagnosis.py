"""What the doctor says: diagnoses with their evidence, what was ruled out, and what to ask next."""

from __future__ import annotations

from typing import Literal

from steps.catalog.diagnoses import Severity
from steps.doctor.told import Place
from steps.managers.shown import copying, shown, written
from steps.model.action import AnyAction, Write
from steps.model.base import Phrase, Record, Words

Part = Literal["cause", "consequence", "beside"]


class Step(Record):
    """One step of a repair; without `command` a person does it, without `undo` there is nothing to take back."""

    says: Phrase
    command: tuple[str, ...] | None = None
    reboot: bool = False
    undo: Words | None = None
    actions: tuple[AnyAction, ...] = ()
    """What a run does for it, in order; none where a person does it, also where the command is shown for them to type."""
    live: bool = False
    """Whether it acts on the kernel, the services or the cards that run: a mounted system has none."""

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """Return what is typed for it, or what a run does in its place, in order; nothing for what is no command."""
        done = tuple(part for part in self.parts if not isinstance(part, Write))
        return done or ((self.command,) if self.command else ())

    @property
    def files(self) -> tuple[Write, ...]:
        """Return the files that it writes with words of its own."""
        return tuple(part for part in self.parts if isinstance(part, Write))

    @property
    def parts(self) -> tuple[tuple[str, ...] | Write, ...]:
        """Return what it does, each in its turn, so that a person can follow it: commands, and files with words of their own."""
        return tuple(part for action in self.actions if (part := _part(action))) or ((self.command,) if self.command else ())


def _part(action: AnyAction) -> tuple[str, ...] | Write:
    """Return the command of an action, the action itself where it writes words of its own, or nothing where it only keeps a file."""
    if isinstance(action, Write):
        copied = action.copy_of is not None and action.copy_of != action.path
        return action if written(action) else copying(action) if copied else ()
    return shown(action)


class Proof(Record):
    """How to see that a repair worked."""

    command: tuple[str, ...]
    expect: Phrase


class Repair(Record):
    """A repair: the steps in order, the popular advice to leave alone, and the proof; no steps where nothing is to be done."""

    steps: tuple[Step, ...] = ()
    avoid: tuple[Phrase, ...] = ()
    verify: Proof | None = None

    @property
    def runs(self) -> bool:
        """Return whether a run can do any of it; else all of it is a person's."""
        return any(step.actions for step in self.steps)


class Diagnosis(Record):
    """One cause; `confidence` is between 0 and 1."""

    id: str
    part: Part
    severity: Severity
    confidence: float
    title: Phrase
    because: Phrase
    evidence: tuple[Place, ...] = ()
    repair: Repair = Repair()
    known: bool = True
    """Whether the cause is known; else only the symptom is, `id` is the cause that it mostly has, and nothing is repaired on that."""
    asks: tuple[str, ...] = ()
    """Of what is not known, the commands that would tell."""

    @property
    def primary(self) -> bool:
        """Return whether it is the one cause."""
        return self.part == "cause"


class Unseen(Record):
    """A probe that was asked in vain: refused to this user, never ended, or ended with an error."""

    probe: str
    reason: Literal["refused", "hangs", "failed"]


class RuledOut(Record):
    """A look-alike that facts speak against, and what would have been seen otherwise."""

    id: str
    title: Phrase
    because: Phrase
    evidence: tuple[Place, ...]


class Open(Record):
    """A look-alike of which nothing was seen, for or against it; `probe` is the command that would tell."""

    id: str
    title: Phrase
    because: Phrase
    probe: str | None


class Foreign(Record):
    """A log that was handed over is of another machine, or of another time: no driver, card or kernel in it is one of this machine's."""

    there: str
    here: str
    what: Literal["driver", "card", "kernel", "system"] = "driver"
    beside: bool = False
    """Whether this machine has a fault of its own: then that one is the cause, and what the log shows stands beside it."""


class Verdict(Record):
    """The doctor's answer; at most one diagnosis, the first, is the cause."""

    healthy: bool
    diagnoses: tuple[Diagnosis, ...] = ()
    ruled_out: tuple[RuledOut, ...] = ()
    open: tuple[Open, ...] = ()
    """Look-alikes that nothing speaks for and nothing rules out."""
    asks: tuple[str, ...] = ()
    """Commands whose output would make it surer, the most telling first."""
    unseen: tuple[Unseen, ...] = ()
    foreign: Foreign | None = None
    """Set where the logs were judged alone, since they are not of this machine; nothing is to be repaired here on their word."""

    @property
    def cause(self) -> Diagnosis | None:
        """Return the one cause, or `None`."""
        return next((one for one in self.diagnoses if one.primary), None)
