"""The verb `report`: one HTML and one Markdown file about a machine and its last run, with nothing in them that names anybody."""

from __future__ import annotations

import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import PurePosixPath

import msgspec

from steps import documents, planning
from steps.compat.case import Case
from steps.detect.machine import detect
from steps.engine import client
from steps.engine.client import RunHandle
from steps.errors import BringupError, InputError
from steps.headless import knowing
from steps.headless.choices import chosen
from steps.headless.console import DONE, Asked, Console
from steps.headless.facts import host_of
from steps.host.base import Host
from steps.host.local import LocalHost
from steps.host.redact import Redaction
from steps.model.base import phrase
from steps.model.profile import Profile
from steps.report.content import Told, ToldRun
from steps.report.content import report as written
from steps.report.html import html
from steps.report.markdown import markdown
from steps.report.mok import mok_card
from steps.text import say

_LOG_BYTES = 65_536
_OUTPUTS = (("ip", "-j", "addr"), ("ip", "-br", "addr"), ("dmidecode", "-t", "memory"), ("nvidia-smi", "-q"))
"""Programs whose output names serial numbers and addresses; redaction takes the values out wherever they stand."""


def mok(console: Console) -> int:
    """Print the card for the blue screen that enrols a key."""
    row = Case(detect(host_of(console.asked)), Profile()).distribution
    card = mok_card(console.asked.language, row.key_certificate if row is not None else None).rstrip("\n")
    if console.asked.json:
        console.document(documents.document("report", {"card": card}))
    else:
        console.out(card)
    return DONE


def report(console: Console, environ: Mapping[str, str], path: str | None) -> int:
    """Print the report as Markdown or JSON; with `path` it is written there as HTML, and as Markdown beside it."""
    asked = console.asked
    host = host_of(asked)
    told = _told(asked, environ, host)
    outputs = tuple(host.run(argv).stdout for argv in _OUTPUTS)
    clean = Redaction(host, (*outputs, told.run.log if told.run is not None else "")).text
    made = written(told, asked.language, clean)
    if path is not None:
        beside = str(PurePosixPath(path).with_suffix(".md")) if not path.endswith(".md") else f"{path}.md"
        for name, text in ((path, html(made)), (beside, markdown(made))):
            _write(name, text)
        console.err(say(asked.language, phrase("report.written", html=path, markdown=beside)))
    if asked.json:
        body = {
            "machine": documents.machine(told.machine, asked.language),
            "findings": [documents.finding(one, asked.language) for one in told.findings],
            "run": None if told.run is None else _run_document(told.run),
        }
        console.whole(clean(documents.encode(documents.document("report", body))))
    elif path is None:
        console.whole(markdown(made).rstrip("\n"))
    return DONE


def _write(path: str, text: str) -> None:
    """Write a file of the person's own; raises `InputError` when it cannot be written."""
    try:
        LocalHost().write_bytes(path, text.encode(), 0o644)
    except OSError as error:
        raise InputError("file-not-written", file=path, reason=error.strerror or "") from error


def _told(asked: Asked, environ: Mapping[str, str], host: Host) -> Told:
    """Return everything that is reported: without a profile what is installed is judged, as `check` does."""
    known = knowing.lay(environ)
    machine = detect(host)
    answers = chosen(asked.profile, machine) if asked.profile else Profile()
    found = planning.findings(machine, answers) + knowing.notices(known)
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return Told(machine=machine, findings=found, run=_last_run(asked), version=version("bringup"), made=day)


def _last_run(asked: Asked) -> ToldRun | None:
    """Return the newest run of the machine that is asked for, or `None`; one that cannot be read is passed over."""
    for summary in client.runs():
        try:
            handle = client.find(summary.id)
        except BringupError:
            continue
        target = handle.plan.target
        if target.machine == asked.machine and target.root == (asked.root or "/"):
            return _told_run(handle)
    return None


def _told_run(handle: RunHandle) -> ToldRun:
    """Return a run with the end of the log that matters: of the action that failed, else of the last one that ran."""
    state = handle.state()
    ran = [one for one in state.actions.values() if one.started is not None]
    failed = [one.id for one in ran if one.status == "failed"]
    log_of = failed[-1] if failed else ran[-1].id if ran else None
    log = ""
    if log_of is not None:
        spool = handle.spool(log_of)
        size = spool.size()
        log = spool.read(max(0, size - _LOG_BYTES), _LOG_BYTES).decode(errors="replace")
    titles = tuple((action.id, action.title) for action in handle.plan.actions)
    return ToldRun(id=handle.id, state=state, titles=titles, verdict=handle.verdict() or (), log_of=log_of, log=log)


def _run_document(run: ToldRun) -> documents.Document:
    """Return the run for the JSON document."""
    return {"id": run.id, "state": run.state.status, "exit": run.state.exit, "verdict": msgspec.to_builtins(run.verdict), "log": run.log}
