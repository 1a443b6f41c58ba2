"""What is wrong and not known is said to be so: never health, never a repair, always what to ask next."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from msgspec import structs

from steps.catalog.diagnoses import diagnoses
from steps.detect.probes import Probes
from steps.doctor.diagnosis import Unseen, Verdict
from steps.doctor.events.cleaning import is_text
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.base import Result
from steps.host.captured import Capture, CapturedHost, Recorded, parse_capture
from steps.host.hurried import Hurried
from steps.host.local import NO_ANSWER, LocalHost
from steps.medical import document
from tests.doctor import kit
from tests.doctor.live import AnsweringHost
from tui.__main__ import _guarded

HERE = Path(__file__).parent.parent / "machines"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the driver is installed and running.\n"
)
LOST = "Failed to initialize NVML: Unknown Error\n"
SILENT = (
    ("no-driver", NO_DRIVER, 9), ("no-devices", "No devices were found\n", 6), ("lost", LOST, 255), ("hangs", "", 124),
    ("failing", "Segmentation fault (core dumped)\n", 139),
)  # fmt: skip


def capture(said: str, status: int | None) -> Capture:
    answers = {name: Recorded(stdout=said, status=status) for name in ("nvidia-smi", "nvidia-smi -q")}
    return Capture(schema="bringup/capture", version=1, commands=answers)


def of(host: CapturedHost, log: str = "") -> Verdict:
    seen = Evidence(host, (("log", (log.encode(),)),) if log else ())
    try:
        return judge(seen)
    finally:
        seen.close()


@pytest.mark.parametrize(("kind", "said", "status"), SILENT)
@pytest.mark.parametrize("host", [CapturedHost, AnsweringHost])
def test_a_driver_that_does_not_answer_is_no_healthy_machine(kind: str, said: str, status: int, host: type[CapturedHost]) -> None:
    verdict = of(host(capture(said, status)))
    cause = verdict.cause
    assert cause is not None
    assert not verdict.healthy
    assert not cause.known
    assert cause.id in diagnoses()
    assert cause.confidence < 0.3
    assert cause.title.key == f"doctor.unknown.{kind}.title"
    assert cause.repair.steps == ()
    assert verdict.asks


def test_a_log_with_nothing_but_the_failure_is_no_healthy_machine() -> None:
    verdict = of(CapturedHost(Capture(schema="bringup/capture", version=1)), NO_DRIVER)
    assert (verdict.healthy, verdict.cause and verdict.cause.known) == (False, False)


def test_a_probe_that_hung_on_a_whole_machine_is_named() -> None:
    verdict = kit.verdict(HERE / "rtx3090-x570-k7.json")
    assert not verdict.healthy
    assert Unseen(probe="nvidia-smi -q", reason="hangs") in verdict.unseen


@pytest.mark.parametrize(
    "line",
    [
        "ModuleNotFoundError: No module named 'torch'",
        "bash: nvcc: command not found",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
        "E: Unable to locate package frobnicator",
    ],
)
def test_an_error_that_nobody_knows_is_said_to_be_unknown(line: str) -> None:
    verdict = of(CapturedHost(Capture(schema="bringup/capture", version=1)), f"Epoch 1\n{line}\n")
    assert not verdict.healthy
    assert verdict.cause is not None
    assert line in document(verdict, "en")["diagnoses"][0]["title"]
    assert of(CapturedHost(Capture(schema="bringup/capture", version=1)), "Epoch 1\nloss 0.1\n").healthy


def test_nothing_on_standard_input_is_bad_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine = tmp_path / "m.json"
    machine.write_text(json.dumps({"schema": "bringup/capture", "version": 1}))
    with Path("/dev/null").open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert _guarded(["doctor", "--machine", str(machine), "--log", "-"], {}) == 2
    assert "2>&1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b" \n\0\0\n", "is empty"), (Path(sys.executable).resolve().read_bytes()[:5000], "no text")],
    ids=("empty", "blank", "program"),
)
def test_a_log_without_words_is_bad_input(content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine, log = tmp_path / "m.json", tmp_path / "given.log"
    machine.write_text(json.dumps({"schema": "bringup/capture", "version": 1}))
    log.write_bytes(content)
    assert _guarded(["doctor", "--machine", str(machine), "--log", str(log)], {}) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["gbk", "latin-1", "utf-16", "utf-16-le", "utf-8"])
def test_words_in_any_encoding_are_text(kind: str) -> None:
    words = "Gerät nicht gefunden" if kind == "latin-1" else "设备上没有空间 NVRM: loading"
    assert is_text((f"\x1b[31m{words}\x1b[0m\r\n" * 20).encode(kind))
    assert not is_text(bytes(range(256)) * 8)


def test_a_card_without_a_driver_is_healthy_and_told_how_to_get_one() -> None:
    verdict = kit.judged(
        commands={
            "lspci -nn": "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [GeForce RTX 3090] [10de:2204] (rev a1)\n"
        }
    )
    assert verdict.healthy
    answers = {
        "lspci -nn": Recorded(stdout="01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GA102 [GeForce RTX 3090] [10de:2204]\n"),
        "nvidia-smi": Recorded(status=127),
    }
    without = of(CapturedHost(Capture(schema="bringup/capture", version=1, commands=answers)))
    assert without.healthy
    assert "`bringup` installs one" in document(without, "en")["diagnoses"][0]["because"]


# --- what could not be seen -----------------------------------------------------------------------


class Denied(AnsweringHost):
    """Nobody but root may read the kernel's log here, and one program never ends."""

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Refuse, hang, or answer."""
        if argv[0] in ("dmesg", "journalctl"):
            return Result(stderr=f"{argv[0]}: Operation not permitted\n", status=1)
        return Result(stderr=f"{NO_ANSWER}\n") if argv[0] == "ps" else super().run(argv, timeout=timeout)


def test_what_was_refused_or_hung_is_told_and_lowers_the_words() -> None:
    verdict = of(Denied(parse_capture((HERE / "rtx3080x2-secureboot.json").read_bytes())))
    assert verdict.healthy
    assert verdict.asks[0] == "sudo dmesg"
    told = document(verdict, "en")
    assert {one["probe"]: one["reason"] for one in told["unseen"]}["dmesg"] == "refused"
    assert "hangs" in {one["reason"] for one in told["unseen"]}
    assert "not everything could be seen" in told["diagnoses"][0]["title"]
    assert "Faults of cards" in told["unseen"][0]["because"]


class Failing(AnsweringHost):
    """`dmesg` prints what there is and ends with 1; the journal has nothing."""

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Fail, or answer."""
        if argv[0] == "journalctl":
            return Result(stdout="-- No entries --\n" * (argv[1] == "-k"), status=1)
        found = super().run(argv, timeout=timeout)
        return Result(stdout=found.stdout, stderr="dmesg: write failed\n", status=1) if argv == ("dmesg",) else found


