"""What an answer does to the other answers: what changes with it, what is kept, what stands in its way, and the ways round."""

from __future__ import annotations

from collections.abc import Mapping

from steps.compat import candidates, solve
from steps.compat.case import Case, installed_driver
from steps.model.base import Record, Words, phrase
from steps.model.finding import Finding, Patch
from steps.model.machine import Machine
from steps.model.profile import Profile, answered, as_tables

ROUNDS = 4
"""How many answers may follow from one: driver, toolkit, framework, Python."""
WAYS = 9
"""How many ways have a digit."""
_TITLES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
_BESIDE = ("torchvision", "torchaudio")
"""Packages that follow PyTorch and need no word of their own."""
_STACK = frozenset({"driver", "toolkit", "environment", "frameworks"})
"""Tables of answers that can change each other: of any other row it goes without saying that they stay."""


class Change(Record):
    """One answer that becomes another: its name, and how it is called before and after; `None` when there is none."""

    topic: str
    title: Words
    before: Words | None = None
    after: Words | None = None


class Effects(Record):
    """What taking a patch comes to: all that is to be taken, what it changes besides itself, and what stays."""

    patch: Patch
    changes: tuple[Change, ...] = ()
    keeps: tuple[Words, ...] = ()


class Way(Record):
    """One way out of what forbids an option: what it takes, and what it changes."""

    patch: Patch
    changes: tuple[Change, ...]


class Reason(Record):
    """One line of what forbids an option."""

    kind: str
    """`fact`, `answer` or `option`."""
    words: Words
    topic: str = ""


# --- names ----------------------------------------------------------------------------------------


def topic_of(key: str) -> str:
    """Return the topic that a profile key belongs to: one answer as a person sees it may be several keys."""
    table, _, name = key.partition(".")
    if table == "driver":
        return "driver" if name not in ("ignore", "console") else f"driver.{name}"
    if table == "environment":
        return "python" if name in ("python", "manager") else key
    if key == "frameworks.variant":
        return "torch"
    return name if table in ("toolkit", "frameworks") else key


def titled(topic: str) -> Words:
    """Return the name of a topic."""
    if topic == "driver":
        return phrase("driver.name")
    return {"cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL", "python": "Python", **_TITLES}.get(topic, topic)


def named(machine: Machine, answers: Profile) -> dict[str, Words]:
    """Return the answers about the stack by topic, as a person calls them; what is not wanted is left out."""
    found: dict[str, Words] = {}
    driver = answers.driver
    if driver.source == "keep":
        found["driver"] = installed_driver(machine)[0] or "?"
    elif driver.branch:
        found["driver"] = phrase(f"driver.option.{driver.flavor or 'proprietary'}", branch=driver.branch)
    for name in ("cuda", "cudnn", "nccl"):
        value = getattr(answers.toolkit, name)
        if value and value != "none":
            found[name] = value
    variant = answers.frameworks.get("variant")
    for name, version in answers.frameworks.items():
        if name != "variant" and name not in _BESIDE:
            found[name] = f"{version}+{variant}" if name == "torch" and variant else version
    if answers.environment.python:
        found["python"] = answers.environment.python
    return found


def differences(machine: Machine, before: Profile, after: Profile) -> tuple[Change, ...]:
    """Return the topics in which two sets of answers differ."""
    old, new = named(machine, before), named(machine, after)
    topics = dict.fromkeys((*old, *new))
    return tuple(
        Change(topic=topic, title=titled(topic), before=old.get(topic), after=new.get(topic))
        for topic in topics
        if old.get(topic) != new.get(topic)
    )


# --- what follows ---------------------------------------------------------------------------------


def effects(machine: Machine, answers: Profile, patch: Patch) -> Effects:
    """Return what taking `patch` comes to: answers that would no longer fit are changed with it, the others stay."""
    own = {topic_of(key) for key in patch}
    whole = {**patch, **carried(machine, answers, patch)}
    after = answered(answers, whole)
    changes = tuple(change for change in differences(machine, answers, after) if change.topic not in own or _led(patch, change.topic))
    changed = {change.topic for change in changes} | own
    kept = named(machine, answers) if any(key.partition(".")[0] in _STACK for key in whole) else {}
    keeps = tuple(_together(titled(topic), words) for topic, words in kept.items() if topic not in changed)
    return Effects(patch=whole, changes=changes, keeps=keeps)


def _together(title: Words, words: Words) -> Words:
    """Return a name with what it is called; the driver's own words come with its name already."""
    return f"{title} {words}" if isinstance(title, str) and isinstance(words, str) else words


def _led(patch: Patch, topic: str) -> bool:
    """Return whether a topic of the patch only follows its first one, such as cuDNN a toolkit line; of a set of packages all do."""
    topics = dict.fromkeys(topic_of(key) for key in patch)
    packages = [one for one in topics if f"frameworks.{one}" in patch and one not in ("torch", *_BESIDE)]
    return len(topics) > 1 and (topic != next(iter(topics)) or len(packages) > 1)


