"""Turns of several runs and of one: what went on later goes back first, a turn that was cut off tells as much as one that was not."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from steps.engine import client, executor, hold, launch, lock
from steps.engine.context import Context, Outcome
from steps.engine.folder import Origin, Refused, RunFolder, create
from steps.engine.journal import Journal
from steps.engine.lock import Holder, take_target, target_lock, try_take
from steps.errors import Busy, PreflightError
from steps.host.local import LocalHost
from steps.model.action import AnyAction, Command, FileIs, Packages, RemovePath, Run, Write
from steps.model.plan import digest
from steps.model.run import RunState
from tests.engine_kit import cut_off, ended, holds, kill_runner, output, plan_of, ran, session_of, statuses, until_gone, wait_until, works

pytestmark = pytest.mark.usefixtures("state")


def undone(handle: client.RunHandle) -> RunState:
    handle.undo()
    return ended(handle)


def needing(there: Path) -> Run:
    """Return an action that fails until a file is there."""
    return Run(id="a.needs", title="t", argv=("cat", str(there)))


def repairing(stopped: client.RunHandle, *actions: AnyAction) -> client.RunHandle:
    handle = client.start(msgspec.structs.replace(plan_of(*actions), repairs=stopped.id), sudo=None)
    ended(handle)
    return handle


# --- whichever went on later goes back first --------------------------------------------------------


def test_a_run_that_went_on_in_a_file_of_a_later_one_goes_back_before_it(tmp_path: Path) -> None:
    there, file = tmp_path / "there", tmp_path / "conf"
    first = ran(needing(there), Write(id="a.write", title="t", path=str(file), text="first"))
    second = ran(Write(id="a.write", title="t", path=str(file), text="second"))
    there.touch()
    first.resume()
    assert (ended(first).status, file.read_text()) == ("done", "first")
    with pytest.raises(PreflightError) as caught:
        second.undo()
    assert (caught.value.code, caught.value.params["later"], caught.value.params["path"]) == ("undo-later-first", first.id, str(file))
    assert (undone(first).status, file.read_text()) == ("undone", "second")
    assert (undone(second).status, file.exists()) == ("undone", False)


def test_a_folder_that_a_run_made_later_than_another_wrote_beside_it_stands_in_nobodys_way(tmp_path: Path) -> None:
    there, made = tmp_path / "there", tmp_path / "made"
    make = Run(id="a.make", title="t", argv=("mkdir", str(made)), undo=(RemovePath(path=str(made)),))
    first = ran(make, needing(there))
    second = ran(Write(id="a.write", title="t", path=str(made / "conf"), text="second"))
    there.touch()
    first.resume()
    assert ended(first).status == "done"
    with pytest.raises(PreflightError) as caught:
        first.undo()
    assert caught.value.params["later"] == second.id
    assert (undone(second).status, undone(first).status, made.exists()) == ("undone", "undone", False)


# --- a turn that was cut off, and the next ----------------------------------------------------------


def test_a_failed_run_that_is_taken_back_at_the_second_try_ends_as_at_the_first(tmp_path: Path) -> None:
    there = tmp_path / "there"
    back = Command(argv=("cat", str(there)))
    handle = ran(Run(id="a.one", title="t", argv=("true",), undo=(back,)), Run(id="a.two", title="t", argv=("false",)))
    assert (undone(handle).exit, handle.state().status) == (22, "undo-failed")
    there.touch()
    assert (undone(handle).status, handle.state().exit) == ("undone", 21)
    assert (undone(handle).status, handle.state().exit) == ("undone", 21)


def test_a_run_that_failed_and_was_brought_to_its_end_is_taken_back_as_one_that_was_done(tmp_path: Path) -> None:
    there = tmp_path / "there"
    handle = ran(needing(there))
    there.touch()
    handle.resume()
    assert ended(handle).status == "done"
    assert (undone(handle).status, handle.state().exit) == ("undone", 0)


def test_a_step_that_is_tried_again_after_half_a_way_back_keeps_no_notes_of_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    action = Packages(id="a.install", title="t", manager="apt", install=("driver",))
    plan, owner = plan_of(action), client.invoking_owner()
    folder = create(plan, Origin(digest=digest(plan), owner=owner))
    kept = folder.kept(action.id)
    kept.mkdir()
    (kept / "undo.json").write_text("{}")
    for note in ("settings-found.json", "undo-asked.json", "undo-unrepaired.json"):
        (kept / note).write_text("[]")
    monkeypatch.setattr(executor, "perform_packages", lambda *_: Outcome(status="done"))
    written, host = Journal(folder.journal, owner.gid), LocalHost()
    context = Context(folder, plan=plan, origin=folder.read_origin(), host=host, outside=host, journal=written)
    assert executor.perform(action, context).status == "done"
    assert [path.name for path in kept.iterdir()] == ["undo.json"]
    written.close()


def test_no_run_begins_beside_what_a_cancelled_wait_has_left_at_work(tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    cut, pid = cut_off(enough)
    cut.resume()
    wait_until(cut, lambda _: "still at work" in output(cut, "a.one"))
    cut.cancel()
    assert ended(cut).status == "cancelled"
    with pytest.raises(Refused) as caught:
        client.start(plan_of(works("b.two")), sudo=None)
    assert (caught.value.code, caught.value.params) == ("run-left", {"run": cut.id, "pid": pid})
    enough.touch()
    cut.resume()
    assert ended(cut).status == "done"
    assert ran(works("b.two")).state().status == "done"


# --- the unit that goes on after a boot -------------------------------------------------------------


def by_itself(handle: client.RunHandle) -> subprocess.Popen[bytes]:
    """Start the runner of a run as its unit does after a boot."""
    return subprocess.Popen((sys.executable, "-I", "-m", "steps.engine.runner", handle.folder))


def test_of_two_runs_that_go_on_after_a_boot_the_second_waits_for_the_first(tmp_path: Path) -> None:
    go, enough = tmp_path / "go", tmp_path / "enough"
    second = client.start(plan_of(holds("a.one", go)), sudo=None)
    wait_until(second, lambda state: statuses(state) == {"a.one": "running"})
    pid = session_of(second, "a.one")
    kill_runner(second)
    go.touch()
    until_gone(pid)
    first = client.start(plan_of(holds("b.one", enough)), sudo=None)
    with by_itself(second) as runner:
        deadline = time.monotonic() + 20
        while not second.alive() and runner.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.7)  # longer than between two looks
        assert (runner.poll(), first.alive(), second.alive()) == (None, True, True)
        enough.touch()
        assert (ended(first).status, ended(second).status, runner.wait(20)) == ("done", "done", 0)


def test_a_unit_that_comes_after_a_person_went_on_does_nothing() -> None:
    handle = ran(works("a.one"), Run(id="a.two", title="t", argv=("false",)))
    before = Path(handle.folder, "journal.jsonl").read_bytes()
    files = sorted(path.name for path in Path(handle.folder).iterdir())
    assert by_itself(handle).wait(20) == 2
    assert Path(handle.folder, "journal.jsonl").read_bytes() == before
    assert sorted(path.name for path in Path(handle.folder).iterdir()) == files


_SYSTEMD_RUN = """\
#!/bin/sh
echo "$1" >>"$0.asked"
[ "$1" = --unit=bringup-1130-a ] || exit 0
echo "Failed to start transient service unit: Unit ${1#--unit=}.service was already loaded or has a fragment file." >&2
exit 1
"""


def test_a_unit_that_still_holds_what_a_turn_left_at_work_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "systemd-run"
    program.write_text(_SYSTEMD_RUN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    launch._by_systemd(RunFolder(tmp_path / "1130-a"), ("true",))
    first, second = Path(f"{program}.asked").read_text().split()
    assert first == "--unit=bringup-1130-a"
    assert second.startswith(f"{first}-")


# --- a way back that cannot be gone twice -----------------------------------------------------------


def test_a_way_back_that_was_gone_already_is_known_by_what_it_takes_away(tmp_path: Path) -> None:
    made, file = tmp_path / "made", tmp_path / "conf"
    once = Command(argv=("rm", str(made)), there=(FileIs(path=str(made)),))
    handle = ran(
        Write(id="a.one", title="t", path=str(file), text="x"), Run(id="a.two", title="t", argv=("touch", str(made)), undo=(once,))
    )
    # So the machine is where a runner was killed as soon as the command had ended.
    made.unlink()
    assert (undone(handle).status, statuses(handle.state())) == ("undone", {"a.one": "undone", "a.two": "undone"})
    assert f"done already: rm {made}" in output(handle, "a.two")
    assert not file.exists()


def test_a_way_back_to_what_is_still_there_fails_as_ever(tmp_path: Path) -> None:
    made = tmp_path / "made"
    vain = Command(argv=("false",), there=(FileIs(path=str(made)),))
    handle = ran(Run(id="a.one", title="t", argv=("touch", str(made)), undo=(vain,)))
    assert (undone(handle).status, made.exists()) == ("undo-failed", True)


# --- beside another runner --------------------------------------------------------------------------


def let_go_after(seconds: float, descriptor: int) -> threading.Thread:
    """Close a descriptor in a while."""

    def close() -> None:
        time.sleep(seconds)
        os.close(descriptor)

    thread = threading.Thread(target=close)
    thread.start()
    return thread


def test_a_runner_that_has_written_down_its_end_is_waited_for_and_not_named(tmp_path: Path) -> None:
    there = tmp_path / "there"
    handle = ran(needing(there))
    there.touch()
    # As a busy machine lets a runner take its time on the way out.
    held = try_take(RunFolder(Path(handle.folder)).lock)
    assert held is not None
    going = let_go_after(0.6, held)
    handle.resume()
    assert ended(handle).status == "done"
    machine = target_lock("/", root=os.geteuid() == 0, owner=client.invoking_owner())
    going.join()
    going = let_go_after(0.6, take_target(machine, Holder(run=handle.id, user="ana", started=time.time())))
    assert ran(works("b.one")).state().status == "done"
    going.join()


def test_a_run_of_the_persons_own_does_not_go_on_beside_one_of_roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "state_folder", lambda *, root, **_: tmp_path / ("machine" if root else "own"))
    owner = client.invoking_owner()
    plan = plan_of(works("a.one"))
    folder = create(plan, Origin(digest=digest(plan), owner=owner))
    other = target_lock("/", root=os.geteuid() != 0, owner=owner)
    taken = take_target(other, Holder(run="1130-z", user="ana", started=time.time()))
    with pytest.raises(Busy) as caught:
        hold.take_system(folder, plan, folder.read_origin(), patient=False)
    assert (caught.value.code, caught.value.params["run"]) == ("run-active", "1130-z")
    os.close(taken)


# --- which run is meant -----------------------------------------------------------------------------


def test_a_repair_of_a_repair_leads_back_to_the_run_that_both_are_for(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    stopped = ran(needing(first))
    broken = repairing(stopped, needing(second), Run(id="a.touch", title="t", argv=("touch", str(first))))
    mend = repairing(broken, Run(id="a.touch", title="t", argv=("touch", str(second))))
    assert client.find_resumable().id == broken.id
    broken.resume()
    assert ended(broken).status == "done"
    assert client.find_resumable().id == stopped.id
    stopped.resume()
    assert ended(stopped).status == "done"
    assert client.find_resumable().id == mend.id
    assert client.find_undoable().id == stopped.id


def test_a_repair_that_was_taken_back_is_not_what_is_gone_on_with(tmp_path: Path) -> None:
    there = tmp_path / "there"
    stopped = ran(needing(there))
    vain = repairing(stopped, Run(id="a.vain", title="t", argv=("false",)))
    assert undone(vain).status == "undone"
    assert client.find_resumable().id == stopped.id
