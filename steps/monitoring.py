"""The monitoring step: tools that watch the GPUs, and tools that bring them into containers."""

from __future__ import annotations

from steps.catalog import guide, package_sources, stack
from steps.compat import container_plan, driver_packages, persistence_plan, toolkit_plan
from steps.compat.case import Case
from steps.compat.findings import named
from steps.detect import measures
from steps.managers import tool
from steps.model.action import AnyAction, ManagerName, Service, installing
from steps.model.base import Param, Words, phrase
from steps.model.choice import Choice, Mark, Note, Option
from steps.model.finding import Finding, Patch, Severity, StepKey
from steps.model.machine import Machine, judged
from steps.model.plan import Target
from steps.model.profile import Profile

KEY: StepKey = "monitoring"
_RECOMMENDED = ("nvitop",)
_IMPOSSIBLE = ("monitoring-needs-gpu", "monitoring-other-cards", "monitoring-no-systemd")
_MAKERS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel", "habana": "Habana"}
_HERE: dict[str, ManagerName] = {"apt": "apt", "dnf": "dnf"}
"""The package managers whose installs can be tried out before they are run."""


def applies(machine: Machine) -> bool:
    """Every machine can be watched."""
    return True


def intro(machine: Machine, answers: Profile) -> Words:
    """Return what watching is good for."""
    return phrase("monitoring.intro")


def choices(machine: Machine, answers: Profile) -> tuple[Choice, ...]:
    """Return the monitors and the container tools, each to be ticked."""
    return (_group(machine, answers, "monitoring"), _group(machine, answers, "containers"))


