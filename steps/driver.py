"""The driver step: which branch, which kind of kernel modules, and where the packages come from."""

from __future__ import annotations

from itertools import chain

from steps.catalog import stack
from steps.catalog.versions import number
from steps.compat import candidates, driver_packages, driver_plan, solve
from steps.compat.case import Case, installed_driver
from steps.compat.system_rules import archive_variant, signed
from steps.model.action import AnyAction
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Mark, Note, Option
from steps.model.finding import Finding, Patch, StepKey
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile, answered

KEY: StepKey = "driver"
ROWS = 9
"""How many drivers are listed: with the two groups' headings they fill the 18 rows of the screen."""
ENDED = 2
"""How many branches past their end of life are listed."""


def applies(machine: Machine) -> bool:
    """Whether there is a card of NVIDIA's; others bring their driver with the kernel."""
    cards = judged(machine)
    return bool(cards) and cards[0].vendor == "nvidia"


def intro(machine: Machine, answers: Profile) -> Words:
    """Return where the driver of this machine comes from."""
    case = Case(machine, answers)
    if case.wsl:
        return phrase("driver.intro.wsl")
    if case.contained:
        return phrase("driver.intro.container")
    offered = sorted({variant.partition("-")[0] for variant in case.distribution.archive}, key=number) if case.distribution else []
    if offered:
        return phrase("driver.intro.offered", system=(machine.os.id or "").capitalize(), branches=", ".join(offered))
    return phrase("driver.intro.plain")