def test_what_a_failing_dmesg_printed_is_read_and_what_it_may_have_kept_back_is_told() -> None:
    recorded = parse_capture((HERE / "rtx3080x2-secureboot.json").read_bytes())
    whole = of(Failing(recorded))
    assert {one.probe: one.reason for one in whole.unseen}["dmesg"] == "failed"
    assert "not everything could be seen" in document(whole, "en")["diagnoses"][0]["title"]
    fallen = "[ 9000.1] NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.\n"
    log = recorded.commands["dmesg"]
    commands = {**recorded.commands, "dmesg": structs.replace(log, stdout=log.stdout + fallen)}
    said = of(Failing(structs.replace(recorded, commands=commands)))
    assert said.cause is not None
    assert said.cause.id == "gpu-fell-off-bus"


def test_all_probes_together_are_waited_for_once() -> None:
    began = time.monotonic()
    host = Probes(Hurried(LocalHost(), 0.5))
    assert [NO_ANSWER in host.run(("sleep", str(seconds))).stderr for seconds in (60, 61)] == [True, True]
    late = Probes(Hurried(LocalHost(), 0.0))
    assert (late.run(("echo", "1")).stdout, NO_ANSWER in late.run(("tail", "-f", "/dev/null")).stderr) == ("1\n", True)
    assert time.monotonic() - began < 5


def test_of_many_lines_alike_none_is_unknown_where_one_is_explained() -> None:
    lines = "".join(f"[{number}.0] NVRM: Xid (PCI:0000:01:00): 45, pid=4101, name=python3, Ch 0000000{number}\n" for number in range(1, 6))
    verdict = of(AnsweringHost(Capture(schema="bringup/capture", version=1)), lines)
    assert verdict.cause is not None
    assert verdict.cause.id == "xid-after-process-kill"
