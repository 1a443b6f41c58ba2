"""What may happen between two commands on a run: a disk unmounted, a clock set back, another run, a hand in its files."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steps.engine import client
from steps.engine.folder import Refused
from steps.engine.handle import launch
from steps.engine.mounts import mount_above
from steps.errors import PreflightError
from steps.model.action import Command, Keep, RemovePath, Run, Write
from steps.model.base import Phrase
from tests.engine_kit import (
    cut_off,
    ended,
    holds,
    kill_runner,
    output,
    plan_of,
    ran,
    runner_pid,
    session_of,
    statuses,
    until_gone,
    wait_until,
    works,
)

pytestmark = pytest.mark.usefixtures("state")


# --- the system below a root ------------------------------------------------------------------------

FIRST, OTHER = "0123456789abcdef0123456789abcdef\n", "fedcba9876543210fedcba9876543210\n"


def mounted(root: Path, id: str | None) -> Path:
    """Make a system below `root` and return a setting in it."""
    (root / "etc").mkdir(parents=True)
    (root / "etc/setting").write_text("old")
    if id is not None:
        (root / "etc/machine-id").write_text(id)
    return root / "etc/setting"


def changed_below(root: Path) -> client.RunHandle:
    handle = client.start(plan_of(Write(id="a.one", title="t", path="/etc/setting", text="new"), root=str(root)), sudo=None)
    assert statuses(ended(handle)) == {"a.one": "done"}
    return handle


@pytest.mark.parametrize(("id", "other", "code"), [(None, None, "root-gone"), (FIRST, None, "root-gone"), (FIRST, OTHER, "root-other")])
def test_a_run_is_not_taken_back_where_its_system_is_not_mounted(tmp_path: Path, id: str | None, other: str | None, code: str) -> None:
    root = tmp_path / "root"
    mounted(root, id)
    handle = changed_below(root)
    root.rename(tmp_path / "elsewhere")
    root.mkdir()
    setting = mounted(root, other) if other else root / "etc/setting"
    before = setting.read_text() if other else None
    for act in (handle.undo, handle.resume):
        with pytest.raises(Refused) as caught:
            act()
        assert (caught.value.code, caught.value.exit_code) == (code, 3)
    assert (setting.read_text() if setting.exists() else None) == before
    if other is None:
        root.rmdir()
    else:
        root.rename(tmp_path / "other")
    (tmp_path / "elsewhere").rename(root)
    handle.undo()
    assert (ended(handle).status, (root / "etc/setting").read_text()) == ("undone", "old")


def test_a_system_whose_id_was_replaced_on_purpose_is_gone_on_with_under_its_earlier_one(tmp_path: Path) -> None:
    root = tmp_path / "root"
    setting = mounted(root, FIRST)
    handle = changed_below(root)
    (root / "etc/machine-id").write_text(OTHER)
    with pytest.raises(Refused) as caught:
        handle.undo()
    assert (caught.value.code, caught.value.params["id"]) == ("root-other", FIRST.strip())
    (root / "etc/machine-id").write_text(f"{caught.value.params['id']}\n")
    handle.undo()
    assert (ended(handle).status, setting.read_text()) == ("undone", "old")


def test_a_system_that_was_given_its_id_since_is_the_same(tmp_path: Path) -> None:
    root = tmp_path / "root"
    setting = mounted(root, None)
    handle = changed_below(root)
    (root / "etc/machine-id").write_text(FIRST)
    handle.resume()
    assert ended(handle).status == "done"
    handle.undo()
    assert (ended(handle).status, setting.read_text()) == ("undone", "old")


# --- a disk of its own ------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return where another disk is mounted; the test may unmount it."""
    at = tmp_path / "data"
    at.mkdir()
    if subprocess.run(("mount", "-t", "tmpfs", "-o", "size=1m", "none", str(at)), capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield at
    finally:
        subprocess.run(("umount", str(at)), capture_output=True, check=False)


def test_what_lies_on_a_disk_that_is_not_mounted_is_not_said_to_be_taken_back(disk: Path, tmp_path: Path) -> None:
    (disk / "conf").write_text("old")
    (tmp_path / "linked").symlink_to(disk)
    env = tmp_path / "linked/envs/dl"
    handle = ran(
        Run(id="a.env", title="t", argv=("mkdir", "-p", str(env)), undo=(RemovePath(path=str(env)),)),
        Write(id="a.file", title="t", path=str(disk / "conf"), text="new"),
    )
    kept = tmp_path / "elsewhere"
    kept.mkdir()
    subprocess.run(("mount", "--move", str(disk), str(kept)), check=True)
    try:
        handle.undo()
        state = ended(handle)
        assert (state.status, state.exit, statuses(state)) == ("undo-failed", 22, {"a.env": "done", "a.file": "failed"})
        assert state.actions["a.file"].error == Phrase(key="error.disk-gone.sentence", params={"path": str(disk)})
        assert (list(disk.iterdir()), (kept / "conf").read_text()) == ([], "new")
    finally:
        subprocess.run(("mount", "--move", str(kept), str(disk)), check=True)
    handle.undo()
    assert (ended(handle).status, (disk / "conf").read_text(), env.exists()) == ("undone", "old", False)


def test_what_is_kept_on_a_disk_that_is_not_mounted_is_not_called_gone(disk: Path, tmp_path: Path) -> None:
    env, elsewhere = disk / "env", tmp_path / "elsewhere"
    for folder in (env, elsewhere):
        folder.mkdir()
    (env / "version").write_text("first\n")
    handle = ran(*keeping(env, "second"))
    subprocess.run(("mount", "--move", str(disk), str(elsewhere)), check=True)
    try:
        handle.undo()
        state = ended(handle)
        assert state.actions["a.keep"].error == Phrase(key="error.disk-gone.sentence", params={"path": str(disk)})
    finally:
        subprocess.run(("mount", "--move", str(elsewhere), str(disk)), check=True)
    handle.undo()
    assert (ended(handle).status, (env / "version").read_text()) == ("undone", "first\n")


@pytest.mark.parametrize("cut", ["before it was done", "after it"])
def test_a_run_does_not_go_on_below_a_mount_point_without_its_disk(disk: Path, tmp_path: Path, cut: str) -> None:
    env, there, elsewhere = disk / "env", tmp_path / "there", tmp_path / "elsewhere"
    elsewhere.mkdir()
    needs = ("sh", "-c", 'mkdir -p "$1" && test -e "$2"', "sh", str(env), str(there))
    passes = 'mkdir -p "$1"' if cut == "after it" else needs[2]
    handle = ran(
        Run(id="a.env", title="t", lane="python", argv=("sh", "-c", passes, *needs[3:]), undo=(RemovePath(path=str(env)),)),
        Run(id="a.more", title="t", lane="python", argv=needs),
        works("b.else"),
    )
    there.touch()
    subprocess.run(("mount", "--move", str(disk), str(elsewhere)), check=True)
    stopped = "a.more" if cut == "after it" else "a.env"
    try:
        handle.resume()
        state = ended(handle)
        assert (state.status, state.exit, statuses(state)["b.else"]) == ("failed", 3, "done")
        assert state.actions[stopped].error == Phrase(key="error.disk-gone.sentence", params={"path": str(disk)})
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(("mount", "--move", str(elsewhere), str(disk)), check=True)
    handle.resume()
    assert (ended(handle).status, env.is_dir()) == ("done", True)


def test_the_folder_of_an_environment_is_not_called_gone_with_its_disk(disk: Path) -> None:
    handle = ran(Run(id="a.env", title="t", argv=("mkdir", str(disk / "dl")), undo=(RemovePath(path=str(disk / "dl")),)))
    subprocess.run(("umount", str(disk)), check=True)
    handle.undo()
    state = ended(handle)
    assert state.status == "undo-failed"
    assert state.actions["a.env"].error == Phrase(key="error.disk-gone.sentence", params={"path": str(disk)})


def test_a_file_that_shows_another_device_than_its_folder_is_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So it is on a layered system whose layers lie on two disks, as on one that was started from a stick.
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path) in (str(tmp_path / "conf"), str(tmp_path)))
    (tmp_path / "conf").write_text("old")
    assert mount_above(str(tmp_path / "conf"), "/") == str(tmp_path)


