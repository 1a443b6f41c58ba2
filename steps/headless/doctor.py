"""The verb that names what is broken: `doctor`; and the same question about a failed action."""

from __future__ import annotations

from collections.abc import Iterable

from steps import documents, medical
from steps.doctor.diagnosis import Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.headless.console import DONE, FINDINGS, Console
from steps.headless.facts import host_of
from steps.host.captured import Capture, CapturedHost
from steps.host.opening import open_host
from steps.host.stream import STDIN, blocks
from steps.model.plan import Target

_BUILDS = "/var/lib/dkms/"


def doctor(console: Console, logs: tuple[str, ...]) -> int:
    """Print the one cause, its evidence and its repair; raises `InputError` for a log or a capture that cannot be read."""
    named = (("stdin" if path == STDIN else f"log {path}", blocks(path)) for path in dict.fromkeys(logs))
    seen = Evidence(host_of(console.asked), named)
    try:
        verdict = judge(seen)
    finally:
        seen.close()
    if console.asked.json:
        console.document(documents.document("doctor", medical.document(verdict, console.asked.language)))
    else:
        console.lines(medical.lines(verdict, console.asked.language))
    return DONE if verdict.healthy else FINDINGS


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
    if verdict.healthy or cause is None:
        return None
    return verdict if any(place.source == name or place.source.startswith(_BUILDS) for place in cause.evidence) else None
