"""The driver step: which branch, which kind of kernel modules, and where the packages come from."""

from __future__ import annotations

from steps.catalog import stack
from steps.catalog.versions import number
from steps.compat import candidates, driver_packages, driver_plan, solve
from steps.compat import rows as rows_of
from steps.compat.case import Case, installed_driver
from steps.compat.system_rules import archive_variant, signed
from steps.model.action import AnyAction
from steps.model.base import Words, phrase
from steps.model.choice import Choice, Mark, Note, Option
from steps.model.finding import Finding, Patch, StepKey
from steps.model.machine import Machine, judged
from steps.model.offers import Place
from steps.model.plan import Target
from steps.model.profile import Profile, answered

KEY: StepKey = "driver"
ROWS = 9
"""How many drivers are listed: with the two groups' headings they fill the 18 rows of the screen."""


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
    if offered and case.distribution:
        with_open = sorted({variant.partition("-")[0] for variant in case.distribution.archive if variant.endswith("-open")}, key=number)
        system = (machine.os.id or "").capitalize()
        key = "driver.intro.offered" if with_open else "driver.intro.offered-closed"
        return phrase(key, system=system, branches=", ".join(offered), open=", ".join(with_open))
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
    if sources:
        taken = answers.driver.source or ""
        groups.append(
            Choice(
                key="driver.source",
                kind="one",
                title=phrase("driver.group.source"),
                options=sources,
                taken=(taken + "-server" if case.driver.server else taken,),
            )
        )
    console = _console(case)
    if console is not None:
        groups.append(console)
    return tuple(groups)


def _console(case: Case) -> Choice | None:
    """Return the question who can confirm a key at the next boot; `None` where no driver would need one."""
    if case.machine.firmware.secure_boot != "enabled" or case.wsl or case.contained or case.distribution is None:
        return None
    options = tuple(
        Option(
            value=value,
            label=phrase(f"driver.console.{value}"),
            mark="catch" if value == "nobody" else "good",
            tag=phrase("driver.tag.console-none" if value == "nobody" else "driver.tag.console-works"),
            sentences=(phrase(f"driver.explain.console-{value}"),),
            patch={"driver.console": value},
        )
        for value in ("in-person", "bmc", "nobody")
    )
    taken = case.answers.driver.console
    return Choice(key="driver.console", kind="one", title=phrase("driver.group.console"), options=options, taken=(taken,) if taken else ())


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
    listed = [_driver(case, patch, advised) for patch in rows_of.drivers(case)]
    order = {"good": 0, "catch": 1, "unknown": 2, "info": 2, "bad": 3}
    taken = _value(case.answers)
    # What is taken changes no row's place: a list that moved under the cursor would be misread.
    listed.sort(key=lambda row: (not row.recommended, order[row.mark]))
    room = ROWS - len(rows) - (1 if _console(case) is None else 2)
    bad = [row for row in listed if row.mark == "bad"]
    usable = _within([row for row in listed if row.mark != "bad"], max(room - min(len(bad), 3), 1), taken)
    rows += usable + bad[: room - len(usable)]
    return (*rows, _none(case, advised))


def _within(rows: list[Option], room: int, taken: str) -> list[Option]:
    """Return the first rows that there is room for; what is taken is always among them."""
    shown = rows[:room]
    chosen = next((row for row in rows[room:] if row.value == taken), None)
    return [*shown[:-1], chosen] if chosen is not None and shown else shown


def _driver(case: Case, patch: Patch, advised: str) -> Option:
    """Return the row of one driver."""
    branch, flavor = str(patch["driver.branch"]), str(patch["driver.flavor"])
    answers = answered(case.answers, patch)
    changed = Case(case.machine, answers)
    findings = _ordered(solve.judge_driver(case.machine, answers))
    value = f"{branch}-{flavor}"
    mark, tag = _verdict(changed, findings, value == advised)
    worst = findings[0].severity if findings else None
    place = rows_of.place(case, driver_packages.packages(changed))
    if place == "known" and mark == "good":
        mark, tag = "catch", phrase("driver.tag.known")
    row = stack.branches()[branch]
    warned = worst == "warning"
    return Option(
        value=value,
        label=phrase(f"driver.option.{flavor}", branch=branch),
        short=phrase(f"driver.short.{flavor}", branch=branch),
        mark=mark,
        tag=tag,
        sentences=() if mark == "bad" or warned else _explained(changed, row, flavor),
        findings=findings,
        notes=(*_notes(changed, row, place), *(_further_source(changed) if warned else ())) if mark != "bad" else (),
        patch=patch,
        recommended=value == advised,
    )


