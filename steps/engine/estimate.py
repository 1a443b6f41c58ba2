"""For how long a run will go on: a fold over its plan, its state and what the programs at work say of themselves.

Nothing of it is remembered by whoever asks, so it is the same after a re-attach.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from steps.engine.needs import needs_of
from steps.engine.progress import Work
from steps.model.action import LINE, AnyAction, Lane, Manual
from steps.model.plan import Plan
from steps.model.run import ActionState, RunState

_GUESS = 10.0
"""Seconds that an action without an estimate is taken for, when others have one."""
_PRIOR = 60.0
"""So many seconds as estimated stand beside what finished actions really took: two quick ones say little of a long one."""
_SLOWEST, _FASTEST = 6.0, 0.25
"""How much slower or faster than estimated the rest is taken to be, at most."""
_LATE = 0.15
"""What an action that is over its time still needs, as a part of what it has taken."""
_LOST = 2.0, 60.0
"""An action that says nothing is lost sight of after so many times its estimate and so many seconds more."""
_BUILD = 0.8
"""The part of an installation that a module's build takes."""
_EASE = 45.0
"""Seconds in which a gain is let in; a loss counts at once."""
_FORGOTTEN = 8 * _EASE
"""Seconds after which nothing is left of what was eased."""
_SURE = 0.25
"""From this share on what is measured counts alone, and less before."""
_HALF = 0.5
"""From this share of whole files on the large ones are among them."""
_MOST_DOWNLOAD = 0.9
"""The part of an action's time that a download may be estimated at, at most."""
_OVER = frozenset({"done", "already", "skipped", "undone", "kept"})


def left(plan: Plan, state: RunState, now: float, works: Mapping[str, Work]) -> float | None:
    """Return the seconds that the run will probably still need at `now`; `None` when that cannot be said.

    A gain is let in slowly, so that the number does not jump when an action ends early; a loss counts at once. What was there
    already, or is left out, was never worked on, and is no gain; and no more is said than all that remains takes one after another.
    """
    needs = needs_of(plan.actions)
    target = _needed(plan, state, now, works, needs)
    if target is None:
        return None
    eased, since = 0.0, 0.0
    before: RunState | None = None
    for moment in _moments(state, now):
        after = _at(state, moment)
        if before is not None:
            said, rest = _needed(plan, _passed_over(before, after), moment, {}, needs), _needed(plan, after, moment, {}, needs)
            kept = eased * math.exp(-(moment - since) / _EASE)
            eased, since = (max(0.0, said.end + kept - rest.end), moment) if said is not None and rest is not None else (0.0, moment)
        before = after
    return min(target.end + eased * math.exp(-(now - since) / _EASE), target.work)


def _passed_over(before: RunState, after: RunState) -> RunState:
    """Return a state in which what is over now without any work was over before."""
    over = {id: one for id, one in after.actions.items() if one.status in _OVER and one.status != "done"}
    return RunState(status="running", started=before.started, actions={**before.actions, **over})


def _moments(state: RunState, now: float) -> Iterator[float]:
    """Yield when something began or ended, in order; what is so long ago that nothing is left of it is left out."""
    times = sorted({at for one in state.actions.values() for at in (one.started, one.ended) if at is not None and at <= now})
    old = [at for at in times if at < now - _FORGOTTEN]
    yield from times[max(0, len(old) - 1) :]


def _at(state: RunState, moment: float) -> RunState:
    """Return the actions as they stood at a moment, what happened in it included."""
    actions = {id: one for id, one in ((id, _then(one, moment)) for id, one in state.actions.items()) if one is not None}
    return RunState(status="running", started=state.started, actions=actions)


def _then(one: ActionState, moment: float) -> ActionState | None:
    if one.started is None or one.started > moment:
        return None
    if one.ended is not None and one.ended <= moment:
        return one
    return ActionState(id=one.id, status="running", started=one.started)


# --- what is needed, without easing -----------------------------------------------------------------


class _Needed(NamedTuple):
    """The seconds until the last action ends, and what all of them take at most one after another: lanes work side by side."""

    end: float
    work: float


