"""A fragment of somebody's report, where no driver answers: what was said there is not lost, however it was quoted or dated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.captured import CapturedHost, parse_capture

XID = "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
LOST = f"Nov 02 21:03:11 box kernel: {XID}\n"
NEXT = "Nov 02 21:20:04 box kernel: nvidia: loading out-of-tree module taints kernel.\n"
DIFFERS = "Failed to initialize NVML: Driver/library version mismatch"
NO_IMAGE = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
FELL_OFF, MISMATCH = "gpu-fell-off-bus", "driver-library-mismatch"


def verdict(log: str | None = None, *, files: dict[str, str] | None = None, **commands: str) -> Verdict:
    """Return the verdict on a capture of nothing but these: `_` in a command's name is a blank, `__` a hyphen."""
    return of({
        "commands": {name.replace("__", "-").replace("_", " "): text for name, text in commands.items()},
        "files": files or {},
        "logs": {"report": log} if log else {},
    })  # fmt: skip


def of(parts: dict[str, Any]) -> Verdict:
    commands = {name: {"stdout": text, "stderr": "", "status": None} for name, text in parts["commands"].items()}
    document = {"schema": "bringup/capture", "version": 1, **parts, "commands": commands}
    return judge(Evidence(CapturedHost(parse_capture(json.dumps(document).encode()))))


@pytest.mark.parametrize(
    ("log", "id"),
    [
        (f"# {DIFFERS}\n\nnvidia-smi in my shell:\n", MISMATCH),
        (f"// {DIFFERS}\n", MISMATCH),
        (f"# Output:\n# {NO_IMAGE}\n", "wheel-lacks-gpu-kernels"),
        (f"If you see `{DIFFERS}`\n", MISMATCH),
        (f"=== node1\n{DIFFERS}\n=== node2\nGPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aaaa)\n", MISMATCH),
    ],
    ids=("title", "comment", "comments", "advice", "other-host"),
)
def test_what_seems_quoted_or_over_is_a_possible_cause_where_nothing_else_is(log: str, id: str) -> None:
    cause = verdict(log).cause
    assert cause is not None
    assert (cause.id, cause.known, cause.repair.steps) == (id, False, ())
    assert cause.confidence <= 0.5


@pytest.mark.parametrize(
    "line",
    [
        "$ dmesg | grep -i 'fallen off the bus'",
        'dmesg | grep -iE "Xid|GPU has fallen off the bus" | tail',
        "GPU fallen off the bus: no",
        "echo 'Failed to initialize NVML: Driver/library version mismatch'",
    ],
)
def test_what_was_only_searched_for_or_is_denied_stays_nothing(line: str) -> None:
    assert verdict(f"a first line\n{line}\n").healthy


@pytest.mark.parametrize(
    ("log", "id"),
    [
        (f"`{DIFFERS}`\n", MISMATCH),
        (f"After the update I get `{DIFFERS}` today\n", MISMATCH),
        (f"$ nvidia-smi {DIFFERS}\n", MISMATCH),
        (f"+ {DIFFERS}\n", MISMATCH),
        (f'when I run nvidia-smi I get "{DIFFERS}".\n', MISMATCH),
        (f"if I run nvidia-smi: '{DIFFERS}' appears\n", MISMATCH),
        (f"dmesg | grep -i nvrm shows: {XID}\n", FELL_OFF),
        (f"sudo dmesg | grep NVRM [ 12.3] {XID}\n", FELL_OFF),
        (f"me@box:~$ sudo dmesg | grep -i nvrm; {XID}\n", FELL_OFF),
        (f"+ {XID}\n", FELL_OFF),
        (f"     5  {XID}\n", FELL_OFF),
        (f"   42  {NO_IMAGE}\n", "wheel-lacks-gpu-kernels"),
    ],
)  # fmt: skip
def test_what_a_program_printed_counts_whatever_stands_on_its_line(log: str, id: str) -> None:
    cause = verdict(log).cause
    assert cause is not None
    assert (cause.id, cause.known) == (id, True)


@pytest.mark.parametrize(
    "parts",
    [
        {"commands": {"journalctl -k -b -1": LOST}},
        {"commands": {"journalctl -k": f"-- Boot aaaa --\n{LOST}-- Boot bbbb --\n{NEXT}"}},
        {"commands": {"journalctl -k -r": f"{LOST}-- Boot aaaa --\n{NEXT}"}},
        {"files": {"/var/log/kern.log": LOST + "Nov 02 21:20:00 box kernel: [    0.000000] Linux version 6.8.0-45-generic (x)\n"}},
        {"logs": {"journalctl -b -1": LOST}},
    ],
    ids=("asked", "marked", "reversed", "kern.log", "log"),
)
def test_the_crash_of_an_earlier_boot_is_what_a_report_is_about(parts: dict[str, dict[str, str]]) -> None:
    cause = of({"commands": {}, "files": {}, "logs": {}, **parts}).cause
    assert cause is not None
    assert (cause.id, cause.repair.steps == () or cause.known) == (FELL_OFF, True)