# --- the clock --------------------------------------------------------------------------------------

YEARS = 4 * 365 * 86400


def of_a_wrong_clock(handle: client.RunHandle) -> client.RunHandle:
    """Return the run as a clock had dated it that was years ahead and was set right after it."""
    journal, plan = Path(handle.folder, "journal.jsonl"), Path(handle.folder, "plan.json")
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    journal.write_text("".join(f"{json.dumps({**entry, 'at': entry['at'] + YEARS})}\n" for entry in entries))
    os.utime(plan, ns=(plan.stat().st_atime_ns, plan.stat().st_mtime_ns + YEARS * 10**9))
    return client.find(handle.id)


def keeping(env: Path, version: str) -> tuple[Keep, Run]:
    write = Run(id="a.write", title="t", argv=("sh", "-c", 'echo "$1" >"$2"/version', "sh", version, str(env)))
    return Keep(id="a.keep", title="t", path=str(env)), write


def test_a_later_run_is_known_as_the_later_one_though_the_clock_was_set_back_between(tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.mkdir()
    (env / "version").write_text("first\n")
    older = of_a_wrong_clock(ran(*keeping(env, "second")))
    newer = ran(*keeping(env, "third"))
    with pytest.raises(PreflightError) as caught:
        older.undo()
    assert (caught.value.code, caught.value.params["later"]) == ("undo-later-first", newer.id)
    newer.undo()
    assert (ended(newer).status, (env / "version").read_text()) == ("undone", "second\n")
    older.undo()
    assert (ended(older).status, (env / "version").read_text()) == ("undone", "first\n")


# --- another run ------------------------------------------------------------------------------------


def test_a_run_that_began_while_an_undo_was_being_confirmed_is_not_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    first = ran(Write(id="a.one", title="t", path=str(file), text="one"))
    second = ran(Write(id="a.one", title="t", path=str(file), text="two"))
    # What a screen had looked at before the person typed a password is no longer so.
    with pytest.raises(Refused) as caught:
        launch(("--run", first.id, "--turn", "1", "--undo"), needs_root=False, sudo=None)
    assert (caught.value.code, caught.value.exit_code, caught.value.params["later"]) == ("undo-later-first", 3, second.id)
    assert (file.read_text(), first.state().status) == ("two", "done")


def test_a_run_does_not_begin_beside_what_another_one_left_at_work(tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    cut, pid = cut_off(enough)
    with pytest.raises(Refused) as caught:
        client.start(plan_of(works("b.two")), sudo=None)
    assert (caught.value.code, caught.value.exit_code, caught.value.params) == ("run-left", 75, {"run": cut.id, "pid": pid})
    assert len(client.runs()) == 1
    enough.touch()
    cut.resume()
    assert ended(cut).status == "done"
    assert ran(works("b.two")).state().status == "done"


TAKES_LONG = 'mkdir "$1" && touch "$2" && until [ -e "$3" ]; do sleep 0.02; done && rmdir "$1"'


def test_an_undo_waits_for_what_an_undo_before_it_left_at_work(tmp_path: Path) -> None:
    alone, began, enough = (tmp_path / name for name in ("alone", "began", "enough"))
    back = Command(argv=("sh", "-c", TAKES_LONG, "sh", str(alone), str(began), str(enough)))
    handle = ran(Run(id="a.one", title="t", argv=("true",), undo=(back,)))
    handle.undo()
    until_there(began)
    kill_runner(handle)
    handle.undo()
    wait_until(handle, lambda _: "still at work" in output(handle, "a.one"))
    enough.touch()
    state = ended(handle)
    assert (state.status, statuses(state), alone.exists()) == ("undone", {"a.one": "undone"}, False)


SERVES = 'touch "$2"; sleep 120 </dev/null >/dev/null 2>&1 & echo $! >"$1"'


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Run]:
    """Return an action that makes a file and leaves a server running; it goes after the test."""
    number, made = tmp_path / "number", tmp_path / "made"
    yield Run(id="a.one", title="t", argv=("sh", "-c", SERVES, "sh", str(number), str(made)), undo=(RemovePath(path=str(made)),))
    # It ran until now.
    os.kill(int(number.read_text()), signal.SIGKILL)


def test_an_undo_does_not_wait_for_what_an_action_that_was_done_has_left_running(serving: Run, tmp_path: Path) -> None:
    handle = ran(serving)
    assert (tmp_path / "made").exists()
    handle.undo()
    assert (ended(handle).status, (tmp_path / "made").exists()) == ("undone", False)


def test_a_run_begins_beside_what_an_action_that_was_done_has_left_running(serving: Run, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    cut = client.start(plan_of(serving, holds("a.two", enough)), sudo=None)
    wait_until(cut, lambda state: statuses(state) == {"a.one": "done", "a.two": "running"})
    pid = session_of(cut, "a.two")
    kill_runner(cut)
    enough.touch()
    until_gone(pid)
    assert ran(works("b.two")).state().status == "done"


# --- a hand in its files ----------------------------------------------------------------------------


def test_a_backup_that_cannot_be_read_ends_the_undo_with_its_name_and_the_undo_can_be_done_again(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("old")
    handle = ran(Write(id="a.one", title="t", path=str(file), text="new"), works("a.two"))
    backup = Path(handle.folder, "backup/a.one")
    whole = (backup / "undo.json").read_bytes()
    (backup / "undo.json").write_bytes(whole[:20])
    handle.undo()
    state = ended(handle)
    assert (state.status, state.exit, statuses(state)) == ("undo-failed", 22, {"a.one": "failed", "a.two": "kept"})
    assert state.actions["a.one"].error == Phrase(key="engine.failed.backup-damaged", params={"path": str(backup)})
    assert file.read_text() == "new"
    (backup / "undo.json").write_bytes(whole)
    handle.undo()
    assert (ended(handle).status, file.read_text()) == ("undone", "old")


def test_a_file_that_is_as_it_was_already_is_not_said_to_be_changed_since(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("old")
    handle = ran(Write(id="a.one", title="t", path=str(file), text="new"))
    file.write_text("old")
    handle.undo()
    assert (ended(handle).status, file.read_text()) == ("undone", "old")
    assert "was changed since" not in output(handle, "a.one")
    assert not (Path(handle.folder) / "backup/a.one/changed-1").exists()


# --- a disk that fills up ---------------------------------------------------------------------------


@contextmanager
def no_room_for(pid: int) -> Iterator[None]:
    """Let the runner's files grow no more, as on a full disk; what it has started writes on."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        if Path(f"/proc/{pid}").exists():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


ASKS_THEN = 'until [ -e "$1" ]; do sleep 0.02; done; printf "Which colour? "; touch "$2"; read x; echo "got $x"'


def asking_late(tmp_path: Path) -> tuple[Run, Path, Path]:
    """Return an action that asks when its first file is there, and says so by the second."""
    go, asks = tmp_path / "go", tmp_path / "asks"
    return Run(id="a.one", title="t", argv=("sh", "-c", ASKS_THEN, "sh", str(go), str(asks))), go, asks


def until_there(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert path.exists()


def test_a_question_waits_for_room_in_the_journal(tmp_path: Path) -> None:
    action, go, asks = asking_late(tmp_path)
    handle = client.start(plan_of(action), sudo=None)
    session_of(handle, "a.one")
    with no_room_for(runner_pid(handle)):
        go.touch()
        until_there(asks)
        time.sleep(1.0)
        assert (handle.state().prompt, handle.alive()) == (None, True)
    prompt = wait_until(handle, lambda state: state.prompt is not None).prompt
    assert prompt is not None
    handle.answer(prompt.seq, "red")
    assert ended(handle).status == "done"
    assert "got red" in output(handle, "a.one")


def test_a_run_can_be_stopped_where_its_journal_has_no_room(tmp_path: Path) -> None:
    action, go, asks = asking_late(tmp_path)
    handle = client.start(plan_of(action, works("a.two")), sudo=None)
    session_of(handle, "a.one")
    with no_room_for(runner_pid(handle)):
        go.touch()
        until_there(asks)
        handle.cancel()
        deadline = time.monotonic() + 20
        while handle.alive() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not handle.alive()
    assert handle.summary().word == "cut-off"
    handle.undo()
    assert ended(handle).status == "undone"
