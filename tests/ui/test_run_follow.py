"""A followed run is plain lines: what begins, what ends, why it failed, and that silence is normal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from steps.model.base import phrase
from steps.model.run import RunStatus
from tests.ui.fake_run import START, FakeRun, asking, failed, halfway
from tui.follow import exit_code, follow
from tui.reasons import deciding


class Clock:
    """A clock that a test moves, and what happens at each look."""

    def __init__(self, run: FakeRun, *scenes: object) -> None:
        self.run = run
        self.at = START + 415
        self.scenes = list(scenes)

    def now(self) -> float:
        return self.at

    def wait(self, seconds: float) -> None:
        self.at += seconds
        if self.scenes:
            scene = self.scenes.pop(0)
            assert callable(scene)
            scene()
        else:
            self.at += 60


COME_BACK = "It goes on without this terminal, Ctrl+C only leaves; come back with: bringup attach 1130-a"


def followed(
    run: FakeRun, *scenes: object, verbose: bool = False, json: bool = False, rehearsal: bool = False, news_only: bool = False
) -> tuple[int, list[str]]:
    run.plan = msgspec.structs.replace(run.plan, target=msgspec.structs.replace(run.plan.target, rehearsal=rehearsal))
    clock = Clock(run, *scenes)
    lines: list[str] = []
    code = follow(run, "en", lines.append, now=clock.now, wait=clock.wait, verbose=verbose, json=json, news_only=news_only)
    return code, [line[10:] for line in lines]


def done(run: FakeRun) -> None:
    run.action("driver.install", "done", started=163, seconds=588)
    run.now_is("done", code=0, ended=START + 900)


def test_a_rehearsal_says_that_it_is_one(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    _, lines = followed(run, lambda: done(run), rehearsal=True)
    assert lines[0] == "run 1130-a: a rehearsal on a recorded machine. Every command is shown, nothing is touched"
    assert "step 1 of 9  Return point saved: rehearsed" in lines
    assert lines[-1] == "run 1130-a: rehearsed, nothing was changed"


def test_a_stopped_rehearsal_has_nothing_to_take_back(tmp_path: Path) -> None:
    for number, (stop, word) in enumerate((("failed", "stopped after"), ("cancelled", "stopped on request"))):
        run = failed(tmp_path / str(number))
        run.now_is(stop, code=1, ended=START + 314)  # type: ignore[arg-type]  # two words of RunStatus
        _, lines = followed(run, rehearsal=True)
        assert word in lines[-1]
        assert "Nothing was changed" in lines[-1]
        assert "undo" not in lines[-1]


def test_what_was_done_before_is_left_out_where_only_news_is_wanted(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    _, lines = followed(run, lambda: done(run), news_only=True)
    assert not any("Return point saved" in line for line in lines)
    assert "step 3 of 9  Driver 580 open, module by DKMS: done, 9:48" in lines


def test_every_change_is_one_line(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    code, lines = followed(run, lambda: run.action("driver.install", "done", started=163, seconds=588), lambda: done(run))
    assert code == 0
    assert lines == [
        "step 1 of 9  Return point saved: done, 0:21",
        "step 2 of 9  Kernel headers 6.5.0-41: done, 0:38",
        "step 3 of 9  Driver 580 open, module by DKMS: running",
        "step 6 of 9  ~/envs/dl: PyTorch 2.15.0: running",
        f"run 1130-a: running, 2 of 9 steps done. {COME_BACK}",
        "step 3 of 9  Driver 580 open, module by DKMS: done, 9:48",
        "run 1130-a: done, 15:00",
    ]


def test_a_silent_step_says_that_silence_is_normal_until_it_is_not(tmp_path: Path) -> None:
    run = halfway(tmp_path)

    def later() -> None:
        return None

    clock = Clock(run)
    lines: list[str] = []
    looks = 0

    def wait(seconds: float) -> None:
        nonlocal looks
        looks += 1
        clock.at += 100
        if looks == 9:
            done(run)

    follow(run, "en", lines.append, now=clock.now, wait=wait)
    text = "\n".join(lines)
    assert "running, 5:52, silence is normal up to 12 min; in all about 8 min left" in text
    assert "no output for 13:20, usual is up to 12 min" in text
    later()


def test_a_failure_says_why_with_the_deciding_line(tmp_path: Path) -> None:
    code, lines = followed(failed(tmp_path))
    assert code == 1
    assert 'Step "Driver 580 open, module by DKMS" ended with exit code 10.' in lines
    assert "| cc: error: unrecognized command-line option '-ftrivial-auto-var-init=zero'" in lines
    assert lines[-1].endswith("Go on: bringup resume 1130-a. Take back: bringup undo 1130-a")


def test_of_many_failures_of_dpkg_the_first_is_shown_with_what_its_script_printed(tmp_path: Path) -> None:
    dependants = "".join(
        f"dpkg: dependency problems prevent configuration of {name}:\n {name} depends on cuda-nvcc-12-8; however:\n"
        f"  Package cuda-nvcc-12-8 is not configured yet.\n\ndpkg: error processing package {name} (--configure):\n"
        " dependency problems - leaving unconfigured\n"
        for name in ("cuda-compiler-12-8", "cuda-toolkit-12-8", *(f"cuda-part-{number}" for number in range(200)))
    )
    text = (
        "Setting up cuda-cccl-12-8 (12.8.90-1) ...\nSetting up cuda-nvcc-12-8 (12.8.93-1) ...\nlab: cuda-nvcc-12-8 fails with 1\n"
        "dpkg: error processing package cuda-nvcc-12-8 (--configure):\n"
        " installed cuda-nvcc-12-8 package post-installation script subprocess returned error exit status 1\n"
        f"{dependants}Errors were encountered while processing:\n cuda-nvcc-12-8\nE: Sub-process /usr/bin/dpkg returned an error code (1)\n"
    )
    run = FakeRun(tmp_path)
    run.action("toolkit.cuda", "failed", started=1, seconds=5, code=100, error=phrase("engine.failed.exit", status=100))
    run.print("toolkit.cuda", text.encode())
    run.now_is("failed", code=1)
    _, lines = followed(run)
    assert [line for line in lines if line.startswith("| ")] == [
        "| lab: cuda-nvcc-12-8 fails with 1",
        "| dpkg: error processing package cuda-nvcc-12-8 (--configure):",
    ]


def test_who_says_two_lines_has_said_both() -> None:
    said = ("Not proven: The GPU is healthy, a privileged operation is refused.", "Only this would show it again: nvidia-smi")
    assert deciding(said) == said
    assert deciding(("$ bringup doctor --gone apt-signed-by-conflict", "", *said, " ")) == said


def test_a_script_that_prints_nothing_leaves_dpkgs_own_two_lines() -> None:
    said = [
        "Setting up a (1) ...",
        "dpkg: error processing package a (--configure):",
        " script returned error exit status 1",
        "E: Sub-process",
    ]
    assert deciding(said) == ("dpkg: error processing package a (--configure):", "script returned error exit status 1")


def test_a_chain_of_causes_is_told_by_its_error_its_object_and_its_bottom() -> None:
    said = (
        "Using Python 3.11.2 environment at: /home/ana/envs/dl",
        "error: Request failed after 3 retries in 8.0s",
        "  cause: Failed to fetch: https://download.pytorch.org/whl/cpu/torchvision/",
        "  cause: error sending request for url",
        "         (https://download.pytorch.org/whl/cpu/torchvision/)",
        "  cause: dns error",
        "  cause: failed to lookup address information: Name or service not known",
    )
    assert deciding(said) == (
        "error: Request failed after 3 retries in 8.0s",
        "cause: Failed to fetch: https://download.pytorch.org/whl/cpu/torchvision/",
        "cause: failed to lookup address information: Name or service not known",
    )
    assert deciding(said[:3]) == ("error: Request failed after 3 retries in 8.0s", said[2].strip())


def test_verbose_writes_every_line_of_output_once(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    more = [lambda: run.print("driver.install", b"\x1b[32mhalf"), lambda: run.print("driver.install", b" line\x1b[0m\n"), lambda: done(run)]
    code, lines = followed(run, *more, verbose=True)
    assert code == 0
    assert sum(line.startswith("| Unpacking package-") for line in lines) == 2107
    assert lines.count("| half line") == 1


def test_a_question_is_said_once_and_waits(tmp_path: Path) -> None:
    run = asking(tmp_path)
    code, lines = followed(run, lambda: None, lambda: None, lambda: done(run))
    assert code == 0
    assert sum("Answer it with: bringup attach 1130-a" in line for line in lines) == 1
    assert "| *** nccl.conf (Y/I/N/O/D/Z) [default=N] ?" in lines


def test_a_person_at_a_plain_terminal_answers_by_name_or_takes_the_safe_answer(tmp_path: Path) -> None:
    for typed, sent in (("new", "new"), ("", "keep")):
        run = asking(tmp_path / (typed or "nothing"))
        clock = Clock(run, lambda: None, lambda run=run: done(run))
        lines: list[str] = []
        assert follow(run, "en", lines.append, ask=lambda _, typed=typed: typed, now=clock.now, wait=clock.wait) == 0  # type: ignore[misc]  # bound at once
        assert run.told == [("answer", 41, sent)]
        assert any(line.endswith("Keep your file (safe: Enter)") for line in lines)


def test_json_writes_only_what_needs_a_person(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    assert followed(run, lambda: done(run), json=True) == (0, [])


def test_a_dead_runner_ends_it(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.has_runner = False
    code, lines = followed(run)
    assert code == 1
    assert lines[-1] == "The runner is gone (power or kill). Go on with: bringup resume 1130-a"


def test_a_dead_runner_of_an_undo_is_not_to_be_resumed(tmp_path: Path) -> None:
    run = halfway(tmp_path)
    run.now_is("undoing")
    run.has_runner = False
    code, lines = followed(run)
    assert (code, lines[-1]) == (1, "The runner of the undo is gone (power or kill). Go on with: bringup undo 1130-a")


@pytest.mark.parametrize(
    ("status", "own", "code"),
    [
        ("done", 0, 0),
        ("failed", 20, 20),
        ("failed", 12, 12),
        ("reboot", None, 10),
        ("cancelled", None, 5),
        ("undone", 0, 0),
        ("undo-failed", None, 22),
    ],
)
def test_the_exit_code_is_the_runs(tmp_path: Path, status: RunStatus, own: int | None, code: int) -> None:
    run = halfway(tmp_path)
    run.now_is(status, code=own)
    assert exit_code(run.state()) == code


def test_following_loads_no_screen() -> None:
    program = "import sys, tui.follow; print([name for name in sys.modules if name.split('.')[0] in ('textual', 'pyte')])"
    ended = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
