"""Taking a run back: which run, what is left in place and said, and what cannot stop it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from steps.engine import client, journal
from steps.engine.context import Context
from steps.engine.executor import perform
from steps.engine.folder import Origin, Refusal, create
from steps.engine.undo import take_back
from steps.errors import InputError, PreflightError
from steps.headless.console import Asked, Console
from steps.host.local import LocalHost
from steps.host.rooted import RootedHost
from steps.model.action import Command, RemovePath, Run, Service, Unqueue, Write
from steps.model.base import Phrase
from steps.model.plan import Installer, Target, digest
from steps.model.run import Entry, RunState
from tests.engine_kit import ended, kill_runner, output, plan_of, ran, runner_pid, stand_in, statuses, wait_until, works
from tui.running import follow_to_end
from tui.watching import progress

pytestmark = pytest.mark.usefixtures("state")


def undone(handle: client.RunHandle) -> RunState:
    handle.undo()
    return ended(handle)


def entries(handle: client.RunHandle) -> tuple[Entry, ...]:
    return journal.read(Path(handle.folder, "journal.jsonl"))[0]


# --- which run --------------------------------------------------------------------------------------


def test_the_run_to_undo_is_the_newest_that_changed_something_and_was_not_taken_back() -> None:
    with pytest.raises(InputError) as caught:
        client.find_undoable()
    assert (caught.value.code, caught.value.exit_code) == ("nothing-to-undo", 2)
    first, second = ran(works("a.one")), ran(works("a.one"))
    ran(works("a.one"), rehearsal=True)
    assert client.find_undoable().id == second.id
    undone(second)
    assert client.find_undoable().id == first.id


# --- what is left in place --------------------------------------------------------------------------


def test_what_a_failed_command_never_did_does_not_block_the_undo(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    handle = ran(
        Write(id="a.one", title="t", path=str(file), text="new"),
        Run(id="a.two", title="t", argv=("false",), undo=(Command(argv=("sh", "-c", "exit 7")),), optional=True),
        works("a.three"),
    )
    assert statuses(handle.state()) == {"a.one": "done", "a.two": "failed", "a.three": "done"}
    state = undone(handle)
    assert (state.status, state.exit, statuses(state)) == ("undone", 0, {"a.one": "undone", "a.two": "kept", "a.three": "kept"})
    assert state.actions["a.two"].error == Phrase(key="engine.failed.exit", params={"status": 7, "exit": 7})
    assert not file.exists()


def test_an_undo_that_failed_once_is_no_failed_action(tmp_path: Path) -> None:
    fails_until = Command(argv=("cat", str(tmp_path / "there")))
    handle = ran(works("a.one"), Run(id="a.two", title="t", argv=("true",), undo=(fails_until,)))
    assert [undone(handle).status, undone(handle).status] == ["undo-failed", "undo-failed"]
    (tmp_path / "there").write_text("x")
    state = undone(handle)
    assert (state.status, statuses(state)) == ("undone", {"a.one": "kept", "a.two": "undone"})


def test_what_has_no_way_back_is_said_to_be_kept(tmp_path: Path) -> None:
    handle = ran(
        works("a.one"),
        Run(id="a.two", title="t", argv=("mkdir", str(tmp_path / "made")), undo=(RemovePath(path=str(tmp_path / "made")),)),
        Run(id="a.there", title="t", argv=("false",), done_when=()),
        Run(id="verify", title="t", lane="proof", argv=("true",)),
    )
    assert statuses(undone(handle)) == {"a.one": "kept", "a.two": "undone", "a.there": "failed"}
    again = undone(handle)
    assert (again.status, len([entry for entry in entries(handle) if entry.kind == "action-undone"])) == ("undone", 2)


_MOKUTIL = """\
#!/bin/sh
case $1 in
--list-new) cat "$0.new" ;;
--test-key) cat "$0.test" ;;
--revoke-import) : >"$0.new"; echo MokNew is empty >"$0.new" ;;
esac
"""


@pytest.mark.parametrize(
    ("waiting", "says", "status", "after"),
    [
        (("Ours",), "in the enrollment request", "undone", "MokNew is empty\n"),
        ((), "already enrolled", "kept", "MokNew is empty\n"),  # it was confirmed at the console since
        ((), "not enrolled", "undone", "MokNew is empty\n"),  # an undo that was cut off had let it go
        ((), "", "kept", "MokNew is empty\n"),
        (("Ours", "Theirs"), "not enrolled", "kept", None),
        (("Secure Boot Key", "Secure Boot Key"), "in the enrollment request", "kept", None),  # two keys may bear one name
    ],
)
def test_a_queued_key_is_let_go_only_where_no_other_waits_and_an_enrolled_one_stays(
    waiting: tuple[str, ...], says: str, status: str, after: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "mokutil"
    program.write_text(_MOKUTIL)
    program.chmod(0o755)
    new = tmp_path / "mokutil.new"
    text = "".join(f"[key {at}]\n        Subject: CN={name}\n" for at, name in enumerate(waiting, 1)) or "MokNew is empty\n"
    new.write_text(text)
    Path(f"{program}.test").write_text(f"/var/lib/dkms/mok.pub is {says}\n")
    path = f"{tmp_path}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    back = (Unqueue(certificate="/var/lib/dkms/mok.pub"),)
    handle = ran(Run(id="driver.key", title="t", argv=("true",), env={"PATH": path}, undo=back))
    assert statuses(undone(handle)) == {"driver.key": status}
    assert new.read_text() == (after or text)
    assert ("mokutil --delete /var/lib/dkms/mok.pub" in output(handle, "driver.key")) is (status == "kept")


def test_a_link_into_nothing_stays_and_what_was_made_behind_it_goes(tmp_path: Path) -> None:
    link, real = tmp_path / "env", tmp_path / "disk" / "env"
    link.symlink_to("disk/env")
    handle = ran(Run(id="a.one", title="t", argv=("mkdir", "-p", str(real)), undo=(RemovePath(path=str(link)),)))
    assert handle.goes_with_undo() == (str(real),)
    assert statuses(undone(handle)) == {"a.one": "undone"}
    assert (link.is_symlink(), real.exists(), real.parent.exists()) == (True, False, False)


def test_a_link_to_what_was_there_stays_with_all_behind_it(tmp_path: Path) -> None:
    link, real = tmp_path / "env", tmp_path / "real"
    real.mkdir()
    link.symlink_to(real)
    handle = ran(Run(id="a.one", title="t", argv=("touch", str(real / "x")), undo=(RemovePath(path=str(link)),)))
    assert handle.goes_with_undo() == ()
    undone(handle)
    assert (link.is_symlink(), (real / "x").exists()) == (True, True)


def test_folders_that_were_made_above_it_go_too_where_nobody_else_uses_them(tmp_path: Path) -> None:
    for name, others in (("used", True), ("alone", False)):
        place = tmp_path / name / "envs" / "one"
        handle = ran(Run(id="a.env", title="t", argv=("mkdir", "-p", str(place)), undo=(RemovePath(path=str(place)),)))
        if others:
            (tmp_path / name / "theirs").touch()
        assert undone(handle).status == "undone"
        assert (tmp_path / name).exists() is others
        assert not (tmp_path / name / "envs").exists()
    assert tmp_path.exists()


def test_a_folder_right_below_the_root_goes_too_where_the_action_made_it(tmp_path: Path) -> None:
    action = Write(id="a.one", title="t", path="/data/envs/conf", text="x")
    plan, owner = plan_of(action, root=str(tmp_path)), client.invoking_owner()
    folder = create(plan, Origin(digest=digest(plan), owner=owner))
    written, outside = journal.Journal(folder.journal, owner.gid), LocalHost()
    host = RootedHost(str(tmp_path), outside)
    context = Context(folder, plan=plan, origin=folder.read_origin(), host=host, outside=outside, journal=written)
    assert perform(action, context).status == "done"
    outcome = take_back(action, context)
    assert (outcome.status, outcome.params) == ("undone", {})
    assert not (tmp_path / "data").exists()
    written.close()


def test_only_a_folder_without_anything_in_it_is_removed_as_empty(tmp_path: Path) -> None:
    empty, full, link = (tmp_path / name for name in ("empty", "full", "link"))
    empty.mkdir()
    (full / "theirs").mkdir(parents=True)
    link.symlink_to(empty)
    for path in (link, full, tmp_path / "gone", empty):
        LocalHost().remove_empty(str(path))
    assert (link.is_symlink(), full.exists(), empty.exists()) == (True, True, False)


def test_a_link_to_itself_is_not_written_and_does_not_block_the_undo(tmp_path: Path) -> None:
    loop, file = tmp_path / "loop", tmp_path / "file"
    loop.symlink_to("loop")
    handle = ran(Write(id="a.one", title="t", path=str(file), text="x"), Write(id="a.two", title="t", path=str(loop), text="x"))
    assert statuses(handle.state()) == {"a.one": "done", "a.two": "failed"}
    state = undone(handle)
    assert (state.status, file.exists(), loop.is_symlink()) == ("undone", False, True)


def test_the_folders_that_an_undo_removes_whole_are_known_before(tmp_path: Path) -> None:
    made, there, gone = (tmp_path / name for name in ("made", "there", "gone"))
    there.mkdir()
    steps = tuple(RemovePath(path=str(path)) for path in (made, there, gone))
    handle = ran(Run(id="a.one", title="t", argv=("mkdir", "-p", str(made), str(there), str(gone)), undo=steps))
    (made / "notebook").write_text("mine")
    gone.rmdir()
    assert handle.goes_with_undo() == (str(made),)
    undone(handle)
    assert (made.exists(), there.exists(), handle.goes_with_undo()) == (False, True, ())


def test_what_a_later_run_changed_too_is_taken_back_there_first(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    first = ran(Write(id="a.one", title="t", path=str(file), text="one"))
    second = ran(Write(id="a.one", title="t", path=str(file), text="two"))
    with pytest.raises(PreflightError) as caught:
        first.undo()
    assert (caught.value.code, caught.value.exit_code) == ("undo-later-first", 3)
    assert (caught.value.params["later"], caught.value.params["path"]) == (second.id, str(file))
    assert (file.read_text(), first.state().status) == ("two", "done")
    assert undone(second).status == "undone"
    assert file.read_text() == "one"
    assert undone(first).status == "undone"
    assert not file.exists()


def test_a_later_run_inside_a_folder_that_goes_is_taken_back_first(tmp_path: Path) -> None:
    made = tmp_path / "made"
    first = ran(Run(id="a.one", title="t", argv=("mkdir", str(made)), undo=(RemovePath(path=str(made)),)))
    beside = ran(Write(id="a.one", title="t", path=f"{made}-too", text="x"))
    second = ran(Write(id="a.one", title="t", path=str(made / "conf"), text="x"))
    with pytest.raises(PreflightError) as caught:
        first.undo()
    assert caught.value.params["later"] == second.id
    undone(second)
    assert undone(first).status == "undone"
    assert beside.state().status == "done"


def test_what_was_written_down_but_not_journaled_before_a_crash_is_taken_back(tmp_path: Path) -> None:
    made = tmp_path / "made"
    argv = ("sh", "-c", f"mkdir -p {made} && echo made && sleep 2")
    handle = client.start(plan_of(Run(id="a.one", title="t", argv=argv, undo=(RemovePath(path=str(made)),))), sudo=None)
    wait_until(handle, lambda _: "made" in output(handle, "a.one").splitlines())
    kill_runner(handle)
    path = Path(handle.folder, "journal.jsonl")
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if '"registered"' not in line))
    handle = client.find(handle.id)
    handle.resume()
    ended(handle)
    assert undone(handle).status == "undone"
    assert not made.exists()


# --- what cannot stop it ----------------------------------------------------------------------------


def test_a_signal_to_the_runner_does_not_stop_an_undo_half_way(tmp_path: Path) -> None:
    slow = Command(argv=stand_in("works", 10, 1.5, tmp_path / "taken-back"))
    handle = ran(Run(id="a.one", title="t", argv=("true",), undo=(slow,)))
    handle.undo()
    wait_until(handle, lambda _: "line 2" in output(handle, "a.one"))
    os.kill(runner_pid(handle), signal.SIGTERM)
    with pytest.raises(InputError) as caught:
        handle.cancel()
    assert caught.value.code == "undo-runs"
    assert ended(handle).status == "undone"
    assert (tmp_path / "taken-back").read_text() == "done\n"


def test_a_killed_undo_is_not_gone_on_with_by_a_resume() -> None:
    handle = ran(Run(id="a.one", title="t", argv=("true",), undo=(Command(argv=stand_in("works", 10, 1.5)),)))
    handle.undo()
    wait_until(handle, lambda _: "line 2" in output(handle, "a.one"))
    kill_runner(handle)
    with pytest.raises(InputError) as caught:
        handle.resume()
    assert caught.value.code == "run-undone"
    assert undone(handle).status == "undone"


def test_an_undo_that_asks_stays_an_undo_and_is_not_gone_on_with_when_it_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    asking = Command(argv=stand_in("asks", "twice"))
    handle = ran(Write(id="a.one", title="t", path=str(file), text="x"), Run(id="a.two", title="t", argv=("true",), undo=(asking,)))
    handle.undo()
    first = wait_until(handle, lambda state: state.prompt is not None).prompt
    assert first is not None
    for order in (handle.pause, handle.proceed, handle.cancel):
        with pytest.raises(InputError) as caught:
            order()
        assert caught.value.code == "undo-runs"
    handle.answer(first.seq, "alpha")
    wait_until(handle, lambda state: state.prompt is None)
    assert handle.state().status == "undoing"
    wait_until(handle, lambda state: state.prompt is not None)
    kill_runner(handle)
    with pytest.raises(InputError) as caught:
        handle.resume()
    assert caught.value.code == "run-undone"
    handle.undo()
    asked = {first.seq, *(prompt.seq for prompt in (handle.state().prompt,) if prompt is not None)}
    for answer in ("alpha", "beta"):
        prompt = wait_until(handle, lambda state: state.prompt is not None and state.prompt.seq not in asked).prompt
        assert prompt is not None
        asked.add(prompt.seq)
        handle.answer(prompt.seq, answer)
    assert (ended(handle).status, file.exists()) == ("undone", False)


def test_a_run_that_was_taken_back_has_no_verdict_and_no_start_line() -> None:
    rung = '{"id":"environment","state":"passed","because":"/srv/dl"}'
    document = f'{{"schema":"bringup/verify","version":1,"rungs":[{rung}],"findings":[]}}'
    plan = plan_of(works("a.one"), Run(id="verify", title="t", lane="proof", argv=("printf", "%s\\n", document)))
    python = Installer(own_python=sys.executable, pythons={"3.11": sys.executable})
    handle = client.start(msgspec.structs.replace(plan, target=Target(installer=python)), sudo=None)
    said: list[str] = []
    console = Console(Asked(), said.append, said.append)
    ended(handle)
    follow_to_end(handle, console, "attach")
    assert any("Proven" in line for line in said)
    assert any("Use it" in line for line in said)
    handle.undo()
    undone(handle)
    said.clear()
    follow_to_end(handle, console, "attach")
    assert not any("Proven" in line or "Use it" in line for line in said)


# --- services ---------------------------------------------------------------------------------------

_SYSTEMCTL = """\
#!/bin/sh
case $1 in
is-enabled) test -e "$0.enabled" ;;
enable) touch "$0.enabled" ;;
disable) rm "$0.enabled" ;;
*) exit 1 ;;
esac
"""


class Mounted(RootedHost):
    """A mounted system whose programs run where they lie."""

    def command(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return (f"{self.root}/bin/{argv[0]}", *argv[1:])


@pytest.mark.parametrize("before", [True, False])
def test_a_unit_in_a_mounted_system_is_enabled_afterwards_where_it_was_before(before: bool, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(_SYSTEMCTL)
    program.chmod(0o755)
    enabled = Path(f"{program}.enabled")
    if before:
        enabled.touch()
    action = Service(id="a.one", title="t", unit="one.service")
    plan, owner = plan_of(action, root=str(tmp_path)), client.invoking_owner()
    folder = create(plan, Origin(digest=digest(plan), owner=owner))
    written, outside = journal.Journal(folder.journal, owner.gid), LocalHost()
    host = Mounted(str(tmp_path), outside)
    context = Context(folder, plan=plan, origin=folder.read_origin(), host=host, outside=outside, journal=written)
    assert (perform(action, context).status, enabled.exists()) == ("done", True)
    assert (take_back(action, context).status, enabled.exists()) == (("kept", True) if before else ("undone", False))
    written.close()


# --- what is skipped --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "code"), [("a.unknown", "action-unknown"), ("a.one", "action-not-failed"), ("a.next", "action-not-failed")]
)
def test_only_what_failed_is_passed_over(action: str, code: str) -> None:
    handle = ran(works("a.one"), Run(id="a.two", title="t", argv=("false",)), works("a.next"))
    before = entries(handle)
    words = ("-m", "steps.engine.launch", "--run", handle.id, "--skip", action, "--json")
    ran_launcher = subprocess.run((sys.executable, "-I", *words), capture_output=True, check=False)
    refusal = msgspec.json.decode(ran_launcher.stderr, type=Refusal)
    assert (ran_launcher.returncode, refusal.code, refusal.params["action"]) == (2, code, action)
    assert entries(handle) == before


def test_as_many_steps_are_announced_as_an_undo_takes_back_and_it_counts_its_own_time(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    handle = ran(
        works("a.seen"),
        Write(id="a.conf", title="t", lane="files", path=str(file), text="x\n"),
        Run(id="a.back", title="t", argv=("true",), undo=(Command(argv=stand_in("works", 1, 0)),)),
        Run(id="a.proof", title="t", lane="proof", argv=("true",)),
    )
    announced = handle.goes_back()
    begun = time.time()
    state = undone(handle)
    assert state.status == "undone", state
    assert announced == sum(one.status == "undone" for one in state.actions.values()) == 2
    # Whoever looks a day later is told of the seconds of the undo.
    late = msgspec.structs.replace(state, started=begun - 86400)
    assert progress(handle.plan, late, time.time() + 86400).gone < 60