def carried(machine: Machine, answers: Profile, patch: Patch) -> Patch:
    """Return the further changes without which `patch` would make other answers impossible; empty when it needs none or none helps."""
    after = answered(answers, patch)
    if after == answers:
        return {}
    before = _forbidding(machine, answers)
    extra: dict[str, object] = {}
    for _ in range(ROUNDS):
        fix = next(
            (found.fix for key, found in _forbidding(machine, after).items() if key not in before and _follows(found.fix, patch)), None
        )
        if fix is None:
            break
        extra.update(fix)
        after = answered(after, fix)
    still = any(key not in before for key in _forbidding(machine, after))
    return {} if still else {key: value for key, value in extra.items() if key not in patch}  # type: ignore[misc]  # values of patches


def _forbidding(machine: Machine, answers: Profile) -> dict[tuple[str, str], Finding]:
    """Return the errors of a set of answers by code and step."""
    return {(found.code, found.step): found for found in solve.judge(machine, answers) if found.severity == "error"}


def _follows(fix: Patch | None, patch: Patch) -> bool:
    """Return whether a fix leaves alone what the patch takes."""
    return fix is not None and not any(key in patch and patch[key] != value for key, value in fix.items())


# --- what forbids, and the ways round ---------------------------------------------------------------


def reasons(machine: Machine, answers: Profile, patch: Patch, label: Words, findings: tuple[Finding, ...]) -> tuple[Reason, ...]:
    """Return the smallest set of facts and answers that forbids an option, the option itself last."""
    main = next((found for found in findings if found.severity == "error"), None)
    if main is None:
        return ()
    topics = needed(machine, answers, patch, main.code)
    names = named(machine, answers)
    facts = tuple(Reason(kind="fact", words=words) for words in main.because)
    mine = tuple(Reason(kind="answer", words=_said(topic, names[topic]), topic=topic) for topic in topics)
    return (*facts, *mine, Reason(kind="option", words=label))


def _said(topic: str, words: Words) -> Words:
    """Return an answer with its title."""
    if topic == "driver":
        return words
    return f"{titled(topic)} {words}" if isinstance(words, str) else words


def needed(machine: Machine, answers: Profile, patch: Patch, code: str) -> tuple[str, ...]:
    """Return the topics of the answers without which the finding would not be there; none where it rests on facts alone."""
    if code not in _codes(machine, answered(answers, patch)):
        return ()
    own = {topic_of(key) for key in patch}
    others = (topic for topic in named(machine, answers) if topic not in own)
    return tuple(topic for topic in others if code not in _codes(machine, answered(without(answers, topic), patch)))


def without(answers: Profile, topic: str) -> Profile:
    """Return the answers without one topic."""
    return answered(answers, _gone(answers, topic))


def _gone(answers: Profile, topic: str) -> Patch:
    """Return the patch that takes a topic out; a toolkit part becomes "none"."""
    topics = (topic, *_BESIDE) if topic == "torch" else (topic,)
    keys = [f"{table}.{name}" for table, entries in as_tables(answers).items() if isinstance(entries, Mapping) for name in entries]
    parts = ("cuda", "cudnn", "nccl")
    return {key: "none" if topic in parts else None for key in keys if topic_of(key) in topics and key != "environment.manager"}


def _codes(machine: Machine, answers: Profile) -> set[str]:
    return {code for code, _ in _forbidding(machine, answers)}


def ways(machine: Machine, answers: Profile, patch: Patch, findings: tuple[Finding, ...], advised: Patch | None) -> tuple[Way, ...]:
    """Return the nearest ways out of what forbids an option, the one that changes least first among those that take it.

    First the repairs of its findings, then the option itself with one of your other answers changed, then the advised answer.
    """
    fixes = [found.fix for found in findings if found.fix is not None]
    blocked = next((found for found in findings if found.severity == "error"), None)
    tried: list[Patch] = list(fixes)
    if blocked is not None:
        for topic in needed(machine, answers, patch, blocked.code):
            tried += [{**patch, **other} for other in _others(machine, answered(answers, patch), answers, topic)]
    if advised:
        tried.append(advised)
    found: list[Way] = []
    before = set(_forbidding(machine, answers))
    for one in tried:
        whole = {**one, **carried(machine, answers, one)}
        after = answered(answers, whole)
        changes = differences(machine, answers, after)
        known = any(way.changes == changes for way in found)
        if changes and not known and not set(_forbidding(machine, after)) - before:
            found.append(Way(patch=whole, changes=changes))
    return tuple(found)[:WAYS]


def _others(machine: Machine, changed: Profile, answers: Profile, topic: str) -> list[Patch]:
    """Return what a topic could become so that nothing forbids the option any more: the best such answer, or none at all."""
    if topic == "driver":
        base = answered(changed, candidates.NO_DRIVER)
        offered = candidates.driver_candidates(machine, base)
        return [next((one for one in offered if not _forbidding(machine, answered(changed, one))), {})]
    if topic == "python":
        lines = [one for one in candidates.PYTHONS if not _forbidding(machine, answered(changed, {"environment.python": one}))]
        return [{"environment.python": one} for one in lines[:1]]
    if topic == "torch":
        case = Case(machine, changed)
        for release, variant in list(candidates.torch_candidates(case))[:WAYS]:
            one: Patch = {"frameworks.torch": release.version, "frameworks.variant": variant}
            if not _forbidding(machine, answered(changed, one)):
                return [one, _gone(answers, topic)]
    return [_gone(answers, topic)]
