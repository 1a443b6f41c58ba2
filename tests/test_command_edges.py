"""The command where its caller is careless or hostile: closed streams, full disks, odd files, empty names."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pexpect
import pytest

from steps import settings
from tests.test_command import GPU_BOX, MACHINES, bringup

COMMAND = f'"{sys.executable}" -I -m tui'


def by_shell(line: str, state: Path, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run one line of sh, for what only a shell says: closed streams and redirections."""
    base = {"PATH": os.environ["PATH"], "HOME": str(state), "LANG": "C.UTF-8", "BRINGUP_STATE": str(state)}
    argv = ("sh", "-c", line)
    return subprocess.run(argv, env={**base, **(environ or {})}, capture_output=True, text=True, timeout=120, check=False)


# --- files that are none ----------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a device, which only root can")
def test_capture_leaves_a_device_a_device(tmp_path: Path) -> None:
    device = tmp_path / "full"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    ended = bringup("capture", str(device), "--machine", str(GPU_BOX), state=tmp_path)
    assert ended.returncode == 2
    assert "not a file" in ended.stderr
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.parametrize("place", ["/nonexistent/x.json", "/tmp", "/proc/x.json"])
def test_capture_into_a_place_that_takes_no_file_is_said_and_no_bug_of_ours(place: str, tmp_path: Path) -> None:
    ended = bringup("capture", place, "--machine", str(GPU_BOX), state=tmp_path)
    assert ended.returncode == 2
    assert place in ended.stderr
    assert "went wrong in bringup" not in ended.stderr


def test_capture_with_json_prints_one_document_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "box.json"
    ended = bringup("capture", str(file), "--json", "--machine", str(GPU_BOX), state=tmp_path)
    assert json.loads(ended.stdout) == {"schema": "bringup/capture", "version": 1, "file": str(file), "bytes": file.stat().st_size}
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("option", ["--machine", "--root", "--profile"])
def test_an_empty_name_is_wrong_usage_and_never_the_live_machine(option: str, tmp_path: Path) -> None:
    ended = bringup("plan", option, "", state=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert option in ended.stderr


@pytest.mark.parametrize("verb", ["attach", "resume", "undo"])
def test_an_empty_run_is_wrong_usage_and_never_the_newest_one(verb: str, tmp_path: Path) -> None:
    ended = bringup(verb, "", "--yes", state=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "argument RUN" in ended.stderr or "RUN" in ended.stderr.splitlines()[-1]


def test_a_profile_that_is_a_folder_or_bottomless_is_bad_input(tmp_path: Path) -> None:
    deep = tmp_path / "deep.toml"
    deep.write_text("x = " + "[" * 5000)
    for profile, said in ((tmp_path, "cannot be read"), (deep, "nested too deeply")):
        ended = bringup("check", "--profile", str(profile), "--machine", str(GPU_BOX), state=tmp_path)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert said in ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_a_profile_that_may_not_be_read_is_not_called_missing() -> None:
    from steps.errors import InputError
    from steps.headless.choices import read_profile

    # Read by a process without root's rights; a fork, because the rights do not come back.
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setresuid(65534, 65534, 65534)
            read_profile("/etc/shadow")
        except InputError as error:
            code = 0 if error.code == "profile-unreadable" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_profile_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    profile = tmp_path / "windows.toml"
    profile.write_bytes(b"\xef\xbb\xbfschema = 1\n[nccl]\ndebug = 'WARN'\n")
    assert bringup("plan", "--json", "--profile", str(profile), "--machine", str(GPU_BOX)).returncode in (0, 1)


# --- closed and full streams ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f"{COMMAND} detect --json --machine {GPU_BOX} >&-", 0),
        (f"{COMMAND} runs >&-", 0),
        (f"{COMMAND} detect --json --machine {GPU_BOX} 2>&- >/dev/null", 0),
        (f"{COMMAND} apply --machine {GPU_BOX} <&-", 2),
        (f"{COMMAND} wizard --plain --machine {GPU_BOX} <&- >/dev/null", 5),
    ],
)
def test_a_closed_stream_is_an_empty_one(line: str, code: int, tmp_path: Path) -> None:
    ended = by_shell(line, tmp_path)
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "went wrong" not in ended.stderr


