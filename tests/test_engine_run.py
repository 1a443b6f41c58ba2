from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from steps.engine import client, journal
from steps.engine.folder import Order, Origin, boot_id, create, invoking_owner
from steps.engine.server import Request, ask
from steps.engine.waiting import processes_of
from steps.errors import BringupError, Busy, InputError, PrivilegeError
from steps.model.action import Command, FileIs, Manual, Reboot, RemovePath, Run, Succeeds, Write
from steps.model.base import Phrase
from steps.model.plan import digest
from steps.model.profile import Profile
from steps.model.run import left_out
from steps.model.verdict import Rung
from tests.engine_kit import (
    as_nobody,
    asks,
    ended,
    holds,
    kill_runner,
    output,
    plan_of,
    runner_pid,
    said,
    session_of,
    stand_in,
    statuses,
    wait_until,
    works,
)

pytestmark = pytest.mark.usefixtures("state")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes user ids")
NOBODY = 65534


# --- to the end ---------------------------------------------------------------------------------


def test_a_run_goes_to_its_end_and_tells_it_in_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "nccl.conf"
    handle = client.start(
        plan_of(works("a.one", 3), Write(id="b.two", title="t", lane="files", path=str(file), text="NCCL_DEBUG=WARN\n")), sudo=None
    )
    state = ended(handle)
    assert (state.status, state.exit, statuses(state)) == ("done", 0, {"a.one": "done", "b.two": "done"})
    assert said(handle, "a.one") == "line 1\nline 2\nline 3\n"
    assert file.read_text() == "NCCL_DEBUG=WARN\n"
    assert client.find(handle.id).summary().status == "done"
    assert [summary.id for summary in client.runs()] == [handle.id]


def test_a_run_whose_steps_wait_for_each_other_fails_and_says_so() -> None:
    one, two = (msgspec.structs.replace(works(id), needs=(other,)) for id, other in (("a.one", "b.two"), ("b.two", "a.one")))
    state = ended(client.start(plan_of(one, msgspec.structs.replace(two, lane="files")), sudo=None))
    assert (state.status, state.exit, statuses(state)) == ("failed", 1, {"a.one": "failed"})
    assert state.actions["a.one"].error == Phrase(key="engine.failed.stuck")


def test_a_plan_with_two_actions_of_one_id_makes_no_run() -> None:
    plan = plan_of(works("a.one"), works("b.two"), works("a.one"))
    with pytest.raises(ValueError, match=r"two actions of one id: a\.one$"):
        create(plan, Origin(digest=digest(plan), owner=invoking_owner()))
    assert client.runs() == ()


def test_run_ids_are_the_day_and_a_letter() -> None:
    day = time.strftime("%m%d")
    ids = [client.start(plan_of(works("a.one")), sudo=None) for _ in range(1)]
    ended(ids[0])
    second = client.start(plan_of(works("a.one")), sudo=None)
    ended(second)
    assert [ids[0].id, second.id] == [f"{day}-a", f"{day}-b"]
    assert client.find(None).id == f"{day}-b"


def test_the_folder_and_its_files_are_closed_to_others() -> None:
    handle = client.start(plan_of(works("a.one")), sudo=None)
    ended(handle)
    modes = {
        name: stat.S_IMODE((Path(handle.folder) / name).stat().st_mode)
        for name in ("", "output", "backup", "plan.json", "journal.jsonl", "lock")
    }
    assert modes == {"": 0o750, "output": 0o750, "backup": 0o750, "plan.json": 0o640, "journal.jsonl": 0o640, "lock": 0o640}
    assert stat.S_IMODE((Path(handle.folder) / "output" / "a.one.log").stat().st_mode) == 0o640


