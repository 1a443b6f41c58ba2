"""What is known of a run while it is watched: from its plan, its state and the clock alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

from steps.model.action import AnyAction, leaves_something
from steps.model.base import Phrase, Words, phrase
from steps.model.plan import Plan
from steps.model.profile import Profile
from steps.model.run import ActionState, RunState
from steps.model.verdict import Rung
from steps.text import Language, say

Sudo = Callable[[tuple[str, ...]], int]

ENDED = frozenset({"done", "failed", "cancelled", "reboot", "undone", "undo-failed"})
"""States of a run in which no runner works on it."""
_CHANGED = frozenset({"done", "failed", "running"})
"""States of an action that an undo has still to take back."""
_GOING_BACK = frozenset({"undoing", "undone", "undo-failed"})
"""States of a run whose undo was begun."""
SETTLED = frozenset({"done", "already", "skipped", "undone", "kept"})
"""States of an action after which nothing more comes of it."""
PROOF_FAILED = 20


class Spool(Protocol):
    """The raw output of one action, as far as it was written."""

    def size(self) -> int:
        """Return how many bytes there are now; 0 before the action wrote any."""
        ...

    def read(self, offset: int, count: int, /) -> bytes:
        """Return up to `count` bytes from `offset`; fewer, or none, at the end."""
        ...


class AtWork(Protocol):
    """What a package manager says of its present work."""

    @property
    def phase(self) -> str:
        """Either `download` or `install`."""
        ...

    @property
    def percent(self) -> float:
        """How much of this phase is done."""
        ...

    @property
    def objects(self) -> int | None:
        """How many objects a module's build has made so far; `None` while none is built."""
        ...

    @property
    def of(self) -> int | None:
        """How many it will make; `None` when that is not known."""
        ...

    @property
    def stirred(self) -> float | None:
        """When the build last wrote into its own log; `None` while none is built."""
        ...


class Watched(Protocol):
    """What a viewer needs of a run: `steps.engine.client.RunHandle` is one."""

    @property
    def id(self) -> str:
        """The run's name."""
        ...

    @property
    def folder(self) -> str:
        """Where it lies."""
        ...

    @property
    def plan(self) -> Plan:
        """What was confirmed."""
        ...

    def state(self) -> RunState:
        """Return how far it is; reads only what is new."""
        ...

    def alive(self) -> bool:
        """Return whether a runner works on it."""
        ...

    def spool(self, action_id: str, /) -> Spool:
        """Return the output of an action."""
        ...

    def work(self, action_id: str, /) -> AtWork | None:
        """Return how far a package manager is with an action; `None` when it says nothing."""
        ...

    def left(self, now: float, /) -> float | None:
        """Return the seconds that the run will probably still need; `None` when that cannot be said."""
        ...

    def answer(self, seq: int, text: str, /) -> None:
        """Answer the prompt `seq`."""
        ...

    def keys(self, seq: int, data: bytes, /) -> None:
        """Send keys to the dialog `seq`."""
        ...

    def cancel(self) -> None:
        """Stop the run."""
        ...

    def pause(self) -> None:
        """Start no further action."""
        ...

    def proceed(self) -> None:
        """Go on after a pause."""
        ...

    def retry(self, action: str, /, *, sudo: Sudo | None) -> None:
        """Try a failed action again, and go on."""
        ...

    def skip(self, action: str, /, *, sudo: Sudo | None) -> None:
        """Leave a failed action out, and go on."""
        ...

    def resume(self, *, sudo: Sudo | None) -> None:
        """Start a runner that goes on."""
        ...

    def undo(self, *, sudo: Sudo | None) -> None:
        """Start a runner that takes everything back."""
        ...

    def goes_back(self) -> int:
        """Return how many actions an undo takes back."""
        ...

    def goes_with_undo(self) -> tuple[str, ...]:
        """Return the folders that an undo removes with everything in them."""
        ...

    def verdict(self) -> tuple[Rung, ...] | None:
        """Return what the proof found, or `None` when there was none."""
        ...


# --- how far ----------------------------------------------------------------------------------------


class Progress(NamedTuple):
    """Where the run is: counts and seconds."""

    number: int
    total: int
    done: int
    gone: float


def of(state: RunState, action: str) -> ActionState:
    """Return how far an action is."""
    return state.actions.get(action) or ActionState(id=action)


def focus(plan: Plan, state: RunState) -> int:
    """Return the index of the action to look at: one that asks, failed or runs, else the last that did anything.

    While a run is taken back, it is the one whose turn it is.
    """
    statuses = [of(state, action.id).status for action in plan.actions]
    back = [index for index, action in enumerate(plan.actions) if statuses[index] in _CHANGED and leaves_something(action)]
    if state.status == "undoing" and back:
        # The newest that is not taken back yet: nothing says when an undo of it begins.
        return max(back, key=lambda index: (of(state, plan.actions[index].id).started or 0.0, index))
    for wanted in ("asks", "failed", "running"):
        if wanted in statuses:
            return statuses.index(wanted)
    states = [of(state, action.id) for action in plan.actions]
    acted = [one.undone or one.ended or one.started or 0.0 for one in states]
    latest = max(acted, default=0.0)
    return max((index for index, at in enumerate(acted) if at and at == latest), default=0)