def check(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return what was asked for and cannot be had here."""
    asked = (one for one in guide.tools() if _wanted(answers, one))
    return (
        *(finding for one in asked if (finding := _hindrance(machine, answers, one)) is not None),
        *_fabric(machine, answers),
        *(gap for gap in machine.gaps if gap.step == KEY),
    )


def actions(machine: Machine, answers: Profile, target: Target) -> tuple[AnyAction, ...]:
    """Return what installs the tools that were asked for and can be had."""
    tools = tuple(one for one in guide.tools() if _wanted(answers, one) and _hindrance(machine, answers, one) is None)
    # One repository serves them all.
    source = _repository(machine, answers) if any(one.repository for one in tools) else ()
    return (*source, *(action for one in tools for action in _install(machine, answers, target, one)))


def _fabric(machine: Machine, answers: Profile) -> tuple[Finding, ...]:
    """Return that the service is down by which NVSwitches join the cards; a planned driver brings it, or says that it cannot."""
    state, version = machine.driver.fabric_manager, machine.driver.kernel_version
    kept = Case(machine, answers).driver.origin != "planned"
    if not machine.nvswitches or state in (None, "active", "activating", "reloading") or version is None or not kept:
        return ()
    params: dict[str, Param] = {"state": state, "version": version, "package": _fabric_package(machine, answers, version.partition(".")[0])}
    because = (phrase("monitoring.because.switches", count=len(machine.nvswitches)), f"nvidia-fabricmanager: {state}", f"nvidia {version}")
    return (
        Finding(
            code="fabric-manager-not-running",
            severity="warning",
            step=KEY,
            subject="nvidia-fabricmanager",
            params=params,
            because=because,
            source=driver_packages.FABRIC_GUIDE,
        ),
    )


def _fabric_package(machine: Machine, answers: Profile, branch: str) -> str:
    """Return what the fabric manager of a branch is called here."""
    case, manager = Case(machine, answers), _manager(machine)
    told = package_sources.fabric_package(manager, branch) if manager not in (None, "apt") else driver_packages.fabric_manager(case)
    return told or f"nvidia-fabricmanager-{branch}"


def _wanted(answers: Profile, one: guide.Tool) -> bool:
    """Whether a tool was asked for."""
    table, _, name = one.key.partition(".")
    return getattr(getattr(answers, table), name) is True


def _group(machine: Machine, answers: Profile, table: str) -> Choice:
    """Return the rows of one table of the profile."""
    mine = [one for one in guide.tools() if one.key.startswith(f"{table}.")]
    return Choice(
        key=table,
        kind="many",
        title=phrase("monitoring.group.containers") if table == "containers" else None,
        options=tuple(_option(machine, answers, one) for one in mine),
        taken=tuple(one.id for one in mine if _wanted(answers, one)),
    )


def _option(machine: Machine, answers: Profile, one: guide.Tool) -> Option:
    """Return the row of one tool: installed, installable, or not here and why."""
    hindrance = _hindrance(machine, answers, one)
    there = machine.tools.get(one.key.partition(".")[2])
    mark: Mark = "good"
    tag: Words = phrase("monitoring.tag.works")
    if hindrance is not None:
        mark = "bad" if hindrance.code in _IMPOSSIBLE else "unknown"
        tag = phrase(f"monitoring.finding.{hindrance.code}.tag", **hindrance.params)
    elif there:
        tag = phrase("monitoring.tag.installed")
    leads: tuple[Note, ...] = ()
    if mark != "bad":
        traps = (Note(label="trap", text=phrase(f"monitoring.trap.{trap}")) for trap in one.traps)
        scrape = (Note(label="file", text=line, command=True) for line in one.scrape)
        leads = (Note(label="leads-to", text=f"$ {one.command_with(machine.tools)}", command=True), *traps, *scrape)
    return Option(
        value=one.id,
        label=one.label,
        mark=mark,
        tag=tag,
        sentences=(phrase(f"monitoring.explain.{one.id}"),),
        findings=(hindrance,) if hindrance else (),
        notes=(*((Note(label="measured", text=there),) if there else ()), *leads, Note(label="source", text=one.source)),
        patch={one.key: None if _wanted(answers, one) else True},
        recommended=one.id in _RECOMMENDED and hindrance is None and bool(judged(machine)),
    )


def _hindrance(machine: Machine, answers: Profile, one: guide.Tool) -> Finding | None:
    """Return why a tool cannot be installed on this machine; `None` when it can."""
    vendors = {card.vendor for card in judged(machine)}
    if one.gpus and not vendors & set(one.gpus):
        knows = ", ".join(_MAKERS.get(vendor, vendor) for vendor in one.gpus)
        here = measures.cards(judged(machine))
        return (
            _said("monitoring-other-cards", one, here, knows=knows, cards=here)
            if vendors
            else _said("monitoring-needs-gpu", one, phrase("monitoring.because.no-gpu", knows=knows), knows=knows)
        )
    contained = machine.os.container not in (None, "none") or machine.os.wsl is True
    if one.how == "service" and (contained or machine.os.init not in (None, "systemd")):
        return _said("monitoring-no-systemd", one, f"init: {machine.os.init or machine.os.container or 'wsl'}")
    if one.how == "packages" and (_manager(machine) is None or machine.os.id not in one.packages):
        return _said("monitoring-no-package", one, named(Case(machine, answers).system))
    if one.repository and Case(machine, answers).repository is None:
        return _said("monitoring-no-package", one, named(Case(machine, answers).system))
    if _names(machine, answers, one) is None:
        if machine.os.wsl is True:
            return _said("monitoring-unproven-wsl", one, phrase("monitoring.because.wsl"))
        return _said("monitoring-needs-driver", one, phrase("monitoring.because.no-driver", state=machine.driver.state))
    return None


def _said(code: str, one: guide.Tool, because: Words, **more: str) -> Finding:
    """Return a finding about one tool; asked for in vain it is left out of the plan, and nothing else depends on it."""
    severity: Severity = "warning" if code in _IMPOSSIBLE else "info"
    params = {"tool": one.label, **more}
    fix: Patch = {one.key: None}
    return Finding(code=code, severity=severity, step=KEY, subject=one.label, params=params, because=(because,), source=one.source, fix=fix)


def _manager(machine: Machine) -> ManagerName | None:
    """Return the package manager of the distribution; `None` for one that we do not run."""
    row = stack.distribution_of(machine.os.id, machine.os.version)
    return _HERE.get(row.manager) if row else None


def _install(machine: Machine, answers: Profile, target: Target, one: guide.Tool) -> tuple[AnyAction, ...]:
    """Return the actions that install one tool."""
    id, title, why = f"monitoring.{one.id}", phrase("monitoring.action.install", tool=one.label), phrase(f"monitoring.explain.{one.id}")
    if one.how == "python-tool" and one.requirement:
        return tool.install(id, title, one.id, one.requirement, profile=answers, target=target, why=why)
    if one.how == "service":
        case = Case(machine, answers)
        runs = machine.driver.state == "working" and case.driver.origin != "planned" and target.root == "/"
        return persistence_plan.actions(id, why, off=persistence_plan.keeps_off(case), runs=runs, root=target.root)
    found = _packages(machine, answers, one, title, why)
    if one.unit is not None and target.root == "/" and machine.os.init in (None, "systemd"):
        found = (*found, _service(f"{id}-service", one.unit, why))
    if one.id == "container-toolkit":
        docker = answers.containers.docker is True or bool(machine.tools.get("docker"))
        runs = machine.driver.state == "working" and Case(machine, answers).driver.origin != "planned"
        found = (*found, *container_plan.actions(machine, target, docker=docker, driver_runs=runs))
    return found


def _service(id: str, unit: str, why: Words) -> Service:
    """Return the action that enables a unit, in the lane of the packages, so that it waits for the one that brings it."""
    title = phrase("monitoring.action.service", unit=unit)
    return Service(id=id, title=title, why=why, lane="packages", unit=unit, seconds=1.0, optional=True)


def _names(machine: Machine, answers: Profile, one: guide.Tool) -> tuple[str, ...] | None:
    """Return the packages of a tool by their names here; `None` when they hang on a driver that is not known."""
    names = one.packages.get(machine.os.id or "", ())
    if not any("{cuda}" in name for name in names):
        return names
    row = Case(machine, answers).driver.row
    return tuple(name.replace("{cuda}", row.max_cuda.partition(".")[0]) for name in names) if row is not None else None


def _repository(machine: Machine, answers: Profile) -> tuple[AnyAction, ...]:
    """Return what adds NVIDIA's repository, unless the driver or toolkit step does so already."""
    case, manager = Case(machine, answers), _manager(machine)
    added = driver_packages.driver_adds_repository(case) or bool(toolkit_plan.plan(case))
    return () if manager is None or added else toolkit_plan.source(case, manager)


def _packages(machine: Machine, answers: Profile, one: guide.Tool, title: Words, why: Words) -> tuple[AnyAction, ...]:
    """Return the action that installs a tool's packages with the distribution's manager."""
    manager, packages = _manager(machine) or "apt", _names(machine, answers, one)
    return (installing(manager, f"monitoring.{one.id}", title, packages, why=why, seconds=40.0, optional=True),) if packages else ()
