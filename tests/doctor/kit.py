"""Cases with a known cause, and what the doctor says of them; counted as the scoring program of the collection counts."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steps.catalog.diagnoses import diagnoses
from steps.doctor.diagnosis import Verdict
from steps.doctor.events.all import reader
from steps.doctor.events.base import Event, Events
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.host.captured import Capture, CapturedHost, Recorded, parse_capture

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HANDED = Path(__file__).parent / "handed"
REPORTED = Path(__file__).parent / "reported"
"""What public reports show, as captures; the address of each report stands in its `about`."""


class Case(NamedTuple):
    """One capture and what is expected of the doctor."""

    name: str
    capture: Path
    primary: str
    acceptable: tuple[str, ...]
    forbidden: tuple[str, ...]

    @property
    def category(self) -> str:
        """Return the category of the cause, `control` for a healthy machine."""
        return "control" if self.primary == "none" else diagnoses()[self.primary].category


@cache
def cases(folder: Path = HANDED) -> tuple[Case, ...]:
    """Return the cases of a folder."""
    return tuple(_case(path) for path in sorted(folder.glob("*.expect.toml")))


def _case(path: Path) -> Case:
    told: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    capture = path.with_name(path.name.replace(".expect.toml", ".json"))
    return Case(told["case"], capture, told["primary"], tuple(told["acceptable"]), tuple(told["forbidden"]))


def seen(capture: Path) -> Evidence:
    """Return the evidence of a capture, without what its name and its `about` would give away."""
    document = json.loads(capture.read_text(encoding="utf-8"))
    document["about"] = {}
    return Evidence(CapturedHost(parse_capture(json.dumps(document).encode()), "capture.json"))


@cache
def verdict(capture: Path) -> Verdict:
    """Return the verdict on a capture."""
    return judge(seen(capture))


def answer(case: Case) -> tuple[str, bool]:
    """Return the primary diagnosis (`none` without one) and whether the machine is called healthy."""
    said = verdict(case.capture)
    return (said.cause.id if said.cause else "none"), said.healthy


def right(case: Case) -> bool:
    """Return whether the answer counts: the cause or one that is accepted, and the right word on health."""
    id, healthy = answer(case)
    if case.primary == "none":
        return healthy and diagnoses()[id].severity == "not-a-fault"
    sick = diagnoses()[case.primary].severity != "not-a-fault"
    return id in (case.primary, *case.acceptable) and healthy is not sick


def events(*blocks: bytes | str) -> Events:
    """Return the events in a text that comes in these blocks."""
    reads = reader()
    reads.read_blocks("log", (block.encode() if isinstance(block, str) else block for block in blocks))
    return reads.events


def fields(text: str, kind: type[Event]) -> list[dict[str, Any]]:
    """Return what the events of a kind in a text hold, without their place and without what has its default."""
    defaults = dict(zip(reversed(kind.__struct_fields__), reversed(kind.__struct_defaults__), strict=False))
    return [
        {
            name: value
            for name in event.__struct_fields__
            if name != "place" and ((value := getattr(event, name)) != defaults.get(name) or name not in defaults)
        }
        for event in events(text).all(kind)
    ]


def judged(*, files: dict[str, str] | None = None, commands: dict[str, str] | None = None, logs: dict[str, str] | None = None) -> Verdict:
    """Return the verdict on a machine of which only this is known; commands are said to have ended well."""
    ran = {line: Recorded(stdout=text, status=0) for line, text in (commands or {}).items()}
    capture = Capture(schema="bringup/capture", version=1, files=dict(files or {}), commands=ran, logs=logs or {})
    return judge(Evidence(CapturedHost(capture, "capture.json")))


def made_up(name: str) -> dict[str, list[dict[str, Any]]]:
    """Return the made-up machines of one file beside this one."""
    found: dict[str, list[dict[str, Any]]] = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))
    return found


def told(case: dict[str, Any]) -> Verdict:
    """Return the verdict on a made-up machine."""
    return judged(files=case.get("files"), commands=case.get("commands"), logs=case.get("logs"))
