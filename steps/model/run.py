"""A run as its journal tells it: the entries, and the state that all of them fold to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from steps.model.action import AnyAction, Manual, Reboot, Run
from steps.model.base import Param, Phrase, Record, Words

EntryKind = Literal[
    "run-started",  # data: digest, pid, boot_id, user, groups (by comma), system, turn, socket, token (the launcher knows it by it)
    "action-started",
    "action-finished",  # status: "done" | "already" | "failed" | "skipped"; data: exit, error (code) and its params
    "registered",  # undo data is on disk; the change may follow
    "completed",  # packages that were half-done before the run are about to be configured; no undo makes them half-done again
    "prompt",  # data: prompt id, excerpt, secret, kind
    "answered",  # data: to (the prompt's seq); never a secret
    "paused",
    "continued",
    "cancelled",
    "undo-started",
    "action-undone",  # status: "undone" | "kept" | "failed"
    "undo-finished",
    "reboot-needed",  # data: boot_id, unit (that goes on after it), kernel (that is expected)
    "run-finished",  # status: "done" | "failed" | "cancelled" | "undone" | "reboot"; data: exit
]
ActionStatus = Literal["waiting", "running", "asks", "done", "already", "failed", "skipped", "undone", "kept"]
RunStatus = Literal["starting", "running", "paused", "asks", "done", "failed", "cancelled", "reboot", "undoing", "undone", "undo-failed"]


LOG_IN_AGAIN = 11
"""The exit code of the contract for a run that is done, and counts from the person's next login on."""


_LAST_MOMENT = 253402214400.0
"""The last day of the year 9999, in seconds since the epoch."""


def is_moment(at: float) -> bool:
    """Return whether a calendar can show these seconds since the epoch: what it cannot, no clock wrote."""
    return 0.0 <= at <= _LAST_MOMENT


TAKEN_BACK = "[bringup: taken back]"
"""The line in an action's output from which on it is about its undo."""
UNREADABLE = "[bringup: the installed packages cannot be read]"
"""The line in an action's output below which the package manager says why."""


class Entry(Record):
    """One line of the journal."""

    seq: int
    at: float
    kind: EntryKind
    action: str | None = None
    status: str | None = None
    data: Mapping[str, Param | bool | None] = {}


class Prompt(Record):
    """A question that waits for an answer; `seq` is its journal entry, which the answer must name."""

    seq: int
    action: str
    id: str
    """A row of `assets/data/prompts.toml`, or "unknown"."""
    kind: Literal["line", "secret", "keys", "choice"]
    """A line of text, a line that is never stored, single keys to a full-screen dialog, or one of the row's answers."""
    excerpt: str = ""
    """The program's own last lines, with control sequences removed."""


class ActionState(Record):
    """How far one action is; times are seconds since the epoch."""

    id: str
    status: ActionStatus = "waiting"
    started: float | None = None
    ended: float | None = None
    exit: int | None = None
    error: Words | None = None
    """Why it failed, in one sentence."""
    asked: float | None = None
    """Since when it waits for a person; `None` when it does not."""
    waited: float = 0.0
    """For how many seconds it waited for a person before."""
    undone: float | None = None
    """When its undo ended, also one that left it as it is; `None` before."""


class RunState(Record):
    """The fold of all entries: all that a screen needs besides the plan and the spool."""

    status: RunStatus = "starting"
    actions: Mapping[str, ActionState] = {}
    prompt: Prompt | None = None
    completed: bool = False
    """Whether packages that others had left half-done were configured first."""
    held: bool = False
    """Whether no further action begins since a person paused it; a question may be open all the same."""
    started: float | None = None
    ended: float | None = None
    exit: int | None = None
    last_seq: int = 0
    owner: str | None = None
    undoing_since: float | None = None
    """When its undo was begun, the last time; `None` while it was not."""
    unit: str | None = None
    """The unit that goes on by itself after the reboot; `None` where a person has to."""


class RunSummary(Record):
    """One line of `bringup runs`; times are seconds since the epoch, `alive` says whether a runner holds it."""

    id: str
    folder: str
    owner: str | None = None
    started: float | None = None
    ended: float | None = None
    status: RunStatus = "starting"
    exit: int | None = None
    alive: bool = False
    readable: bool = True
    """Whether more is known than that it is there: a damaged run, or one of another person, keeps the rest to itself."""
    damaged: bool = False
    """Whether it cannot be read for what its files hold, or because one is missing; else it belongs to another person."""
    rehearsal: bool = False
    """Whether it touched nothing."""
    title: str = ""
    """What it installs, by name: `NVIDIA 580 open · CUDA 12.8 · torch 2.7.1`."""
    first: Words = ""
    """What its first action is called, for one that installs nothing by name, as a repair."""
    kept_in: str = ""
    """The folder of all packages that were put aside for an undo; that of this run bears its id."""
    kept_bytes: int = 0
    """How much all takes that this run keeps for its undo: its packages, and what lies beside its original."""
    kept_beside: Mapping[str, int] = {}
    """What it keeps whole beside the original, by path, and how much each takes."""

    @property
    def word(self) -> str:
        """The word for how it stands: its status, but `cut-off` where nobody is at work on what did not end."""
        if not self.readable:
            return "damaged" if self.damaged else "unreadable"
        at_work = self.status in ("starting", "running", "paused", "asks", "undoing")
        return "cut-off" if at_work and not self.alive else self.status


def is_taken_back(state: RunState) -> bool:
    """Return whether an undo of the run was begun: it is not gone on with, since that would do again what was taken back."""
    # Its status alone does not tell: an undo asks, too, and its next turn was perhaps cut off before it could say what it is.
    return state.undoing_since is not None or state.status in ("undoing", "undone", "undo-failed")


def left_out(actions: Iterable[AnyAction], state: RunState) -> tuple[AnyAction, ...]:
    """Return the actions that failed and were passed over, with those that needed them.

    What a person was to do and said no to is none of them, nor is what the plan can do without.
    """
    skipped = {id for id, one in state.actions.items() if one.status == "skipped"}
    return tuple(one for one in actions if one.id in skipped and not one.optional and not isinstance(one, Manual | Reboot))


def stays(actions: Iterable[AnyAction], state: RunState) -> Words:
    """Return what the first action that an undo could not take back left behind, in words; empty where nothing stays.

    What a way back took in time before a reboot is past it afterwards.
    """
    told = tuple(actions)
    past = any(isinstance(one, Reboot) and one.id in state.actions and state.actions[one.id].status == "done" for one in told)
    left = {id for id, one in state.actions.items() if one.status == "kept" or (past and one.status == "undone")}
    said = next((one.stays for one in told if isinstance(one, Run) and one.stays and one.id in left), "")
    return said or (Phrase(key="repair.undo.configured") if state.completed else "")
