"""A verdict of the doctor as the document of the contract, and as lines to read."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

from steps.doctor.diagnosis import Diagnosis, Open, RuledOut, Step, Unseen, Verdict
from steps.doctor.facts.owners import OwnedFile, Owners
from steps.doctor.told import Place
from steps.managers.shown import written
from steps.model.action import Write
from steps.model.base import Phrase, phrase
from steps.text import Language, say

_MOST_LINES = 24
"""Lines of a file that is written that stand under a step: a list of sources may be long, and most of it stays as it was."""


def document(verdict: Verdict, language: Language) -> dict[str, Any]:
    """Return the body of the document."""
    return {
        "healthy": verdict.healthy,
        "diagnoses": [_diagnosis(one, language) for one in verdict.diagnoses],
        "ruled_out": [
            {"id": one.id, "title": say(language, one.title), "because": _otherwise(language, one), "evidence": _places(one.evidence)}
            for one in verdict.ruled_out
        ],
        "open": [
            {
                "id": one.id,
                "title": say(language, one.title),
                "because": say(language, phrase("doctor.if-so", because=say(language, one.because))),
                "probe": one.probe,
            }
            for one in verdict.open
        ],
        "asks": list(verdict.asks),
        "foreign": {"what": verdict.foreign.what, "there": verdict.foreign.there, "here": verdict.foreign.here}
        if verdict.foreign
        else None,
        "unseen": [{"probe": one.probe, "reason": one.reason, "because": say(language, _unseen(one))} for one in verdict.unseen],
    }


def _otherwise(language: Language, one: RuledOut) -> str:
    """Return what would have been seen, said so that nobody takes it for what was."""
    return say(language, phrase("doctor.otherwise", because=say(language, one.because)))


def _unseen(one: Unseen) -> Phrase:
    """Return why a probe told nothing, and what that leaves open."""
    return phrase(f"doctor.unseen.{one.reason}{'-log' if one.probe == 'dmesg' else ''}")


def _diagnosis(one: Diagnosis, language: Language) -> dict[str, Any]:
    verify = one.repair.verify
    return {
        "id": one.id,
        "primary": one.primary,
        "part": one.part,
        "severity": one.severity,
        "confidence": one.confidence,
        "known": one.known,
        "title": say(language, one.title),
        "evidence": _places(one.evidence),
        "because": say(language, one.because),
        "fix": [_step(step, language) for step in one.repair.steps],
        "avoid": [say(language, words) for words in one.repair.avoid],
        "verify": {"command": list(verify.command), "expect": say(language, verify.expect)} if verify else None,
    }


def _step(step: Step, language: Language) -> dict[str, Any]:
    return {
        "step": say(language, step.says),
        "command": list(step.commands[0]) if step.commands else None,
        **({"commands": [list(argv) for argv in step.commands]} if len(step.commands) > 1 else {}),
        **({"parts": [_written(part) for part in step.parts]} if step.files and step.commands else {}),
        **({"writes": [{"path": one.path, "text": one.text} for one in step.files]} if step.files else {}),
        "reboot": step.reboot,
        "undo": say(language, step.undo) if step.undo is not None else None,
    }


def _written(part: tuple[str, ...] | Write) -> dict[str, Any]:
    """Return a part of a step where commands and files take turns."""
    return {"path": part.path, "text": part.text} if isinstance(part, Write) else {"command": list(part)}


def _places(places: tuple[Place, ...]) -> list[dict[str, str]]:
    return [{"from": place.source, "text": place.text} for place in places]


def lines(verdict: Verdict, language: Language) -> Iterator[str]:
    """Yield the verdict for a reader: the cause first, then its evidence, what was ruled out, the repair, and the proof."""
    cause = verdict.cause
    if verdict.foreign is not None:
        about = "beside" if verdict.foreign.beside else verdict.foreign.what
        yield say(language, phrase(f"doctor.foreign.{about}", there=verdict.foreign.there, here=verdict.foreign.here))
        yield ""
    if cause is None:
        yield say(language, phrase("doctor.healthy"))
        return
    if verdict.healthy and cause.id != "none":
        yield say(language, phrase("doctor.healthy"))
        yield ""
    yield say(language, cause.title)
    yield f"  {say(language, cause.because)}"
    if cause.known and (cause.evidence or not verdict.healthy):
        yield say(language, phrase("doctor.sure", percent=round(cause.confidence * 100)))
    yield from _block(language, "evidence", _quoted(cause.evidence))
    yield from _block(
        language, "ruled-out", (_ruled(language, say(language, one.title), say(language, one.because)) for one in verdict.ruled_out)
    )
    yield from _block(language, "open", (_not_seen(one, language) for one in verdict.open))
    yield from _block(
        language, "beside", (say(language, one.title) for one in verdict.diagnoses if one.part == "beside" and one.id != "none")
    )
    yield from _block(language, "consequences", (say(language, one.title) for one in verdict.diagnoses if one.part == "consequence"))
    yield from repair(cause, language)
    yield from _block(language, "unseen", (f"{one.probe}: {say(language, _unseen(one))}" for one in verdict.unseen))
    yield from _block(language, "asks", verdict.asks)


def repair(cause: Diagnosis, language: Language) -> Iterator[str]:
    """Yield how a cause is repaired, what to leave alone, and how to see that it worked; nothing where there is nothing to do."""
    yield from _block(language, "repair", _steps(cause.repair.steps, language))
    yield from _block(language, "avoid", (say(language, words) for words in cause.repair.avoid))
    verify = cause.repair.verify
    if verify is not None and cause.severity != "not-a-fault":
        yield from _block(language, "proof", (f"{shlex.join(verify.command)}   {say(language, verify.expect)}",))


def _block(language: Language, key: str, body: Any) -> Iterator[str]:
    """Yield a heading and what stands under it; nothing when there is nothing."""
    shown = list(body)
    if shown:
        yield ""
        yield say(language, phrase(f"doctor.heading.{key}"))
        yield from (f"  {line}" for line in shown)


def _ruled(language: Language, title: str, because: str) -> str:
    return say(language, phrase("doctor.ruled"), title=title, because=because)


def _not_seen(one: Open, language: Language) -> str:
    """Return a look-alike that is open, with the command that would tell."""
    title = say(language, one.title)
    return title if one.probe is None else say(language, phrase("doctor.would-tell"), title=title, probe=one.probe)


def _quoted(places: tuple[Place, ...]) -> Iterator[str]:
    for place in places:
        first, *rest = place.text.splitlines() or [""]
        yield f"{place.source}: {first}"
        yield from (f"    {line.strip()}" for line in rest[:6])


def _steps(steps: tuple[Step, ...], language: Language) -> Iterator[str]:
    for number, step in enumerate(steps, 1):
        yield f"{number}. {say(language, step.says)}"
        for part in step.parts:
            if not isinstance(part, Write):
                yield f"   $ {_typed(part)}"
                continue
            yield f"   > {part.path}"
            lines = written(part)
            yield from (f"     {line}" for line in lines[:_MOST_LINES])
            if len(lines) > _MOST_LINES:
                yield f"     {say(language, phrase('doctor.more-lines', count=len(lines) - _MOST_LINES))}"


def _typed(argv: tuple[str, ...]) -> str:
    """Return a command as one types it; of a file that is copied under a name that only a pattern knows, the shell finds it."""
    by_pattern = argv[0] == "install"
    return " ".join(word if by_pattern and re.fullmatch(r"[\w./*-]+", word) else shlex.quote(word) for word in argv)


# --- who owns what --------------------------------------------------------------------------------


def owned(found: Owners) -> dict[str, Any]:
    """Return the driver's files with their owners, what stands in each other's way, and the smallest clean-up."""
    return {
        "files": [
            {"path": one.path, "kind": one.kind, "owner": one.owner, "name": one.name, "version": one.version} for one in found.files
        ],
        "conflicts": [{"what": one.what, "paths": [file.path for file in one.files]} for one in found.conflicts],
        "clean_up": [list(command) for command in clean_up(found)],
    }


def clean_up(found: Owners) -> tuple[tuple[str, ...], ...]:
    """Return the fewest commands after which each file has one owner: NVIDIA's own uninstaller, else only what is in a package's way."""
    if not found.conflicts:
        return ()
    if found.uninstaller and any(one.owner == "installer" for one in found.strangers):
        return ((found.uninstaller, "--silent"),)
    return tuple(("mv", "--", one.path, f"{one.path}.disabled") for one in found.strangers if one.owner != "wheel")


def owner_lines(found: Owners, language: Language) -> Iterator[str]:
    """Yield who owns the driver's files, how many each, then the conflicts file by file, and the clean-up."""
    counts = Counter((one.owner, one.name) for one in found.files)
    yield from _block(
        language, "owners", (_count(language, owner, name, count) for (owner, name), count in sorted(counts.items(), key=str))
    )
    conflicts = (line for one in found.conflicts for line in (one.what, *(_file(language, file) for file in one.files)))
    yield from _block(language, "conflicts", conflicts)
    yield from _block(language, "clean-up", (f"$ {shlex.join(command)}" for command in clean_up(found)))


def _count(language: Language, owner: str, name: str | None, count: int) -> str:
    return f"{count:4d}  {say(language, phrase(f'doctor.owner.{owner}'))}{f' {name}' if name else ''}"


def _file(language: Language, file: OwnedFile) -> str:
    return f"  {file.path}  {say(language, phrase(f'doctor.owner.{file.owner}'))}{f' {file.name}' if file.name else ''}"