def progress(plan: Plan, state: RunState, now: float) -> Progress:
    """Return how far the run is at `now`."""
    total = len(plan.actions)
    done = sum(of(state, action.id).status in SETTLED for action in plan.actions)
    # An undo takes its own time; the run before it may lie days back.
    begun = state.undoing_since if state.status in _GOING_BACK and state.undoing_since is not None else state.started
    started = begun if begun is not None else now
    end = state.ended if state.ended is not None and state.status in ENDED else now
    at = focus(plan, state)
    busy = of(state, plan.actions[at].id).status in ("asks", "failed", "running")
    number = at + 1 if busy else max(1, done)
    return Progress(number, total, done, max(0.0, end - started))


def taken(one: ActionState, now: float) -> float | None:
    """Return how long an action took or has been running; `None` before it started."""
    if one.started is None:
        return None
    return max(0.0, (one.ended if one.ended is not None else now) - one.started)


class Quiet:
    """When the output of the watched action last grew, as far as this viewer has seen."""

    def __init__(self) -> None:
        self._action = ""
        self._size = -1
        self._at = 0.0

    def seconds(self, action: str, size: int, one: ActionState, now: float) -> float:
        """Return how long nothing was printed."""
        if action != self._action:
            # What was written before this viewer came has no time of its own: it counts from now, and nothing from the start.
            self._action, self._size = action, size
            self._at = now if size or one.started is None else one.started
        elif size != self._size:
            self._size, self._at = size, now
        return max(0.0, now - self._at)


def stillness(quiet: float, work: AtWork | None, now: float) -> float:
    """Return for how long nothing was heard of an action: neither output, nor from a silent build in its own log."""
    return quiet if work is None or work.stirred is None else min(quiet, max(0.0, now - work.stirred))


def gone(state: RunState, alive: bool) -> bool:
    """Return whether the runner is gone though the run did not end."""
    return not alive and state.status not in ENDED


# --- words ------------------------------------------------------------------------------------------


def clock(seconds: float, language: Language) -> str:
    """Return a time as `m:ss` up to an hour, then `1 h 12 min`."""
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    return say(language, phrase("run.hours", h=whole // 3600, m=whole % 3600 // 60))


def about(seconds: float, language: Language) -> str:
    """Return an estimate in words, at most two digits of it."""
    if seconds < 60:
        return say(language, phrase("run.under-a-minute"))
    minutes = round(seconds / 60)
    if minutes < 100:
        return say(language, phrase("run.minutes", m=minutes))
    return say(language, phrase("run.hours", h=minutes // 60, m=round(minutes % 60, -1)))


def remaining(left: float | None, language: Language) -> str:
    """Return how long a run still needs, in words: rounded up, the coarser the longer; or that nobody knows."""
    if left is None:
        return say(language, phrase("run.left.unknown"))
    if left < 60:
        return say(language, phrase("run.left.minute"))
    minutes = math.ceil(left / 60)
    step = next(step for most, step in _STEPS if minutes <= most)
    return say(language, phrase("run.left.about", left=about(60.0 * step * math.ceil(minutes / step), language)))


_STEPS = ((12, 1), (30, 2), (100, 5), (math.inf, 10))
"""Up to how many minutes a time is said in steps of how many."""


def contents(profile: Profile, language: Language) -> str:
    """Return what a run installs, in a few names: `driver 580 open, CUDA 12.8, PyTorch 2.13.0`."""
    names: list[str] = []
    driver, toolkit = profile.driver, profile.toolkit
    if driver.branch and driver.source != "keep":
        flavor = say(language, phrase(f"run.flavor.{driver.flavor}")) if driver.flavor else ""
        names.append(say(language, phrase("run.driver", branch=driver.branch, flavor=flavor)).strip())
    for label, version in (("CUDA", toolkit.cuda), ("cuDNN", toolkit.cudnn), ("NCCL", toolkit.nccl)):
        if version and version != "none":
            names.append(f"{label} {version}")
    for package, version in profile.frameworks.items():
        if package in _FRAMEWORKS and version != "none":
            names.append(f"{_FRAMEWORKS[package]} {version}")
    return say(language, phrase("run.comma")).join(names)


_FRAMEWORKS = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}


def installing(plan: Plan, language: Language) -> str:
    """Return the title of a run: what it installs, or how many steps it has."""
    few = title(plan.actions[0], language) if len(plan.actions) == 1 else say(language, phrase("run.steps", n=len(plan.actions)))
    what = contents(plan.profile, language) or few
    if plan.repairs is not None:
        return say(language, phrase("run.repairing", run=plan.repairs, what=what))
    return say(language, phrase("run.rehearsing" if plan.target.rehearsal else "run.installing", what=what))


def title(action: AnyAction, language: Language) -> str:
    """Return what an action is called."""
    return say(language, action.title)


def cause(action: AnyAction, one: ActionState, language: Language) -> str:
    """Return why an action failed, in one sentence."""
    if one.error:
        return say(language, one.error)
    key = "run.failed-exit" if one.exit is not None else "run.failed-plain"
    return say(language, phrase(key, title=title(action, language), exit=one.exit if one.exit is not None else 0))


def for_unknown_reason(one: ActionState) -> bool:
    """Return whether all that is known of a failure is the exit code of a program: by itself it will end so again."""
    key = one.error.key if isinstance(one.error, Phrase) else None
    return one.exit is not None and (not one.error or key in ("engine.failed.exit", "run.failed-exit"))


def background(one: ActionState, language: Language) -> str:
    """Return what to do about it, when the error says so; "" when it does not."""
    if isinstance(one.error, str) or one.error is None or not one.error.key.endswith(".sentence"):
        return ""
    remedy: Words = phrase(one.error.key.removesuffix("sentence") + "remedy", **one.error.params)
    words = say(language, remedy)
    return "" if words.endswith(".remedy") else words
