"""Debian's own programs ask, and are answered through the engine: whiptail, debconf, ucf and sudo in a real root."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.engine import client
from steps.model.action import Run
from steps.model.run import Prompt
from tests.engine_kit import ended, output, plan_of, wait_until
from tests.lab import vm

pytestmark = [pytest.mark.lab, pytest.mark.long]
SECRET = "correct-horse-battery"
_PACKAGES = "whiptail,ucf,needrestart,sudo,debconf,tzdata,openssh-client,libterm-readline-gnu-perl"
_TEMPLATES = """Template: lab/password
Type: password
Description: Password for the new Secure Boot key:
 The firmware asks for it at the next boot before it accepts the key.
"""
_ASKS = """#!/bin/sh -e
. /usr/share/debconf/confmodule
db_x_loadtemplatefile /root/lab.templates lab
db_input critical lab/password || true
db_go || true
db_get lab/password
echo "length ${#RET}" >&2
"""
PATIENCE = 120.0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a real Debian with a person in it, who may use sudo with a password."""
    reason = vm.missing()
    if reason is not None:
        pytest.skip(f"no root here: {reason}")
    made = Path(tmp_path_factory.mktemp("prompts"))
    subprocess.run(("tar", "-C", str(made), "--numeric-owner", "-xpf", str(vm.system(_PACKAGES))), check=True)
    subprocess.run(("chroot", str(made), "useradd", "--create-home", "ana"), check=True)
    subprocess.run(("chroot", str(made), "chpasswd"), input=f"ana:{SECRET}\n", text=True, check=True)
    (made / "etc/sudoers.d/ana").write_text("Defaults !use_pty\nana ALL=(ALL) ALL\n")
    (made / "root/new").write_text("ours=2\n")
    (made / "root/lab.templates").write_text(_TEMPLATES)
    (made / "root/asks").write_text(_ASKS)
    (made / "root/asks").chmod(0o755)
    return made


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bringup-test-") as folder:
        monkeypatch.setenv("BRINGUP_STATE", folder)
        yield Path(folder)


def start(root: Path, *argv: str, frontend: str = "dialog", interactive: bool = True) -> client.RunHandle:
    env = {"DEBIAN_FRONTEND": frontend, "DEBIAN_PRIORITY": "low"}
    # A command of a mounted system gets its environment through `chroot env`, as a person would type it.
    words = ("env", *(f"{name}={value}" for name, value in env.items()), *argv)
    return client.start(plan_of(Run(id="a.asks", title="t", argv=words, interactive=interactive), root=str(root)), sudo=None)


def asked(handle: client.RunHandle, after: int = 0) -> Prompt:
    found = wait_until(handle, lambda state: state.prompt is not None and state.prompt.seq > after, PATIENCE).prompt
    assert found is not None
    return found


def changed_file(root: Path) -> Path:
    """Return a configuration file that a person changed, of which there is a new version."""
    target = root / "etc/lab.conf"
    for path in (root / "var/lib/ucf/hashfile", target):
        path.unlink(missing_ok=True)
    target.write_text("mine=1\n")
    return target


def test_ucf_asks_in_a_dialog_and_enter_keeps_the_persons_file(root: Path) -> None:
    target = changed_file(root)
    handle = start(root, "ucf", "--debconf-ok", "/root/new", "/etc/lab.conf")
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == ("ucf-dialog", "keys")
    handle.keys(prompt.seq, b"\r")
    assert ended(handle, PATIENCE).status == "done"
    assert target.read_text() == "mine=1\n"


def test_ucf_asks_in_lines_and_the_safe_answer_keeps_the_persons_file(root: Path) -> None:
    target = changed_file(root)
    handle = start(root, "ucf", "--debconf-ok", "/root/new", "/etc/lab.conf", frontend="readline")
    assert ended(handle, PATIENCE).status == "done", output(handle, "a.asks")
    assert "[bringup: ucf: keep]" in output(handle, "a.asks")
    assert target.read_text() == "mine=1\n"


@pytest.mark.parametrize(("frontend", "kind", "id"), [("readline", "secret", "mok-password"), ("dialog", "keys", "mok-dialog")])
def test_a_password_for_debconf_reaches_it_and_no_file(root: Path, state: Path, frontend: str, kind: str, id: str) -> None:
    (root / "var/cache/debconf/passwords.dat").unlink(missing_ok=True)
    handle = start(root, "/root/asks", frontend=frontend)
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == (id, kind)
    if kind == "secret":
        handle.answer(prompt.seq, SECRET)
    else:
        handle.keys(prompt.seq, SECRET.encode() + b"\r")
    assert ended(handle, PATIENCE).status == "done", output(handle, "a.asks")
    assert f"length {len(SECRET)}" in output(handle, "a.asks")
    assert stands_nowhere(state)


def stands_nowhere(state: Path) -> bool:
    return not any(SECRET.encode() in path.read_bytes() for path in state.rglob("*") if path.is_file())


def test_sudo_asks_with_the_word_of_the_run_and_gets_the_password_unseen(root: Path, state: Path) -> None:
    handle = start(root, "setpriv", "--reuid=ana", "--regid=ana", "--clear-groups", "sudo", "id", "-un")
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == ("sudo-password", "secret")
    handle.answer(prompt.seq, "wrong")
    again = asked(handle, prompt.seq)
    assert again.id == "sudo-password"
    handle.answer(again.seq, SECRET)
    assert ended(handle, PATIENCE).status == "done", output(handle, "a.asks")
    assert output(handle, "a.asks").split()[-1] == "root"
    assert stands_nowhere(state)


def test_a_dialog_that_nobody_knows_takes_keys(root: Path) -> None:
    handle = start(root, "whiptail", "--yesno", "Shall it be blue?", "8", "40")
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == ("unknown", "keys")
    assert "Shall it be blue?" in prompt.excerpt
    handle.keys(prompt.seq, b"\t\r")
    state = ended(handle, PATIENCE)
    assert state.actions["a.asks"].exit == 1
