"""Credentials of the person's environment reach the commands of a run and stand in no file of it, no log and no argument."""

from __future__ import annotations

import contextlib
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.engine import client
from steps.engine.carried import parted
from steps.model.action import Run
from tests.engine_kit import as_nobody, ended, kill_runner, output, plan_of, statuses, wait_until, works

SECRET = "s3cr3t-of-ana"
INDEX = f"https://ana:{SECRET}@index.example/simple"


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bringup-test-") as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("BRINGUP_STATE", folder)
        monkeypatch.setenv("PIP_INDEX_URL", INDEX)
        monkeypatch.setenv("PIP_TIMEOUT", "7")
        monkeypatch.delenv("SUDO_UID", raising=False)
        yield Path(folder)


def arguments() -> str:
    """Return what a listing of all processes shows."""
    found = ""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            found += (folder / "cmdline").read_bytes().decode(errors="replace") if folder.name.isdigit() else ""
    return found


def files_with_it(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def test_what_names_credentials_is_told_from_what_does_not() -> None:
    plain, hidden = parted({"A": "https://x.example/", "B": INDEX, "C": f"https://x.example {INDEX}", "D": "7", "E": "user:pw@proxy:3128"})
    assert (set(plain), set(hidden)) == ({"A", "D"}, {"B", "C", "E"})


@pytest.mark.parametrize("gap", [" ", "\n", "\t", ","])
@pytest.mark.parametrize("first", ["http://mirror.lan/pypi", "https://mirror.lan/simple", ""])
def test_credentials_are_found_in_whichever_address_of_a_list_they_stand(first: str, gap: str) -> None:
    plain, hidden = parted({"A": f"{first}{gap}http://bob:{SECRET}@10.0.0.2/root"})
    assert (set(plain), set(hidden)) == (set(), {"A"})


def test_a_secret_reaches_the_command_and_stands_in_no_file_of_the_run(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "case $UV_DEFAULT_INDEX in https://ana:*@index*) echo has it $PIP_TIMEOUT;; *) echo lacks it;; esac"
    handle = client.start(plan_of(works("a.slow", 30, 3.0), Run(id="b.told", title="t", argv=("sh", "-c", told))), sudo=None)
    wait_until(handle, lambda _: "line 2" in output(handle, "a.slow"))
    assert SECRET not in arguments()
    (kept,) = files_with_it(state)
    assert kept.parent == state / "sockets"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    # After a crash the credentials are still there, though whoever goes on has none.
    kill_runner(handle)
    monkeypatch.delenv("PIP_INDEX_URL")
    handle.resume()
    end = ended(handle)
    assert (end.status, statuses(end)["b.told"], output(handle, "b.told").splitlines()[-1]) == ("done", "done", "has it 7")
    assert not files_with_it(state)
    assert not list((state / "sockets").iterdir())


def test_a_run_that_failed_keeps_its_credentials_until_it_is_taken_back(state: Path) -> None:
    handle = client.start(plan_of(Run(id="a.one", title="t", argv=("false",))), sudo=None)
    assert ended(handle).status == "failed"
    (kept,) = files_with_it(state)
    assert kept == state / "sockets" / f"{handle.id}.env"
    handle.undo()
    assert ended(handle).status == "undone"
    assert not files_with_it(state)


@pytest.mark.skipif(client.invoking_owner().uid != 0, reason="changes user ids")
def test_somebody_else_reads_neither_the_run_nor_its_secrets(state: Path) -> None:
    handle = client.start(plan_of(works("a.slow", 20, 2.0)), sudo=None)
    (kept,) = files_with_it(state)
    for path in (
        kept,
        Path(handle.folder, "origin.json"),
        Path(handle.folder, "journal.jsonl"),
        Path(handle.folder, "output", "a.slow.log"),
    ):
        assert as_nobody(lambda path=path: path.read_text()) == "PermissionError", path  # type: ignore[misc]
    ended(handle)
