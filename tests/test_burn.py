"""What the burn watches, without any GPU: stand-ins for `nvidia-smi` and the kernel's log, and what is said where they are silent."""

from __future__ import annotations

import importlib
import os
import subprocess
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from steps import resources
from steps.model.verdict import Rung
from steps.proof import _rung
from steps.text import say

DONE = {"state": "passed", "params": {"seconds": 120}, "detail": "61.3 TFLOPS", "value": 61.3, "unit": "TFLOPS"}
OLD = "[  100.1] NVRM: Xid (PCI:0000:01:00): 31, pid=9, name=python\n"
LOST = "[  900.5] NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus.\n"


@pytest.fixture
def burning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the program as a module; no other program is found than those that a test puts into `tmp_path`, and no log device."""
    monkeypatch.syspath_prepend(str(Path(resources.path_of("training", "ranks.py")).parent))
    monkeypatch.setenv("PATH", str(tmp_path))
    module = importlib.import_module("verify_burn")
    monkeypatch.setattr(module, "KMSG", str(tmp_path / "kmsg"))
    return module


def stand_in(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


@pytest.mark.parametrize("program", ["dmesg", "journalctl"])
def test_an_xid_that_comes_under_load_fails_the_burn_and_an_older_one_does_not(burning: ModuleType, tmp_path: Path, program: str) -> None:
    (tmp_path / "log").write_text(OLD)
    stand_in(tmp_path / program, f'while IFS= read -r line; do echo "$line"; done < {tmp_path / "log"}\n')
    log = burning.KernelLog()
    assert log.xids() == []
    (tmp_path / "log").write_text(OLD + LOST)
    assert log.xids() == ["0000:c1:00 Xid 79"]
    line = burning.judged(DONE, {}, log.xids())
    assert line["state"] == "failed"
    assert say("en", _rung("burn", line).because) == "The kernel log reports errors of the GPU under load: 0000:c1:00 Xid 79."


def test_the_log_device_is_read_where_no_program_reads_the_log(burning: ModuleType, tmp_path: Path) -> None:
    stand_in(tmp_path / "dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1\n")
    # A file stands for the device: it gives all it has in one record.
    (tmp_path / "kmsg").write_text("6,1,100,-;started\n")
    log = burning.KernelLog()
    (tmp_path / "kmsg").write_text(f"6,2,200,-;{LOST}")
    assert log.xids() == ["0000:c1:00 Xid 79"]


def test_a_log_that_nobody_may_read_is_not_watched_and_that_is_said(burning: ModuleType) -> None:
    assert burning.KernelLog().xids() is None


def test_a_log_that_cannot_be_read_any_more_at_the_end_is_not_a_log_without_xids(burning: ModuleType, tmp_path: Path) -> None:
    stand_in(tmp_path / "dmesg", "echo '[  1.0] started'\n")
    log = burning.KernelLog()
    assert log.xids() == []
    stand_in(tmp_path / "dmesg", "exit 1\n")
    assert log.xids() is None


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("NVRM: Xid (PCI:0000:01:00): 31, pid=77, name=python, Ch 00000008", []),
        ("NVRM: Xid (PCI:0000:01:00): 13, pid='77', name=python, Graphics SM Warp Exception", []),
        ("NVRM: Xid (PCI:0000:01:00): 31, pid=4100, name=python, Ch 00000008", ["0000:01:00 Xid 31"]),
        ("NVRM: Xid (PCI:0000:01:00): 43, Ch 00000010", ["0000:01:00 Xid 43"]),
        ("NVRM: Xid (PCI:0000:01:00): 79, pid=77, GPU has fallen off the bus.", ["0000:01:00 Xid 79"]),
    ],
    ids=["another's", "another's in quotes", "a rank's", "nobody's name", "the card's own"],
)
def test_what_another_program_did_to_itself_is_no_fault_of_the_card(
    burning: ModuleType, tmp_path: Path, line: str, found: list[str]
) -> None:
    (tmp_path / "log").write_text("[  1.0] started\n")
    stand_in(tmp_path / "dmesg", f'while IFS= read -r line; do echo "$line"; done < {tmp_path / "log"}\n')
    log = burning.KernelLog()
    (tmp_path / "log").write_text(f"[  1.0] started\n[  2.0] {line}\n")
    assert log.xids([4100]) == found


def test_the_ranks_of_a_burn_are_known_by_their_processes(burning: ModuleType) -> None:
    begun: list[int] = []
    said = burning.together(2, 20, lambda *_: {"state": "passed", "value": os.getpid()}, begun)
    assert len(begun) == 2
    assert said["value"] == begun[0]


@pytest.mark.parametrize(
    ("said", "detail"),
    [
        (
            {"state": "failed", "text": "RuntimeError: CUDA error: unspecified launch failure"},
            "RuntimeError: CUDA error: unspecified launch failure",
        ),
        ({"state": "failed", "code": "burn-wrong", "params": {"gpu": 1}}, "Under load GPU 1 computes wrong values."),
        (DONE, "61.3 TFLOPS"),
    ],
)
def test_what_a_rank_said_stays_beside_the_xid(burning: ModuleType, said: dict[str, object], detail: str) -> None:
    rung = _rung("burn", burning.judged(said, {}, ["0000:c1:00 Xid 79"]))
    assert rung.state == "failed"
    assert "Xid 79" in say("en", rung.because)
    assert say("en", rung.detail) == detail


@pytest.mark.parametrize("hangs", [False, True], ids=["ends", "does not end"])
def test_a_program_that_a_lost_card_holds_is_not_waited_for(burning: ModuleType, hangs: bool) -> None:
    # What stands in the kernel is out of reach of any signal; a program that cannot be ended stands for it here.
    held = Held(hangs=hangs)
    began = time.monotonic()
    burning.end(held)
    assert time.monotonic() - began < 5 * burning.GRACE
    assert held.said == (["terminate", "wait 2.0", "kill", "wait 2.0"] if hangs else ["terminate", "wait 2.0"])


class Held:
    """A program as `subprocess` has it; one that `hangs` never ends."""

    def __init__(self, *, hangs: bool) -> None:
        self.hangs, self.said = hangs, list[str]()

    def terminate(self) -> None:
        self.said.append("terminate")

    def kill(self) -> None:
        self.said.append("kill")

    def wait(self, timeout: float | None = None) -> int:
        self.said.append(f"wait {timeout}")
        if self.hangs:
            raise subprocess.TimeoutExpired("held", timeout or 0.0)
        return 0


def test_a_command_that_does_not_end_is_no_answer_and_its_children_hold_nobody(
    burning: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The child keeps the output open: who reads it to its end waits as long as that lives.
    stand_in(tmp_path / "nvidia-smi", "trap '' TERM\n/bin/sleep 8 &\n/bin/sleep 8\n")
    monkeypatch.setattr(burning, "GRACE", 0.2)
    began = time.monotonic()
    assert burning.told((str(tmp_path / "nvidia-smi"),), 0.3) is None
    assert time.monotonic() - began < 5


def test_the_log_is_read_before_the_gauges_are_ended(burning: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(burning, "query", lambda: ("true",))
    monkeypatch.setattr(burning, "together", lambda *_: DONE)
    monkeypatch.setattr(burning, "KernelLog", lambda: SimpleNamespace(xids=lambda _: order.append("log")))
    monkeypatch.setattr(burning, "end", lambda _: order.append("gauges"))
    monkeypatch.setattr(burning, "begun", lambda *_: Held(hangs=True))
    assert burning.burnt(1, 0.1, gpu=True)["code"] == "burn-no-log"
    assert order == ["log", "gauges"]


READING = "0, 83, 1500, 300.1, 0x0000000000000004\n"


@pytest.mark.parametrize(
    ("printed", "xids", "words"),
    [
        ([READING], [], "120 s of full load; at most 83 °C, 1500 MHz, no slowing down, no Xid."),
        ([READING], None, "Xids not watched"),
        ([READING.replace("4\n", "40\n")], [], "Slowed down for heat or power: GPU 0."),
        ([READING.replace("4\n", "40\n")], None, "Xids not watched"),
        (['Field "clocks_throttle_reasons.active" is not a valid field to query.\n'], [], "Temperature and clock not watched"),
        ([], None, "Not watched: temperature, clock, Xids"),
    ],
)
def test_a_burn_says_what_it_did_not_watch(burning: ModuleType, printed: list[str], xids: list[str] | None, words: str) -> None:
    rung: Rung = _rung("burn", burning.judged(DONE, burning.watched(printed), xids))
    assert (rung.state, rung.value) == ("passed", 61.3)
    assert words in say("en", rung.because)
    assert "{" not in say("zh_CN", rung.because)


def test_a_driver_that_has_another_name_for_the_reasons_is_asked_by_that(burning: ModuleType, tmp_path: Path) -> None:
    stand_in(tmp_path / "nvidia-smi", "case $* in *clocks_throttle*) exit 2 ;; esac\n")
    assert "clocks_event_reasons.active" in burning.query()[1]
    stand_in(tmp_path / "nvidia-smi", "exit 2\n")
    assert burning.query() == ()
