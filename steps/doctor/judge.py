"""From the answers of all rules to one primary cause: causal order first, then strength, then severity."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

import msgspec

from steps.catalog.diagnoses import DiagnosisRow, diagnoses, probes_of, words
from steps.doctor.diagnosis import Diagnosis, Open, Part, Repair, RuledOut, Step, Verdict
from steps.doctor.evidence import Evidence
from steps.doctor.repairs.all import repair_of
from steps.doctor.rules.all import rules
from steps.doctor.rules.base import LIKELY, POSSIBLE, WEAK, Candidate, Out
from steps.doctor.unknown import unanswered, unexplained
from steps.doctor.worded import worded
from steps.model.base import Phrase, phrase
from steps.text import lookup

_LEAST = WEAK - 0.1
"""Weaker candidates are no news to anybody."""
_MARGIN = 0.3
"""A cause that is so much weaker than what it would explain explains nothing: its own evidence is too thin."""
_RIVAL = 0.1
"""Another possible cause within this distance makes the first one less sure."""
_HARMLESS = "not-a-fault"
_MOST_EVIDENCE = 8


def judge(seen: Evidence) -> Verdict:
    """Return what is the matter with a machine; with another one's log, what that log tells, and nothing to be repaired here."""
    said = _told(seen)
    return said if seen.driver_answers is True or seen.foreign is not None or not _empty(said) else _doubtful(seen, said)


def _empty(said: Verdict) -> bool:
    """Return whether a verdict names no cause: all is well, or only the symptom is known."""
    cause = said.cause
    return cause is None or cause.id == "none" or (not cause.known and cause.confidence < WEAK)


def _doubtful(seen: Evidence, said: Verdict) -> Verdict:
    """Return the fault that shows only in what seemed to be over or quoted, as a possible one; `said` where there is none either.

    Where no driver answers nothing tells that all is well: a fault that somebody wrote down is then more likely than none.
    """
    for quoted in (False, True):
        more = _judge(seen.doubted(quoted=quoted))
        cause = more.cause
        if cause is not None and not _empty(more) and diagnoses()[cause.id].severity != _HARMLESS:
            return msgspec.structs.replace(
                more, healthy=False, diagnoses=(_shown(cause, "doctor.unknown.doubted.because"),), asks=more.asks or cause.asks
            )
    return said


def _shown(cause: Diagnosis, because: str) -> Diagnosis:
    """Return a cause as one that is only possible, and on which nothing is repaired."""
    confidence = round(min(cause.confidence, POSSIBLE), 2)
    return msgspec.structs.replace(cause, known=False, confidence=confidence, because=phrase(because), repair=Repair())


def _told(seen: Evidence) -> Verdict:
    if seen.foreign is None:
        said = _judge(seen)
        return _of_log(seen, said) if seen.handed and (said.cause is None or diagnoses()[said.cause.id].severity == _HARMLESS) else said
    told = _judge(seen.logs_alone())
    own = judge(seen.without_logs())
    if not own.healthy:
        return _beside(seen, own, told)
    without = (msgspec.structs.replace(one, repair=Repair()) for one in told.diagnoses)
    return msgspec.structs.replace(told, diagnoses=tuple(without), asks=(), foreign=seen.foreign)


def _beside(seen: Evidence, own: Verdict, told: Verdict) -> Verdict:
    """Return the fault of the machine itself with that of a foreign log beside it."""
    known = {one.id for one in own.diagnoses}
    theirs = [one for one in told.diagnoses if one.primary and one.severity != _HARMLESS and one.id not in known]
    more = (msgspec.structs.replace(one, part="beside", repair=Repair()) for one in theirs)
    marked = msgspec.structs.replace(seen.foreign, beside=True) if seen.foreign else None
    return msgspec.structs.replace(own, diagnoses=(*own.diagnoses, *more), foreign=marked)


def _of_log(seen: Evidence, said: Verdict) -> Verdict:
    """Return the fault that a handed log shows by itself, where the machine shows none: that it is well now says nothing of then."""
    told = _judge(seen.logs_alone())
    cause = told.cause
    if cause is None or diagnoses()[cause.id].severity == _HARMLESS:
        return msgspec.structs.replace(told, unseen=said.unseen) if said.healthy and cause is not None and not cause.known else said
    # What facts of this machine rule out is named in words only: here it is nobody's fault.
    here = not any(isinstance(rule.decide(seen), Out) for rule in rules() if rule.id == cause.id)
    if not here and said.cause is not None and said.cause.title.key.startswith("doctor.unknown.line-"):
        return said
    shown = _shown(cause, "doctor.unknown.log.because")
    if not here:
        shown = msgspec.structs.replace(shown, id="none", severity=_HARMLESS)
    return Verdict(healthy=False, diagnoses=(shown,), asks=said.asks or cause.asks, unseen=said.unseen)


