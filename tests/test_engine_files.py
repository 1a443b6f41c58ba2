"""Files that a run writes, and what becomes of them when it is taken back."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from steps.engine import client, journal
from steps.host.files import MOST_BYTES
from steps.model.action import Write
from steps.model.base import Phrase
from steps.model.run import RunState
from tests.engine_kit import ended, output, plan_of

pytestmark = pytest.mark.usefixtures("state")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes user ids")
NOBODY = 65534


@pytest.fixture
def home(state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a person who is not root, and who started the run."""
    made = state / "home"
    made.mkdir()
    os.chown(made, NOBODY, NOBODY)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    return made


def written(path: Path, text: str = "new\n", **more: object) -> tuple[client.RunHandle, RunState]:
    handle = client.start(plan_of(Write(id="a.file", title="t", path=str(path), text=text, **more)), sudo=None)  # type: ignore[arg-type]
    return handle, ended(handle)


def undone(handle: client.RunHandle) -> RunState:
    handle.undo()
    return ended(handle)


def test_what_a_person_made_of_the_file_since_is_kept_and_said(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    handle, _ = written(file)
    file.write_text("mine, by hand\n")
    assert undone(handle).status == "undone"
    kept = Path(handle.folder, "backup", "a.file", "changed-1")
    assert (file.exists(), kept.read_text()) == (False, "mine, by hand\n")
    assert f"[bringup: {file} was changed since; what it held is in {kept}]" in output(handle, "a.file")
    said = [entry.data for entry in journal.read(Path(handle.folder, "journal.jsonl"))[0] if entry.kind == "action-undone"]
    assert said == [{"changed": str(kept)}]


def test_an_untouched_file_leaves_no_copy(tmp_path: Path) -> None:
    (tmp_path / "conf").write_text("before\n")
    handle, _ = written(tmp_path / "conf")
    undone(handle)
    assert (tmp_path / "conf").read_text() == "before\n"
    assert sorted(path.name for path in Path(handle.folder, "backup", "a.file").iterdir()) == ["before", "undo.json"]


def test_a_link_to_nothing_is_written_through_and_stays(tmp_path: Path) -> None:
    link, target = tmp_path / "conf", tmp_path / "deep" / "real"
    link.symlink_to("deep/real")
    target.parent.mkdir()
    handle, end = written(link)
    assert (end.status, target.read_text()) == ("done", "new\n")
    undone(handle)
    assert (link.is_symlink(), target.exists(), target.parent.exists()) == (True, False, True)


def test_a_link_to_a_file_is_written_through_and_the_file_comes_back(tmp_path: Path) -> None:
    link, target = tmp_path / "conf", tmp_path / "real"
    target.write_text("before\n")
    link.symlink_to(target)
    handle, _ = written(link)
    assert (link.is_symlink(), target.read_text()) == (True, "new\n")
    undone(handle)
    assert (link.is_symlink(), target.read_text()) == (True, "before\n")


@as_root
def test_mode_and_owner_come_back_even_when_the_file_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("before\n")
    file.chmod(0o640)
    os.chown(file, NOBODY, 0)
    handle, _ = written(file)
    file.unlink()
    undone(handle)
    found = file.stat()
    assert (file.read_text(), stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == ("before\n", 0o640, NOBODY, 0)


@pytest.mark.parametrize("kind", ["folder", "large"])
def test_what_cannot_be_kept_whole_is_not_overwritten(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "conf"
    if kind == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, MOST_BYTES + 1)
    _, end = written(path)
    error = end.actions["a.file"].error
    assert isinstance(error, Phrase)
    assert (end.exit, error.key, error.params["path"]) == (3, "error.file-not-kept.sentence", str(path))
    assert path.is_dir() if kind == "folder" else path.stat().st_size == MOST_BYTES + 1


@as_root
def test_a_persons_linked_dotfile_stays_a_link_with_its_mode(home: Path) -> None:
    link, target = home / ".profile", home / "dotfiles"
    target.write_text("before\n")
    target.chmod(0o600)
    os.chown(target, NOBODY, NOBODY)
    link.symlink_to(target)
    handle, end = written(link, by="user")
    assert (end.status, link.is_symlink(), target.read_text()) == ("done", True, "new\n"), output(handle, "a.file")
    assert (stat.S_IMODE(target.stat().st_mode), target.stat().st_uid) == (0o600, NOBODY)
    undone(handle)
    assert (link.is_symlink(), target.read_text(), target.stat().st_uid) == (True, "before\n", NOBODY)


@as_root
def test_a_persons_link_makes_root_neither_read_nor_write_anothers_file(home: Path, state: Path) -> None:
    secret = state / "secret"
    secret.write_text("of root\n")
    secret.chmod(0o600)
    (home / "conf").symlink_to(secret)
    handle, end = written(home / "conf", by="user")
    assert (end.status, secret.read_text()) == ("failed", "of root\n")
    undone(handle)
    assert secret.read_text() == "of root\n"
    assert [path for path in Path(handle.folder, "backup").rglob("*") if path.is_file() and b"of root" in path.read_bytes()] == []
