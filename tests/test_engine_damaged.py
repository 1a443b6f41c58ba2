from __future__ import annotations

import contextlib
import fcntl
import os
import re
import resource
import signal
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from steps.engine import client, launch
from steps.engine.folder import Order, Refusal, RunFolder, invoking_owner
from steps.engine.lock import Holder, busy, holder, take_target, target_lock
from steps.engine.server import Request, Response, ask
from steps.errors import BringupError, InputError
from steps.lines import runs as table
from steps.model.plan import digest
from tests.engine_kit import ended, holds, output, plan_of, ran, runner_pid, wait_until, works

pytestmark = pytest.mark.usefixtures("state")


def empty(file: Path) -> None:
    file.write_bytes(b"")


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("name", ["origin.json", "lock", "journal.jsonl"])
def test_a_run_that_lacks_a_file_is_said_to_be_damaged_and_not_short_of_room(name: str) -> None:
    handle = ran(works("a.one"))
    Path(handle.folder, name).unlink()
    with pytest.raises(BringupError) as caught:
        client.find(handle.id).undo()
    assert (caught.value.code, caught.value.exit_code) == ("run-incomplete", 2)
    assert str(caught.value.params["file"]).endswith(name)


@pytest.mark.parametrize(("hurt", "code"), [(empty, "journal-empty"), (pipe, "journal-damaged"), (Path.unlink, "run-incomplete")])
def test_a_run_whose_journal_is_gone_stays_in_the_list_and_is_called_damaged(hurt: Callable[[Path], None], code: str) -> None:
    handle = ran(works("a.one"))
    hurt(Path(handle.folder, "journal.jsonl"))
    assert [(one.id, one.word) for one in client.runs()] == [(handle.id, "damaged")]
    for act in (lambda: client.find(handle.id).state(), lambda: client.find(handle.id).undo()):
        with pytest.raises(InputError) as caught:
            act()
        assert caught.value.code == code


@pytest.mark.parametrize("at", ["1e308", "-1e300", "1e17", "-1"])
def test_a_moment_that_no_clock_shows_is_damage_of_that_run_alone(at: str) -> None:
    whole, hurt = ran(works("a.one")), ran(works("a.one"))
    file = Path(hurt.folder, "journal.jsonl")
    file.write_text(re.sub(r'"at":[0-9.e+]+', f'"at":{at}', file.read_text()))
    found = client.runs()
    assert [(one.id, one.word) for one in found] == [(hurt.id, "damaged"), (whole.id, "done")]
    assert [line.split()[0] for line in table(found, "en")] == [hurt.id, whole.id]


def test_a_lock_whose_moment_no_clock_shows_still_names_nobody_wrongly() -> None:
    lock = target_lock("/nowhere", root=False, owner=invoking_owner())
    taken = take_target(lock, Holder(run="1130-a", user="ana", started=1e300))
    assert busy(holder(lock) or Holder(run="", user="", started=0.0)).params["run"] == "?"
    os.close(taken)


def test_who_may_only_read_a_lock_is_not_said_to_be_a_run() -> None:
    handle = ran(works("a.one"))
    path = target_lock("/", root=os.geteuid() == 0, owner=invoking_owner())
    reader = os.open(path, os.O_RDONLY)
    fcntl.fcntl(reader, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    try:
        assert holder(path) is None
        with pytest.raises(BringupError) as caught:
            client.start(plan_of(works("a.two")), sudo=None)
        assert (caught.value.code, caught.value.exit_code, caught.value.params["path"]) == ("lock-foreign", 75, str(path))
    finally:
        os.close(reader)
    assert [one.id for one in client.runs()] == [handle.id]
    assert ran(works("a.two")).state().status == "done"


@pytest.mark.parametrize(("name", "code"), [("plan.json", "plan-damaged"), ("origin.json", "run-folder-open")])
def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(name: str, code: str) -> None:
    handle = ran(works("a.one"))
    pipe(Path(handle.folder, name))
    with pytest.raises(BringupError) as caught:
        client.find(handle.id).undo()
    assert caught.value.code == code


def test_a_runner_that_is_stopped_is_not_said_to_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steps.engine.server._PATIENCE", 0.3)
    enough = tmp_path / "enough"
    handle = client.start(plan_of(holds("a.one", enough)), sudo=None)
    pid = runner_pid(handle)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(InputError) as caught:
            handle.pause()
        assert caught.value.code == "run-queued"
    finally:
        os.kill(pid, signal.SIGCONT)
    # It has heard us all the same.
    wait_until(handle, lambda state: state.status == "paused")
    handle.proceed()
    enough.touch()
    assert ended(handle).status == "done"
    with pytest.raises(InputError) as caught:
        handle.pause()
    assert caught.value.code == "run-not-active"


def test_a_runner_that_ran_out_of_descriptors_hears_again_when_there_are_some(state: Path, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    handle = client.start(plan_of(holds("a.one", enough, "echo here")), sudo=None)
    wait_until(handle, lambda _: "\nhere\n" in output(handle, "a.one"))
    pid = runner_pid(handle)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    # The lowest numbers are taken: nothing more can be opened.
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
            caller.connect(str(state / "sockets" / f"{handle.id}.sock"))
            time.sleep(0.8)  # longer than a command is silent before it is asked whether it waits
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    handle.pause()
    assert wait_until(handle, lambda state: state.status == "paused").held
    handle.proceed()
    enough.touch()
    assert ended(handle).status == "done"


def order_of(tmp_path: Path) -> list[str]:
    """Return the launcher's words for a small plan."""
    plan = plan_of(works("a.one"))
    file = tmp_path / "order"
    file.write_bytes(msgspec.json.encode(Order(plan=plan)))
    return [str(file), "--digest", digest(plan), "--json"]


def test_what_a_broken_runner_said_of_its_fault_is_where_it_is_said_to_be(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(argv: tuple[str, ...]) -> None:
        at = argv.index("--token")
        folder = RunFolder(Path(argv[at - 1]))
        folder.errors.write_text("Traceback\n")
        folder.refuse(argv[at + 1], InputError("runner-broken", file=str(folder.errors)))

    monkeypatch.setattr(launch, "_by_fork", breaks)
    monkeypatch.setattr(launch, "_by_systemd", lambda _, argv: breaks(argv))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    assert launch.main(order_of(tmp_path)) == 2
    told = msgspec.json.decode(capsys.readouterr().err, type=Refusal)
    assert (told.code, Path(str(told.params["file"])).read_text()) == ("runner-broken", "Traceback\n")
    assert client.runs() == ()


def test_a_system_without_proc_is_no_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launch, "_PROC", tmp_path / "proc/self/fd")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    assert launch.main(order_of(tmp_path)) == 3
    assert msgspec.json.decode(capsys.readouterr().err, type=Refusal).code == "proc-missing"
    assert client.runs() == ()


def test_callers_that_say_nothing_keep_no_other_from_being_heard(state: Path, tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    handle = client.start(plan_of(holds("a.one", enough)), sudo=None)
    address = state / "sockets" / f"{handle.id}.sock"
    folder = os.open(address.parent, os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.ExitStack() as silent:
        silent.callback(os.close, folder)
        for _ in range(40):
            one = silent.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            one.connect(f"/proc/self/fd/{folder}/{address.name}")
        before = time.monotonic()
        assert ask(address, Request(word="hello")) == Response()
        # Each of them would have been waited for by itself.
        assert time.monotonic() - before < 5
    enough.touch()
    assert ended(handle).status == "done"
