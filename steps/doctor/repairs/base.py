"""What a repair is made of: a builder for each diagnosis that branches, the steps it hands out, and the proof."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import NamedTuple

import msgspec

from steps import resources
from steps.catalog.repairs import proofs, tools
from steps.doctor.diagnosis import Proof, Step
from steps.doctor.evidence import Evidence
from steps.doctor.facts.packages import Manager
from steps.doctor.repairs.plain import are_packages, is_path
from steps.doctor.rules.base import Candidate
from steps.managers import apt_state
from steps.managers.base import manager as manager_called
from steps.managers.offered import by as offered_by
from steps.managers.shown import shown
from steps.model.action import AnyAction, Command, Keep, Packages, Reboot, RemovePath, Run, Service, UndoStep, Write
from steps.model.action import Probe as DoneWhen
from steps.model.base import Param, Phrase, Record, Words, phrase


class Plan(Record):
    """The steps of a repair, the smallest change first, and its proof; a builder leaves the proof out where the usual one will do."""

    steps: tuple[Step, ...] = ()
    verify: Proof | None = None


Build = Callable[[Evidence, Candidate], Plan]


class Repairer(NamedTuple):
    """Builds the repair of certain diagnoses."""

    ids: tuple[str, ...]
    build: Build


def repairs(*ids: str) -> Callable[[Build], Repairer]:
    """Make a function the builder for these diagnoses."""

    def made(build: Build) -> Repairer:
        return Repairer(ids, build)

    return made


def repairers_of(*modules: ModuleType) -> dict[str, Build]:
    """Return the builders that the modules define, by diagnosis."""
    found = (value for module in modules for value in vars(module).values() if isinstance(value, Repairer))
    return {id: repairer.build for repairer in found for id in repairer.ids}


def manager_of(seen: Evidence) -> Manager | None:
    """Return the package manager of the machine, from its packages or its name; `None` when neither tells."""
    if seen.packages.manager is not None:
        return seen.packages.manager
    if seen.system.debian:
        return "apt"
    family = {seen.system.id, *seen.system.like}
    return "dnf" if family & {"fedora", "rhel", "centos"} else "pacman" if "arch" in family else None


def not_offered(seen: Evidence, manager: Manager | None, *names: str) -> bool:
    """Return whether the manager's own lists lack one of these packages; `False` also where nobody can ask them."""
    if seen.rehearsal:
        return False
    offered = offered_by(manager, seen.host.host, names)
    return offered is not None and not all(offered.get(name) for name in names)


# --- steps ----------------------------------------------------------------------------------------


def person(key: str, *command: str, **params: Param) -> Step:
    """Return a step that a person does, `repair.step.<key>`; `command` is what they type where it cannot be typed for them."""
    typed = (*shlex.split(resources.command_name()), *command[1:]) if command[:1] == ("bringup",) else command
    return Step(says=phrase(f"repair.step.{key}", **params), command=typed or None)


_DEBIANS = ("apt-get", "dpkg")


def run(
    key: str,
    *argv: str,
    undo: tuple[UndoStep, ...] = (),
    done_when: tuple[DoneWhen, ...] = (),
    live: bool = False,
    interactive: bool = False,
    quiet: float | None = None,
    words: Mapping[str, Param] | None = None,
    stays: Words = "",
    **params: Param,
) -> Step:
    """Return a step that is one command of root's; `quiet` is for how many seconds its silence is normal, `words` fill its sentence too.

    `stays` says what of it no undo takes back.

    Where it or its way back lets maintainer scripts run, these ask nothing.
    """
    says = _says(key, words, **params)
    programs = {argv[0], *(step.argv[0] for step in undo if isinstance(step, Command))}
    action = Run(
        id=key,
        title=says,
        lane="packages",
        argv=argv,
        env=manager_called("apt").environment() if programs & set(_DEBIANS) else {},
        undo=undo,
        done_when=done_when,
        interactive=interactive,
        quiet_seconds=quiet,
        stays=stays,
    )
    return _of(says, argv, action, live=live)


