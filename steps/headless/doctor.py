"""The verb that names what is broken: `doctor`."""

from __future__ import annotations

from steps import documents, medical
from steps.doctor.evidence import Evidence
from steps.doctor.judge import judge
from steps.headless.console import DONE, FINDINGS, Console
from steps.headless.facts import host_of
from steps.host.stream import STDIN, blocks


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
