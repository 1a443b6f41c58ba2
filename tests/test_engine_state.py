from __future__ import annotations

import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from steps.engine.awake import awake
from steps.engine.durable import make_folder, open_new, write_whole
from steps.engine.folder import Origin, Owner, create, invoking_owner, person, state_folder
from steps.engine.journal import Journal, Unwritten, fold, read
from steps.engine.lock import Holder, holder, is_held, take_target, target_lock, try_take
from steps.engine.needs import needs_of
from steps.errors import Busy
from steps.model.action import Reboot, Run
from steps.model.base import Phrase
from steps.model.plan import digest
from steps.model.run import ActionState, Entry, Prompt
from tests.engine_kit import plan_of, works

OWNER = Owner(uid=os.getuid(), gid=os.getgid(), name="ana", home="/home/ana")


def entry(seq: int, kind: str, action: str | None = None, status: str | None = None, /, **data: object) -> Entry:
    return msgspec.convert({"seq": seq, "at": float(seq), "kind": kind, "action": action, "status": status, "data": data}, Entry)


# --- the journal --------------------------------------------------------------------------------


def test_the_journal_gives_back_what_was_written_from_any_offset(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    first = journal.append("run-started", user="ana")
    first_entries, offset = read(tmp_path / "j")
    second = journal.append("action-finished", "a", "failed", status="7", exit=7, error="engine.failed.exit")
    journal.close()
    assert first_entries == (first,)
    assert read(tmp_path / "j", offset)[0] == (second,)
    assert read(tmp_path / "j")[0] == (first, second)


@settings(max_examples=40, deadline=None)
@given(cut=some.integers(min_value=0, max_value=400))
def test_a_journal_cut_anywhere_keeps_all_its_whole_lines(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("j") / "j"
    journal = Journal(path)
    entries = [journal.append("action-started", f"a{number}") for number in range(4)]
    journal.close()
    data = path.read_bytes()
    path.write_bytes(data[:cut])
    whole = data[:cut].count(b"\n")
    assert read(path)[0] == tuple(entries[:whole])
    again = Journal(path)
    assert again.append("run-finished").seq == whole + 1
    again.close()
    assert [found.seq for found in read(path)[0]] == list(range(1, whole + 2))


def test_a_disk_that_is_full_takes_no_half_of_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = Journal(path)
    first = journal.append("action-started", "a")
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        # The disk takes ten bytes more.
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, before[1]))
        with pytest.raises(Unwritten):
            journal.append("action-finished", "a", "done")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    second = journal.append("action-finished", "a", "done")
    journal.close()
    assert read(path)[0] == (first, second)
    assert second.seq == first.seq + 1


def test_the_fold_is_the_same_at_once_and_piece_by_piece() -> None:
    entries = [
        entry(1, "run-started", user="ana"),
        entry(2, "action-started", "a"),
        entry(3, "prompt", "a", id="unknown", kind="line", excerpt="Name?", secret=False),
        entry(4, "answered", to=3, by="person"),
        entry(5, "action-finished", "a", "failed", exit=7, error="engine.failed.exit", status=7),
        entry(6, "run-finished", None, "failed", exit=1),
    ]
    asking = fold(entries[:3])
    assert (asking.status, asking.prompt) == ("asks", Prompt(seq=3, action="a", id="unknown", kind="line", excerpt="Name?"))
    assert asking.actions["a"].status == "asks"
    assert fold(entries[:4]).actions["a"].status == "running"
    whole = fold(entries)
    error = Phrase(key="engine.failed.exit", params={"exit": 7, "status": 7})
    assert whole.actions["a"] == ActionState(id="a", status="failed", started=2.0, ended=5.0, exit=7, error=error, waited=1.0)
    assert (whole.status, whole.exit, whole.started, whole.ended, whole.owner, whole.last_seq) == ("failed", 1, 1.0, 6.0, "ana", 6)
    for middle in range(len(entries)):
        assert fold(entries[middle:], fold(entries[:middle])) == whole


@pytest.mark.parametrize("status", ["undone", "kept", "failed"])
def test_how_long_an_action_took_stays_true_when_it_is_taken_back_days_later(status: str) -> None:
    done = (entry(1, "run-started"), entry(2, "action-started", "a"), entry(5, "action-finished", "a", "done"))
    back = fold((*done, entry(90_000, "undo-started"), entry(90_001, "action-undone", "a", status)))
    assert back.actions["a"] == ActionState(id="a", status=back.actions["a"].status, started=2.0, ended=5.0, undone=90_001.0)
    assert back.actions["a"].status == status
    assert fold((entry(90_002, "action-started", "a"),), back).actions["a"].undone is None


def test_a_new_runner_finds_what_was_at_work_waiting_again() -> None:
    asked = entry(3, "prompt", "a", id="x", kind="line")
    state = fold([entry(1, "run-started"), entry(2, "action-started", "a"), asked, entry(4, "run-started")])
    assert (state.status, state.prompt, state.actions["a"].status) == ("running", None, "waiting")


# --- locks --------------------------------------------------------------------------------------


def test_asking_about_a_lock_does_not_take_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    held = try_take(path)
    assert held is not None
    assert is_held(path)
    assert try_take(path) is None
    os.close(held)
    assert not is_held(path)
    assert is_held(path) is False
    again = try_take(path)
    assert again is not None
    os.close(again)


