"""The command as a script calls it: one JSON document on stdout, messages on stderr, the exit codes of the contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steps import text
from steps.model.base import phrase

MACHINES = Path(__file__).parent / "machines"
GPU_BOX = MACHINES / "rtx4090x4-epyc.json"
DEBIAN_BOX = MACHINES / "gcp-t4x2.json"


def bringup(
    *words: str, environ: Mapping[str, str] | None = None, stdin: str = "", state: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in a plain environment and return how it ended."""
    base = {"PATH": os.environ["PATH"], "HOME": str(state or "/nonexistent"), "LANG": "C.UTF-8"}
    if state is not None:
        base["XDG_STATE_HOME"] = base["BRINGUP_STATE"] = str(state)
    return subprocess.run(
        (sys.executable, "-I", "-m", "tui", *words),
        env={**base, **(environ or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def document(*words: str, **options: Any) -> Any:
    """Return the JSON that the command prints."""
    return json.loads(bringup(*words, "--json", **options).stdout)


def test_detect_prints_this_machine() -> None:
    found = document("detect")
    assert (found["schema"], found["version"]) == ("bringup/detect", 1)
    assert found["os"]["kernel"] == os.uname().release
    assert set(found) >= {
        "os",
        "firmware",
        "cpu",
        "memory",
        "disks",
        "networks",
        "accelerators",
        "links",
        "driver",
        "toolkits",
        "environments",
        "tools",
        "gaps",
    }


@pytest.mark.parametrize("verb", ["check", "plan", "recommend"])
def test_a_verb_prints_one_document(verb: str) -> None:
    ended = bringup(verb, "--json", "--machine", str(GPU_BOX))
    assert json.loads(ended.stdout)["schema"] == f"bringup/{verb}"
    assert ended.returncode in (0, 1)


def test_common_options_stand_before_or_after_the_verb() -> None:
    before = bringup("--machine", str(GPU_BOX), "--json", "detect")
    assert before.stdout == bringup("detect", "--json", "--machine", str(GPU_BOX)).stdout != ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("detectt",), 2, "invalid choice"),
        (("detect", "--machine", "/no/such/file.json"), 2, "/no/such/file.json"),
        (("detect", "--machine", "/etc/passwd"), 2, "/etc/passwd"),
        (("detect", "--root", "/no/such/root"), 2, "/no/such/root"),
        (("check", "--profile", "/no/such.toml"), 2, "/no/such.toml"),
        (("doctor", "--log", "/no/such.log"), 2, "/no/such.log"),
        (("attach", "0101-zz"), 2, "0101-zz"),
        (("undo", "0101-zz"), 2, "0101-zz"),
    ],
)
def test_bad_input_is_one_clear_sentence(words: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    ended = bringup(*words, state=tmp_path)
    assert ended.returncode == code
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_a_slip_in_a_profile_names_its_line(tmp_path: Path) -> None:
    profile = tmp_path / "lab.toml"
    profile.write_text("schema = 1\n[toolkit]\ncudda = '12.8'\n")
    ended = bringup("plan", "--profile", str(profile), "--machine", str(GPU_BOX))
    assert ended.returncode == 2
    assert "line 3" in ended.stderr
    assert "`cuda`" in ended.stderr


def test_a_plan_that_cannot_be_made_is_not_called_done(tmp_path: Path) -> None:
    profile = tmp_path / "impossible.toml"
    profile.write_text('schema = 1\n[driver]\nbranch = "550"\nflavor = "open"\nsource = "distro"\n')
    ended = bringup("plan", "--offline", "--profile", str(profile), "--machine", str(DEBIAN_BOX))
    assert (ended.returncode, ended.stdout.splitlines()[0]) == (1, text.say("en", phrase("cli.nothing-possible")))


def test_an_apply_that_is_refused_prints_what_forbids_it(tmp_path: Path) -> None:
    profile = tmp_path / "impossible.toml"
    profile.write_text('schema = 1\n[nccl]\ninterface = "nope0"\n')
    ended = bringup("apply", "--yes", "--json", "--offline", "--profile", str(profile), "--machine", str(GPU_BOX), state=tmp_path)
    told = json.loads(ended.stdout)
    assert (ended.returncode, told["schema"], told["run"], told["exit"]) == (3, "bringup/apply", None, 3)
    assert "nccl-interface-missing" in [one["code"] for one in told["findings"] if one["severity"] == "error"]
    assert document("runs", state=tmp_path)["runs"] == []


def test_a_report_in_json_is_one_document_beside_the_files_that_were_asked_for(tmp_path: Path) -> None:
    page = tmp_path / "box.html"
    ended = bringup("report", "--json", "--html", str(page), "--machine", str(GPU_BOX), state=tmp_path)
    assert json.loads(ended.stdout)["schema"] == "bringup/report"
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert page.with_suffix(".md").exists()
    card = document("report", "--mok", "--machine", str(GPU_BOX), state=tmp_path)
    assert card["schema"] == "bringup/report"
    assert "MOK Manager" in card["card"]


def test_apply_without_a_terminal_wants_yes(tmp_path: Path) -> None:
    ended = bringup("apply", "--machine", str(GPU_BOX), state=tmp_path)
    assert ended.returncode == 2
    assert "--yes" in ended.stderr


def test_chinese_is_spoken_by_flag_variable_and_locale() -> None:
    told: tuple[dict[str, str], ...] = ({"BRINGUP_LANG": "zh_CN"}, {"BRINGUP_LANG": "zh"}, {"LC_ALL": "zh_CN.UTF-8"}, {"LANG": "zh_TW"})
    for words, environ in ((("--lang", "zh_CN"), {}), *(((), environ) for environ in told)):
        assert "这里没有运行" in bringup("attach", "0101-zz", *words, environ=environ).stderr


def test_json_is_english_unless_a_language_is_asked_for() -> None:
    found = document("check", "--machine", str(GPU_BOX), environ={"LC_ALL": "zh_CN.UTF-8"})
    assert found["findings"]
    assert not any("\u4e00" <= char <= "\u9fff" for one in found["findings"] for char in one["message"] + one["remedy"])


def test_a_locale_without_unicode_costs_a_character_and_no_answer() -> None:
    ended = bringup(
        "detect", "--machine", str(GPU_BOX), environ={"LANG": "en_US.ISO-8859-1", "LC_ALL": "en_US.ISO-8859-1", "PYTHONUTF8": "0"}
    )
    assert ended.returncode == 0
    assert "RTX 4090" in ended.stdout


def test_a_name_cannot_smuggle_control_sequences_into_the_terminal(tmp_path: Path) -> None:
    capture = json.loads(GPU_BOX.read_text())
    capture["files"]["/sys/class/dmi/id/board_name"] = "evil\x1b]0;title\x07board\n"
    hostile = tmp_path / "hostile.json"
    hostile.write_text(json.dumps(capture))
    ended = bringup("detect", "--machine", str(hostile))
    assert ended.returncode == 0
    assert "\x1b" not in ended.stdout


def test_a_rehearsal_of_the_recommendation_touches_nothing_and_ends_well(tmp_path: Path) -> None:
    ended = bringup("apply", "--yes", "--json", "--machine", str(GPU_BOX), state=tmp_path)
    run = json.loads(ended.stdout)
    assert ended.returncode == run["exit"] == 0, ended.stderr
    assert run["state"] == "done"
    assert {one["state"] for one in run["actions"]} == {"done"}
    assert run["findings"] == document("plan", "--machine", str(GPU_BOX), state=tmp_path)["findings"] != []
    listed = document("runs", state=tmp_path)["runs"]
    assert [one["id"] for one in listed] == [run["run"]]


def test_without_root_the_rest_is_written_down_for_the_administrator(tmp_path: Path) -> None:
    ended = bringup("apply", "--without-root", "--yes", "--machine", str(GPU_BOX), state=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "Hand them to your administrator" in ended.stderr
    assert "apt-get install" in ended.stderr
    assert "Driver 580 open" not in ended.stdout


def test_the_plain_wizard_takes_no_word_for_going_on_and_shows_another_goal(tmp_path: Path) -> None:
    ended = bringup("--plain", "--machine", str(GPU_BOX), state=tmp_path, stdin="x\no\nq\n")
    assert "x was not taken." in ended.stdout
    assert ended.stdout.count("Step 1 of") == 2
    assert "Goal: train on many GPUs." in ended.stdout
    assert "Step 2 of" not in ended.stdout


def test_the_columns_of_the_plain_wizard_stand_below_each_other_in_chinese_too(tmp_path: Path) -> None:
    ended = bringup("--plain", "--lang", "zh_CN", "--machine", str(GPU_BOX), state=tmp_path, stdin="q\n")
    rows = [line for line in ended.stdout.splitlines() if line.startswith("   ") and line.strip()[:1].isdigit()]
    starts = {
        sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in row[: row.rindex(" ")]) for row in rows if row.count(" ") > 8
    }
    assert rows
    assert len(starts) == 1


def test_the_plain_wizard_gives_a_reason_behind_a_chinese_colon(tmp_path: Path) -> None:
    refused = str(MACHINES / "rtx5090-proprietary-refused.json")
    shown = bringup("--plain", "--lang", "zh_CN", "--machine", refused, state=tmp_path, stdin="\n\n\n\nq\n").stdout
    assert "不能用：RTX 5090 只支持开源内核模块" in shown
    assert "不能用: " not in shown


def test_the_plain_wizard_walks_every_step_and_leaves_without_a_change(tmp_path: Path) -> None:
    ended = bringup("--plain", "--machine", str(GPU_BOX), state=tmp_path, stdin="\n" * 40 + "n\n")
    assert "Step 1 of" in ended.stdout
    assert "Which NVIDIA driver?" in ended.stdout
    # What the screens have ticked is the default here too.
    nccl = ended.stdout.partition("How should the GPUs talk to each other?")[2]
    number = next(line.split()[0] for line in nccl.splitlines() if "let NCCL choose" in line)
    assert f"Your choice [{number}]" in nccl.partition("Transport")[0]
    assert ended.returncode == 5
    assert document("runs", state=tmp_path)["runs"] == []


def test_as_lines_a_driver_that_does_not_work_is_said_and_leads_to_the_doctor(tmp_path: Path) -> None:
    broken = str(MACHINES / "2080ti-dkms-missing.json")
    shown = bringup("--plain", "--lang", "en", "--machine", broken, state=tmp_path, stdin="d\nq\n").stdout
    asked, _, after = shown.partition("d names the cause and its repair")
    assert "The driver is not loaded." in asked
    assert "The repair:" in after
    assert "Step 1 of" not in shown
    whole = bringup("--plain", "--lang", "en", "--machine", broken, state=tmp_path, stdin="\nq\n").stdout
    assert "Step 1 of" in whole
    working = bringup("--plain", "--lang", "en", "--machine", str(GPU_BOX), state=tmp_path, stdin="q\n").stdout
    assert "names the cause" not in working


def test_as_lines_what_is_only_shown_can_be_asked_about_by_its_number(tmp_path: Path) -> None:
    said = bringup("--plain", "--lang", "en", "--machine", str(GPU_BOX), state=tmp_path, stdin="w 1\n\nw 1\nq\n").stdout
    hardware, _, firmware = said.partition("Step 2 of")
    assert "compute capability" in hardware
    rows = [line.split()[0] for line in firmware.splitlines() if line[:4].strip().isdecimal()]
    assert rows == [str(number) for number in range(1, len(rows) + 1)], "a number stands for two rows"
    assert "With it the processor sees all of the card's memory at once." in firmware
