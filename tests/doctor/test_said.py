"""What a verdict says beside the cause: nothing that contradicts it, nothing that was asked already, nothing that cannot be here."""

from __future__ import annotations

import json

import pytest

from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.base import Result
from steps.host.captured import Capture, CapturedHost, parse_capture
from steps.medical import lines
from steps.text import Language, say
from tests.doctor import kit


def said(case: str, language: Language = "en") -> str:
    return "\n".join(lines(kit.verdict(kit.HANDED / f"{case}.json"), language))


def made_up(**parts: object) -> Capture:
    return parse_capture(json.dumps({"schema": "bringup/capture", "version": 1, **parts}).encode())


def on(commands: dict[str, str], files: dict[str, str] | None = None, log: str = "", *, tree: bool = False) -> Verdict:
    recorded = {command: {"stdout": text, "status": 0} for command, text in commands.items()}
    parts: dict[str, object] = {"commands": recorded, "files": files or {}}
    host = CapturedHost(made_up(**parts, **({"dirs": ["/sys/devices"]} if tree else {})), "made-up")
    return judge(Evidence(host, [("stdin", [log.encode()])] if log else []))


@pytest.mark.parametrize(("language", "unknown"), [("en", "the reason is not visible"), ("zh_CN", "看不出原因")])
def test_what_follows_from_a_known_cause_does_not_say_that_the_cause_is_unknown(language: Language, unknown: str) -> None:
    assert unknown not in said("002-mismatch-unattended-partial-two-branches", language)


def test_where_nobody_knows_what_is_in_the_way_the_wanted_branch_is_not_blamed() -> None:
    told = said("045-apt-565-not-going-to-be-installed")
    assert "565.57.01-0ubuntu1 is in the way" not in told
    assert "in the way: -" not in told
    assert "Decide which driver stays: the installed one, or 565.57.01-0ubuntu1" in told


BUS = {"/sys/bus/pci/devices/0000:00:03.0/vendor": "0x1af4\n", "/sys/bus/pci/devices/0000:00:03.0/class": "0x020000\n"}
NO_GPUS = "RuntimeError: No CUDA GPUs are available\n"


def test_a_program_that_wants_a_card_where_none_is_fails_for_that() -> None:
    verdict = on({"uname -r": "6.8.0-60-generic\n"}, BUS, NO_GPUS, tree=True)
    assert verdict.cause is not None
    assert verdict.cause.title.key == "doctor.unknown.line-no-card.title"
    assert "no NVIDIA card" in say("en", verdict.cause.title)


def test_where_the_bus_was_not_seen_nobody_says_that_there_is_no_card() -> None:
    cause = on({"uname -r": "6.8.0-60-generic\n"}, log=NO_GPUS).cause
    assert cause is None or "no-card" not in cause.title.key


def test_beside_health_no_other_ways_to_be_healthy_are_listed() -> None:
    verdict = on({"uname -r": "6.8.0-60-generic\n", "lsmod": "Module Size Used by\n"}, BUS, tree=True)
    assert verdict.healthy
    assert verdict.open == ()


XID = "[  9.0] NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


@pytest.mark.parametrize(("kernel", "listed"), [("6.8.0-60-generic", False), ("5.15.153.1-microsoft-standard-WSL2", True)])
def test_faults_of_wsl_are_thought_of_in_wsl_only(kernel: str, listed: bool) -> None:
    verdict = on({"dmesg": XID, "uname -r": f"{kernel}\n"})
    assert verdict.cause is not None
    assert verdict.cause.id == "gpu-fell-off-bus"
    assert any(one.id.startswith("wsl-") for one in verdict.open) is listed


class Live(CapturedHost):
    """A machine that answers what is asked, and is no recording."""

    rehearsal = False

    def recorded(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        return Result(stdout=XID, status=0) if argv == ("dmesg",) else Result(status=127)


def test_nobody_is_told_to_read_a_log_that_was_read() -> None:
    live = judge(Evidence(Live(made_up(), "live")))
    assert live.cause is not None
    assert live.cause.id == "gpu-fell-off-bus"
    assert live.open
    assert "dmesg" not in {one.probe for one in live.open}
