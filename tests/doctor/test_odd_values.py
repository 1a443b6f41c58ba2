"""Values that are no numbers, and readings that contradict a line: neither ends the doctor, nor do they become a cause."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path

import pytest

from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.doctor.numbers import number, whole
from steps.host.captured import CapturedHost, parse_capture
from tests.doctor import kit
from tui.__main__ import _guarded

ODD = ("2..5", "²", "9" * 5000, "-", "1e999")
SMI = """GPU 00000000:01:00.0
    Clocks Event Reasons
        Idle : Active
        SW Thermal Slowdown : Active
    Temperature
        GPU Current Temp : {now} C
        GPU Slowdown Temp : 95 C
    Remapped Rows
        Uncorrectable Error : 1
        Pending : {pending}
        Remapping Failure Occurred : No
"""
XID = "NVRM: Xid (PCI:0000:01:00): 63, pid='<unknown>', name=<unknown>, Row remapping event: Rows 0x1 remapped\n"


@pytest.mark.parametrize("odd", ODD, ids=("dots", "square", "endless", "dash", "infinite"))
@pytest.mark.parametrize("case", kit.cases()[::6], ids=lambda case: case.name)
def test_a_value_that_is_no_number_ends_nothing(case: kit.Case, odd: str) -> None:
    document = json.loads(case.capture.read_text(encoding="utf-8"))
    places = count()
    for part in ("files", "logs"):
        document[part] = {
            name: re.sub(r"\d+", lambda it: odd if next(places) % 3 == 0 else it[0], text) for name, text in document[part].items()
        }
    for said in document["commands"].values():
        said["stdout"] = re.sub(r"\d+(?:\.\d+)?", lambda it: odd if next(places) % 3 == 0 else it[0], said["stdout"])
    seen = Evidence(CapturedHost(parse_capture(json.dumps(document).encode())))
    assert judge(seen).diagnoses is not None


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_value_is_not_known(odd: str) -> None:
    assert whole(odd) is None
    assert number(odd) in (None, 1.0)
    assert (number("16.0 GT/s"), whole(" 12 "), number("x16")) == (16.0, 12, None)


def test_a_folder_is_no_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    machine = tmp_path / "m.json"
    machine.write_text('{"schema": "bringup/capture", "version": 1}')
    assert _guarded(["doctor", "--machine", str(machine), "--log", str(tmp_path)], {}) == 2
    assert "not a file" in capsys.readouterr().err


@pytest.mark.parametrize(("now", "hot"), [("41", False), ("93", True)])
def test_a_slow_down_far_from_its_temperature_is_no_heat(now: str, hot: bool) -> None:
    verdict = kit.judged(commands={"nvidia-smi -q": SMI.format(now=now, pending="No")})
    assert ("gpu-cooling-insufficient" in {one.id for one in verdict.diagnoses}) == hot


@pytest.mark.parametrize(("pending", "waits"), [("No", False), ("Yes", True)])
def test_a_repair_that_no_longer_waits_is_not_pending(pending: str, waits: bool) -> None:
    verdict = kit.judged(commands={"nvidia-smi -q": SMI.format(now="41", pending=pending), "dmesg": XID})
    assert ("memory-repair-pending-reset" in {one.id for one in verdict.diagnoses}) == waits


def test_a_refused_module_without_a_name_may_be_another_one() -> None:
    commands = {"mokutil --sb-state": "SecureBoot enabled\n", "dmesg": "[ 9.1] Loading of module with unavailable key is rejected\n"}
    dkms = "nvidia/550.1, 6.5.0-1, x86_64: installed\n"
    alone = kit.judged(commands={**commands, "dkms status": dkms}).cause
    beside = kit.judged(commands={**commands, "dkms status": f"{dkms}virtualbox/6.1, 6.5.0-1, x86_64: installed\n"}).cause
    assert alone is not None
    assert beside is not None
    assert (alone.id, beside.id) == ("mok-not-enrolled", "mok-not-enrolled")
    assert beside.confidence <= 0.7 < alone.confidence
