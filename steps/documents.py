"""The JSON documents of the contract, from values; unknown is `null`, words are in one language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import msgspec

from steps.catalog.rules import source_of
from steps.model.action import AnyAction, Keep, Manual, Packages, Reboot, RemovePath, Run, Service, Write
from steps.model.base import Phrase, phrase
from steps.model.finding import Finding, Patch
from steps.model.machine import Machine
from steps.model.plan import Plan
from steps.model.profile import as_tables
from steps.model.run import ActionState, RunState, RunSummary
from steps.model.verdict import Rung, as_document
from steps.text import Language, say, say_finding

if TYPE_CHECKING:
    from steps.compat.solve import Recommendation

Document = dict[str, Any]


def document(verb: str, body: Mapping[str, Any]) -> Document:
    """Return the document of a verb with its schema and version first."""
    return {"schema": f"bringup/{verb}", "version": 1, **body}


def encode(shape: Any, *, indent: int = 1) -> str:
    """Return a document as indented JSON text, with -1 in one line."""
    return msgspec.json.format(msgspec.json.encode(shape), indent=indent).decode()


def iso(seconds: float | None) -> str | None:
    """Return a time as ISO 8601 in UTC, to the second."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def finding(found: Finding, language: Language) -> Document:
    """Return one finding in words."""
    return {
        "code": found.code,
        "step": found.step,
        "severity": found.severity,
        "subject": found.subject,
        "message": say_finding(language, found, "sentence"),
        "because": [say(language, fact) for fact in found.because],
        "remedy": say_finding(language, found, "remedy"),
        "fix": nested(found.fix) if found.fix else None,
        "source": found.source or source_of(found.code),
    }


def nested(patch: Patch) -> Document:
    """Return a patch of dotted keys as the tables of a profile."""
    tables: Document = {}
    for key, value in patch.items():
        table, _, name = key.partition(".")
        if name:
            tables.setdefault(table, {})[name] = value
        else:
            tables[table] = value
    return tables


def machine(facts: Machine, language: Language) -> Document:
    """Return the `detect` document."""
    body = msgspec.to_builtins(msgspec.structs.replace(facts, offers=None))
    for name in ("offers", "library_path", "headers", "held", "told", "boot"):
        del body[name]
    body["gaps"] = [finding(gap, language) for gap in facts.gaps]
    return document("detect", body)


def findings(found: Iterable[Finding], language: Language) -> Document:
    """Return the `check` document."""
    return document("check", {"findings": [finding(one, language) for one in found]})


def advice(found: Recommendation, language: Language) -> Document:
    """Return the `recommend` document."""
    body: Document = {
        "choices": as_tables(found.choices) if found.choices else None,
        "findings": [finding(one, language) for one in found.findings],
    }
    if found.choices is None:
        body |= {
            "conflict": [say(language, fact) for fact in found.conflict],
            "nearest": as_tables(found.nearest) if found.nearest else None,
        }
    return document("recommend", body)


def action(one: AnyAction, planned: Plan, language: Language) -> Document:
    """Return one action of the plan that it is part of."""
    # The package managers come along with it; only a plan needs them.
    from steps.managers import shown

    return {
        "id": one.id,
        "title": say(language, one.title),
        "why": why(one, planned, language),
        "lane": one.lane,
        "as": one.by,
        "run": list(shown.run(one)) or None,
        "writes": [one.path] if isinstance(one, Write) else [],
        "needs": list(one.needs),
        "download_bytes": one.download_bytes,
        "seconds": one.seconds,
        "reboot": isinstance(one, Reboot),
        "undo": undo(one, language),
    }


def why(one: AnyAction, planned: Plan, language: Language) -> str:
    """Return what an action is for: its own reason, else the next one that cannot begin before it."""
    reason = one.why or (one.reason if isinstance(one, Reboot) else "")
    if reason:
        return say(language, reason)
    waits = next((other for other in planned.actions if one.id in other.needs and other.lane != "proof"), None)
    return say(language, phrase("cli.why.asked") if waits is None else phrase("cli.why.needed", title=say(language, waits.title)))


def undo(one: AnyAction, language: Language) -> str:
    """Return in one line how an action is taken back."""
    match one:
        case Run(undo=(), stays=stays) if stays:
            return say(language, stays)
        case Run(undo=()) | Reboot():
            return say(language, _word("nothing"))
        case Run(undo=steps):
            return "; ".join(step.path if isinstance(step, RemovePath) else " ".join(step.argv) for step in steps)
        case Write() | Keep():
            return say(language, _word("file"), path=one.path)
        case Service():
            return say(language, _word("service"), unit=one.unit)
        case Packages():
            # An update of the lists changes no package.
            return say(language, _word("packages" if one.install else "nothing"))
        case Manual():
            return say(language, _word("manual"))


def _word(name: str) -> Phrase:
    """Return the phrase for one way of taking back."""
    return phrase(f"cli.undo.{name}")


def plan(planned: Plan, found: Iterable[Finding], language: Language) -> Document:
    """Return the `plan` document."""
    return document(
        "plan",
        {"actions": [action(one, planned, language) for one in planned.actions], "findings": [finding(one, language) for one in found]},
    )


def summary(run: RunSummary, language: Language = "en") -> Document:
    """Return one line of the `runs` document; `state` is null where it cannot be read.

    `alive`, `rehearsal`, `title`, `kept_bytes`, `kept_beside` are our own.
    """
    return {
        "id": run.id,
        "owner": run.owner,
        "started": iso(run.started),
        "ended": iso(run.ended),
        "state": run.status if run.readable else None,
        "exit": run.exit,
        "alive": run.alive,
        "rehearsal": run.rehearsal,
        "title": run.title or say(language, run.first),
        "kept_bytes": run.kept_bytes,
        "kept_beside": list(run.kept_beside),
    }


def run(run_id: str, planned: Iterable[AnyAction], state: RunState, found: Iterable[Finding], language: Language, verb: str) -> Document:
    """Return the document of `apply`, `attach`, `resume` and `undo`: every action that was planned, what was not begun as waiting."""
    waiting = {one.id: ActionState(id=one.id) for one in planned}
    actions = [
        {
            "id": one.id,
            "state": one.status,
            "seconds": None if one.started is None or one.ended is None else round(one.ended - one.started, 3),
            "error": None if one.error is None else say(language, one.error),
        }
        for one in {**waiting, **state.actions}.values()
    ]
    body = {
        "run": run_id,
        "state": state.status,
        "exit": state.exit,
        "actions": actions,
        "findings": [finding(one, language) for one in found],
    }
    return document(verb, body)


def refused(found: Iterable[Finding], language: Language) -> Document:
    """Return the document of an `apply` that was not started: what was found forbids it."""
    body = {"run": None, "state": "refused", "exit": 3, "actions": [], "findings": [finding(one, language) for one in found]}
    return document("apply", body)


def verdict(rungs: Iterable[Rung], found: Iterable[Finding], language: Language) -> Document:
    """Return the `verify` document; `detail` and `phrases` are beyond the contract and feed the proof screen."""
    shown_rungs = [as_document(one, say(language, one.because), say(language, one.detail)) for one in rungs]
    return document("verify", {"rungs": shown_rungs, "findings": [finding(one, language) for one in found]})
