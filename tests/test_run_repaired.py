"""A run that failed, and the run that repaired it: which one is gone on with, which one is taken back first."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from steps.engine import client
from steps.engine.folder import RunFolder
from steps.engine.journal import Journal
from steps.engine.ledger import gone_with, held_too
from steps.errors import BringupError, InputError
from steps.headless.doctor import behind_run
from steps.model.action import Packages, RemovePath, Run
from steps.model.plan import decode, encode
from tests.engine_kit import ended, holds, plan_of, ran, wait_until, works
from tui.__main__ import _guarded

pytestmark = pytest.mark.usefixtures("state")
LINE = "UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation."


def stops(until: Path, *, says: str = "") -> Run:
    """Return a command that fails until a file is there."""
    return Run(id="a.stops", title="t", argv=("sh", "-c", 'echo "$2"; test -e "$1"', "sh", str(until), says))


def repairing(run: client.RunHandle, *actions: Run) -> client.RunHandle:
    """Return the run that repairs another one, ended."""
    handle = client.start(msgspec.structs.replace(plan_of(*actions), repairs=run.id), sudo=None)
    ended(handle)
    return handle


def test_the_run_to_go_on_with_is_the_one_that_the_newest_has_repaired(tmp_path: Path) -> None:
    there = tmp_path / "there"
    stopped = ran(stops(there))
    assert client.find_resumable().id == stopped.id
    mended = repairing(stopped, Run(id="a.repair", title="t", argv=("touch", str(there))))
    assert (client.find(None).id, client.find_resumable().id) == (mended.id, stopped.id)
    repair = client.find_repair(stopped.id)
    assert repair is not None
    assert repair.id == mended.id
    client.find_resumable().resume()
    assert ended(stopped).status == "done"
    # Nothing is left to go on with there.
    assert client.find_repaired(stopped.id) is None
    assert client.find_resumable().id == mended.id


def test_a_repair_that_failed_is_gone_on_with_itself_and_repaired_nothing(tmp_path: Path) -> None:
    stopped = ran(stops(tmp_path / "there"))
    vain = repairing(stopped, stops(tmp_path / "there"))
    assert client.find_resumable().id == vain.id
    assert client.find_repair(stopped.id) is None
    vain.undo()
    ended(vain)
    assert client.find_repair(stopped.id) is None


def test_a_failed_run_lets_go_of_the_machine_and_a_running_repair_holds_it(tmp_path: Path) -> None:
    stopped = ran(stops(tmp_path / "there"))
    plan = msgspec.structs.replace(plan_of(holds("a.repair", tmp_path / "go")), repairs=stopped.id)
    repair = client.start(plan, sudo=None)
    with pytest.raises(BringupError) as caught:
        stopped.resume()
    assert (caught.value.code, caught.value.exit_code, caught.value.params["run"]) == ("run-active", 75, repair.id)
    (tmp_path / "go").touch()
    assert ended(repair).status == "done"
    stopped.resume()
    assert ended(stopped).status == "failed"


def test_the_plan_says_which_run_it_repairs_and_one_of_an_earlier_version_says_none() -> None:
    plan = msgspec.structs.replace(plan_of(works("a.one")), repairs="1130-a")
    assert decode(encode(plan)).repairs == "1130-a"
    before = json.loads(encode(plan))
    del before["repairs"]
    assert decode(json.dumps(before).encode()).repairs is None


# --- what is taken back first -----------------------------------------------------------------------


def changing(folder: RunFolder, before: dict[str, str], after: dict[str, str] | None) -> None:
    """Write down what a packages action of this run changed, as the runner does."""
    kept = folder.kept("a.install")
    kept.mkdir(parents=True, exist_ok=True)
    as_files = [{name: {"version": version} for name, version in packages.items()} for packages in (before, after or {})]
    names = sorted({*before, *(after or {}), "meant"})
    (kept / "undo.json").write_text(json.dumps({"before": {"manager": "apt", "packages": as_files[0]}, "names": names}))
    if after is not None:
        (kept / "after.json").write_text(json.dumps({"manager": "apt", "packages": as_files[1]}))


def run_of_packages(state: Path, id: str, *, repairs: str | None = None) -> RunFolder:
    """Return the folder of a run whose packages action was registered and done."""
    folder = RunFolder(state / id)
    folder.path.mkdir()
    plan = plan_of(Packages(id="a.install", title="t", manager="apt", install=("x",)))
    folder.plan.write_bytes(encode(msgspec.structs.replace(plan, repairs=repairs)))
    journal = Journal(folder.journal)
    journal.append("registered", "a.install")
    journal.append("action-finished", "a.install", "done")
    journal.close()
    return folder


@pytest.mark.parametrize(
    ("after", "met"),
    [({"driver": "2", "libs": "1"}, "driver"), ({"driver": "1", "libs": "1"}, None), (None, "driver")],
    ids=["changed it too", "looked at it only", "was cut off"],
)
def test_a_later_run_that_changed_the_same_package_is_named(state: Path, after: dict[str, str] | None, met: str | None) -> None:
    first, second = run_of_packages(state, "first"), run_of_packages(state, "second")
    changing(first, {}, {"driver": "1"})
    changing(second, {"driver": "1", "libs": "1"}, after)
    assert held_too(first, first.read_plan(), [second]) == (None if met is None else ("second", met))


def test_a_run_that_went_on_rests_on_its_repair_and_is_taken_back_before_it(state: Path) -> None:
    first = run_of_packages(state, "first")
    repair, other = run_of_packages(state, "second", repairs="first"), run_of_packages(state, "third")
    for one in (first, repair, other):
        changing(one, {}, {"driver": "1"})
    assert held_too(first, first.read_plan(), [repair]) is None
    assert held_too(first, first.read_plan(), [other]) == ("third", "driver")
    went_on = Journal(first.journal)
    went_on.append("action-finished", "b.other", "done")
    # That it went on with something else says nothing of the package.
    assert held_too(first, first.read_plan(), [other]) == ("third", "driver")
    went_on.append("action-finished", "a.install", "done")
    went_on.close()
    assert held_too(first, first.read_plan(), [other]) is None


def test_what_went_back_with_the_repaired_run_does_not_come_back_with_its_repair(state: Path) -> None:
    first, repair = run_of_packages(state, "first"), run_of_packages(state, "second", repairs="first")
    changing(first, {}, {"driver": "1"})
    assert gone_with(repair.read_plan(), [first, repair]) == frozenset()
    back = Journal(first.journal)
    back.append("undo-started")
    back.append("action-undone", "a.install", "undone")
    back.append("undo-finished", None, "undone")
    back.close()
    assert gone_with(repair.read_plan(), [first, repair]) == {"driver"}
    assert gone_with(first.read_plan(), [first, repair]) == frozenset()


def test_the_run_to_take_back_is_the_one_that_did_something_last(tmp_path: Path) -> None:
    there = tmp_path / "there"
    stopped = ran(stops(there))
    repair = repairing(stopped, Run(id="a.repair", title="t", argv=("touch", str(there)), undo=(RemovePath(path=str(there)),)))
    assert client.find_undoable().id == repair.id
    stopped.resume()
    ended(stopped)
    assert client.find_undoable().id == stopped.id
    stopped.undo()
    ended(stopped)
    assert client.find_undoable().id == repair.id


# --- the doctor, asked about a run ------------------------------------------------------------------


def test_the_doctor_judges_a_run_by_the_output_of_its_failed_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = ran(stops(tmp_path / "there", says=LINE))
    cause = behind_run(stopped).cause
    assert cause is not None
    assert cause.id == "wheel-lacks-gpu-kernels"
    assert _guarded(["doctor", "--run", stopped.id, "--json"], {}) == 1
    assert next(one["id"] for one in json.loads(capsys.readouterr().out)["diagnoses"] if one["primary"]) == cause.id


def test_a_run_without_a_failed_step_or_of_unknown_trouble_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        behind_run(ran(works("a.one")))
    assert caught.value.code == "run-not-failed"
    with pytest.raises(InputError) as caught:
        behind_run(ran(stops(tmp_path / "there", says="for a reason of its own")))
    assert caught.value.code == "cause-unknown"


def test_followed_lines_end_with_the_cause_and_the_command_of_its_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = ran(stops(tmp_path / "there", says=LINE))
    assert _guarded(["attach", stopped.id, "--plain"], {}) == 1
    cause, way = capsys.readouterr().out.splitlines()[-2:]
    assert cause.startswith("The framework build contains no kernels for this GPU")
    assert way.endswith(f"--run {stopped.id}")


def test_a_wait_of_a_paused_run_is_no_failure(tmp_path: Path) -> None:
    handle = client.start(plan_of(holds("a.one", tmp_path / "go")), sudo=None)
    wait_until(handle, lambda state: state.status == "running")
    with pytest.raises(InputError) as caught:
        behind_run(handle)
    assert caught.value.code == "run-not-failed"
    (tmp_path / "go").touch()
    ended(handle)