def _needed(plan: Plan, state: RunState, now: float, works: Mapping[str, Work], needs: Mapping[str, tuple[str, ...]]) -> _Needed | None:
    """Return what the actions need that can still run; `None` when nothing is estimated, or one is lost sight of."""
    if all(action.seconds is None for action in plan.actions):
        return None
    pace = _Pace(plan, state)
    ends: dict[str, float] = {}
    lanes: dict[Lane, float] = {}
    barred: set[str] = set()
    work = 0.0
    optional = {action.id for action in plan.actions if action.optional}
    for action in plan.actions:
        one = state.actions.get(action.id) or ActionState(id=action.id)
        if one.status in _OVER or isinstance(action, Manual):
            continue
        if one.status == "failed" or any(id in barred for id in needs[action.id]):
            # What waits for it does not come before somebody decides.
            barred.update(() if action.id in optional else (action.id,))
            continue
        own = _of_one(action, one, now, works.get(action.id), pace)
        if own is None:
            return None
        # That the machine has been quick so far is a hope for the rest, and no bound.
        work += own / min(1.0, pace.of(action.lane))
        waits = max((ends.get(id, 0.0) for id in needs[action.id]), default=0.0)
        ends[action.id] = max(waits, lanes.get(action.lane, 0.0)) + own
        lanes[action.lane] = ends[action.id]
    return _Needed(max(ends.values(), default=0.0), work)


class _Pace:
    """How much slower than estimated each lane has been: 1 where nothing is known, drawn towards what all lanes say."""

    def __init__(self, plan: Plan, state: RunState) -> None:
        done = [timed for action in plan.actions if (timed := _timed(action, state)) is not None]
        self._done = done
        self._all = self._of(done, 1.0)

    def of(self, lane: Lane) -> float:
        """Return the factor of a lane."""
        return self._of([one for one in self._done if one.lane == lane], self._all)

    @staticmethod
    def _of(done: list[_Timed], otherwise: float) -> float:
        took, thought = sum(one.took for one in done), sum(one.thought for one in done)
        return min(_SLOWEST, max(_FASTEST, (took + _PRIOR * otherwise) / (thought + _PRIOR)))


class _Timed(NamedTuple):
    """A finished action: what it took without the time that it waited for a person, and what was thought."""

    lane: Lane
    took: float
    thought: float


def _timed(action: AnyAction, state: RunState) -> _Timed | None:
    """Return the times of an action that ran to its end and had an estimate, else `None`."""
    one = state.actions.get(action.id)
    if one is None or one.status != "done" or one.started is None or one.ended is None or action.seconds is None:
        return None
    return _Timed(action.lane, max(0.0, one.ended - one.started - one.waited), action.seconds)


def _of_one(action: AnyAction, one: ActionState, now: float, work: Work | None, pace: _Pace) -> float | None:
    """Return what one action still needs; `None` when it is long over its time and says nothing."""
    factor = pace.of(action.lane)
    thought = action.seconds if action.seconds is not None else _GUESS
    if one.status not in ("running", "asks") or one.started is None:
        return thought * factor
    gone = max(0.0, (one.asked if one.asked is not None else now) - one.started - one.waited)
    fetch = min(_MOST_DOWNLOAD * thought, (action.download_bytes or 0) / LINE)
    rest = (thought - fetch) * factor
    if work is None or work.fetched == 0:
        times, more = _LOST
        return None if gone > times * thought * max(1.0, factor) + more else max(thought * factor - gone, _LATE * gone)
    if work.phase == "download":
        so_far = _fetching if work.fetched is None else _fetching_files
        return so_far(work.percent / 100, gone, fetch * factor) + rest
    came = work.fetching if work.fetching is not None else min(gone, fetch * factor)
    return _installing(action, work, max(0.0, gone - came), rest)


def _fetching(share: float, gone: float, thought: float) -> float:
    """Return what a download still needs: as it was thought at the beginning, as it goes later."""
    if share <= 0.0:
        return max(thought - gone, _LATE * gone)
    return (1.0 - share) * _drawn(thought, gone / share, share / _SURE)


def _fetching_files(share: float, gone: float, thought: float) -> float:
    """Return what a download still needs of which whole files are counted: while a large one is on its way the share stands still."""
    if share >= _HALF:
        return _fetching(share, gone, thought)
    clock = max(thought - gone, _LATE * gone)
    return clock if gone <= thought else min(gone, max(clock, (1.0 - share) * _HALF * gone / share))


def _installing(action: AnyAction, work: Work, gone: float, thought: float) -> float:
    """Return what an installation still needs, by the objects of the module that is built, else by the manager's own share."""
    if work.objects is not None and work.of:
        share = (1.0 - _BUILD) / 2 + _BUILD * min(1.0, work.objects / work.of)
        return (1.0 - share) * _drawn(thought, gone / share, share / _SURE)
    if action.quiet_seconds is not None or not 0.0 < work.percent < 100.0:
        # A package in which a module is built stands still at its share: only the clock tells.
        return max(thought - gone, _LATE * gone)
    share = work.percent / 100
    return (1.0 - share) * _drawn(thought, gone / share, share / _SURE)


def _drawn(thought: float, measured: float, sure: float) -> float:
    """Return the whole time: what was thought, drawn towards what is measured as far as that is sure."""
    weight = min(1.0, max(0.0, sure))
    return (1.0 - weight) * thought + weight * measured
