"""The toolkit step: a system-wide CUDA for those who compile, and cuDNN and NCCL with it."""

from __future__ import annotations

from steps.catalog import stack
from steps.catalog.versions import line, number
from steps.compat import candidates, library_rules, rows, solve, toolkit_plan
from steps.compat.case import Case
from steps.compat.library_rules import cudnn_row
from steps.compat.wheels import cuda_of
from steps.model.action import AnyAction
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Mark, Note, Option
from steps.model.finding import Finding, Patch, StepKey
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile, answered

KEY: StepKey = "toolkit"
ROWS = 8
NONE: Patch = {"toolkit.cuda": "none", "toolkit.cudnn": "none", "toolkit.nccl": "none"}


def applies(machine: Machine) -> bool:
    """Whether there is a card that CUDA programs could be compiled for."""
    cards = judged(machine)
    return bool(cards) and cards[0].vendor == "nvidia"


def intro(machine: Machine, answers: Profile) -> Words:
    """Return what a system toolkit is for."""
    return phrase("toolkit.intro")


def check(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what is to be said about the toolkit."""
    return solve.judge_toolkit(machine, answers)


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return what installs the wanted toolkit and libraries."""
    return toolkit_plan.plan(Case(machine, answers))


def choices(machine: Machine, answers: Profile) -> tuple[Choice, ...]:
    """Return the toolkit lines, and the libraries that go with the chosen one."""
    case = Case(machine, answers)
    taken = answers.toolkit.cuda or "none"
    lines = (_none(taken), *sorted((_line(case, version) for version in _listed(case)), key=lambda row: row.mark == "bad"))
    extras = tuple(row for row in (_cudnn(case), _nccl(case)) if row)
    ticked = tuple(name for name, value in (("cudnn", answers.toolkit.cudnn), ("nccl", answers.toolkit.nccl)) if value and value != "none")
    return (
        Choice(key="toolkit.cuda", kind="one", options=lines, taken=(taken,)),
        Choice(key="toolkit.with", kind="many", title=phrase("toolkit.group.with"), options=extras, taken=ticked),
    )


def _listed(case: Case) -> tuple[str, ...]:
    """Return the lines worth a row: the wheel's, the driver's own, the last of each major, the newest, the chosen one."""
    known = sorted(stack.cudas(), key=number, reverse=True)
    wheel = cuda_of(case.answers.frameworks.get("variant"))
    own = case.driver.row.max_cuda if case.driver.row else None
    wanted = {wheel, own, case.cuda, known[0], "12.9", "12.8", "12.6", "11.8"}
    listed = [version for version in known if version in wanted]
    return tuple(sorted(listed, key=lambda one: (one != case.cuda, one != wheel))[: ROWS - 1])


def _line(case: Case, version: str) -> Option:
    """Return the row of one toolkit line."""
    patch: dict[str, str | None] = {"toolkit.cuda": version, **_carried(case, version)}
    answers = answered(case.answers, patch)
    findings = solve.judge_toolkit(case.machine, answers, lambda finding: finding.code != "toolkit-not-needed")
    mark, tag = _verdict(case, version, findings)
    row = stack.cudas()[version]
    place = rows.place(case, (row.package,))
    if place == "known" and mark == "good":
        mark, tag = "catch", phrase("toolkit.tag.known")
    warned = any(finding.severity == "warning" for finding in findings)
    sentences: tuple[Words, ...] = () if warned else (phrase("toolkit.explain.line", version=row.latest),)
    wheel = cuda_of(case.answers.frameworks.get("variant"))
    if wheel and wheel != version:
        sentences = (*sentences, phrase("toolkit.explain.differs", cuda=version, wheel=wheel))
    notes = (
        Note(label="leads-to", text=f"{_verb(case)} {row.package}", command=True),
        Note(label="cost", text=phrase("toolkit.note.cost")),
        Note(label="undo", text=phrase("toolkit.note.undo")),
        *((Note(label="trap", text=phrase("toolkit.note.low")),) if row.confidence == "low" else ()),
        *((Note(label="from", text=phrase(f"driver.note.place-{place}")),) if place else ()),
        Note(label="source", text=row.source),
    )
    return Option(
        value=version,
        label=phrase("toolkit.option.line", version=version),
        mark=mark,
        tag=tag,
        sentences=() if mark == "bad" else sentences,
        findings=findings,
        notes=notes if mark != "bad" else (),
        patch=patch,
    )


def _carried(case: Case, version: str) -> dict[str, str]:
    """Return cuDNN and NCCL lines for another toolkit, where they are wanted: the newest that were built for it."""
    changed = Case(case.machine, answered(case.answers, {"toolkit.cuda": version}))
    wanted = case.answers.toolkit
    carried: dict[str, str] = {}
    if wanted.cudnn and wanted.cudnn != "none" and cudnn_row(changed) is None:
        carried["toolkit.cudnn"] = next(iter(candidates.cudnn_candidates(changed)), "none")
    lines = candidates.nccl_candidates(changed)
    if wanted.nccl and wanted.nccl != "none" and line(wanted.nccl) not in lines:
        carried["toolkit.nccl"] = next(iter(lines), "none")
    return carried


def _verdict(case: Case, version: str, findings: tuple[Finding, ...]) -> tuple[Mark, Words]:
    """Return the mark of a toolkit line and the word beside it."""
    worst = next((finding for severity in ("error", "warning") for finding in findings if finding.severity == severity), None)
    if worst and worst.severity == "error":
        return "bad", phrase(f"toolkit.finding.{worst.code}.tag")
    if worst:
        return "catch", phrase(f"toolkit.finding.{worst.code}.tag")
    wheel = cuda_of(case.answers.frameworks.get("variant"))
    if wheel and wheel != version:
        return "catch", phrase("toolkit.tag.see-torch")
    return "good", phrase("toolkit.tag.works")


def _verb(case: Case) -> str:
    """Return root's command line up to the package."""
    verbs = {"apt": "apt-get install", "dnf": "dnf install", "zypper": "zypper install", "pacman": "pacman -S"}
    return f"# {verbs[case.distribution.manager if case.distribution else 'apt']}"


def _none(taken: str) -> Option:
    """Return the row that leaves CUDA to the wheels."""
    return Option(
        value="none",
        label=phrase("toolkit.option.none"),
        short=phrase("toolkit.short.none"),
        mark="good",
        tag=phrase("toolkit.tag.recommended"),
        sentences=(phrase("toolkit.explain.none"),),
        patch=NONE,
        recommended=True,
    )


def _cudnn(case: Case) -> Option | None:
    """Return the row of cuDNN: the chosen line, else the newest that nothing forbids."""
    lines = candidates.cudnn_candidates(case)
    return _library(case, "cudnn", "cuDNN", lines, case.answers.toolkit.cudnn)


def _nccl(case: Case) -> Option | None:
    """Return the row of NCCL."""
    return _library(case, "nccl", "NCCL", candidates.nccl_candidates(case), case.answers.toolkit.nccl)


def _library(case: Case, name: str, title: str, lines: tuple[str, ...], chosen: str | None) -> Option:
    """Return the row of one library; without a toolkit there is nothing for it to fit."""
    key, on = f"toolkit.{name}", bool(chosen and chosen != "none")
    if not lines and not on:
        tag = phrase("toolkit.tag.needs-cuda")
        return Option(value=name, label=title, mark="info", tag=tag, sentences=(phrase("toolkit.explain.needs-cuda"),))
    version = chosen if on and chosen else _fitting(case, key, lines)
    answers = answered(case.answers, {key: version})
    findings = solve.judge_toolkit(case.machine, answers, lambda finding: title in finding.subject)
    bad = any(finding.severity == "error" for finding in findings)
    return Option(
        value=name,
        label=phrase("toolkit.option.library", name=title, version=version, major=case.cuda_major or "?"),
        mark="bad" if bad else "good",
        tag=phrase(f"toolkit.finding.{findings[0].code}.tag") if bad else phrase("toolkit.tag.fits"),
        sentences=() if bad else (phrase(f"toolkit.explain.{name}"),),
        findings=findings,
        notes=()
        if bad
        else tuple(
            Note(label="leads-to", text=f"{_verb(case)} {' '.join(names)}", command=True)
            for names in (toolkit_plan.library_names(Case(case.machine, answers), name, version),)
            if names
        ),
        patch={key: "none" if on else version},
    )


def _fitting(case: Case, key: str, lines: tuple[str, ...]) -> str:
    """Return the newest line that bears CUDA, the cards and the driver, else the newest."""
    name = key.partition(".")[2]
    changed = ((version, Case(case.machine, answered(case.answers, {key: version}))) for version in lines)
    return next((version for version, one in changed if library_rules.fits(one, name)), lines[0])