def _judge(seen: Evidence) -> Verdict:
    answers = {rule.id: answer for rule in rules() if (answer := rule.decide(seen)) is not None}
    candidates = {id: answer for id, answer in answers.items() if isinstance(answer, Candidate) and answer.strength >= _LEAST}
    if any(diagnoses()[id].severity != _HARMLESS for id in candidates):
        candidates.pop("none", None)
    excluded = {id: answer for id, answer in answers.items() if isinstance(answer, Out)}
    ranked = _ranked(candidates)
    if all(diagnoses()[id].severity == _HARMLESS for id in candidates):
        unknown = unanswered(seen) or unexplained(seen, candidates)
        if unknown is not None:
            return Verdict(healthy=False, diagnoses=(unknown,), asks=unknown.asks, unseen=seen.unseen)
    if not ranked:
        return Verdict(healthy=True, unseen=seen.unseen)
    cause = ranked[0]
    parts: dict[str, Part] = {id: _part(id, cause) for id in ranked}
    confidence = _confidence(cause, candidates)
    alike = _look_alikes(cause, candidates)
    return Verdict(
        healthy=all(diagnoses()[id].severity == _HARMLESS for id in candidates),
        diagnoses=tuple(_diagnosis(seen, id, candidates[id], parts[id], confidence) for id in ranked),
        ruled_out=_ruled_out(alike, excluded),
        open=_open(seen, cause, alike, excluded),
        asks=_asks(seen, cause) if confidence < LIKELY else _refused(seen) if cause == "none" else (),
        unseen=seen.unseen,
    )


def _ranked(candidates: Mapping[str, Candidate]) -> list[str]:
    """Return the candidates, the one cause first, then what follows from it, then what is beside it.

    A fault goes before what is none; among faults one that nothing else explains, the surest first. What remains equal is settled by
    severity and the order of the table, so that the answer never depends on chance.
    """
    table = diagnoses()
    order = {id: position for position, id in enumerate(table)}

    def key(id: str) -> tuple[bool, bool, float, bool, int]:
        row = table[id]
        return (row.severity == _HARMLESS, _explained(id, candidates), -candidates[id].strength, row.severity != "broken", order[id])

    found = sorted(candidates, key=key)
    if not found:
        return []
    # Where nothing is wrong, what explains an alarming line says more than that all is well.
    if table[found[0]].severity == _HARMLESS and len(found) > 1:
        found.sort(key=lambda id: id == "none")
    first = found[0]
    return [first, *sorted(found[1:], key=lambda id: _part(id, first) == "beside")]


def _explained(id: str, candidates: Mapping[str, Candidate]) -> bool:
    """Return whether a candidate is the mere consequence of another one."""
    return any(_explains(other, id, candidates) for other in candidates)


def _explains(cause: str, id: str, candidates: Mapping[str, Candidate]) -> bool:
    if id not in diagnoses()[cause].explains:
        return False
    strength = candidates[cause].strength
    return strength >= POSSIBLE and strength >= candidates[id].strength - _MARGIN


def _part(id: str, cause: str) -> Part:
    """Return what a candidate is beside the cause: itself, its consequence (also by way of others), or something else."""
    return "cause" if id == cause else "consequence" if id in _reach(cause) else "beside"


def _reach(cause: str) -> set[str]:
    """Return everything that a cause explains, step by step."""
    reached: set[str] = set()
    todo = [cause]
    while todo:
        for id in diagnoses()[todo.pop()].explains:
            if id not in reached:
                reached.add(id)
                todo.append(id)
    return reached


def _confidence(cause: str, candidates: Mapping[str, Candidate]) -> float:
    """Return how sure the cause is: a look-alike that is nearly as strong, and no consequence of it, takes from it."""
    own = candidates[cause].strength
    row = diagnoses()[cause]
    rivals = [id for id in row.look_alikes if id in candidates and id not in _reach(cause) and candidates[id].strength > own - _RIVAL]
    return round(own * (0.8 if rivals else 1.0), 2)


