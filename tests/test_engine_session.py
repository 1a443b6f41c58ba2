"""One command behind its terminal, where the system is short of something: no word of its end, no terminal, no such user."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from steps.engine import client, runner
from steps.engine.folder import Owner, socket_folder
from steps.engine.journal import read
from steps.engine.server import Request, Response, ask
from steps.engine.session import NotStarted, Session
from steps.errors import InputError
from steps.host.trusted_path import person_uid
from steps.model.action import Run
from steps.model.base import Phrase
from tests.engine_kit import asks, ended, output, plan_of, wait_until

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def started(spool: Path, *argv: str) -> Session:
    return Session(argv, spool, environment=ENVIRONMENT)


def refused(_: object) -> int:
    raise PermissionError(1, "Operation not permitted")


def test_the_end_of_a_command_is_seen_where_the_kernel_gives_no_word_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "pidfd_open", refused)
    session = started(tmp_path / "spool", "sh", "-c", "echo hello; exit 3")
    while session.pump(5.0):
        continue
    assert session.ended is not None
    assert (session.ended.status, (tmp_path / "spool").read_text()) == (3, "hello\n")


def test_a_command_whose_terminal_cannot_be_held_is_not_left_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "_open_ends", refused)
    sleep = ("sleep", f"4713.{os.getpid()}")
    with pytest.raises(NotStarted) as caught:
        started(tmp_path / "spool", *sleep)
    assert (caught.value.status, str(caught.value.reason)) == (126, "[Errno 1] Operation not permitted")
    assert subprocess.run(("pgrep", "-f", " ".join(sleep)), capture_output=True).returncode == 1


def test_what_a_program_does_not_read_keeps_nobody_waiting(tmp_path: Path) -> None:
    session = started(tmp_path / "spool", "sleep", "60")
    typing = threading.Thread(target=session.send, args=(b"x" * (1 << 20),), daemon=True)
    typing.start()
    typing.join(5.0)
    waited = typing.is_alive()
    session.signal(signal.SIGKILL)
    while session.pump(0.1):
        continue
    assert not waited


SECRET = "correct-horse"


@pytest.mark.parametrize("more", ["\nrest-of-the-paste", "\r", "\0", "\x04", "x" * 4000])
@pytest.mark.usefixtures("state")
def test_an_answer_that_is_no_line_is_not_typed_and_its_rest_is_shown_nowhere(more: str) -> None:
    handle = client.start(plan_of(asks("a.one", "secret")), sudo=None)
    prompt = wait_until(handle, lambda state: state.prompt is not None).prompt
    assert prompt is not None
    with pytest.raises(InputError) as caught:
        handle.answer(prompt.seq, SECRET + more)
    assert caught.value.code == "answer-no-line"
    # Nor by whoever talks to the runner without our client.
    path = Path(str(read(Path(handle.folder, "journal.jsonl"))[0][0].data["socket"]))
    assert ask(path, Request(word="answer", seq=prompt.seq, text=SECRET + more)) == Response(error="answer-no-line")
    handle.answer(prompt.seq, SECRET)
    assert ended(handle).status == "done"
    assert f"length {len(SECRET)}" in output(handle, "a.one")


@pytest.mark.usefixtures("state")
def test_a_program_that_the_system_does_not_run_is_not_said_to_be_missing(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF is no program")
    program.chmod(0o755)
    handle = client.start(plan_of(Run(id="a.one", title="t", argv=(str(program),))), sudo=None)
    error = ended(handle).actions["a.one"].error
    assert isinstance(error, Phrase)
    assert error.key == "engine.failed.system"
    assert "Exec format error" in str(error.params["reason"])
    assert "cannot be run: [Errno 8] Exec format error" in output(handle, "a.one")


def test_a_limit_of_open_files_without_measure_is_not_the_runners(monkeypatch: pytest.MonkeyPatch) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        for enough, then in ((before[0] - 1, before[0] - 1), (before[0] + 1, before[0] - 1)):
            monkeypatch.setattr(runner, "_DESCRIPTORS", enough)
            runner.limit_descriptors()
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (then, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_relative_runtime_folder_is_no_place_for_sockets_and_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRINGUP_STATE", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", ".")
    owner = Owner(uid=54321, gid=54321, name="ana", home="/home/ana")
    assert str(socket_folder(root=False, owner=owner)) == "/tmp/bringup-54321"


@pytest.mark.parametrize("told", ["²", "4294967295", "99999999999", "54321", "-1", " 0", ""])
def test_what_is_no_number_of_an_account_says_nothing_of_who_typed_sudo(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", told)
    assert person_uid() == os.geteuid()