def check(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what is to be said about the driver."""
    return solve.judge_driver(machine, answers)


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return what installs the chosen driver."""
    return driver_plan.plan(Case(machine, answers), target)


# --- choices --------------------------------------------------------------------------------------


def choices(machine: Machine, answers: Profile) -> tuple[Choice, ...]:
    """Return the drivers, and the sources that the chosen one can come from."""
    case = Case(machine, answers)
    rows = _drivers(case)
    groups = [Choice(key="driver.branch", kind="one", options=rows, taken=(_value(answers),))]
    sources = _sources(case)
    if len(sources) > 1:
        taken = answers.driver.source or ""
        groups.append(
            Choice(
                key="driver.source",
                kind="one",
                title=phrase("driver.group.source"),
                options=sources,
                taken=(taken + "-server" if answers.driver.server else taken,),
            )
        )
    return tuple(groups)


def _value(answers: Profile) -> str:
    """Return the row that the answers hold now."""
    driver = answers.driver
    if driver.source == "keep":
        return "keep"
    return f"{driver.branch}-{driver.flavor or 'proprietary'}" if driver.branch else "none"


def _drivers(case: Case) -> tuple[Option, ...]:
    """Return the rows of drivers: what can be taken first, then what cannot, and why."""
    best = solve.recommend(case.machine).choices
    advised = _value(best) if best else ""
    version, _ = installed_driver(case.machine)
    rows = [_kept(case, version, advised)] if version and not (case.wsl or case.contained) else []
    listed = [] if not _offers(case) else [_driver(case, patch, advised) for patch in _offers(case)]
    order = {"good": 0, "catch": 1, "unknown": 2, "info": 2, "bad": 3}
    taken = _value(case.answers)
    listed.sort(key=lambda row: (not row.recommended, row.value != taken, order[row.mark]))
    room = ROWS - len(rows) - 1
    bad = [row for row in listed if row.mark == "bad"]
    usable = [row for row in listed if row.mark != "bad"][: max(room - min(len(bad), 3), 1)]
    rows += usable + bad[: room - len(usable)]
    return (*rows, _none(case, advised))


def _offers(case: Case) -> list[Patch]:
    """Return one offer for each branch and kind of modules: of the archive where it has it, else of NVIDIA's repository.

    Listed are supported branches, the two newest that ended, and whatever is chosen or recommended.
    """
    wanted = _listed(case)
    found: dict[tuple[str, str], Patch] = {}
    # The default of the cards' kind goes first, so that it is what the row of a branch means.
    archive = sorted(candidates.archive_drivers(case.distribution), key=lambda patch: bool(patch["driver.server"]) != case.data_center)
    for patch in chain(archive, candidates.repository_drivers(case)):
        branch, flavor = str(patch["driver.branch"]), str(patch["driver.flavor"])
        if branch in wanted and branch in stack.branches():
            found.setdefault((branch, flavor), patch)
    return [found[key] for key in sorted(found, key=lambda key: (number(key[0]), key[1] == "open"), reverse=True)]


def _listed(case: Case) -> set[str]:
    """Return the branches that are worth a row."""
    rows = list(stack.branches().values())
    today = stack.checked()
    ended = [row.name for row in rows if row.end_of_life and row.end_of_life <= today and row.kind in ("production", "lts")]
    listed = {row.name for row in rows if row.kind in ("lts", "production") and row.name not in ended} | set(ended[-ENDED:])
    listed |= {gpu.row.last_branch for gpu in case.gpus if gpu.row and gpu.row.last_branch}
    best = solve.recommend(case.machine).choices
    listed |= {branch for branch in (case.answers.driver.branch, best.driver.branch if best else None) if branch}
    return listed


def _driver(case: Case, patch: Patch, advised: str) -> Option:
    """Return the row of one driver."""
    branch, flavor = str(patch["driver.branch"]), str(patch["driver.flavor"])
    answers = answered(case.answers, patch)
    changed = Case(case.machine, answers)
    findings = solve.judge_driver(case.machine, answers)
    value = f"{branch}-{flavor}"
    mark, tag = _verdict(changed, findings, value == advised)
    row = stack.branches()[branch]
    return Option(
        value=value,
        label=phrase(f"driver.option.{flavor}", branch=branch),
        mark=mark,
        tag=tag,
        sentences=()
        if mark == "bad"
        else (phrase(f"driver.explain.{row.kind}", branch=branch, date=row.end_of_life or "?"), phrase(f"driver.explain.{flavor}")),
        findings=_ordered(findings),
        notes=_notes(changed, row) if mark != "bad" else (),
        patch=patch,
        recommended=value == advised,
    )


def _verdict(case: Case, findings: tuple[Finding, ...], advised: bool) -> tuple[Mark, Words]:
    """Return the mark of a driver and the word beside it."""
    ordered = _ordered(findings)
    if ordered and ordered[0].severity == "error":
        return "bad", phrase(f"driver.finding.{ordered[0].code}.tag")
    if ordered and ordered[0].severity == "warning" and ordered[0].code != "mixed-driver-install":
        return "catch", phrase(f"driver.finding.{ordered[0].code}.tag")
    if advised:
        return "good", phrase("driver.tag.recommended")
    if case.driver.source == "nvidia-repo":
        return "catch", phrase("driver.tag.adds-repo")
    return "good", phrase("driver.tag.works")


def _ordered(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return findings with the worst first."""
    order = {"error": 0, "warning": 1, "info": 2, "ok": 3}
    return tuple(sorted(findings, key=lambda finding: order[finding.severity]))


def _notes(case: Case, row: stack.Branch) -> tuple[Note, ...]:
    """Return what a driver leads to, what it costs, how it is undone, and where its facts stand."""
    names = driver_packages.packages(case)
    notes = [Note(label="leads-to", text=_command(case, names), command=True)] if names else []
    notes.append(Note(label="cost", text=phrase("driver.note.cost-ready" if driver_packages.prebuilt(case) else "driver.note.cost-built")))
    notes.append(Note(label="undo", text=phrase("driver.note.undo")))
    if any(gpu.row and gpu.row.last_branch == row.name for gpu in case.gpus):
        notes.append(Note(label="trap", text=phrase("driver.note.last", branch=row.name)))
    if row.confidence == "low":
        notes.append(Note(label="trap", text=phrase("driver.note.low")))
    notes.append(Note(label="source", text=row.source))
    return tuple(notes)


def _command(case: Case, names: tuple[str, ...]) -> str:
    """Return the command that a person would type."""
    verb = {"apt": "apt-get install", "dnf": "dnf install", "zypper": "zypper install", "pacman": "pacman -S"}
    return f"{verb[case.distribution.manager if case.distribution else 'apt']} {' '.join(names)}"


def _kept(case: Case, version: str, advised: str) -> Option:
    """Return the row that leaves the installed driver as it is."""
    patch = candidates.KEEP
    answers = answered(case.answers, patch)
    findings = solve.judge_driver(case.machine, answers)
    _, works = installed_driver(case.machine)
    mark, tag = _verdict(Case(case.machine, answers), findings, advised == "keep")
    if mark == "good" and not works:
        mark, tag = "catch", phrase("driver.tag.not-working")
    return Option(
        value="keep",
        label=phrase("driver.option.keep", version=version),
        mark=mark,
        tag=tag,
        sentences=() if mark == "bad" else (phrase("driver.explain.keep", version=version),),
        findings=_ordered(findings),
        notes=(Note(label="keeps", text=version),),
        patch=patch,
        recommended=advised == "keep",
    )


def _none(case: Case, advised: str) -> Option:
    """Return the row that installs no driver."""
    fine = case.wsl or case.contained or advised == "none"
    text = "driver.explain.wsl" if case.wsl else "driver.explain.container" if case.contained else "driver.explain.none"
    return Option(
        value="none",
        label=phrase("driver.option.none"),
        mark="good" if fine else "catch",
        tag=phrase("driver.tag.recommended") if advised == "none" else phrase("driver.tag.works" if fine else "driver.tag.no-gpu"),
        sentences=(phrase(text),),
        patch=candidates.NO_DRIVER,
        recommended=advised == "none",
    )


def _sources(case: Case) -> tuple[Option, ...]:
    """Return the sources that the chosen driver can come from; empty when none is chosen."""
    driver = case.answers.driver
    if not driver.branch or driver.source == "keep":
        return ()
    offers: list[tuple[str, Patch]] = []
    for server in (False, True):
        patch: Patch = {"driver.source": "distro", "driver.server": True if server else None}
        if archive_variant(Case(case.machine, answered(case.answers, patch))):
            offers.append(("distro-server" if server else "distro", patch))
    if case.repository:
        offers.append(("nvidia-repo", {"driver.source": "nvidia-repo", "driver.server": None}))
    return tuple(_source(case, value, patch) for value, patch in offers)


def _source(case: Case, value: str, patch: Patch) -> Option:
    """Return the row of one source."""
    answers = answered(case.answers, patch)
    changed = Case(case.machine, answers)
    findings = _ordered(solve.judge_driver(case.machine, answers))
    word = "signed" if signed(changed) else "adds-key" if value == "nvidia-repo" else "works"
    mark: Mark = "catch" if value == "nvidia-repo" else "good"
    tag: Words = phrase(f"driver.tag.{word}")
    if findings and findings[0].severity == "error":
        mark, tag = "bad", phrase(f"driver.finding.{findings[0].code}.tag")
    names = driver_packages.packages(changed)
    notes = (Note(label="leads-to", text=_command(changed, names), command=True),) if names else ()
    return Option(
        value=value,
        label=phrase(f"driver.source.{value}", system=(case.machine.os.id or "").capitalize()),
        mark=mark,
        tag=tag,
        sentences=(phrase(f"driver.explain.{value}"),),
        findings=findings,
        notes=notes,
        patch=patch,
    )