def _diagnosis(seen: Evidence, id: str, candidate: Candidate, part: Part, confidence: float) -> Diagnosis:
    row = diagnoses()[id]
    repair = repair_of(seen.own, row, candidate)
    return Diagnosis(
        id=id,
        part=part,
        severity=row.severity,
        # What is no cause must not look surer than the cause.
        confidence=confidence if part == "cause" else round(min(candidate.strength, confidence) * 0.9, 2),
        title=_title(id, candidate, part),
        because=_because(id, candidate),
        evidence=tuple(fact.place for fact in candidate.facts[:_MOST_EVIDENCE]),
        repair=msgspec.structs.replace(repair, steps=tuple(_step(step) for step in repair.steps)),
    )


def _title(id: str, candidate: Candidate, part: Part) -> Phrase:
    """Return what is the matter; a variant that is something else in plain words has a title of its own, and what follows may have one."""
    if part == "consequence" and lookup("en", words(id, "title-follows")) is not None:
        return phrase(words(id, "title-follows"))
    own = words(id, f"title-{candidate.variant}")
    if candidate.variant and lookup("en", own) is not None:
        return Phrase(key=own, params=candidate.params)
    return phrase(words(id, "title"))


def _because(id: str, candidate: Candidate) -> Phrase:
    part = f"because-{candidate.variant}" if candidate.variant else "because"
    return worded(Phrase(key=words(id, part), params=candidate.params))


def _step(step: Step) -> Step:
    """Return a step, and what a run does for it, without values that are missing."""
    says = worded(step.says)
    if says is step.says:
        return step
    actions = tuple(msgspec.structs.replace(one, title=says) if one.title == step.says else one for one in step.actions)
    return msgspec.structs.replace(step, says=says, actions=actions)


def _look_alikes(cause: str, candidates: Mapping[str, Candidate]) -> tuple[DiagnosisRow, ...]:
    """Return the look-alikes of a cause that are not found."""
    table = diagnoses()
    return tuple(table[id] for id in table[cause].look_alikes if id not in candidates and id not in ("none", cause))


def _ruled_out(rows: Iterable[DiagnosisRow], excluded: Mapping[str, Out]) -> tuple[RuledOut, ...]:
    """Return those that facts speak against: that nothing speaks for one rules nothing out."""
    against = ((row, excluded[row.id].facts) for row in rows if row.id in excluded and excluded[row.id].facts)
    return tuple(
        RuledOut(
            id=row.id,
            title=phrase(words(row.id, "title")),
            because=phrase(words(row.id, "sign")),
            evidence=tuple(fact.place for fact in facts),
        )
        for row, facts in against
    )


def _open(seen: Evidence, cause: str, rows: Iterable[DiagnosisRow], excluded: Mapping[str, Out]) -> tuple[Open, ...]:
    """Return those that nothing speaks for or against; beside health no harmless ones, and those of WSL only where it may be one."""
    left = (
        row
        for row in rows
        if (row.id not in excluded or not excluded[row.id].facts)
        and not (cause == "none" and row.severity == _HARMLESS)
        and not (row.category == "wsl" and seen.system.wsl is False)
    )
    return tuple(
        Open(id=row.id, title=phrase(words(row.id, "title")), because=phrase(words(row.id, "sign")), probe=_telling(seen, row))
        for row in left
    )


def _telling(seen: Evidence, row: DiagnosisRow) -> str | None:
    """Return the command that would tell of a cause and was not asked yet; of a recording, which may hold a part of it, any."""
    fresh = (probe for probe in probes_of(row) if not seen.asked(*shlex.split(probe)))
    return next(fresh, next(iter(probes_of(row)), None) if seen.rehearsal else None)


def _asks(seen: Evidence, cause: str) -> tuple[str, ...]:
    """Return the commands that would tell the cause from its look-alikes and were not asked yet."""
    row = diagnoses()[cause]
    wanted = [*row.probes, *(probe for id in row.look_alikes for probe in diagnoses()[id].probes)]
    left = (line for line in dict.fromkeys(wanted) if seen.rehearsal and not seen.asked(*line.split()))
    return (*_refused(seen), *left)[:4]


def _refused(seen: Evidence) -> tuple[str, ...]:
    """Return what was refused, or failed, to be asked again with root's rights."""
    return tuple(f"sudo {one.probe}" for one in seen.unseen if one.reason != "hangs")[:4]