def _explained(case: Case, row: stack.Branch, flavor: str) -> tuple[Words, ...]:
    """Return what a driver is, and what its catch is where it comes from one more source."""
    last = _last_closed()
    key = "proprietary-late" if flavor == "proprietary" and number(row.name) > number(last) else flavor
    sentences = (
        phrase(f"driver.explain.{row.kind}", branch=row.name, date=row.end_of_life or "?"),
        phrase(f"driver.explain.{key}", last=last),
    )
    return (*sentences, *(note.text for note in _further_source(case)))


def _further_source(case: Case) -> tuple[Note, ...]:
    """Return that a driver comes from one more source of packages; empty where the distribution has it."""
    if case.driver.source != "nvidia-repo":
        return ()
    return (Note(label="trap", text=phrase("driver.explain.adds-repo", system=(case.machine.os.id or "?").capitalize())),)


def _last_closed() -> str:
    """Return the last branch for cards that open kernel modules cannot drive."""
    return max((row.last_branch for row in stack.architectures() if row.open_modules == "unsupported" and row.last_branch), key=number)


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


def _notes(case: Case, row: stack.Branch, place: Place | None) -> tuple[Note, ...]:
    """Return what a driver leads to, what it costs, how it is undone, and where its facts stand."""
    names = driver_packages.packages(case)
    notes = [Note(label="leads-to", text=_command(case, names), command=True)] if names else []
    notes.append(Note(label="cost", text=phrase("driver.note.cost-ready" if driver_packages.prebuilt(case) else "driver.note.cost-built")))
    notes.append(Note(label="undo", text=phrase("driver.note.undo")))
    if any(gpu.row and gpu.row.last_branch == row.name for gpu in case.gpus):
        notes.append(Note(label="trap", text=phrase("driver.note.last", branch=row.name)))
    if row.confidence == "low":
        notes.append(Note(label="trap", text=phrase("driver.note.low")))
    if place is not None:
        notes.append(Note(label="from", text=phrase(f"driver.note.place-{place}")))
    notes.append(Note(label="source", text=row.source))
    return tuple(notes)


def _command(case: Case, names: tuple[str, ...]) -> str:
    """Return the command that a person would type as root."""
    verb = {"apt": "apt-get install", "dnf": "dnf install", "zypper": "zypper install", "pacman": "pacman -S"}
    return f"# {verb[case.distribution.manager if case.distribution else 'apt']} {' '.join(names)}"


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
        short=version,
        mark=mark,
        tag=tag,
        sentences=() if mark == "bad" else (phrase("driver.explain.keep", version=version),),
        findings=_ordered(findings),
        notes=_installed(case),
        patch=patch,
        recommended=advised == "keep",
    )


def _installed(case: Case) -> tuple[Note, ...]:
    """Return what was measured of the driver that is here, and where the facts of its branch stand."""
    driver = case.machine.driver
    words = phrase("driver.note.versions", module=driver.kernel_version or "–", library=driver.library_version or "–")
    row = Case(case.machine, answered(case.answers, candidates.KEEP)).driver.row
    source = (Note(label="source", text=row.source),) if row is not None else ()
    return (Note(label="measured", text=words), *source)


def _none(case: Case, advised: str) -> Option:
    """Return the row that installs no driver."""
    fine = case.wsl or case.contained or advised == "none"
    answers = answered(case.answers, candidates.NO_DRIVER)
    findings = tuple(one for one in _ordered(solve.judge_driver(case.machine, answers)) if one.severity == "error")
    word = "recommended" if advised == "none" else "works" if fine else "no-gpu"
    text = "driver.explain.wsl" if case.wsl else "driver.explain.container" if case.contained else "driver.explain.none"
    return Option(
        value="none",
        label=phrase("driver.option.windows" if case.wsl else "driver.option.host" if case.contained else "driver.option.none"),
        mark="bad" if findings else "good" if fine else "catch",
        tag=phrase(f"driver.finding.{findings[0].code}.tag") if findings else phrase(f"driver.tag.{word}"),
        sentences=() if findings else (phrase(text),),
        findings=findings,
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
        patch: Patch = {"driver.source": "distro", "driver.server": True if server else False if case.data_center else None}
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
    row = case.repository if value == "nvidia-repo" else case.distribution
    notes = (
        *((Note(label="leads-to", text=_command(changed, names), command=True),) if names else ()),
        *((Note(label="source", text=row.source),) if row is not None else ()),
    )
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
