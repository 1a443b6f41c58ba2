"""Fetching ahead: what of a plan it is, that it lives no longer than its program, gives way to a run, and stands in no list."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from steps.engine import client, journal
from steps.engine.lock import born_of
from steps.errors import BringupError
from steps.headless import ahead
from steps.headless.console import Asked, Console
from steps.managers.ahead import STATUS, fetching
from steps.managers.python import environment
from steps.model.action import AnyAction, Packages, RemovePath, Run, Write, installing
from steps.model.machine import Machine
from steps.model.plan import Ahead, Installer, Plan, Target
from steps.model.profile import EnvironmentAnswers, NetworkAnswers, Profile
from tests.engine_kit import ended, holds, output, plan_of, ran, wait_until, works
from tests.index_server import Index, serving
from tui import running

UV = "/usr/bin/uv"


def whole(*actions: AnyAction, uv: str | None = UV) -> Plan:
    target = Target(installer=Installer(uv=uv, home="/home/ana", pythons={"3.12": "/usr/bin/python3.12"}))
    profile = Profile(environment=EnvironmentAnswers(python="3.12"))
    return Plan(made=0.0, target=target, profile=profile, actions=actions)


DRIVER = installing("apt", "driver.install", "Driver 580", ("nvidia-driver-580-open",), download_bytes=420)
CUDA = installing("apt", "toolkit.cuda", "CUDA", ("cuda-toolkit-13-0",), download_bytes=3000)
SOURCE = Write(id="repository.source", title="t", path="/etc/apt/sources.list.d/cuda.sources", text="x")
WHEELS = Run(
    id="environment.install",
    title="torch 2.15.0",
    lane="python",
    by="user",
    argv=(
        UV,
        "pip",
        "install",
        "--python",
        "/home/ana/envs/dl/bin/python",
        "--reinstall",
        "--extra-index-url",
        "https://x",
        "torch==2.15.0",
    ),
    env={"UV_NO_PROGRESS": "1"},
    download_bytes=800,
)


# --- what is fetched --------------------------------------------------------------------------------


def test_archives_are_fetched_beside_a_copy_of_the_list_and_wheels_into_a_folder_that_goes() -> None:
    status, archives, wheels = fetching(whole(DRIVER, WHEELS), root=True)
    assert isinstance(status, Write)
    assert (status.path, status.copy_of) == (STATUS, "/var/lib/dpkg/status")
    assert isinstance(archives, Run)
    assert archives.argv[:5] == ("apt-get", "-y", "-q", "-o", f"Dir::State::status={STATUS}")
    assert archives.argv[-3:] == ("--download-only", "install", "nvidia-driver-580-open")
    assert (archives.by, archives.optional, archives.download_bytes) == ("root", True, 420)
    assert isinstance(wheels, Run)
    folder = "/home/ana/.cache/bringup-ahead"
    made = (UV, "pip", "install", "--python", "/usr/bin/python3.12", "--target", folder, "--extra-index-url", "https://x", "torch==2.15.0")
    assert (wheels.argv, wheels.by, wheels.undo) == (made, "user", (RemovePath(path=folder),))


def test_without_root_only_wheels_are_fetched() -> None:
    assert [action.id for action in fetching(whole(DRIVER, WHEELS), root=False)] == ["ahead.wheels"]
    made = ahead.without_root(ahead.plan_of(whole(DRIVER, WHEELS), root=True))
    assert [action.id for action in made.actions] == ["ahead.wheels"]
    assert not made.needs_root


def test_what_comes_from_a_repository_that_the_plan_adds_cannot_be_known_yet() -> None:
    assert fetching(whole(SOURCE, DRIVER, CUDA), root=True) == ()
    assert [action.id for action in fetching(whole(DRIVER, SOURCE, CUDA), root=True)] == ["ahead.status", "ahead.driver.install"]


@pytest.mark.parametrize("plan", [whole(WHEELS, uv=None), whole(), whole(Packages(id="a", title="t", manager="dnf", install=("x",)))])
def test_nothing_is_fetched_where_uv_is_to_come_first_or_another_manager_works(plan: Plan) -> None:
    assert fetching(plan, root=True) == ()


@pytest.mark.usefixtures("state")
def test_a_wheel_that_was_fetched_is_not_fetched_by_the_run_that_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        pytest.skip("uv is not installed here")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    index = Index()
    index.add("small-1.0-py3-none-any.whl", padding=3_000_000)
    with serving(index) as address:
        line = f"{sys.version_info.major}.{sys.version_info.minor}"
        here = Installer(uv=uv, home=str(tmp_path), pythons={line: sys.executable}, environments=str(tmp_path / "envs"))
        profile = Profile(environment=EnvironmentAnswers(manager="uv", name="dl", python=line), network=NetworkAnswers(pypi=address))
        actions = environment(Machine(), profile, ("small==1.0",), Target(installer=here))
        plan = Plan(made=0.0, target=Target(installer=here), profile=profile, actions=actions)
        fetched = client.start(ahead.plan_of(plan, root=False), sudo=None)
        assert ended(fetched).actions["ahead.wheels"].status == "done", output(fetched, "ahead.wheels")
        assert not (tmp_path / ".cache" / "bringup-ahead").exists()
        assert any(path.endswith(".whl") for path in index.sent)
        index.sent.clear()
        # uv asks whether its copy is still the one that the index has, and is told so.
        run = client.start(plan, sudo=None)
        assert ended(run).status == "done", output(run, "environment.install")
        assert [path for path in index.sent if path.endswith(".whl")] == []
        assert list((tmp_path / "envs" / "dl").glob("lib/*/site-packages/small-1.0.dist-info"))


# --- how it lives -----------------------------------------------------------------------------------


def fetch(*actions: AnyAction, whose: Ahead | None = None) -> client.RunHandle:
    """Start a fetch that belongs to this process, or to another one."""
    return client.start(msgspec.structs.replace(plan_of(*actions), ahead=whose or client.ourselves()), sudo=None)


def at_work(handle: client.RunHandle) -> client.RunHandle:
    wait_until(handle, lambda state: "ahead.one" in state.actions)
    return handle


@pytest.mark.usefixtures("state")
def test_a_run_that_begins_stops_the_fetch_and_does_not_find_the_machine_taken(tmp_path: Path) -> None:
    fetched = at_work(fetch(holds("ahead.one", tmp_path / "never")))
    assert ended(client.start(plan_of(works("a.one")), sudo=None)).status == "done"
    assert (fetched.alive(), fetched.state().status) == (False, "cancelled")


@pytest.mark.usefixtures("state")
def test_a_second_fetch_takes_the_place_of_the_first(tmp_path: Path) -> None:
    first = at_work(fetch(holds("ahead.one", tmp_path / "never")))
    second = fetch(works("ahead.two"))
    assert ended(second).status == "done"
    # The folder of the first is gone with it: nobody comes back to a fetch.
    assert [path.name for path in Path(first.folder).parent.iterdir()] == [second.id]


@pytest.mark.usefixtures("state")
def test_a_fetch_does_not_begin_where_a_run_works(tmp_path: Path) -> None:
    handle = client.start(plan_of(holds("a.one", tmp_path / "go")), sudo=None)
    with pytest.raises(BringupError) as caught:
        fetch(works("ahead.one"))
    assert (caught.value.code, caught.value.exit_code) == ("run-active", 75)
    (tmp_path / "go").touch()
    assert ended(handle).status == "done"


@pytest.mark.usefixtures("state")
def test_a_fetch_stands_in_no_list_and_is_no_run_to_come_back_to() -> None:
    run = ran(works("a.one"))
    ended(fetch(works("ahead.one")))
    assert [one.id for one in client.runs()] == [run.id]
    assert (client.find(None).id, client.find_undoable().id, client.find_resumable().id) == (run.id, run.id, run.id)


@pytest.mark.usefixtures("state")
def test_a_fetch_ends_with_its_program_however_that_ends(tmp_path: Path) -> None:
    with subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE) as program:
        whose = Ahead(pid=program.pid, born=born_of(program.pid) or "")
        fetched = at_work(fetch(holds("ahead.one", tmp_path / "never"), whose=whose))
        program.kill()
    assert ended(fetched).status == "cancelled"
    assert born_of(program.pid) is None


@pytest.mark.usefixtures("state")
def test_it_has_the_lowest_priority_and_takes_away_what_it_wrote(tmp_path: Path) -> None:
    copy = Write(id="ahead.status", title="t", path=str(tmp_path / "ahead" / "status"), text="x\n")
    fetched = fetch(copy, Run(id="ahead.one", title="t", argv=("sh", "-c", 'nice; cat "$1"', "sh", copy.path), needs=("ahead.status",)))
    assert ended(fetched).status == "done"
    assert output(fetched, "ahead.one").split()[-2:] == ["19", "x"]
    assert not (tmp_path / "ahead" / "status").exists()
    assert not [entry for entry in journal.read(Path(fetched.folder, "journal.jsonl"))[0] if entry.kind == "undo-started"]


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("said", [True, None])
def test_without_a_screen_only_the_profile_says_yes_and_it_lasts_as_long_as_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bool | None
) -> None:
    told: list[str] = []
    console = Console(Asked(), told.append, told.append)
    plan = msgspec.structs.replace(whole(WHEELS), profile=Profile(network=NetworkAnswers(download_ahead=said)))
    waits = plan_of(holds("ahead.one", tmp_path / "never"))
    monkeypatch.setattr(ahead, "plan_of", lambda *_, **__: msgspec.structs.replace(waits, ahead=client.ourselves()))
    with running._fetching_ahead(plan, console):
        assert [handle.alive() for handle in client._ahead()] == ([True] if said else [])
    assert [handle.alive() for handle in client._ahead()] == ([False] if said else [])
    assert len(told) == (1 if said else 0)
