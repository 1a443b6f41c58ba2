"""The known cases in the shapes in which people paste them: the cause stays the same for nearly all."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from steps.catalog.diagnoses import diagnoses
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.captured import CapturedHost, parse_capture
from tests.doctor import kit

Shape = Callable[[dict[str, Any]], bool]
_STAMP = re.compile(r"^(?:\w{3} +\d+ [\d:]+ \S+ |\d{4}-\S+ \S+ )?(?:kernel: )?")


def each_line(shaped: Callable[[int, str], str], case: dict[str, Any]) -> bool:
    """Give every line of the logs and of dmesg this shape; return whether there was one."""

    def reshaped(text: str) -> str:
        return "\n".join(shaped(at, line) if line.strip() else line for at, line in enumerate(text.split("\n"), start=1))

    case["logs"] = {name: reshaped(text) for name, text in case.get("logs", {}).items()}
    log = case["commands"].get("dmesg")
    if log:
        log["stdout"] = reshaped(log["stdout"])
    return bool(case["logs"] or log)


def taken(case: dict[str, Any]) -> str:
    """Take the kernel's log out of a case."""
    log = case["commands"].pop("dmesg", {})
    return str(log.get("stdout", "")) + str(log.get("stderr", ""))


def journal(key: str, after: str, case: dict[str, Any]) -> bool:
    """Move the kernel's log under a question to the journal."""
    lines = [f"Nov 02 21:03:11 box kernel: {_STAMP.sub('', line)}" for line in taken(case).splitlines() if line.strip()]
    case["commands"][key] = {"stdout": "\n".join([*lines, after]), "stderr": "", "status": None}
    return bool(lines)


def pasted(before: str, after: str, case: dict[str, Any]) -> bool:
    """Move the kernel's log into a terminal session or a report."""
    log = taken(case)
    case["logs"] = {**case.get("logs", {}), "terminal.log": f"{before}{log}{after}"}
    return bool(log)


def session(prompt: str, case: dict[str, Any]) -> bool:
    """Move all commands into one terminal session."""
    said = ((line, case["commands"][line]) for line in list(case["commands"]))
    told = "".join(f"{prompt}{line}\n{(one['stdout'] + one['stderr']).rstrip()}\n" for line, one in said)
    case["commands"] = {}
    case["logs"] = {**case.get("logs", {}), "terminal.log": told}
    return bool(told)


NEXT = "-- Boot 5ac31 --\nNov 02 21:20:11 box kernel: nvidia-nvlink: Nvlink Core is being initialized, major device number 234\n"
SHAPES: dict[str, tuple[Shape, float]] = {
    "backticks": (partial(each_line, lambda _, line: f"`{line}`"), 0.9),
    "cat-n": (partial(each_line, lambda at, line: f"{at:6}\t{line}"), 0.85),
    "diff": (partial(each_line, lambda _, line: f"+ {line}"), 0.85),
    "bullets": (partial(each_line, lambda _, line: f"- {line}"), 0.85),
    "quoted": (partial(each_line, lambda _, line: f"> {line}"), 0.97),
    "grep-n": (partial(each_line, lambda at, line: f"{at}:{line}"), 0.9),
    "last-boot": (partial(journal, "journalctl -k -b -1", ""), 0.95),
    "two-boots": (partial(journal, "journalctl -k", NEXT), 0.95),
    "reversed": (partial(journal, "journalctl -k -r", NEXT), 0.95),
    "terminal": (partial(pasted, "me@box:~$ sudo dmesg | grep -i nvidia\n", ""), 0.95),
    "report": (partial(pasted, '### dmesg\n```\n# dmesg -T | grep -iE "nvrm|xid"\n', "```\n"), 0.95),
    "user-prompt": (partial(session, "me@box:~$ "), 0.9),
    "root-prompt": (partial(session, "[root@node01 ~]# "), 0.9),
}


def reshaped(case: kit.Case, shape: Shape) -> bool | None:
    """Return whether the cause is found in another shape; `None` where a case has nothing to be shaped."""
    document = json.loads(case.capture.read_text(encoding="utf-8"))
    document["about"] = {}
    for one in document.setdefault("commands", {}).values():
        one["stdout"], one["stderr"] = one.get("stdout") or "", one.get("stderr") or ""
    if not shape(document):
        return None
    said = judge(Evidence(CapturedHost(parse_capture(json.dumps(document).encode()))))
    id = said.cause.id if said.cause else "none"
    if case.primary == "none":
        return said.healthy and diagnoses()[id].severity == "not-a-fault"
    return id in (case.primary, *case.acceptable)


@pytest.mark.parametrize("name", SHAPES)
def test_the_shape_of_a_paste_does_not_hide_the_cause(name: str) -> None:
    shape, least = SHAPES[name]
    answers = {case.name: found for case in kit.cases()[::3] if (found := reshaped(case, shape)) is not None}
    missed = [case for case, found in answers.items() if not found]
    assert len(answers) >= 10
    assert len(missed) <= len(answers) * (1 - least), missed
