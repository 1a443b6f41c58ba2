"""Whose runs are worked on, and what a running or an undone run refuses."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from steps.engine import client, journal, launch
from steps.engine.carried import digest_of
from steps.engine.folder import Order, Origin, Refusal, create
from steps.errors import BringupError, PrivilegeError
from steps.model.action import Run, Write
from steps.model.plan import Plan, digest
from tests.engine_kit import ended, holds, plan_of, runner_pid, said, statuses, wait_until, works

pytestmark = pytest.mark.usefixtures("state")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes user ids")
NOBODY = 65534


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> Refusal:
    code = launch.main([*words, "--json"])
    found = msgspec.json.decode(capsys.readouterr().err, type=Refusal)
    assert code == found.exit
    return found


# --- whose run it is --------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["", "plan.json", "origin.json", "journal.jsonl", "lock"])
def test_a_run_that_others_may_write_in_is_not_worked_on(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    handle = client.start(plan_of(Run(id="a.one", title="t", argv=("false",))), sudo=None)
    ended(handle)
    path = Path(handle.folder, part)
    path.chmod(path.stat().st_mode | 0o022)
    found = refusal(capsys, "--run", handle.id)
    assert (found.code, found.params["path"]) == ("run-folder-open", str(path))
    assert len([entry for entry in journal.read(Path(handle.folder, "journal.jsonl"))[0] if entry.kind == "run-started"]) == 1


@pytest.mark.parametrize("part", ["", "plan.json", "origin.json"])
def test_a_link_in_the_place_of_a_run_is_not_followed(part: str, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handle = client.start(plan_of(Run(id="a.one", title="t", argv=("false",))), sudo=None)
    ended(handle)
    path = Path(handle.folder, part)
    path.rename(state / "elsewhere")
    path.symlink_to(state / "elsewhere")
    assert refusal(capsys, "--run", handle.id).code == "run-folder-open"


@as_root
@pytest.mark.parametrize("part", ["", "plan.json", "origin.json", "journal.jsonl"])
def test_root_does_not_work_on_a_run_of_somebody_elses_making(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    handle = client.start(plan_of(Run(id="a.one", title="t", argv=("false",))), sudo=None)
    ended(handle)
    os.chown(Path(handle.folder, part), NOBODY, NOBODY)
    assert refusal(capsys, "--run", handle.id, "--undo").code == "run-of-another"


@as_root
def test_root_looks_for_runs_in_the_machines_place_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handle = client.start(plan_of(works("a.one")), sudo=None)
    ended(handle)
    # The machine's own place is looked into: a name that no run there can have.
    id = f"test-{tmp_path.name}-{os.getpid()}"
    there = tmp_path / "bringup" / "runs" / id
    there.parent.mkdir(parents=True)
    Path(handle.folder).rename(there)
    monkeypatch.delenv("BRINGUP_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert client.find(id).folder == str(there), "it can be looked at"
    assert refusal(capsys, "--run", id).code == "run-unknown"
    with pytest.raises(PrivilegeError) as caught:
        client.find(id).resume()
    assert caught.value.code == "run-of-another"


# --- the environment of an order ---


EVIL = {
    "PATH": "/tmp/evil:/usr/bin:/bin",
    "LD_LIBRARY_PATH": "/tmp/evil",
    "BASH_ENV": "/tmp/evil/rc",
    "APT_CONFIG": "/tmp/evil/apt",
    "HOME": "/tmp",
}


def order_file(folder: Path, plan: Plan, environment: dict[str, str]) -> str:
    file = folder / "order.json"
    file.write_bytes(msgspec.json.encode(Order(plan=plan, environment=environment)))
    return str(file)


def test_an_order_whose_environment_was_changed_after_it_was_confirmed_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, sent = plan_of(works("a.one")), {"PIP_TIMEOUT": "7"}
    file = order_file(tmp_path, plan, {**sent, "PIP_INDEX_URL": "https://evil.example/simple"})
    for words in (("--carried", digest_of(sent)), ()):
        assert refusal(capsys, file, "--digest", digest(plan), *words).code == "plan-changed"
    assert client.runs() == ()


def test_of_an_orders_environment_only_what_installers_honour_reaches_the_commands(tmp_path: Path) -> None:
    plan = plan_of(Run(id="a.one", title="t", argv=("env",)))
    environment = {**EVIL, "PIP_TIMEOUT": "7"}
    assert launch.main([order_file(tmp_path, plan, environment), "--digest", digest(plan), "--carried", digest_of(environment)]) == 0
    handle = client.find(None)
    ended(handle)
    seen = {name: value for name, _, value in (line.partition("=") for line in said(handle, "a.one").splitlines())}
    assert {name for name in EVIL if seen.get(name) == EVIL[name]} == set()
    assert seen["PIP_TIMEOUT"] == "7"


def test_a_run_that_was_given_such_an_environment_earlier_does_not_go_on_with_it() -> None:
    plan = plan_of(Run(id="a.one", title="t", argv=("env",)))
    folder = create(plan, Origin(digest=digest(plan), owner=client.invoking_owner(), environment=EVIL))
    launch.start(folder, ())
    handle = client.find(folder.id)
    ended(handle)
    assert "/tmp/evil" not in said(handle, "a.one")


# --- a run that is at work --------------------------------------------------------------------------


def test_neither_undo_nor_resume_of_a_run_at_work_pretends_to_begin(tmp_path: Path) -> None:
    file = tmp_path / "file"
    enough = tmp_path / "enough"
    handle = client.start(
        plan_of(
            Write(id="a.file", title="t", lane="files", path=str(file), text="x"),
            holds("b.long", enough),
        ),
        sudo=None,
    )
    wait_until(handle, lambda state: statuses(state).get("a.file") == "done")
    pid = runner_pid(handle)
    for begin in (handle.undo, handle.resume):
        with pytest.raises(BringupError) as caught:
            begin()
        assert (caught.value.exit_code, caught.value.params["run"]) == (75, handle.id)
    enough.touch()
    end = ended(handle)
    assert (end.status, file.exists(), runner_pid(handle)) == ("done", True, pid)


def test_every_runner_is_known_by_a_token_of_its_own() -> None:
    handle = client.start(plan_of(works("a.one")), sudo=None)
    ended(handle)
    handle.resume()
    ended(handle)
    tokens = [entry.data["token"] for entry in journal.read(Path(handle.folder, "journal.jsonl"))[0] if entry.kind == "run-started"]
    assert len(set(tokens)) == 2
