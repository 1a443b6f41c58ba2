"""The list of runs and the undo's question, as lines and as documents."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from steps import documents, lines
from steps.engine import client
from steps.model.action import Keep, RemovePath, Run
from steps.model.base import phrase
from steps.model.run import RunSummary
from steps.text import Language
from tests.engine_kit import ended, plan_of, ran
from tests.ui.screen import Terminal

SAID: tuple[tuple[Language, str], ...] = (("en", "Read the package lists anew"), ("zh_CN", "重新读取软件包列表"))
REAL = RunSummary(id="1130-a", folder="/x", owner="ana", status="done", exit=0, title="NVIDIA 580 open · torch 2.7.1")
REHEARSED = RunSummary(id="1130-b", folder="/x", owner="ana", status="done", exit=0, rehearsal=True, title="CUDA 12.8")


def test_the_list_says_what_a_run_installs_and_marks_rehearsals() -> None:
    assert list(lines.runs((REHEARSED, REAL), "en")) == [
        "1130-b    ana  done · rehearsal  CUDA 12.8",
        "1130-a    ana  done              NVIDIA 580 open · torch 2.7.1",
    ]
    assert [line.split(maxsplit=2)[2] for line in lines.runs((REHEARSED, REAL), "zh_CN")] == [
        "完成 · 演练  CUDA 12.8",
        "完成         NVIDIA 580 open · torch 2.7.1",
    ]


def test_a_run_that_is_done_without_some_steps_is_listed_so() -> None:
    without = RunSummary(id="1130-d", folder="/x", owner="ana", status="done", exit=1, title="CUDA 12.8")
    assert "done, steps left out" in next(iter(lines.runs((without,), "en")))


def test_a_run_that_cannot_be_read_is_not_said_to_be_starting() -> None:
    damaged = RunSummary(id="1130-c", folder="/x", readable=False)
    assert next(iter(lines.runs((damaged,), "en"))).split(maxsplit=1) == ["1130-c", "cannot be read"]
    assert documents.summary(damaged)["state"] is None


def test_a_run_whose_runner_was_killed_is_not_said_to_be_running() -> None:
    alive = RunSummary(id="1130-d", folder="/x", owner="ana", status="running", alive=True)
    killed = RunSummary(id="1130-c", folder="/x", owner="ana", status="running")
    said = [line.split(maxsplit=2)[2] for line in lines.runs((alive, killed), "en")]
    assert said == ["running", "cut off, resume it"]
    assert [documents.summary(one)["alive"] for one in (alive, killed)] == [True, False]


def test_the_document_of_a_run_says_whether_it_was_a_rehearsal() -> None:
    assert documents.summary(REHEARSED) == {
        "id": "1130-b",
        "owner": "ana",
        "started": None,
        "ended": None,
        "state": "done",
        "exit": 0,
        "alive": False,
        "rehearsal": True,
        "title": "CUDA 12.8",
        "kept_bytes": 0,
        "kept_beside": [],
    }


def test_the_list_ends_with_what_is_kept_for_undo(state: Path) -> None:
    first, second = ran(Run(id="a.one", title="t", argv=("true",))), ran(Run(id="a.one", title="t", argv=("true",)))
    for handle, size in ((first, 3_000_000), (second, 4_000_000)):
        file = state / "return" / handle.id / "driver.install" / "a_1_all.deb"
        file.parent.mkdir(parents=True)
        file.write_bytes(bytes(size))
    found = client.runs()
    assert [documents.summary(one)["kept_bytes"] for one in found] == [4_000_000, 3_000_000]
    *_, last = lines.runs(found, "en")
    assert last.startswith(f"Packages kept for undo take 7 MB: {state}/return/RUN.")
    assert len(tuple(lines.runs(found, "en"))) == 3


def test_what_is_kept_beside_an_environment_is_named_with_its_size_until_it_is_taken_back(state: Path, tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.mkdir()
    (env / "large").write_bytes(b"x" * 3_000_000)
    handle = ran(Keep(id="a.keep", title="t", path=str(env)), Run(id="a.one", title="t", argv=("true",)))
    copy = f"{tmp_path}/.env.before-{handle.id}"
    (one,) = client.runs()
    assert 3_000_000 <= one.kept_bytes < 3_100_000
    assert documents.summary(one)["kept_beside"] == [copy]
    assert list(lines.runs((one,), "en"))[1:] == [
        f"Kept whole for the undo of {handle.id}: {copy} (3 MB). If you remove it, {handle.id} cannot be taken back."
    ]
    handle.undo()
    ended(handle)
    (one,) = client.runs()
    assert (one.kept_bytes, one.kept_beside) == (0, {})


@pytest.mark.usefixtures("state")
def test_a_run_that_installs_nothing_by_name_is_listed_by_its_first_step() -> None:
    repair = Run(id="finish", title=phrase("repair.step.refresh"), argv=("true",))
    ran(repair)
    (one,) = client.runs()
    assert [next(iter(lines.runs((one,), language))).endswith(words) for language, words in SAID] == [True, True]
    assert [documents.summary(one, language)["title"] for language, _ in SAID] == [words for _, words in SAID]


def test_an_undo_names_the_folders_that_go_whole_before_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRINGUP_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    made = tmp_path / "env"
    handle = client.start(plan_of(Run(id="a.one", title="t", argv=("mkdir", str(made)), undo=(RemovePath(path=str(made)),))), sudo=None)
    ended(handle)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BRINGUP_STATE": str(tmp_path / "state"), "TERM": "xterm"}
    with Terminal((sys.executable, "-I", "-m", "tui", "undo", "--lang", "en"), environ, columns=240) as terminal:
        terminal.until(f"{made} goes with everything in it, also what was put there since.", "Type undo:")
        terminal.press("n", "enter")
        terminal.until("Nothing was done.")
    assert (handle.state().status, made.is_dir()) == ("done", True)


def test_a_title_that_holds_an_address_is_shortened_in_the_list() -> None:
    address = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64/cuda-keyring_1.1-1_all.deb"
    titled = RunSummary(id="1130-e", folder="/x", owner="ana", status="done", exit=0, title=f"Bring the key from {address}")
    (row,) = lines.runs((titled,), "en")
    assert row.endswith("…")
    assert row.count("https://developer") == 1
    assert len(row) <= 66 + 48
    assert lines.cells_of(lines.shortened("签名密钥" * 20, 48)) <= 48