def test_an_output_that_has_no_room_is_said_in_one_line(tmp_path: Path) -> None:
    ended = by_shell(f"{COMMAND} detect --json --machine {GPU_BOX} >/dev/full", tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == "bringup: The output could not be written: No space left on device. Make room, or send it somewhere else.\n"


@pytest.mark.parametrize("words", [("--json",), ("wizard", "--json")])
def test_the_wizard_has_no_json_and_says_so_on_stderr(words: tuple[str, ...], tmp_path: Path) -> None:
    ended = bringup(*words, state=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Name a verb: bringup detect --json" in ended.stderr


@pytest.mark.parametrize("words", [("attach", "\x1b[2J"), ("detect", "--bad\x1b[2J")])
def test_an_error_smuggles_no_control_sequence_into_the_terminal(words: tuple[str, ...], tmp_path: Path) -> None:
    ended = bringup(*words, state=tmp_path)
    assert ended.returncode == 2
    assert "\x1b" not in ended.stderr


def test_a_key_of_a_profile_smuggles_no_control_sequence_into_the_terminal(tmp_path: Path) -> None:
    profile = tmp_path / "evil.toml"
    profile.write_text('"\\u001b]0;pwned\\u0007" = 1\n')
    ended = bringup("check", "--profile", str(profile), "--machine", str(GPU_BOX), state=tmp_path)
    assert ended.returncode == 2
    assert not {"\x1b", "\x07"} & set(ended.stderr)


@pytest.mark.parametrize("words", [("detect",), ("detect", "--json")])
def test_a_config_file_that_is_wrong_is_wrong_for_people_and_for_programs(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "bringup").mkdir()
    (tmp_path / "bringup" / "config.toml").write_text("lang = 7\n")
    ended = bringup(*words, "--machine", str(GPU_BOX), environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "config.toml" in ended.stderr


def test_a_config_file_that_is_wrong_is_named_in_the_language_of_the_call(tmp_path: Path) -> None:
    (tmp_path / "bringup").mkdir()
    (tmp_path / "bringup" / "config.toml").write_text("colour = true\n")
    ended = bringup("--lang", "zh_CN", "detect", environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert ended.returncode == 2
    assert "colour" in ended.stderr
    assert any("\u4e00" <= char <= "\u9fff" for char in ended.stderr)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('lang = "zh"', '"en", "zh_CN"'),
        ("plain = 1", "true, false"),
        ('lng = "en"', "lang, plain, no_color, low_bandwidth"),
        ("lang = 5", '"en", "zh_CN"'),
    ],
)
def test_a_slip_in_the_config_is_told_with_what_there_is(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "bringup").mkdir()
    (tmp_path / "bringup" / "config.toml").write_text(text)
    ended = bringup("detect", "--machine", str(GPU_BOX), environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert ended.returncode == 2
    assert f"There is: {told}." in ended.stderr
    assert "enum" not in ended.stderr


def test_what_the_config_prefers_counts_where_the_command_line_says_nothing() -> None:
    preferred = settings.Config(plain=True, no_color=False)
    assert preferred.under({"plain": False, "no_color": True, "verb": "apply"}) == {"plain": True, "no_color": True, "verb": "apply"}
    assert settings.Config().under({"low_bandwidth": False}) == {"low_bandwidth": False}
    assert settings.Config(low_bandwidth=True).under({"low_bandwidth": False}) == {"low_bandwidth": True}


def test_a_config_that_prefers_lines_opens_the_wizard_as_lines(tmp_path: Path) -> None:
    (tmp_path / "bringup").mkdir()
    (tmp_path / "bringup" / "config.toml").write_text("plain = true\n")
    environ = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "BRINGUP_STATE": str(tmp_path), "TERM": "xterm-256color"}
    words = ["-I", "-m", "tui", "--machine", str(GPU_BOX), "--offline", "--lang", "en"]
    child = pexpect.spawn(sys.executable, words, env=environ, dimensions=(24, 80), timeout=60)
    try:
        child.expect_exact("q = leave: ")
        assert b"\x1b[?1049h" not in (child.before or b"")  # the screen that a wizard of screens takes
    finally:
        child.close(force=True)


# --- how we are called --------------------------------------------------------------------------------


def test_words_name_the_command_as_it_was_called(tmp_path: Path) -> None:
    ended = bringup("undo", "--yes", environ={"BRINGUP_COMMAND": "~/src/bringup/bringup"}, state=tmp_path)
    assert "`~/src/bringup/bringup runs`" in ended.stderr
    assert "`bringup runs`" in bringup("undo", "--yes", state=tmp_path).stderr


def test_help_and_wrong_usage_are_in_the_language_of_the_call(tmp_path: Path) -> None:
    chinese = {"LANG": "zh_CN.UTF-8"}
    shown = bringup("--help", environ=chinese).stdout
    assert "撤销一次运行" in shown
    assert "options:" not in shown
    wrong = bringup("plan", "--format", "x", environ=chinese)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "--format：没有 'x' 这一项" in wrong.stderr
    assert "undo" in bringup("--help").stdout
    assert "take a run back, newest action first" in bringup("undo", "--help").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("apply", "--profile", "studnt"), "Did you mean the set student?"),
        (("aply",), "Did you mean apply?"),
        (
            ("recommend", "--machine", str(GPU_BOX), "--want", "python==2.7"),
            "The tables hold no python 2.7; the newest that they hold is 3.",
        ),
        (("knowledge", "update", "--offline"), "Leave one of the two out."),
        (("recommend", "--machine", str(GPU_BOX), "--want", "pytorch"), "Did you mean `torch`?"),
        (
            ("recommend", "--machine", str(GPU_BOX), "--want", "tensorflow=3"),
            "The tables hold no tensorflow 3; the newest that they hold is 2.",
        ),
    ],
)
def test_a_slip_is_met_with_what_was_probably_meant(words: tuple[str, ...], said: str) -> None:
    ended = bringup(*words)
    assert ended.returncode == 2
    assert said in ended.stderr