def back(*argv: str, tolerant: bool = False) -> Command:
    """Return a command that takes something back; apt asks nothing there either."""
    asks_not = ("apt-get", "-y", *apt_state.SAFE, *argv[2:]) if argv[:2] == ("apt-get", "-y") else argv
    return Command(argv=asks_not, tolerant=tolerant)


def tool(key: str, id: str, manager: Manager | None, *, undo: tuple[UndoStep, ...] = ()) -> Step:
    """Return a step that uses a tool of the table in the words of the distribution; a person's where none is known."""
    row = tools()[id]
    argv = {"apt": row.apt, "dnf": row.dnf, "pacman": row.pacman}.get(manager or "")
    if argv and argv[:2] == ("apt-get", "-y"):
        return apt(key, *argv[2:], undo=undo)
    return run(key, *argv, undo=undo, quiet=300) if argv else person(key)


def apt(key: str, *words: str, undo: tuple[UndoStep, ...] = (), **params: Param) -> Step:
    """Return a step that is a call of apt-get which a `Packages` action cannot express: no question, no conffile prompt."""
    argv = ("apt-get", "-y", *apt_state.SAFE, *words)
    says = _says(key, **params)
    env = manager_called("apt").environment()
    action = Run(id=key, title=says, lane="packages", argv=argv, env=env, undo=undo, quiet_seconds=720)
    return _of(says, ("apt-get", *words), action)


def refresh(manager: Manager | None) -> Step:
    """Return the step that fetches the package lists; it fails where one of them cannot be fetched."""
    if manager == "apt":
        action = Packages(id="refresh", title=phrase("repair.step.refresh"), lane="packages", manager="apt", refresh=True, seconds=15)
        return _of(_says("refresh"), ("apt-get", "update"), action)
    if manager == "dnf":
        return run("refresh", "dnf", "makecache", "--refresh")
    # pacman's lists alone are half an upgrade: checkupdates reads them beside the system's own.
    return person("refresh", *(("checkupdates",) if manager == "pacman" else ()))


def aside(key: str, path: str, beside: str | None = None, **params: Param) -> Step:
    """Return a step that takes a file or folder out of the way, to be put back by undo; `beside` is where else it comes to lie.

    A person's where that is no plain path.
    """
    says = _says(key, {"path": path, **params})
    if not (is_path(path) and is_path(beside or path)):
        return Step(says=says)
    return _of(says, None, Keep(id=key, title=says, lane="packages", path=path, moves=True, beside=beside))


def write(key: str, path: str, text: str, **params: Param) -> Step:
    """Return a step that makes a file hold `text`."""
    says = _says(key, params, path=path)
    return _of(says, None, Write(id=key, title=says, lane="packages", path=path, text=text))


def install(
    key: str,
    manager: Manager | None,
    *names: str,
    may_remove: tuple[str, ...] = (),
    may_downgrade: tuple[str, ...] = (),
    refresh: bool = False,
    done_when: tuple[DoneWhen, ...] = (),
    words: Mapping[str, Param] | None = None,
    **params: Param,
) -> Step:
    """Return a step that installs packages ("name", "name=version"; "name-" removes one).

    A person's where the manager is not known or its transactions cannot be foreseen, and where one of them is no package's name.
    """
    says = _says(key, {"packages": " ".join(names), **(words or {})}, **params)
    if manager is None or not are_packages(*names):
        return Step(says=says)
    if manager == "pacman":
        return Step(says=says, command=("pacman", "-S", "--needed", *names))
    action = Packages(
        id=key,
        title=says,
        lane="packages",
        manager=manager,
        install=names,
        may_remove=may_remove,
        may_downgrade=may_downgrade,
        refresh=refresh,
        done_when=done_when,
        quiet_seconds=720,
    )
    return _of(says, shown(action), action)