def test_what_is_done_already_is_not_done_again(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    done = Run(id="a.one", title="t", argv=("false",), done_when=(FileIs(path=str(tmp_path / "there")), Succeeds(argv=("true",))))
    assert statuses(ended(client.start(plan_of(done), sudo=None))) == {"a.one": "already"}


def test_an_empty_file_that_a_failed_command_left_is_not_taken_for_its_work(tmp_path: Path) -> None:
    room, made = tmp_path / "room", tmp_path / "made"
    script = '[ -e "$1" ] && echo whole >"$2" || { : >"$2"; exit 1; }'
    action = Run(id="a.one", title="t", argv=("sh", "-c", script, "sh", str(room), str(made)), done_when=(FileIs(path=str(made)),))
    handle = client.start(plan_of(action), sudo=None)
    assert statuses(ended(handle)) == {"a.one": "failed"}
    room.touch()
    handle.resume()
    assert statuses(ended(handle)) == {"a.one": "done"}
    assert made.read_text() == "whole\n"


@pytest.mark.parametrize(("same_boot", "status"), [(False, "done"), (True, "already")])
def test_a_file_that_was_there_when_the_power_went_is_not_taken_for_its_work(tmp_path: Path, same_boot: bool, status: str) -> None:
    go, made = tmp_path / "go", tmp_path / "made"
    script = ': >"$2"; [ -e "$1" ] || exec sleep 600; echo whole >"$2"'
    action = Run(id="a.one", title="t", argv=("sh", "-c", script, "sh", str(go), str(made)), done_when=(FileIs(path=str(made)),))
    handle = client.start(plan_of(action), sudo=None)
    wait_until(handle, lambda _: made.exists())
    session = session_of(handle, "a.one")
    kill_runner(handle)
    for pid in processes_of(session):
        os.kill(pid, signal.SIGKILL)
    file = Path(handle.folder, "journal.jsonl")
    if not same_boot:
        here = str(boot_id())
        file.write_text(file.read_text().replace(here, "0" * len(here)))
    go.touch()
    handle.resume()
    assert statuses(ended(handle)) == {"a.one": status}
    assert made.read_text() == ("" if same_boot else "whole\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="a stand-in for sync takes root")
def test_what_a_command_wrote_is_on_disk_before_it_is_called_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, made = tmp_path / "told", tmp_path / "folder" / "made"
    (tmp_path / "sync").write_text(f'#!/bin/sh\necho "$@" >>{told}\n')
    (tmp_path / "sync").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    first = Run(id="a.one", title="t", argv=("mkdir", "-p", str(made)), done_when=(FileIs(path=str(made)),))
    plain, proof = works("a.two"), Run(id="a.three", title="t", argv=("true",), lane="proof")
    assert ended(client.start(plan_of(first, plain, proof), sudo=None)).status == "done"
    assert told.read_text().splitlines() == [f"--file-system -- {made.parent}/.", "--file-system -- /"]


def test_success_without_the_result_is_a_failure() -> None:
    lies = Run(id="a.one", title="t", argv=("true",), done_when=(FileIs(path="/nowhere/at/all"),))
    state = ended(client.start(plan_of(lies), sudo=None))
    assert (state.status, state.exit) == ("failed", 1)
    assert state.actions["a.one"].error == Phrase(key="engine.failed.not-done", params={"exit": 0})


def test_a_script_that_opens_its_own_stderr_anew_cuts_nothing_off() -> None:
    handle = client.start(
        plan_of(Run(id="a.one", title="t", argv=("sh", "-c", "echo one; echo two > /dev/stderr; echo three > /dev/stdout"))), sudo=None
    )
    ended(handle)
    assert said(handle, "a.one") == "one\ntwo\nthree\n"


def test_lanes_run_side_by_side_and_needs_are_kept(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    plan = plan_of(
        holds("a.one", b, f"touch {a}"),  # each ends only once the other has begun
        msgspec.structs.replace(holds("b.one", a, f"touch {b}"), lane="python"),
        Run(id="c.one", title="t", lane="files", argv=("true",), needs=("a.one", "b.one")),
        Run(id="verify", title="t", lane="proof", argv=("true",)),
    )
    state = ended(client.start(plan, sudo=None))
    times = {id: (action.started or 0, action.ended or 0) for id, action in state.actions.items()}
    assert times["b.one"][0] < times["a.one"][1]
    assert times["a.one"][0] < times["b.one"][1]
    assert times["c.one"][0] >= max(times["a.one"][1], times["b.one"][1])
    assert times["verify"][0] >= times["c.one"][1]


# --- failures -----------------------------------------------------------------------------------


def test_a_failure_stops_its_lane_and_what_needs_it_and_nothing_else() -> None:
    plan = plan_of(
        Run(id="a.bad", title="t", argv=("sh", "-c", "exit 7")),
        works("a.next"),
        Run(id="b.good", title="t", lane="python", argv=("true",)),
        Run(id="c.needs", title="t", lane="files", argv=("true",), needs=("a.bad",)),
    )
    state = ended(client.start(plan, sudo=None))
    assert (state.status, state.exit, statuses(state)) == ("failed", 1, {"a.bad": "failed", "b.good": "done"})
    assert state.actions["a.bad"].error == Phrase(key="engine.failed.exit", params={"status": 7, "exit": 7})


def test_a_status_that_passes_is_no_end_of_the_run_and_another_one_is() -> None:
    half = Run(id="a.half", title="t", argv=("sh", "-c", "exit 1"), passes=(1,))
    state = ended(client.start(plan_of(half, works("a.next")), sudo=None))
    assert (state.status, state.exit, statuses(state)) == ("done", 0, {"a.half": "done", "a.next": "done"})
    killed = Run(id="a.half", title="t", argv=("sh", "-c", "kill -9 $$"), passes=(1,))
    for bad in (msgspec.structs.replace(half, argv=("sh", "-c", "exit 2")), killed):
        state = ended(client.start(plan_of(bad, works("a.next")), sudo=None))
        assert (state.status, statuses(state)) == ("failed", {"a.half": "failed"})


def test_an_optional_action_may_fail() -> None:
    state = ended(client.start(plan_of(Run(id="a.bad", title="t", argv=("false",), optional=True), works("a.next")), sudo=None))
    assert (state.status, statuses(state)) == ("done", {"a.bad": "failed", "a.next": "done"})


@pytest.mark.parametrize(
    ("argv", "key"),
    [
        (("no-such-program-at-all",), "engine.failed.missing"),
        (("sh", "-c", "kill -9 $$"), "engine.failed.signal"),
    ],
)
def test_the_reason_of_a_failure_is_said(argv: tuple[str, ...], key: str) -> None:
    error = ended(client.start(plan_of(Run(id="a.bad", title="t", argv=argv)), sudo=None)).actions["a.bad"].error
    assert isinstance(error, Phrase)
    assert error.key == key


def sleeper(seconds: int) -> tuple[str, ...]:
    """Return a command that no other process of this machine runs, the same test on another Python included."""
    return ("sleep", f"{seconds}.{os.getpid()}")


def sleeping(command: tuple[str, ...]) -> bool:
    return subprocess.run(("pgrep", "-f", " ".join(command)), capture_output=True).returncode == 0


def test_a_time_limit_ends_a_command_and_all_its_children() -> None:
    sleep = sleeper(4711)
    twice = f"{' '.join(sleep)} & {' '.join(sleep)}"
    handle = client.start(plan_of(Run(id="a.slow", title="t", argv=("sh", "-c", twice), timeout=0.3)), sudo=None)
    error = ended(handle).actions["a.slow"].error
    assert isinstance(error, Phrase)
    assert error.key == "engine.failed.timeout"
    assert not sleeping(sleep)


def test_a_failed_proof_has_its_own_exit_code() -> None:
    state = ended(client.start(plan_of(Run(id="verify", title="t", lane="proof", outside=True, argv=("sh", "-c", "exit 20"))), sudo=None))
    assert (state.status, state.exit) == ("failed", 20)


def test_the_verdict_is_what_the_proof_printed_last() -> None:
    gpu = '{"id":"gpu","state":"skipped","because":"no GPU here"}'
    ddp = '{"id":"ddp","state":"passed","detail":"gloo","value":1.5,"unit":"GB/s","expected":null}'
    document = f'{{"schema":"bringup/verify","version":1,"rungs":[{gpu},{ddp}],"findings":[]}}'
    handle = client.start(plan_of(Run(id="verify", title="t", lane="proof", argv=("printf", "%s\\n", "NCCL INFO x", document))), sudo=None)
    assert ended(handle).status == "done"
    assert handle.verdict() == (
        Rung(id="gpu", state="skipped", because="no GPU here"),
        Rung(id="ddp", state="passed", detail="gloo", value=1.5, unit="GB/s"),
    )
    without = client.start(plan_of(works("a.one")), sudo=None)
    ended(without)
    assert without.verdict() is None


def test_a_stopped_run_goes_on_by_retry_and_by_skip(tmp_path: Path) -> None:
    needs_file = Run(id="a.bad", title="t", argv=("cat", str(tmp_path / "file")))
    handle = client.start(plan_of(needs_file, works("a.next")), sudo=None)
    assert ended(handle).status == "failed"
    (tmp_path / "file").write_text("x")
    handle.retry("a.bad")
    assert statuses(ended(handle)) == {"a.bad": "done", "a.next": "done"}
    other = client.start(plan_of(Run(id="a.bad", title="t", argv=("false",)), works("a.next")), sudo=None)
    assert ended(other).status == "failed"
    other.skip("a.bad")
    state = ended(other)
    assert (state.status, statuses(state)) == ("done", {"a.bad": "skipped", "a.next": "done"})


def test_what_needs_a_step_that_is_left_out_is_left_out_too_and_the_run_is_not_done_without_a_word() -> None:
    handle = client.start(
        plan_of(
            Run(id="a.bad", title="t", argv=("false",)),
            Run(id="a.on-it", title="t", needs=("a.bad",), argv=("true",)),
            Run(id="a.on-that", title="t", lane="python", needs=("a.on-it",), argv=("true",)),
            works("a.next"),
            Run(id="verify", title="t", lane="proof", needs=("a.bad", "a.on-it", "a.on-that", "a.next"), argv=("true",)),
        ),
        sudo=None,
    )
    assert ended(handle).status == "failed"
    handle.skip("a.bad")
    state = ended(handle)
    left = {"a.bad": "skipped", "a.on-it": "skipped", "a.on-that": "skipped"}
    assert statuses(state) == {**left, "a.next": "done", "verify": "done"}
    assert (state.status, state.exit) == ("done", 1)
    assert [action.id for action in left_out(handle.plan.actions, state)] == list(left)


def test_a_failed_action_is_tried_again_while_another_lane_works(tmp_path: Path) -> None:
    handle = client.start(
        plan_of(
            Run(id="a.bad", title="t", argv=("cat", str(tmp_path / "file"))),
            Run(id="b.long", title="t", lane="python", argv=stand_in("works", 10, 1.5)),
        ),
        sudo=None,
    )
    wait_until(handle, lambda state: statuses(state).get("a.bad") == "failed")
    (tmp_path / "file").write_text("x")
    before = runner_pid(handle)
    handle.retry("a.bad")
    assert statuses(ended(handle)) == {"a.bad": "done", "b.long": "done"}
    assert runner_pid(handle) == before


# --- what may happen to a run -------------------------------------------------------------------


def test_the_session_that_started_it_may_be_hung_up() -> None:
    start = "from tests.engine_kit import *; print(client.start(plan_of(works('a.one', 10, 1.5)), sudo=None).id)"
    pid, terminal = os.forkpty()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it would be ignored, and nothing be tried
        os.execv(
            sys.executable,
            (
                sys.executable,
                "-c",
                f"import sys; sys.path.insert(0, {str(Path(__file__).parents[1])!r}); {start}; import time; time.sleep(60)",
            ),
        )
    text = b""
    while b"\n" not in text:
        text += os.read(terminal, 4096)
    os.close(terminal)
    os.killpg(pid, signal.SIGHUP)
    os.waitpid(pid, 0)
    handle = client.find(text.decode().strip())
    assert handle.alive()
    assert ended(handle).status == "done"
    assert said(handle, "a.one") == "".join(f"line {number}\n" for number in range(1, 11))


def test_a_killed_runner_leaves_the_command_to_finish_and_resume_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "file"
    first = Run(id="a.one", title="t", argv=stand_in("works", 10, 1.5, file), done_when=(FileIs(path=str(file)),))
    handle = client.start(plan_of(first, works("a.two")), sudo=None)
    wait_until(handle, lambda _: "line 2" in output(handle, "a.one"))
    kill_runner(handle)
    assert handle.summary().status == "running"
    handle.resume()
    state = ended(handle)
    assert statuses(state) == {"a.one": "already", "a.two": "done"}
    assert file.read_text() == "done\n"
    lines = [line for line in output(handle, "a.one").splitlines() if line.startswith("line")]
    assert lines == [f"line {number}" for number in range(1, 11)]


def test_what_a_killed_runner_left_at_work_is_said_to_run_after_a_resume(tmp_path: Path) -> None:
    file = tmp_path / "file"
    handle = client.start(plan_of(holds("a.one", file, "echo begun"), works("a.two")), sudo=None)
    wait_until(handle, lambda _: "begun" in output(handle, "a.one").splitlines())
    kill_runner(handle)
    handle.resume()
    wait_until(handle, lambda _: "still at work" in output(handle, "a.one"))
    assert statuses(handle.state())["a.one"] == "running"
    file.touch()
    assert statuses(ended(handle)) == {"a.one": "done", "a.two": "done"}


def test_a_torn_journal_line_is_dropped(tmp_path: Path) -> None:
    handle = client.start(plan_of(works("a.one")), sudo=None)
    ended(handle)
    path = Path(handle.folder) / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert client.find(handle.id).state().status == "running"
    handle = client.find(handle.id)
    handle.resume()
    assert ended(handle).status == "done"
    assert [json.loads(line)["seq"] for line in path.read_bytes().splitlines()] == [1, 2, 3, 4, 5]


def test_a_damaged_journal_is_named_with_its_line() -> None:
    handle = client.start(plan_of(works("a.one")), sudo=None)
    ended(handle)
    path = Path(handle.folder) / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"action-started"', b'"action-gone"'))
    with pytest.raises(InputError) as caught:
        client.find(handle.id).state()
    assert (caught.value.code, caught.value.params["line"]) == ("journal-damaged", 2)


def test_a_second_run_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    first = client.start(plan_of(holds("a.one", enough)), sudo=None)
    with pytest.raises(Busy) as caught:
        client.start(plan_of(works("a.one")), sudo=None)
    assert (caught.value.exit_code, caught.value.code, caught.value.params["run"]) == (75, "run-active", first.id)
    with pytest.raises(BringupError) as again:
        first.resume()
    assert (again.value.exit_code, again.value.params["run"]) == (75, first.id)
    enough.touch()
    assert ended(first).status == "done"


def test_a_plan_that_was_edited_is_not_run() -> None:
    handle = client.start(plan_of(Run(id="a.bad", title="t", argv=("false",))), sudo=None)
    ended(handle)
    file = Path(handle.folder) / "plan.json"
    file.write_bytes(file.read_bytes().replace(b'"false"', b'"true"'))
    with pytest.raises(BringupError) as caught:
        handle.resume()
    assert (caught.value.code, caught.value.exit_code) == ("plan-changed", 2)


def test_a_vanished_folder_is_said() -> None:
    handle = client.start(plan_of(works("a.one")), sudo=None)
    ended(handle)
    Path(handle.folder).rename(Path(handle.folder).with_name("elsewhere"))
    for look in (handle.state, handle.resume, lambda: client.find(handle.id)):
        with pytest.raises(InputError) as caught:
            look()
        assert caught.value.code in ("run-vanished", "run-unknown")


def test_cancel_ends_the_command_and_begins_no_other() -> None:
    sleep = sleeper(4712)
    handle = client.start(plan_of(Run(id="a.one", title="t", argv=sleep), works("a.two")), sudo=None)
    wait_until(handle, lambda state: statuses(state) == {"a.one": "running"})
    handle.cancel()
    state = ended(handle)
    assert (state.status, state.exit, statuses(state)) == ("cancelled", 5, {"a.one": "failed"})
    assert not sleeping(sleep)


def test_a_pause_lets_what_runs_end_and_begins_nothing(tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    handle = client.start(plan_of(holds("a.one", enough), works("a.two")), sudo=None)
    wait_until(handle, lambda state: statuses(state) == {"a.one": "running"})
    handle.pause()
    enough.touch()
    wait_until(handle, lambda state: statuses(state) == {"a.one": "done"})
    time.sleep(0.7)
    assert (handle.state().status, statuses(handle.state())) == ("paused", {"a.one": "done"})
    handle.proceed()
    assert statuses(ended(handle)) == {"a.one": "done", "a.two": "done"}


def test_a_pause_outlasts_the_questions_of_what_is_at_work() -> None:
    handle = client.start(plan_of(asks("a.one", "twice"), works("a.two")), sudo=None)
    first = wait_until(handle, lambda state: state.prompt is not None).prompt
    assert first is not None
    handle.pause()
    handle.answer(first.seq, "alpha")
    second = wait_until(handle, lambda state: state.prompt is not None and state.prompt.seq != first.seq)
    assert (second.status, second.held, second.prompt is not None) == ("asks", True, True)
    handle.answer(second.prompt.seq if second.prompt else 0, "beta")
    state = wait_until(handle, lambda state: statuses(state) == {"a.one": "done"})
    # A screen that says "running" would offer another pause, and nothing would ever go on.
    assert (state.status, state.prompt) == ("paused", None)
    handle.proceed()
    assert statuses(ended(handle)) == {"a.one": "done", "a.two": "done"}
    assert not handle.state().held


def test_a_run_that_is_not_at_work_takes_no_orders() -> None:
    handle = client.start(plan_of(works("a.one")), sudo=None)
    ended(handle)
    with pytest.raises(InputError) as caught:
        handle.cancel()
    assert caught.value.code == "run-not-active"


# --- undo ---------------------------------------------------------------------------------------


def test_undo_takes_writes_back_newest_first_and_leaves_what_was_there(tmp_path: Path) -> None:
    file, folder = tmp_path / "conf", tmp_path / "made" / "deep"
    file.write_text("mine\n")
    file.chmod(0o600)
    (tmp_path / "kept").mkdir()
    plan = plan_of(
        Write(id="a.one", title="t", path=str(file), text="first\n"),
        Write(id="a.two", title="t", path=str(file), text="second\n"),
        Write(id="a.three", title="t", path=str(folder / "new"), text="x"),
        Run(
            id="a.four",
            title="t",
            argv=("mkdir", "-p", str(tmp_path / "env"), str(tmp_path / "kept")),
            undo=(RemovePath(path=str(tmp_path / "env")), RemovePath(path=str(tmp_path / "kept"))),
        ),
        Run(id="a.five", title="t", argv=("true",), undo=(Command(argv=("touch", str(tmp_path / "undone"))),)),
    )
    handle = client.start(plan, sudo=None)
    assert ended(handle).status == "done"
    assert file.read_text() == "second\n"
    assert (tmp_path / "env").is_dir()
    handle.undo()
    state = ended(handle)
    assert (state.status, state.exit) == ("undone", 0)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("mine\n", 0o600)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["conf", "kept", "undone"]
    order = [entry.action for entry in journal.read(Path(handle.folder) / "journal.jsonl")[0] if entry.kind == "action-undone"]
    assert order == ["a.five", "a.four", "a.three", "a.two", "a.one"]


def test_undo_of_a_failed_run_says_rolled_back_and_nothing_brings_the_run_to_life_again(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    handle = client.start(
        plan_of(Write(id="a.one", title="t", path=str(file), text="new"), Run(id="a.two", title="t", argv=("false",))), sudo=None
    )
    assert ended(handle).status == "failed"
    handle.undo()
    state = ended(handle)
    assert (state.status, state.exit, file.exists()) == ("undone", 21, False)
    file.write_text("mine")
    again: tuple[Callable[[], None], ...] = (handle.resume, lambda: handle.retry("a.two"), lambda: handle.skip("a.two"))
    for go_on in again:
        with pytest.raises(InputError) as caught:
            go_on()
        assert (caught.value.code, caught.value.exit_code) == ("run-taken-back", 2)
    handle.undo()
    assert ended(handle).status == "undone"
    assert file.read_text() == "mine"


def test_an_undo_that_fails_stops_there_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    plan = plan_of(
        Write(id="a.one", title="t", path=str(file), text="new"),
        Run(id="a.two", title="t", argv=("true",), undo=(Command(argv=("false",)),)),
    )
    handle = client.start(plan, sudo=None)
    ended(handle)
    handle.undo()
    state = ended(handle)
    assert (state.status, state.exit, statuses(state)) == ("undo-failed", 22, {"a.one": "done", "a.two": "failed"})
    assert file.read_text() == "new"


# --- rehearsal, reboot, persons -----------------------------------------------------------------


def test_a_rehearsal_touches_nothing(tmp_path: Path) -> None:
    plan = plan_of(
        Run(id="a.one", title="t", argv=("touch", str(tmp_path / "never"))),
        Write(id="a.two", title="t", lane="files", path=str(tmp_path / "never"), text="x\n"),
        Reboot(id="a.three", title="t", reason="r"),
        rehearsal=True,
    )
    handle = client.start(plan, sudo=None)
    state = ended(handle)
    assert (state.status, set(statuses(state).values())) == ("done", {"done"})
    assert list(tmp_path.iterdir()) == []
    assert output(handle, "a.one") == f"rehearsal: would run touch {tmp_path / 'never'}\n"
    with pytest.raises(InputError) as caught:
        handle.undo()
    assert (caught.value.code, handle.state().status) == ("undo-rehearsal", "done")


def test_a_reboot_ends_the_run_until_it_has_happened() -> None:
    handle = client.start(plan_of(works("a.one"), Reboot(id="a.reboot", title="t", reason="r"), works("a.two")), sudo=None)
    state = ended(handle)
    assert (state.status, state.exit, statuses(state)) == ("reboot", 10, {"a.one": "done", "a.reboot": "waiting"})
    handle.resume()
    assert ended(handle).status == "reboot"
    path = Path(handle.folder) / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(Path("/proc/sys/kernel/random/boot_id").read_bytes().strip(), b"another-boot"))
    handle = client.find(handle.id)
    handle.resume()
    assert statuses(ended(handle)) == {"a.one": "done", "a.reboot": "done", "a.two": "done"}


def test_what_only_a_person_can_do_waits_for_the_person() -> None:
    handle = client.start(plan_of(Manual(id="a.bios", title="t", text="x"), works("a.two")), sudo=None)
    prompt = wait_until(handle, lambda state: state.status == "asks").prompt
    assert prompt is not None
    assert (prompt.id, prompt.kind, prompt.action) == ("manual", "choice", "a.bios")
    with pytest.raises(InputError) as caught:
        handle.answer(prompt.seq, "perhaps")
    assert caught.value.code == "answer-unknown"
    handle.answer(prompt.seq, "done")
    assert statuses(ended(handle)) == {"a.bios": "done", "a.two": "done"}


@pytest.mark.parametrize(("answer", "status"), [("skip", "skipped"), ("done", "done"), (None, "failed")])
def test_what_only_a_person_can_do_waits_for_nobody_where_none_is_there(answer: str | None, status: str) -> None:
    plan = plan_of(Manual(id="a.bios", title="t", text="x"), works("a.two"))
    plan = msgspec.structs.replace(plan, profile=Profile(prompts={"manual": answer} if answer else {}))
    state = ended(client.start(plan, sudo=None, attended=False))
    assert statuses(state)["a.bios"] == status
    error = state.actions["a.bios"].error
    assert answer is not None or (isinstance(error, Phrase) and error.key == "engine.failed.unanswered-person")


@as_root
def test_the_persons_actions_run_as_the_person_and_leave_nothing_of_roots(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    home = state / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    plan = plan_of(
        Run(id="a.who", title="t", by="user", argv=("sh", "-c", f"id -u; id -G; echo again > /dev/stderr; mkdir {home}/env")),
        Write(id="a.file", title="t", by="user", path=f"{home}/conf/x", text="x\n"),
        Run(id="a.root", title="t", argv=("id", "-u")),
    )
    handle = client.start(plan, sudo=None)
    end = ended(handle)
    assert end.status == "done", (end, output(handle, "a.who"), output(handle, "a.file"))
    assert said(handle, "a.who").splitlines() == [str(NOBODY), str(NOBODY), "again"]
    assert said(handle, "a.root") == "0\n"
    assert end.owner == "nobody"
    assert Path(handle.folder).stat().st_gid == NOBODY
    assert {path.stat().st_uid for path in home.rglob("*")} == {NOBODY}
    handle.undo()
    ended(handle)
    assert sorted(path.name for path in home.rglob("*")) == ["env"]


@as_root
def test_another_user_can_neither_read_nor_connect(state: Path, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    handle = client.start(plan_of(holds("a.one", enough)), sudo=None)
    socket = state / "sockets" / f"{handle.id}.sock"
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600

    def cancel() -> str:
        response = ask(socket, Request(word="cancel"))
        return str(response and response.error)

    for mode in (0o600, 0o666):
        socket.chmod(mode)
        assert as_nobody(cancel) == "not-your-run"
    assert as_nobody(lambda: Path(handle.folder, "journal.jsonl").read_text()) == "PermissionError"
    response = ask(socket, Request(word="hello"))
    assert response is not None
    assert response.error is None
    enough.touch()
    assert ended(handle).status == "done"


@as_root
def test_the_person_behind_sudo_watches_and_steers_a_run_of_roots(monkeypatch: pytest.MonkeyPatch, state: Path, tmp_path: Path) -> None:
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    enough = tmp_path / "enough"
    handle = client.start(plan_of(holds("a.one", enough), works("a.two")), sudo=None)

    def look_and_pause() -> str:
        mine = client.find(None)
        mine.pause()
        return f"{mine.id} {mine.state().owner} {mine.alive()} {mine.state().status}"

    assert as_nobody(look_and_pause) == f"{handle.id} nobody True paused"
    enough.touch()
    handle.proceed()
    assert ended(handle).status == "done"
    assert [path for path in state.rglob("*") if path.stat().st_uid != 0] == [], "all of it is root's; the socket is gone"


@as_root
def test_without_root_and_without_sudo_nothing_is_started(state: Path) -> None:
    state.chmod(0o777)

    def start(sudo: client.Sudo | None) -> str:
        try:
            client.start(plan_of(works("a.one")), sudo=sudo)
        except PrivilegeError as error:
            return f"{error.code} {error.exit_code}"
        return "started"

    assert as_nobody(lambda: start(None)) == "needs-root 4"
    assert as_nobody(lambda: start(lambda _: 1)) == "sudo-refused 4"
    assert client.runs() == ()


@pytest.mark.parametrize("words", [("-m", "steps.engine.launch"), ("-m", "steps.engine.runner", "--launch")])
def test_the_launcher_starts_what_was_confirmed_and_prints_the_id(words: tuple[str, ...], tmp_path: Path) -> None:
    plan = plan_of(works("a.one"))
    file = tmp_path / "order"
    file.write_bytes(msgspec.json.encode(Order(plan=plan)))
    wrong = subprocess.run((sys.executable, "-I", *words, str(file), "--digest", "0"), capture_output=True, text=True)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "The plan file changed after you confirmed it. It was not run. Look at it again in the review.\n"
    right = subprocess.run((sys.executable, "-I", *words, str(file), "--digest", digest(plan)), capture_output=True, text=True)
    assert (right.returncode, right.stderr) == (0, "")
    assert ended(client.find(right.stdout.strip())).status == "done"


def test_prompts_are_asked_by_number_and_answered_once() -> None:
    handle = client.start(plan_of(asks("a.one", "twice")), sudo=None)
    first = wait_until(handle, lambda state: state.prompt is not None).prompt
    assert first is not None
    assert (first.id, first.kind, first.excerpt.splitlines()[-1]) == ("unknown", "line", "First?")
    handle.answer(first.seq, "alpha")
    second = wait_until(handle, lambda state: state.prompt is not None and state.prompt.seq != first.seq).prompt
    assert second is not None
    with pytest.raises(InputError) as caught:
        handle.answer(first.seq, "late")
    assert caught.value.code == "answer-late"
    handle.answer(second.seq, "beta")
    assert ended(handle).status == "done"
    assert "one alpha" in output(handle, "a.one")
    assert "two beta" in output(handle, "a.one")


def test_our_own_lines_do_not_go_on_in_a_line_that_a_program_left_half() -> None:
    handle = client.start(plan_of(Run(id="a.half", title="t", argv=("sh", "-c", "printf half; exit 1"))), sudo=None)
    ended(handle)
    handle.resume()
    ended(handle)
    lines = output(handle, "a.half").splitlines()
    assert [line for line in lines if "half" in line and not line.startswith("$ ")] == ["half", "half"]


def test_the_commands_of_a_run_speak_the_language_of_the_person_who_started_it() -> None:
    told = Run(id="a.told", title="t", argv=("sh", "-c", 'echo "speaks $BRINGUP_LANG, reads $LC_ALL"'))
    handle = client.start(plan_of(told), sudo=None, language="zh_CN")
    ended(handle)
    assert "speaks zh_CN, reads C.UTF-8" in output(handle, "a.told")