def test_a_verbs_own_options_stand_before_those_of_every_verb() -> None:
    shown = bringup("plan", "--help").stdout
    assert shown.index("\n  --format FORMAT") < shown.index("\noptions of every verb:\n") < shown.index("\n  --machine FILE")
    assert "dockerfile are not part of this version" in " ".join(shown.split())


def test_a_release_that_is_not_the_newest_is_explained() -> None:
    shown = bringup("recommend", "--machine", str(MACHINES / "2080ti-dkms-missing.json"), "--want", "torch", "--lang", "en").stdout
    reason = shown.partition("is taken, not the newest release")[2].splitlines()[1]
    assert reason.strip() == "because The driver is 470.256.02"


def test_who_follows_a_run_through_a_pipe_reads_each_line_when_it_is_said(tmp_path: Path) -> None:
    argv = [sys.executable, "-I", "-m", "tui", "apply", "--yes", "--offline", "--machine", str(MACHINES / "nogpu-dell-r6515.json")]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8", "BRINGUP_STATE": str(tmp_path)}
    with subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        assert run.stdout is not None
        # All that is there at the first moment at which anything is: with a full buffer that would be the end too.
        first = os.read(run.stdout.fileno(), 1 << 16).decode()
        rest = run.stdout.read().decode()
    assert "nothing was changed" not in first
    assert "nothing was changed" in rest
    assert run.returncode == 0
