"""Which run is meant when none is named, what counts as a run, and what a damaged or a refused one does to the others."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from steps.engine import client, launch
from steps.engine.folder import Origin, Refusal, create, invoking_owner
from steps.errors import BringupError, Busy, InputError, PreflightError
from steps.model.action import Command, Run, Write
from steps.model.plan import digest, names
from steps.model.profile import DriverAnswers, Profile, ToolkitAnswers
from tests.engine_kit import ended, holds, plan_of, ran, stand_in, statuses, works

pytestmark = pytest.mark.usefixtures("state")


def all_at_once(*acts: Callable[[], object]) -> list[BringupError | None]:
    """Return what each act refuses with, all of them begun at the same time."""

    def outcome(act: Callable[[], object]) -> BringupError | None:
        try:
            act()
        except BringupError as error:
            return error
        return None

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(outcome, acts))


# --- none was named ---------------------------------------------------------------------------------


def test_a_rehearsal_is_meant_only_where_there_is_no_real_run() -> None:
    rehearsed = ran(works("a.one"), rehearsal=True)
    assert {client.find(None).id, client.find_at_work().id} == {rehearsed.id}
    real = ran(works("a.one"))
    ran(works("a.one"), rehearsal=True)
    assert {client.find(None).id, client.find_at_work().id} == {real.id}
    assert [summary.rehearsal for summary in client.runs()] == [True, False, True]


def test_the_newest_run_is_meant_though_the_clock_was_set_back_since_the_last() -> None:
    older = ran(works("a.one"))
    tomorrow = time.time() + 86_400
    os.utime(Path(older.folder) / "plan.json", (tomorrow, tomorrow))
    newer = ran(works("a.one"))
    assert client.find(None).id == newer.id
    assert [summary.id for summary in client.runs()] == [newer.id, older.id]


def test_the_run_at_work_is_the_one_to_come_back_to(tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    long = client.start(plan_of(holds("a.one", enough)), sudo=None)
    ran(works("a.one"), rehearsal=True)
    assert client.find_at_work().id == long.id
    enough.touch()
    ended(long)


def test_without_any_run_it_is_said_that_there_is_none() -> None:
    finders: tuple[Callable[[], object], ...] = (lambda: client.find(None), client.find_at_work)
    for find in finders:
        with pytest.raises(InputError) as caught:
            find()
        assert (caught.value.code, caught.value.exit_code) == ("no-runs", 2)


def test_a_run_says_by_name_what_it_installs_and_only_what_its_actions_install() -> None:
    profile = Profile(
        driver=DriverAnswers(branch="580", flavor="open"),
        toolkit=ToolkitAnswers(cuda="12.8", cudnn="none"),
        frameworks={"torch": "2.7.1", "variant": "cu128", "jax": "none"},
    )
    write = Write(id="nccl.conf", title="t", path="/etc/nccl.conf", text="x")
    plan = plan_of(works("driver.install"), works("toolkit.cuda"), works("environment.create"), write)
    assert names(msgspec.structs.replace(plan, profile=profile)) == ("NVIDIA 580 open", "CUDA 12.8", "torch 2.7.1", "nccl.conf")
    assert names(msgspec.structs.replace(plan_of(works("verify")), profile=profile)) == ()
    assert ran(write, rehearsal=True).summary().title == "nccl.conf"


# --- what never began -------------------------------------------------------------------------------


def test_of_starts_at_once_one_begins_and_the_others_leave_nothing(state: Path) -> None:
    plans = [plan_of(works(f"a.{name}", 3, 2.0)) for name in ("one", "two", "three")]
    errors = all_at_once(*(lambda plan=plan: client.start(plan, sudo=None) for plan in plans))
    assert sorted(0 if error is None else error.exit_code for error in errors) == [0, 75, 75]
    assert [path.name for path in (state / "runs").iterdir()] == [client.find(None).id]
    ended(client.find(None))


def test_a_folder_that_no_runner_was_at_work_on_is_no_run() -> None:
    plan = plan_of(works("a.one"))
    folder = create(plan, Origin(digest=digest(plan), owner=invoking_owner()))
    assert client.runs() == ()
    for id in (None, folder.id):
        with pytest.raises(InputError):
            client.find(id)
    with pytest.raises(InputError) as caught:
        client.find_undoable()
    assert caught.value.code == "nothing-to-undo"


# --- at once ----------------------------------------------------------------------------------------


def test_of_two_undos_at_once_one_is_told_that_the_other_is_at_work() -> None:
    handle = ran(Run(id="a.one", title="t", argv=("true",), undo=(Command(argv=stand_in("works", 3, 1.5)),)))
    errors = all_at_once(client.find(handle.id).undo, client.find(handle.id).undo)
    assert sorted(0 if error is None else error.exit_code for error in errors) == [0, 75]
    assert ended(handle).status == "undone"


def test_a_run_that_somebody_else_went_on_with_meanwhile_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    handle = ran(works("a.one"))
    assert launch.main(["--run", handle.id, "--turn", "0", "--undo", "--json"]) == 75
    assert msgspec.json.decode(capsys.readouterr().err, type=Refusal).code == "run-active"
    assert (handle.state().status, list(Path(handle.folder).glob("refusal*"))) == ("done", [])


# --- damage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["plan folder", "journal folder", "plan text", "prompt kind"])
def test_a_damaged_run_is_listed_and_stands_in_nobodys_way(damage: str) -> None:
    good, bad = ran(works("a.one")), ran(works("a.one"))
    part, kind = damage.split()
    path = Path(bad.folder, "plan.json" if part == "plan" else "journal.jsonl")
    if kind == "folder":
        path.unlink()
        path.mkdir()
    elif kind == "text":
        path.write_text("{")
    else:
        with path.open("a") as file:
            file.write('{"seq":99,"at":1.0,"kind":"prompt","action":"a.one","data":{"id":"x","kind":"telepathy"}}\n')
    assert {summary.id: summary.readable for summary in client.runs()} == {good.id: True, bad.id: False}
    assert {client.find(None).id, client.find_at_work().id, client.find_undoable().id} == {good.id}
    with pytest.raises(InputError) as caught:
        client.find(bad.id).state()
    assert caught.value.code in ("plan-damaged", "journal-damaged")


# --- where runs are kept ----------------------------------------------------------------------------


def test_a_state_folder_that_is_a_file_refuses_a_start_in_one_line(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (state / "file").write_text("")
    monkeypatch.setenv("BRINGUP_STATE", str(state / "file"))
    with pytest.raises(BringupError) as caught:
        client.start(plan_of(works("a.one")), sudo=None)
    assert (caught.value.code, caught.value.exit_code) == ("state-unusable", 3)
    assert client.runs() == ()


@contextlib.contextmanager
def no_room() -> Iterator[None]:
    """Let no file grow beyond 100 bytes, as on a full disk; not even the report of these tests, so briefly."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_refuses_a_start_and_leaves_no_folder(state: Path) -> None:
    ran(works("a.one"))
    order = state / "order"
    order.write_bytes(msgspec.json.encode({"plan": plan_of(works("a.two"))}))
    plan = plan_of(works("a.three"))
    with no_room(), pytest.raises(PreflightError) as caught:
        client.start(plan, sudo=None)
    assert caught.value.code == "state-unusable"
    with no_room(), pytest.raises(OSError, match="File too large"):
        create(plan, Origin(digest=digest(plan), owner=invoking_owner()))
    assert len(list((state / "runs").iterdir())) == 1


