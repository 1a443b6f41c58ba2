from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps import text
from steps.catalog.prompts import prompt_row, prompt_rows, recognise
from steps.engine import client, journal
from steps.engine.prompts import readable
from steps.model.action import Reply, Run
from steps.model.run import Prompt
from tests.engine_kit import asks, ended, output, plan_of, stand_in, wait_until

SECRET = "correct-horse-battery"


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bringup-test-") as folder:
        monkeypatch.setenv("BRINGUP_STATE", folder)
        yield Path(folder)


def asked(handle: client.RunHandle) -> Prompt:
    prompt = wait_until(handle, lambda state: state.prompt is not None).prompt
    assert prompt is not None
    return prompt


# --- the catalogue ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "row"),
    [
        ("Do you want to continue? [Y/n] ", "apt-continue"),
        ("Continue? [Y/n] ", "apt-continue"),
        ("*** nccl.conf (Y/I/N/O/D/Z) [default=N] ? ", "dpkg-conffile"),
        ("diff --git\n--More--(12%)", "pager"),
        ("lines 1-23/48 48%", "pager"),
        ("[More] ", "debconf-more"),
        ("Press [ENTER] to continue or Ctrl-c to cancel.", "press-enter"),
        ("input password: ", "mok-password"),
        ("[sudo] password for ana: ", "sudo-password"),
        ("[sudo: authenticate] Password: ", "sudo-password"),
        ("Enter passphrase for key '/home/ana/.ssh/id_ed25519': ", "ssh-passphrase"),
        ("Are you sure you want to continue connecting (yes/no/[fingerprint])? ", "ssh-host-key"),
        ("Username for 'https://github.com': ", "git-username"),
        ("Proceed (Y/n)? ", "pip-proceed"),
        ("Proceed ([y]/n)? ", "conda-proceed"),
        ("Do you accept the Terms of Service (ToS) for x? [(a)ccept/(r)eject/(v)iew]: ", "conda-terms"),
        ("Overwrite? [y/N] ", "yes-no"),
        ("Setting up nvidia-dkms-580 (580.95.05-0ubuntu1) ...\n", None),
        ("The answer to (yes/no) was yes\nReading package lists...", None),
    ],
)
def test_a_prompt_is_known_by_its_last_words(tail: str, row: str | None) -> None:
    found = recognise(tail)
    assert (found.id if found is not None else None) == row


def test_a_dialog_is_known_by_any_of_its_words() -> None:
    found = recognise("Package configuration\n┤ Configuring keyboard-configuration ├\n 26 layouts <Ok>", dialog=True)
    assert found is not None
    assert found.id == "debconf-dialog"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_row_has_its_words_and_a_default_that_is_an_answer(language: text.Language) -> None:
    for row in prompt_rows():
        assert text.lookup(language, f"engine.prompt.{row.id}.explain"), row.id
        for answer in row.answers:
            assert text.lookup(language, f"engine.prompt.{row.id}.answer.{answer.id}"), (row.id, answer.id)
        assert row.default is None or row.answer(row.default) is not None, row.id
        assert row.ask or row.default is not None, row.id
        assert row.kind != "choice" or row.answers, row.id
    assert text.lookup(language, "engine.prompt.unknown.explain")


def test_an_excerpt_has_no_control_sequences_and_shows_the_last_state_of_a_redrawn_line() -> None:
    assert readable(b"\x1b[1mName\x1b[0m\r\n 10%\r 55%\r100%\n\x1b]0;title\x07Which? ") == "Name\n100%\nWhich? "
    assert readable(b"caf\xc3") == "caf\ufffd"


# --- live ---------------------------------------------------------------------------------------


def test_a_known_prompt_gets_its_safe_default() -> None:
    handle = client.start(plan_of(asks("a.one", "conffile")), sudo=None)
    assert ended(handle).status == "done"
    assert "took N" in output(handle, "a.one")
    row = prompt_row("dpkg-conffile")
    assert row is not None
    assert row.default == "keep"


def test_a_reply_of_the_plan_comes_before_the_person() -> None:
    action = Run(id="a.one", title="t", argv=stand_in("asks", "choice"), replies=(Reply(prompt="conda-proceed", answer="no"),))
    handle = client.start(plan_of(action), sudo=None)
    assert ended(handle).status == "done"
    assert "took n" in output(handle, "a.one")


def test_a_known_prompt_that_is_the_persons_is_asked_with_its_answers() -> None:
    handle = client.start(plan_of(asks("a.one", "choice")), sudo=None)
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == ("conda-proceed", "choice")
    handle.answer(prompt.seq, "yes")
    assert ended(handle).status == "done"
    assert "took y" in output(handle, "a.one")


def test_a_secret_that_would_be_seen_is_not_typed_and_nobody_is_said_to_have_answered() -> None:
    handle = client.start(plan_of(asks("a.one", "shows")), sudo=None)
    prompt = asked(handle)
    assert prompt.kind == "secret"
    time.sleep(1.2)
    handle.answer(prompt.seq, SECRET)
    again = wait_until(handle, lambda state: state.prompt is not None and state.prompt.seq != prompt.seq).prompt
    assert again is not None
    assert "[bringup: nothing was typed: the terminal shows what is typed, and this was a secret]" in output(handle, "a.one")
    assert SECRET not in output(handle, "a.one")
    entries, _ = journal.read(Path(handle.folder, "journal.jsonl"))
    assert [entry.data for entry in entries if entry.kind == "answered"] == [{"to": prompt.seq, "by": "program"}]
    handle.cancel()
    assert ended(handle).status == "cancelled"


def test_a_secret_is_typed_unseen_and_stands_in_no_file(state: Path) -> None:
    handle = client.start(plan_of(asks("a.one", "secret")), sudo=None)
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == ("mok-password", "secret")
    handle.answer(prompt.seq, SECRET)
    assert ended(handle).status == "done"
    assert f"length {len(SECRET)}" in output(handle, "a.one")
    for file in state.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file


def test_a_dialog_takes_keys_until_it_closes() -> None:
    handle = client.start(plan_of(asks("a.one", "dialog")), sudo=None)
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == ("debconf-dialog", "keys")
    assert "Configuring keyboard-configuration" in prompt.excerpt
    handle.keys(prompt.seq, b"\r")
    assert ended(handle).status == "done"
    assert "key '\\r'" in output(handle, "a.one")


def test_words_that_look_like_a_question_are_none_while_nobody_reads() -> None:
    handle = client.start(plan_of(asks("a.one", "busy")), sudo=None)
    state = ended(handle)
    assert (state.status, state.last_seq) == ("done", 4)
