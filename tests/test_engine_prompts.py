from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
import pytest

from steps import text
from steps.catalog.prompts import answer_words, prompt_row, prompt_rows, recognise
from steps.engine import client, journal
from steps.engine.prompts import excerpt, painted, readable
from steps.model.action import Reply, Run
from steps.model.base import Record
from steps.model.plan import Plan
from steps.model.profile import Profile
from steps.model.run import Prompt
from tests.engine_kit import asks, ended, output, plan_of, stand_in, wait_until

pytestmark = pytest.mark.usefixtures("state")

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SECRET = "correct-horse-battery"


def asked(handle: client.RunHandle) -> Prompt:
    prompt = wait_until(handle, lambda state: state.prompt is not None).prompt
    assert prompt is not None
    return prompt


# --- the catalogue ------------------------------------------------------------------------------


class Case(Record):
    """The last bytes of real output, and the row that knows them."""

    of: str
    tail: str
    row: str | None = None
    dialog: bool = False


def cases() -> tuple[Case, ...]:
    text = Path(__file__).with_name("cases").joinpath("prompts.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomllib.loads(text)["cases"], type=list[Case]))


def known(tail: str, *, dialog: bool = False) -> str | None:
    data = tail.encode()
    found = recognise(readable(painted(data) if dialog else data), dialog=dialog)
    return found.id if found is not None else None


def test_real_output_is_known_where_it_asks_and_not_where_it_only_looks_so() -> None:
    for case in cases():
        assert known(case.tail, dialog=case.dialog) == case.row, case.of
    assert sum(case.row is None for case in cases()) >= 10
    assert sum(case.dialog for case in cases()) >= 8


@pytest.mark.parametrize(
    ("tail", "row"),
    [
        ("diff --git\n--More--(12%)", "pager"),
        ("lines 1-23/48 48%", "pager"),
        ("[More] ", "debconf-more"),
        ("\ninput password: ", "mok-password"),
        ("\ninput password again: ", "mok-password"),
        ("Enter passphrase for key '/home/ana/.ssh/id_ed25519': ", "ssh-passphrase"),
        ("ana@gpu01's password: ", "ssh-password"),
        ("Are you sure you want to continue connecting (yes/no/[fingerprint])? ", "ssh-host-key"),
        ("Please type 'yes', 'no' or the fingerprint: ", "ssh-host-key"),
        ("Username for 'https://github.com': ", "git-username"),
        ("Password for 'https://ana@github.com': ", "git-password"),
        ("Looking in indexes: https://index.example/simple\nUser for index.example: ", "pip-user"),
        ("Password: ", "password"),
        ("Overwrite? [y/N] ", "yes-no"),
        ("Go on (yes/no)? ", "yes-no-words"),
        ("File 'a.gpg' exists. Overwrite? (y/N) ", "gpg-overwrite"),
        ("Install these packages without verification? [y/N] ", "apt-unauthenticated"),
        ("You are about to do something potentially harmful.\nTo continue type in the phrase 'Yes, do as I say!'\n ?] ", "apt-essential"),
        ("Do you want to accept these changes and continue updating from this repository? [y/N] ", "apt-changed-release"),
        ("Restart «cron.service»? [yNas?] ", "needrestart-service"),
        ("Importing GPG key 0xD42D0685:\n Userid: x\nIs this ok [y/N]: ", "rpm-key"),
        ("Total download size: 1 M\nIs this ok [y/N]: ", "dnf-continue"),
        ("Continue? [y/n/v/...? shows all options] (y): ", "zypper-continue"),
        ("Do you want to reject the key, trust temporarily, or trust always? [r/t/a/?] (r): ", "rpm-key"),
        (":: Proceed with installation? [Y/n] ", "pacman-continue"),
        (":: Import PGP key 4AA4767BBC9C4B1D? [Y/n] ", "pacman-key"),
        ("Do you accept the license terms? [yes|no]\n[no] >>> ", "conda-licence"),
        ("Found conda-prefix at '/home/ana/envs/dl'. Overwrite?: [y/N] ", "mamba-remove"),
        ("  Total download: 31MB\n\nConfirm changes: [Y/n] ", "mamba-proceed"),
        ("  - Or specify a different location below\n\n[/root/miniconda3] >>> ", "conda-location"),
        ("Do you wish the installer to initialize Miniconda3\nby running conda init? [yes|no]\n[no] >>> ", "conda-init"),
        ("Do you accept the above EULA? (accept/decline/quit): ", "runfile-licence"),
        ("Setting up nvidia-dkms-580 (580.95.05-0ubuntu1) ...\n", None),
        ("The answer to (yes/no) was yes\nReading package lists...", None),
        ("Unpacking password-store (1.7) over (1.6) ...", None),
        ("See https://docs.example/licence for the terms of the licence.", None),
    ],
)
def test_a_prompt_is_known_by_its_last_words(tail: str, row: str | None) -> None:
    assert known(tail) == row


@pytest.mark.parametrize(
    ("painted", "row"),
    [
        ("┤ Configuring shim-signed ├ Your system has UEFI Secure Boot enabled. <Ok>", "secure-boot-dialog"),
        ('┤ Configuring nvidia-installer-cleanup ├ Run "nvidia-installer --uninstall"? <Yes> <No>', "nvidia-cleanup-dialog"),
        ("┤ Install NVIDIA driver despite unsupported graphics card? ├ <Yes> <No>", "nvidia-legacy-dialog"),
        ("┤ Mismatching nvidia kernel module loaded ├ <Ok>", "nvidia-reboot-dialog"),
        ("┤ Pending kernel upgrade ├ <Ok>", "needrestart-kernel"),
        ("┤ Configuring lightdm ├ Default display manager: lightdm sddm", "display-dialog"),
        ("┤ Configuring libc6 ├ Restart services during package upgrades without asking? <Yes> <No>", "libraries-dialog"),
        ("End User License Agreement ... <Accept> <Decline>", "licence-dialog"),
        ("A box of somebody's own <Ok>", None),
    ],
)
def test_a_dialog_is_known_by_its_title(painted: str, row: str | None) -> None:
    assert known(f"\x1b[?1049h{painted}", dialog=True) == row


def test_only_the_last_dialog_counts() -> None:
    first, second = "\x1b[?1049h Configuring tzdata <Ok>", "\x1b[?1049l\x1b[?1049h Configuring keyboard-configuration"
    assert known(first + second, dialog=True) == "keyboard-dialog"


def test_what_our_answers_say_is_left_out_of_the_excerpt_and_the_difference_stays() -> None:
    case = next(case for case in cases() if case.row == "dpkg-conffile" and "dpkg-new" in case.tail)
    told = excerpt(readable(case.tail.encode()), prompt_row("dpkg-conffile"))
    assert "+NCCL_IB_DISABLE=0" in told
    assert "start a shell" not in told
    assert told.endswith("*** nccl.conf (Y/I/N/O/D/Z) [default=N] ?")


def test_a_line_takes_the_place_of_what_the_program_had_typed_already() -> None:
    row = prompt_row("debconf-keyboard")
    assert row is not None
    assert (row.typed("3"), row.typed("")) == ("\x153\n", "\n")


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_row_has_its_words_and_a_default_that_is_an_answer(language: text.Language) -> None:
    for row in prompt_rows():
        assert text.lookup(language, f"engine.prompt.{row.id}.explain"), row.id
        for answer in row.answers:
            assert text.lookup(language, answer_words(row, answer).key), (row.id, answer.id)
        assert row.default is None or row.answer(row.default) is not None, row.id
        assert row.ask or row.default is not None, row.id
        assert row.kind != "choice" or row.answers, row.id
    assert text.lookup(language, "engine.prompt.unknown.explain")


def test_an_excerpt_has_no_control_sequences_and_shows_the_last_state_of_a_redrawn_line() -> None:
    assert readable(b"\x1b[1mName\x1b[0m\r\n 10%\r 55%\r100%\n\x1b]0;title\x07Which? ") == "Name\n100%\nWhich? "
    assert readable(b"caf\xc3") == "caf\ufffd"


# --- live ---------------------------------------------------------------------------------------


def test_a_known_prompt_gets_its_safe_default() -> None:
    handle = client.start(plan_of(asks("a.one", "more")), sudo=None)
    assert ended(handle).status == "done"
    assert "took ''" in output(handle, "a.one")
    assert "[bringup: debconf-more: go-on]" in output(handle, "a.one")


def test_a_changed_file_is_asked_about_with_its_difference() -> None:
    handle = client.start(plan_of(asks("a.one", "conffile")), sudo=None)
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == ("dpkg-conffile", "choice")
    handle.answer(prompt.seq, "diff")
    again = wait_until(handle, lambda state: state.prompt is not None and state.prompt.seq != prompt.seq).prompt
    assert again is not None
    assert "+NCCL_DEBUG=INFO" in again.excerpt
    handle.answer(again.seq, "keep")
    assert ended(handle).status == "done"
    assert "took N" in output(handle, "a.one")


def unattended(*actions: Run, **answers: str) -> client.RunHandle:
    plan = plan_of(*actions)
    said = Profile(prompts={name.replace("_", "-"): answer for name, answer in answers.items()})
    return client.start(msgspec.structs.replace(plan, profile=said), sudo=None, attended=False)


def test_where_nobody_is_the_safe_default_answers_also_what_a_person_would_be_asked() -> None:
    handle = unattended(asks("a.one", "conffile"), asks("a.two", "dialog"))
    assert ended(handle).status == "done"
    assert "took N" in output(handle, "a.one")
    assert "key '\\r'" in output(handle, "a.two")


@pytest.mark.parametrize(
    ("kind", "said", "code"),
    [
        ("choice", 'The profile can answer with prompts.conda-proceed = "yes" | "no"', 2),
        ("secret", "only a person may answer (mok-password)", 2),
        ("line", "only a person may answer (unknown)", 2),
        ("neighbours", 'prompts.neighbours = "wait" | "notify" | "reboot" | "stop"', 12),
    ],
)
def test_where_nobody_is_a_question_ends_the_run_and_names_what_would_have_answered(kind: str, said: str, code: int) -> None:
    handle = unattended(asks("a.one", kind))
    state = ended(handle)
    assert (state.status, state.exit) == ("failed", code)
    error = state.actions["a.one"].error
    assert error is not None
    assert said in text.say("en", error)


def test_a_reply_of_the_plan_and_then_the_profiles_come_before_the_person() -> None:
    own = Run(id="a.one", title="t", argv=stand_in("asks", "choice"), replies=(Reply(prompt="conda-proceed", answer="yes"),))
    plan: Plan = msgspec.structs.replace(plan_of(own, asks("a.two", "choice")), profile=Profile(prompts={"conda-proceed": "no"}))
    handle = client.start(plan, sudo=None)
    assert ended(handle).status == "done"
    assert "took y" in output(handle, "a.one")
    assert "took n" in output(handle, "a.two")


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
    assert (prompt.id, prompt.kind) == ("keyboard-dialog", "keys")
    assert "Configuring keyboard-configuration" in prompt.excerpt
    handle.keys(prompt.seq, b"\r")
    assert ended(handle).status == "done"
    assert "key '\\r'" in output(handle, "a.one")


def test_words_that_look_like_a_question_are_none_while_nobody_reads() -> None:
    handle = client.start(plan_of(asks("a.one", "busy")), sudo=None)
    state = ended(handle)
    assert (state.status, state.last_seq) == ("done", 4)


def test_sudo_is_sure_only_with_the_word_of_this_run() -> None:
    handle = client.start(plan_of(asks("a.one", "sudo"), asks("a.two", "like-sudo")), sudo=None)
    prompt = asked(handle)
    assert (prompt.id, prompt.kind) == ("sudo-password", "secret")
    handle.answer(prompt.seq, SECRET)
    other = wait_until(handle, lambda state: state.prompt is not None and state.prompt.action == "a.two").prompt
    assert other is not None
    assert (other.id, other.kind) == ("sudo-unsure", "secret")
    handle.cancel()
    ended(handle)