def test_a_machine_without_a_temporary_folder_refuses_a_start_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(PreflightError) as caught:
        client.start(plan_of(works("a.one")), sudo=None)
    assert (caught.value.code, caught.value.params["folder"]) == ("state-unusable", "/tmp")


def test_a_full_disk_refuses_an_undo_before_it_begins() -> None:
    handle = ran(works("a.one"))
    with no_room(), pytest.raises(BringupError) as caught:
        handle.undo()
    assert (caught.value.code, caught.value.exit_code) == ("state-unusable", 3)
    assert (handle.state().status, statuses(handle.state())) == ("done", {"a.one": "done"})


def test_a_relative_state_folder_is_refused_before_anything_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRINGUP_STATE", "some/where")
    acts: tuple[Callable[[], object], ...] = (client.runs, lambda: client.start(plan_of(works("a.one")), sudo=None))
    for act in acts:
        with pytest.raises(InputError) as caught:
            act()
        assert (caught.value.code, caught.value.params["folder"]) == ("state-relative", "some/where")


def test_a_refused_start_beside_a_run_at_work_names_it(tmp_path: Path) -> None:
    enough = tmp_path / "enough"
    handle = client.start(plan_of(holds("a.one", enough)), sudo=None)
    with pytest.raises(Busy) as caught:
        client.start(plan_of(works("a.two")), sudo=None)
    assert caught.value.params["run"] == handle.id
    enough.touch()
    ended(handle)