def test_a_target_has_one_lock_that_names_its_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRINGUP_STATE", str(tmp_path))
    here, there = (target_lock(root, root=True, owner=OWNER) for root in ("/", "/mnt/image_a"))
    assert here != there
    assert target_lock("/mnt/image/a", root=True, owner=OWNER) != there
    held = take_target(here, Holder(run="1130-a", user="ana", started=0.0))
    with pytest.raises(Busy) as caught:
        take_target(here, Holder(run="1130-b", user="wei", started=0.0))
    assert (caught.value.params["run"], caught.value.params["user"]) == ("1130-a", "ana")
    other = take_target(there, Holder(run="1130-b", user="wei", started=0.0))
    os.close(held)
    assert holder(here) is None
    os.close(other)


# --- places and files ---------------------------------------------------------------------------


def test_runs_lie_where_the_contract_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRINGUP_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert str(state_folder(root=True, owner=OWNER)) == "/var/lib/bringup"
    assert str(state_folder(root=False, owner=OWNER)) == "/home/ana/.local/state/bringup"
    monkeypatch.setenv("XDG_STATE_HOME", "/home/ana/state")
    assert str(state_folder(root=False, owner=OWNER)) == "/home/ana/state/bringup"
    monkeypatch.setenv("XDG_STATE_HOME", "state")
    assert str(state_folder(root=False, owner=OWNER)) == "/home/ana/.local/state/bringup"


def test_behind_sudo_the_owner_is_who_typed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "65534")
    assert invoking_owner().uid == (65534 if os.geteuid() == 0 else os.geteuid())
    monkeypatch.setenv("SUDO_UID", "root; rm")
    assert invoking_owner().uid == os.geteuid()
    assert person(4000000000 % 2**31).home == "/"


def test_files_are_written_whole_with_their_mode_and_through_no_link(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"x" * 100_000, 0o640)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert (tmp_path / "a").stat().st_size == 100_000
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        open_new(tmp_path / "b")
    write_whole(tmp_path / "b", b"y")
    assert (tmp_path / "a").stat().st_size == 100_000


# --- order --------------------------------------------------------------------------------------


def test_a_new_run_is_in_folders_whose_names_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    really = os.fsync

    def remember(descriptor: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", remember)
    monkeypatch.setenv("BRINGUP_STATE", str(tmp_path / "state"))
    plan = plan_of(works("a.one"))
    run = create(plan, Origin(digest=digest(plan), owner=OWNER)).path
    make_folder(run / "backup" / "a.one")
    assert {str(path) for path in (tmp_path, run.parent.parent, run.parent, run, run / "backup")} <= synced


DEAF = """
import os, signal, threading, time
from steps.engine.signals import hear
event = threading.Event()
hear(signal.SIGTERM, event.set)
with event._cond:  # as inside of event.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)
print(event.wait(20))
"""


def test_a_signal_is_heard_by_whoever_holds_what_its_handling_waits_for() -> None:
    ended = subprocess.run((sys.executable, "-c", DEAF), capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "True\n"


INHIBIT = """#!/bin/sh
until [ "${1#--}" = "$1" ]; do echo "$1" >> "$0.said"; shift; done
"$@"
echo let go >> "$0.said"
"""
HOLDS = """
import sys, time
from pathlib import Path
from steps.engine.awake import awake
with awake("1130-a", tool=sys.argv[1], logind=Path(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_sleep_is_held_off_until_the_runner_is_gone_however_it_goes(tmp_path: Path, killed: bool) -> None:
    tool = tmp_path / "inhibit"
    tool.write_text(INHIBIT)
    tool.chmod(0o755)
    argv = (sys.executable, "-c", HOLDS, str(tool), str(tmp_path))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as runner:
        assert runner.stdin is not None
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"held\n"
        if killed:
            runner.kill()
        else:
            runner.stdin.close()
    said, deadline = tmp_path / "inhibit.said", time.monotonic() + 20
    while not (said.exists() and "let go" in said.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert said.read_text().splitlines() == [
        "--what=sleep:shutdown",
        "--mode=block",
        "--who=bringup",
        "--why=Run 1130-a changes this system",
        "let go",
    ]


@pytest.mark.parametrize(("tool", "logind"), [("no-such-program", "."), ("true", "nowhere"), ("false", ".")])
def test_where_sleep_cannot_be_held_off_the_run_goes_on(tmp_path: Path, tool: str, logind: str) -> None:
    with awake("1130-a", tool=tool, logind=tmp_path / logind):
        reached = True
    assert reached


def test_proof_and_reboot_come_after_all_before_them_and_nothing_passes_a_reboot() -> None:
    def run(id: str, lane: str, *needs: str) -> Run:
        return msgspec.convert({"type": "Run", "id": id, "title": "t", "lane": lane, "needs": needs, "argv": ["true"]}, Run)

    actions = (
        run("p1", "packages"),
        run("y1", "python"),
        Reboot(id="r", title="t", reason="x"),
        run("p2", "packages"),
        run("y2", "python", "p2"),
        run("v", "proof"),
    )
    assert dict(needs_of(actions)) == {
        "p1": (),
        "y1": (),
        "r": ("p1", "y1"),
        "p2": ("p1", "r"),
        "y2": ("p2", "y1", "r"),
        "v": ("p1", "y1", "r", "p2", "y2"),
    }