def remove(key: str, manager: Manager | None, *names: str, **params: Param) -> Step:
    """Return a step that removes exactly these packages: what the transaction would take besides stops it.

    Of apt only, whose transactions the engine can foresee and take back; elsewhere a person does it.
    """
    if manager == "apt":
        return install(key, manager, *(f"{name}-" for name in names), may_remove=names, words={"packages": " ".join(names), **params})
    command = {"dnf": ("dnf", "remove"), "pacman": ("pacman", "-R")}.get(manager or "")
    return person(key, *((*command, *names) if command else ()), packages=" ".join(names), **params)


def keeping(step: Step, path: str) -> Step:
    """Return a step that keeps a file before its command writes it anew: it is written with its own words, and undo puts those back."""
    title = phrase("repair.step.keep", path=path)
    keep = Write(id="keep", title=title, lane="packages", path=path, copy_of=path)
    return msgspec.structs.replace(step, actions=(keep, *step.actions), undo=phrase("repair.undo.file", path=path))


def service(key: str, unit: str, **params: Param) -> Step:
    """Return a step that enables and starts a unit."""
    says = _says(key, params, unit=unit)
    return _of(says, ("systemctl", "enable", "--now", unit), Service(id=key, title=says, lane="packages", unit=unit), live=True)


def reboot() -> Step:
    """Return the reboot: the person says when, and the run goes on by itself afterwards."""
    title = phrase("repair.step.reboot")
    action = Reboot(id="reboot", title=title, reason=phrase("repair.step.reboot-why"), seconds=180)
    return Step(says=title, command=("systemctl", "reboot"), reboot=True, actions=(action,), live=True)


def as_planned(says: Phrase, *actions: AnyAction) -> Step:
    """Return a step that is what a plan does too, in the plan's words; a single command is shown to be typed as well."""
    command = actions[0].argv if len(actions) == 1 and isinstance(actions[0], Run) else None
    return _of(says, command, *actions)


def made_of(key: str, actions: tuple[AnyAction, ...], **params: Param) -> Step:
    """Return a step that is several actions of the house."""
    return _of(_says(key, params), None, *actions)


def _says(key: str, words: Mapping[str, Param] | None = None, /, **params: Param) -> Phrase:
    return Phrase(key=f"repair.step.{key}", params={**(words or {}), **params})


def _of(says: Phrase, command: tuple[str, ...] | None, *actions: AnyAction, live: bool = False) -> Step:
    return Step(says=says, command=command, undo=_undo(actions), actions=actions, live=live)


def _undo(actions: tuple[AnyAction, ...]) -> Words | None:
    """Return how a step is taken back, `None` when nothing of it is."""
    for action in reversed(actions):
        match action:
            case Run(undo=steps, stays=stays) if steps or stays:
                if not steps:
                    return stays
                first = steps[0]
                return phrase("repair.undo.path", path=first.path) if isinstance(first, RemovePath) else shlex.join(first.argv)
            case Packages() if action.install:
                return phrase("repair.undo.packages")
            case Write(path=path) | Keep(path=path):
                return phrase("repair.undo.file", path=path)
            case Service(unit=unit):
                return shlex.join(("systemctl", "disable", "--now", unit))
            case _:
                continue
    return None


# --- proofs ---------------------------------------------------------------------------------------


def proof(id: str, manager: Manager | None = None) -> Proof:
    """Return a proof of the table; where it differs by package manager and none is known, the usual one."""
    row = proofs()[id]
    command = row.command or {"apt": row.apt, "dnf": row.dnf, "pacman": row.pacman}.get(manager or "")
    if command and command[0] == "bringup":
        command = (*shlex.split(resources.command_name()), *command[1:])
    return Proof(command=command, expect=phrase(f"repair.expect.{id}")) if command else proof("log")


def command_proof(key: str, *command: str, **params: Param) -> Proof:
    """Return a proof of its own that is worded `repair.expect.<key>`."""
    return Proof(command=command, expect=phrase(f"repair.expect.{key}", **params))
