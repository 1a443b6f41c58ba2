"""The verb that names what is broken: `doctor`; and the same question about a failed action."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from steps import documents, medical
from steps.catalog.diagnoses import diagnoses, words
from steps.detect.machine import detect as detect_machine
from steps.detect.probes import Probes
from steps.doctor.diagnosis import Verdict
from steps.doctor.events.cleaning import is_text
from steps.doctor.evidence import Evidence
from steps.doctor.facts.owners import owners
from steps.doctor.judge import judge
from steps.doctor.proving import Second, second_look
from steps.doctor.repairs.flow import repair_plan
from steps.errors import InputError
from steps.headless.console import DONE, FINDINGS, PROOF_FAILED, Asked, Console
from steps.headless.facts import host_of, target_of
from steps.host.captured import Capture, CapturedHost
from steps.host.opening import open_host
from steps.host.stream import STDIN, blocks
from steps.model.base import phrase
from steps.model.plan import Plan, Target
from steps.model.profile import Profile
from steps.text import say

if TYPE_CHECKING:
    from steps.engine.client import RunHandle

_BUILDS = "/var/lib/dkms/"
_BLOCK = 1 << 20
_MOST = 16 << 20
"""Bytes of an output's end that are looked at."""


class Output(Protocol):
    """The raw output of one action, as far as it was written."""

    def size(self) -> int:
        """Return how many bytes there are now."""
        ...

    def read(self, offset: int, count: int, /) -> bytes:
        """Return up to `count` bytes from `offset`; fewer, or none, at the end."""
        ...


def examined(asked: Asked, logs: tuple[str, ...]) -> Verdict:
    """Return the verdict on the machine that was asked for. Raises `InputError` for a log that cannot be read."""
    named = (("stdin" if path == STDIN else f"log {path}", _something(path, blocks(path))) for path in dict.fromkeys(logs))
    seen = Evidence(host_of(asked), named)
    try:
        return judge(seen)
    finally:
        seen.close()


def _something(path: str, given: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what a log holds.

    Raises `InputError` for one in which no word is to be found: `log-empty` (`log-file-empty` for a file), and `log-binary`.
    """
    begun = False
    for block in given:
        if not begun and (start := block.strip(b"\0 \t\r\n")):
            begun = True
            if not is_text(start):
                raise InputError("log-binary", file=path)
        yield block
    if not begun:
        raise InputError("log-empty") if path == STDIN else InputError("log-file-empty", file=path)


def doctor(console: Console, logs: tuple[str, ...], run: RunHandle | None = None) -> int:
    """Print the one cause, its evidence and its repair, of the machine or of what stopped a run.

    Raises `InputError` for a log or a capture that cannot be read, and what `behind_run` raises.
    """
    verdict, language = examined(console.asked, logs) if run is None else behind_run(run), console.asked.language
    found = owners(Probes(host_of(console.asked))) if console.asked.verbose else None
    if console.asked.json:
        body = medical.document(verdict, language)
        console.document(documents.document("doctor", {**body, "owners": medical.owned(found)} if found else body))
    else:
        console.lines(medical.lines(verdict, language))
        console.lines(medical.owner_lines(found, language) if found else ())
    return DONE if verdict.healthy else FINDINGS


def looked_again(asked: Asked, id: str, since: float | None, command: tuple[str, ...] = ()) -> tuple[Second, Verdict]:
    """Return what is proven of a cause whose repair began at `since`, and the verdict on the machine as it is now."""
    seen = Evidence(host_of(asked), now=True, since=since)
    try:
        verdict = judge(seen)
        return second_look(seen, verdict, id, command, after_run=since is not None), verdict
    finally:
        seen.close()


def gone(console: Console, id: str, since: float | None, command: tuple[str, ...]) -> int:
    """Say whether a cause is found no more when the machine is looked at now; 20 while it is, or where that cannot be told."""
    if id not in diagnoses():
        raise InputError("diagnosis-unknown", name=id)
    found, verdict = looked_again(console.asked, id, since, command)
    language = console.asked.language
    if found.state == "here":
        console.lines(medical.lines(verdict, language))
        return PROOF_FAILED
    console.out(say(language, phrase(f"repair.flow.{found.state}", title=say(language, phrase(words(id, "title"))))))
    console.lines((say(language, found.because),) if found.because is not None else ())
    return DONE if found.state == "gone" else PROOF_FAILED


def repair(asked: Asked, environ: Mapping[str, str], verdict: Verdict) -> Plan:
    """Return the plan that repairs the verdict's cause on the machine that was asked for; without actions where a person has to do all."""
    host = host_of(asked)
    target = target_of(asked, host, detect_machine(host), environ)
    cause = verdict.cause
    if cause is None or verdict.healthy:
        return Plan(made=time.time(), target=target, profile=Profile(), actions=())
    return repair_plan(cause, target, made=time.time())


def failed_action(handle: RunHandle) -> str | None:
    """Return the id of the action that a run stopped at; `None` when none failed, or a runner is still at work."""
    if handle.alive():
        return None
    return next((id for id, one in handle.state().actions.items() if one.status == "failed"), None)


def repair_of_run(target: Target, verdict: Verdict, run: str) -> Plan:
    """Return the plan that repairs what stopped a run, on the run's own target; without actions where a person has to do all."""
    cause = verdict.cause
    if cause is None:
        return Plan(made=time.time(), target=target, profile=Profile(), actions=(), repairs=run)
    return repair_plan(cause, target, made=time.time(), of_run=run)


def behind_run(handle: RunHandle) -> Verdict:
    """Return what the doctor says to the failed action of a run.

    Raises `InputError`: "run-not-failed" when none failed, "cause-unknown" when the doctor knows of nothing.
    """
    action = failed_action(handle)
    if action is None:
        raise InputError("run-not-failed", run=handle.id)
    verdict = behind(handle.plan.target, action, end_of(handle.spool(action)))
    if verdict is None:
        raise InputError("cause-unknown", run=handle.id)
    return verdict


def end_of(spool: Output) -> Iterator[bytes]:
    """Yield the end of an action's output in blocks."""
    at, size = max(0, spool.size() - _MOST), spool.size()
    while at < size and (block := spool.read(at, min(_BLOCK, size - at))):
        yield block
        at += len(block)


def behind(target: Target, action: str, log: Iterable[bytes]) -> Verdict | None:
    """Return what the doctor says to a failed action, from its log and the machine it ran on; of a rehearsal only the log is real.

    `None` when nothing is known that this log or a module's build tells of: another fault of the machine is no cause here.
    """
    nothing = Capture(schema="bringup/capture", version=1)
    host = CapturedHost(nothing) if target.rehearsal else open_host(None, None if target.root == "/" else target.root)
    name = f"log {action}"
    seen = Evidence(host, ((name, log),))
    try:
        verdict = judge(seen)
    finally:
        seen.close()
    cause = verdict.cause
    if verdict.healthy or cause is None or not cause.known:
        return None
    return verdict if any(place.source == name or place.source.startswith(_BUILDS) for place in cause.evidence) else None
