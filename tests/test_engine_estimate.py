"""How long a run still needs: honest where it is slow, without jumps where it is quick, unknown where nobody can know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from steps.engine import journal
from steps.engine.estimate import left
from steps.engine.needs import needs_of
from steps.engine.progress import Work, wheels_of, work_of
from steps.model.action import LINE, AnyAction, Manual, Packages, Run
from steps.model.plan import Plan
from steps.model.run import Entry, RunState
from tests.engine_kit import plan_of

START = 1_764_511_320.0


def packages(id: str, seconds: float | None, *, fetches: float = 0.0, quiet: float | None = None) -> Packages:
    size = int(fetches * LINE) or None
    return Packages(
        id=id, title="t", lane="packages", manager="apt", install=("x",), seconds=seconds, download_bytes=size, quiet_seconds=quiet
    )


def python(id: str, seconds: float | None, *, fetches: float = 0.0) -> Run:
    return Run(id=id, title="t", lane="python", argv=("true",), seconds=seconds, download_bytes=int(fetches * LINE) or None)


PROOF = Run(id="verify", title="t", lane="proof", argv=("true",), seconds=60)
WHOLE = plan_of(
    Run(id="system.return", title="t", lane="packages", argv=("true",), seconds=20),
    packages("driver.headers", 40),
    packages("driver.install", 480, fetches=35, quiet=720),
    packages("toolkit.cuda", 180, fetches=120),
    python("environment.create", 5),
    python("environment.install", 140, fetches=110),
    PROOF,
)


def recorded(plan: Plan, took: Mapping[str, float]) -> tuple[list[Entry], float]:
    """Return the journal of a run whose actions took so long, and when it ended."""
    needs, ends = needs_of(plan.actions), dict[str, float]()
    told: list[tuple[float, str, str, str | None]] = []
    for action in plan.actions:
        begins = max((ends[id] for id in needs[action.id]), default=START)
        ends[action.id] = begins + took[action.id]
        told += [(begins, "action-started", action.id, None), (ends[action.id], "action-finished", action.id, "done")]
    entries = [Entry(seq=1, at=START, kind="run-started")]
    for at, kind, id, status in sorted(told, key=lambda one: (one[0], one[1] == "action-started")):
        entries.append(
            Entry(seq=len(entries) + 1, at=at, kind="action-started" if status is None else "action-finished", action=id, status=status)
        )
        assert entries[-1].kind == kind
    return entries, max(ends.values())


def at(entries: Iterable[Entry], now: float) -> RunState:
    """Return the state that a viewer reads at a moment."""
    return journal.fold(entry for entry in entries if entry.at <= now)


def said(plan: Plan, took: Mapping[str, float], step: float = 5.0) -> list[tuple[float, float | None, float]]:
    """Return for every so many seconds: the time, what was said to be left, and what really was."""
    entries, end = recorded(plan, took)
    times = [START + step * count for count in range(int((end - START) / step))]
    return [(now - START, left(plan, at(entries, now), now, {}), end - now) for now in times]


def as_thought(plan: Plan, factor: float = 1.0) -> dict[str, float]:
    return {action.id: (action.seconds or 0.0) * factor for action in plan.actions}


# --- the whole run ----------------------------------------------------------------------------------


def test_a_run_that_goes_as_thought_is_said_to_the_minute_from_beginning_to_end() -> None:
    for now, told, really in said(WHOLE, as_thought(WHOLE)):
        assert told is not None
        assert abs(told - really) <= 75, now


@pytest.mark.parametrize("factor", [0.4, 0.7, 1.5, 2.5])
def test_a_machine_that_is_faster_or_slower_throughout_is_known_by_half_of_its_run(factor: float) -> None:
    told = said(WHOLE, as_thought(WHOLE, factor))
    whole = told[-1][0]
    for now, seconds, really in told:
        if whole / 2 <= now <= 0.95 * whole:
            assert seconds is not None
            assert 0.5 * really <= seconds <= 1.8 * really + 60, now


def test_an_action_that_ends_early_lets_its_gain_in_slowly() -> None:
    told = said(WHOLE, {**as_thought(WHOLE), "driver.install": 60.0}, step=1.0)
    numbers = [one for _, one, _ in told if one is not None]
    falls = [before - after for before, after in pairwise(numbers)]
    # 420 seconds were gained in one moment. What is more than all that remains goes at once, the rest over three quarters of a minute.
    early = next(place for place, fall in enumerate(falls) if fall > 20)
    assert numbers[early + 1] == pytest.approx(180 + 25 + 60, rel=0.1)
    assert max(falls[early + 1 : early + 20]) < 20
    assert told[-1][1] is not None
    assert told[-1][1] < 60


def test_never_more_is_said_than_all_that_remains_takes_one_after_another() -> None:
    took = {**as_thought(WHOLE), "driver.install": 60.0}
    entries, end = recorded(WHOLE, took)
    for now in range(int(START), int(end)):
        state, told = at(entries, now), left(WHOLE, at(entries, now), now, {})
        ends = {id for id, one in state.actions.items() if one.ended is not None}
        assert told is not None
        assert told <= sum(action.seconds or 0 for action in WHOLE.actions if action.id not in ends) * 1.01


def passed_over(plan: Plan, count: int, status: str, took: float) -> list[Entry]:
    """Return the journal of a run in which the first actions were over one after another, as `status`, in so many seconds each."""
    entries = [Entry(seq=1, at=START, kind="run-started")]
    for place, action in enumerate(plan.actions[:count]):
        begun = START + place * took
        entries.append(Entry(seq=len(entries) + 1, at=begun, kind="action-started", action=action.id))
        entries.append(Entry(seq=len(entries) + 1, at=begun + took, kind="action-finished", action=action.id, status=status))
    return entries


def test_what_was_there_already_is_no_gain_that_is_let_in_slowly() -> None:
    entries = passed_over(WHOLE, 4, "already", 0.5)
    now = START + 3
    assert left(WHOLE, at(entries, now), now, {}) == pytest.approx(5 + 140 + 60, abs=1)
    last = passed_over(WHOLE, 6, "already", 0.5)
    assert left(WHOLE, at(last, now), now, {}) == pytest.approx(60)


def test_an_action_over_its_time_never_says_that_nothing_is_left() -> None:
    plan = plan_of(packages("a.one", 100), PROOF)
    entries, _ = recorded(plan, {"a.one": 1000, "verify": 60})
    over = [left(plan, at(entries, START + after), START + after, {}) for after in (100, 150, 200)]
    assert [round(one or 0) for one in over] == [75, 82, 90]


def test_an_action_that_is_long_over_its_time_and_says_nothing_makes_the_rest_unknown() -> None:
    plan = plan_of(packages("a.one", 100), PROOF)
    entries, _ = recorded(plan, {"a.one": 1000, "verify": 60})
    assert left(plan, at(entries, START + 255), START + 255, {}) is not None
    assert left(plan, at(entries, START + 265), START + 265, {}) is None
    working = {"a.one": Work(phase="install", percent=50.0)}
    assert left(plan, at(entries, START + 265), START + 265, working) == pytest.approx(265 + 60)


def test_nothing_is_said_where_nothing_was_estimated() -> None:
    assert left(plan_of(packages("a.one", None)), RunState(), START, {}) is None


def test_the_time_that_a_person_took_to_answer_is_no_slowness() -> None:
    plan = plan_of(packages("a.one", 20), packages("a.two", 100))
    entries = [
        Entry(seq=1, at=START, kind="run-started"),
        Entry(seq=2, at=START, kind="action-started", action="a.one"),
        Entry(seq=3, at=START + 10, kind="prompt", action="a.one", data={"id": "unknown", "kind": "line"}),
        Entry(seq=4, at=START + 3610, kind="answered", data={"to": 3}),
        Entry(seq=5, at=START + 3620, kind="action-finished", action="a.one", status="done"),
        Entry(seq=6, at=START + 3620, kind="action-started", action="a.two"),
    ]
    assert journal.fold(entries).actions["a.one"].waited == 3600
    assert left(plan, journal.fold(entries), START + 3620, {}) == pytest.approx(100)
    asking = journal.fold(entries[:3])
    assert left(plan, asking, START + 3000, {}) == pytest.approx(110)


def test_what_a_failed_action_bars_is_not_waited_for_while_another_lane_works() -> None:
    plan = plan_of(packages("a.one", 20), packages("a.two", 500), python("b.one", 100))
    entries = [
        Entry(seq=1, at=START, kind="run-started"),
        Entry(seq=2, at=START, kind="action-started", action="a.one"),
        Entry(seq=3, at=START, kind="action-started", action="b.one"),
        Entry(seq=4, at=START + 10, kind="action-finished", action="a.one", status="failed"),
    ]
    for after, most in ((10, 520), (300, 100)):
        told = left(plan, journal.fold(entries), START + after, {})
        assert told is None or told <= most
    # What the failed one bars is no work that remains.
    assert left(plan, journal.fold(entries), START + 90, {}) == pytest.approx(13.5)


def test_what_a_person_does_by_hand_has_no_time() -> None:
    plan = plan_of(Manual(id="a.hand", title="t", text="t"), packages("a.one", 100))
    assert left(plan, RunState(status="running"), START, {}) == pytest.approx(100)


@given(factors=some.lists(some.floats(0.1, 5.0), min_size=len(WHOLE.actions), max_size=len(WHOLE.actions)), after=some.floats(0.0, 1.0))
def test_it_is_never_negative_and_says_the_same_to_whoever_comes_later(factors: list[float], after: float) -> None:
    took = {action.id: (action.seconds or 0.0) * factor for action, factor in zip(WHOLE.actions, factors, strict=True)}
    entries, end = recorded(WHOLE, took)
    now = START + after * (end - START)
    seen = [entry for entry in entries if entry.at <= now]
    step_by_step = journal.fold(seen[len(seen) // 2 :], journal.fold(seen[: len(seen) // 2]))
    told = left(WHOLE, step_by_step, now, {})
    assert told == left(WHOLE, journal.fold(seen), now, {})
    assert told is None or told >= 0


# --- one action that says how far it is --------------------------------------------------------------


def running(action: AnyAction, after: float, work: Work) -> float:
    """Return what is said of a plan of one action that has run so long and says this."""
    state = journal.fold([Entry(seq=1, at=START, kind="run-started"), Entry(seq=2, at=START, kind="action-started", action=action.id)])
    told = left(plan_of(action), state, START + after, {action.id: work})
    assert told is not None
    return told


def test_a_slow_line_is_seen_in_the_download() -> None:
    driver = packages("a.one", 480, fetches=35)
    half = running(driver, 300, Work(phase="download", percent=50.0))
    # Half of it took five minutes: the other half will too, and the rest of the installation has not begun.
    assert half == pytest.approx(300 + 445)
    first = running(driver, 3, Work(phase="download", percent=1.0))
    assert 440 < first < 500


def test_a_module_is_as_far_as_its_objects() -> None:
    driver = packages("a.one", 480, fetches=35, quiet=720)
    work = Work(phase="install", percent=60.0, objects=100, of=200, fetching=40.0)
    assert running(driver, 340, work) == pytest.approx(300)
    assert running(driver, 640, work) == pytest.approx(600)
    done = Work(phase="install", percent=60.0, objects=200, of=200, fetching=40.0)
    assert running(driver, 640, done) == pytest.approx(600 / 9)


def test_a_silent_build_without_a_known_end_goes_by_the_clock() -> None:
    driver = packages("a.one", 480, quiet=720)
    work = Work(phase="install", percent=60.0, objects=100)
    assert [running(driver, after, work) for after in (100, 400, 1000)] == [380, 80, pytest.approx(150)]


def test_packages_without_a_build_go_by_the_share_of_the_manager() -> None:
    assert running(packages("a.one", 100), 90, Work(phase="install", percent=30.0)) == pytest.approx(210)


def test_wheels_go_by_their_bytes() -> None:
    env = python("a.one", 140, fetches=110)
    assert running(env, 60, Work(phase="download", percent=75.0, bytes=1000, fetched=750)) == pytest.approx(20 + 30)
    # A small one came, the large one is on its way: how much of it is here nobody says.
    small = Work(phase="download", percent=5.0, bytes=1000, fetched=50)
    assert running(env, 60, small) == pytest.approx(50 + 30)
    assert running(env, 220, small) == pytest.approx(220 + 30)


# --- what the programs say ---------------------------------------------------------------------------

UV = (
    b"\x1b[2mUsing CPython 3.11.7 interpreter at: .venv/bin/python\x1b[0m\r\n"
    b"\x1b[2mResolved \x1b[1m2 packages\x1b[0m \x1b[2min 448ms\x1b[0m\x1b[0m\r\n"
    b"\x1b[36m\x1b[1mDownloading\x1b[0m\x1b[39m numpy \x1b[2m(15.6MiB)\x1b[0m\r\n"
    b"\x1b[36m\x1b[1mDownloading\x1b[0m\x1b[39m pillow \x1b[2m(6.8MiB)\x1b[0m\r\n"
)
PIP = (
    b"Collecting numpy==2.2.0\n"
    b"  Downloading numpy-2.2.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl (16.4 MB)\n"
    b"Collecting pillow\n"
    b"  Downloading pillow-13.0.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl (7.1 MB)\n"
)
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("printed", "phase", "fetched", "announced"),
    [
        (UV, "download", 0, round(22.4 * MIB)),
        (UV + b" \x1b[36m\x1b[1mDownloaded\x1b[0m\x1b[39m pillow\r\n", "download", round(6.8 * MIB), round(22.4 * MIB)),
        (PIP, "download", 16_400_000, 23_500_000),
        (UV + b"\x1b[2mPrepared \x1b[1m2 packages\x1b[0m \x1b[2min 1.72s\x1b[0m\x1b[0m\r\n", "install", None, None),
        (PIP + b"Installing collected packages: pillow, numpy\n", "install", None, None),
    ],
    ids=["uv begins", "uv has one", "pip has one", "uv unpacks", "pip unpacks"],
)
def test_uv_and_pip_say_what_they_fetched(tmp_path: Path, printed: bytes, phase: str, fetched: int | None, announced: int | None) -> None:
    (tmp_path / "a.log").write_bytes(printed)
    work = wheels_of(tmp_path / "a.log")
    assert work is not None
    assert (work.phase, work.fetched, work.bytes) == (phase, fetched, announced)


def test_nothing_is_said_before_a_download_is_announced(tmp_path: Path) -> None:
    assert wheels_of(tmp_path / "none") is None
    (tmp_path / "a.log").write_bytes(b"Looking in indexes: https://pypi.org/simple\n")
    assert wheels_of(tmp_path / "a.log") is None


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("Fetched 420 MB in 35s (12.0 MB/s)\n", 35.0),
        ("Fetched 4,120 MB in 12min 5s (5,683 kB/s)\n", 725.0),
        ("Fetched 9,120 MB in 1h 2min 5s (2,448 kB/s)\n", 3725.0),
        ("Get:1 http://archive x\n", None),
    ],
)
def test_apt_says_how_long_it_fetched(tmp_path: Path, line: str, seconds: float | None) -> None:
    (tmp_path / "a.status").write_text("pmstatus:libnccl2:71.4286:Unpacking libnccl2 (amd64)\n")
    (tmp_path / "a.log").write_text(f"Reading package lists...\n{line}Selecting previously unselected package\n")
    work = work_of(tmp_path / "a.status", str(tmp_path), None, tmp_path / "a.log")
    assert work is not None
    assert work.fetching == seconds


def test_a_module_that_lists_its_sources_says_of_how_many_objects(tmp_path: Path) -> None:
    build = tmp_path / "var/lib/dkms/nvidia/580.82/build"
    (build / "nvidia-uvm").mkdir(parents=True)
    (build / "make.log").write_text("  CC [M]  /x/nv.o\n")
    (build / "nvidia-uvm/nvidia-uvm-sources.Kbuild").write_text("NVIDIA_UVM_SOURCES ?=\nNVIDIA_UVM_SOURCES += nvidia-uvm/uvm.c\n")
    (build / "nvidia-modeset.Kbuild").write_text(
        "NVIDIA_MODESET_SOURCES = nvidia-modeset/linux.c\nNVIDIA_MODESET_SOURCES += nvidia-modeset/q.c\n"
    )
    (build / "dkms.conf").write_text('BUILT_MODULE_NAME[0]="nvidia-uvm"\nBUILT_MODULE_NAME[1]="nvidia-modeset"\n')
    (tmp_path / "a.status").write_text("pmstatus:nvidia-dkms-580:60.0:Configuring\n")
    work = work_of(tmp_path / "a.status", str(tmp_path), 0.0)
    assert work is not None
    assert (work.objects, work.of) == (1, 5)  # one a source, and one a module
