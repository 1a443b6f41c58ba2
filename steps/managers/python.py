"""Python environments as planned actions: made by the person's manager, filled from the indexes that pip knows here."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath

from steps.errors import PreflightError
from steps.managers.building import Building, build
from steps.managers.fetching import Fetching, fetching
from steps.managers.makers import CONDA, Interpreter, Place, activation, installing, locking, made, putting_back, rebuilding
from steps.managers.python_scripts import FREEZE, HAS_ALL, IS_FREE, IS_LOCKED, PUT_BACK, REMEMBER
from steps.managers.shared import for_all, opened
from steps.model.action import AnyAction, Command, FileIs, RemovePath, Run, Succeeds, Write
from steps.model.base import Words, phrase
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import Profile

LOCK_FILE = "bringup-lock.txt"
START_FILE = "bringup-start.txt"
VERSIONS_FILE = "bringup-versions.txt"
BEFORE_FILE = "bringup-before.txt"
DEFAULT_NAME = "dl"
LEAST_DEPTH = 3
"""`/opt/dl` has three parts; what has fewer is a top folder of the system."""


def interpreter(profile: Profile, installer: Installer) -> Interpreter | None:
    """Return the interpreter of the profile's line, or `None` when the manager can have none; never one of another line.

    Without a line in the profile, it is the newest installed one. conda and its kin bring their own of that line.
    """
    line = profile.environment.python or max(installer.pythons, key=_by_version, default=None)
    if line is None:
        return None
    if profile.environment.manager in CONDA:
        return Interpreter(line=line)
    path = installer.pythons.get(line)
    if path is None and profile.environment.manager == "venv":
        return None
    return Interpreter(line=line, path=path)


def _by_version(line: str) -> tuple[int, ...]:
    return tuple(int(part) for part in line.split(".") if part.isdigit())


def place(profile: Profile, target: Target) -> Place:
    """Return where the environment goes; raises `PreflightError` when no Python of its line can be had."""
    installer = _installer(profile, target)
    found = interpreter(profile, installer)
    if found is None:
        raise (
            PreflightError("python-not-found", line=profile.environment.python)
            if profile.environment.python
            else PreflightError("no-python")
        )
    manager = profile.environment.manager or "uv"
    return Place(
        manager=manager,
        path=_folder(profile, installer),
        interpreter=found,
        tool=installer.uv if manager == "uv" else installer.managers.get(manager),
        filler="uv" if manager == "uv" or (manager in CONDA and installer.uv) else "pip",
    )


def _installer(profile: Profile, target: Target) -> Installer:
    """Return how packages are fetched for the environment of a profile."""
    return for_all(target.installer) if profile.environment.for_all else target.installer


def _folder(profile: Profile, installer: Installer) -> str:
    """Return the environment's folder; raises `PreflightError` for one that undo could not take away or that is no own folder."""
    name = profile.environment.name or DEFAULT_NAME
    if "/" in name or name in (".", ".."):
        raise PreflightError("environment-name", name=name)
    path = profile.environment.path or f"{installer.environments}/{name}"
    if path.startswith("~/"):
        path = f"{installer.home}/{path[2:]}"
    parts = PurePosixPath(path).parts
    if not path.startswith("/") or ".." in parts or len(parts) < LEAST_DEPTH or path.rstrip("/") == installer.home.rstrip("/"):
        raise PreflightError("environment-path", path=path)
    return str(PurePosixPath(path))


def _lock_of(profile: Profile, installer: Installer) -> str | None:
    """Return the list that the environment shall hold exactly; raises `PreflightError` for one that is no whole path."""
    lock = profile.environment.lock
    if lock is None:
        return None
    path = f"{installer.home}/{lock[2:]}" if lock.startswith("~/") else lock
    if not path.startswith("/"):
        raise PreflightError("environment-lock", path=lock)
    return path


def environment(
    machine: Machine,
    profile: Profile,
    requirements: tuple[str, ...],
    target: Target,
    *,
    indexes: tuple[str, ...] = (),
    building: Building | None = None,
    trying: tuple[str, ...] = (),
    download_bytes: int | None = None,
    disk_bytes: int | None = None,
    seconds: float | None = None,
) -> tuple[AnyAction, ...]:
    """Return what makes the environment and installs exactly `requirements` ("torch==2.13.0+cpu"); ids are `environment.*`.

    `indexes` are looked at before the person's own index (the one that has a variant's wheels); what is to be compiled comes last.
    `trying` are commands that show what the environment can do, for the file that says how it is started.
    """
    where = place(profile, target)
    installer = _installer(profile, target)
    fetch = fetching(profile, installer, indexes)
    if where.manager in CONDA and where.tool is None:
        raise PreflightError("environment-tool", manager=where.manager)
    actions: list[AnyAction] = list(_room(where, installer, disk_bytes))
    uv = installer.uv
    if where.manager == "uv" and uv is None:
        tools = _tools(installer)
        uv = f"{tools}/bin/uv"
        actions += _bootstrap(tools, installer, fetch)
    actions += made(where, where.tool or uv or "uv", fetch)
    if not requirements and profile.environment.lock is None:
        return tuple(actions)
    actions += _filled(where, uv or "uv", fetch, requirements, _lock_of(profile, installer), download_bytes, disk_bytes, seconds)
    if building is not None and profile.environment.lock is None:
        actions.append(build(where, uv or "uv", fetch, building))
    versions, lock = f"{where.path}/{VERSIONS_FILE}", f"{where.path}/{LOCK_FILE}"
    actions.append(
        Run(
            id="environment.versions",
            title=phrase("manager.action.versions", path=versions),
            why=phrase("manager.why.versions"),
            lane="python",
            by="user",
            needs=("environment.install",),
            argv=(where.python, "-I", "-c", FREEZE, versions),
            undo=(RemovePath(path=versions),),
            seconds=1,
        )
    )
    actions += locking(where, uv or "uv", fetch, versions, lock)
    if any(one.startswith("ipykernel==") for one in requirements):
        actions.append(_kernel(where, "/usr/local" if profile.environment.for_all else f"{installer.home}/.local"))
    actions.append(_start(where, trying))
    return opened(tuple(actions), where.path, profile.environment.group) if profile.environment.for_all else tuple(actions)


def _start(where: Place, trying: tuple[str, ...]) -> Write:
    """Return what lays the lines that start the environment into it, and those that try it out."""
    shells, fish = activation(where)
    path, text = f"{where.path}/{START_FILE}", f"# bash, zsh\n{shells}\n\n# fish\n{fish}\n"
    text += "".join(("\n# samples\n", *(f"{line}\n" for line in trying))) if trying else ""
    title, why = phrase("manager.action.start", line=shells), phrase("manager.why.start", path=path)
    return laid("environment.start", title, why, path, text)


def laid(id: str, title: Words, why: Words, path: str, text: str) -> Write:
    """Return what lays a file into the environment once that is made; the run goes on without it."""
    return Write(
        id=id,
        title=title,
        why=why,
        lane="python",
        by="user",
        needs=("environment.create",),
        path=path,
        text=text,
        done_when=(FileIs(path=path, text=text),),
        seconds=0.1,
        optional=True,
    )


def _kernel(where: Place, prefix: str) -> Write:
    """Return what makes the environment one of Jupyter's kernels, for whoever starts Jupyter from another one."""
    name = PurePosixPath(where.path).name
    path = f"{prefix}/share/jupyter/kernels/{re.sub(r'[^a-z0-9._-]', '-', name.lower())}/kernel.json"
    said = {
        "argv": [where.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"{name} (Python {where.interpreter.line})",
        "language": "python",
        "metadata": {"debugger": True},
    }
    text = json.dumps(said, indent=1) + "\n"
    return Write(
        id="environment.kernel",
        title=phrase("manager.action.kernel", name=name, path=path),
        lane="python",
        by="user",
        needs=("environment.install",),
        path=path,
        text=text,
        done_when=(FileIs(path=path, text=text),),
        seconds=0.1,
    )


def _filled(
    where: Place,
    uv: str,
    fetch: Fetching,
    requirements: tuple[str, ...],
    lock: str | None,
    download_bytes: int | None,
    disk_bytes: int | None,
    seconds: float | None,
) -> tuple[Run, ...]:
    """Return what notes the packages that are there, and installs the requirements, or exactly what a lock lists."""
    before, script = f"{where.path}/{BEFORE_FILE}", (where.python, "-I", "-c")
    noted = Run(
        id="environment.before",
        title=phrase("manager.action.before", path=where.path),
        why=phrase("manager.why.before"),
        lane="python",
        by="user",
        needs=("environment.create",),
        argv=(*script, REMEMBER, before),
        done_when=(FileIs(path=before),),
        undo=(RemovePath(path=before),),
        seconds=1,
    )
    argv = rebuilding(where, uv, fetch, lock) if lock else (*installing(where, uv, fetch), *requirements)
    there = (IS_LOCKED, lock) if lock else (HAS_ALL, *requirements)
    install = Run(
        id="environment.install",
        title=phrase("manager.action.rebuild", path=lock) if lock else phrase("manager.action.requirements", packages=_short(requirements)),
        why=phrase("manager.why.rebuild" if lock else "manager.why.requirements"),
        lane="python",
        by="user",
        needs=("environment.before",),
        argv=argv,
        undo=(Command(argv=(*script, PUT_BACK, before, *putting_back(where, uv, fetch), before)),),
        env=fetch.environment(where.filler),
        done_when=(Succeeds(argv=(*script, *there)),),
        download_bytes=download_bytes,
        disk_bytes=disk_bytes,
        seconds=seconds or 60,
        quiet_seconds=120,
        quiet_why=phrase("manager.quiet.wheels"),
    )
    return (noted, install)


def _short(requirements: tuple[str, ...]) -> str:
    """Return the first requirements as a title can hold them."""
    first = ", ".join(one.replace("===", " ").replace("==", " ") for one in requirements[:3])
    return first if len(requirements) <= 3 else f"{first}, …"


# --- what is needed first -------------------------------------------------------------------------


def _known_python(installer: Installer) -> str | None:
    """Return an interpreter that is there: our own, else the newest installed, or `None`."""
    newest = max(installer.pythons, key=_by_version, default=None)
    return installer.own_python or (installer.pythons[newest] if newest is not None else None)


def any_python(installer: Installer) -> str:
    """Return an interpreter that makes environments; raises `PreflightError` without any."""
    found = _known_python(installer)
    if found is None:
        raise PreflightError("no-python")
    return found


def _room(where: Place, installer: Installer, disk_bytes: int | None) -> tuple[AnyAction, ...]:
    """Return the look at the folder before anything is made in it; without a Python nothing of the person's can look yet."""
    python = _known_python(installer)
    if python is None:
        return ()
    look = Run(
        id="environment.room",
        title=phrase("manager.action.room", path=where.path),
        why=phrase("manager.why.room"),
        lane="python",
        by="user",
        argv=(python, "-I", "-c", IS_FREE, where.path, where.interpreter.line, str(disk_bytes or 0)),
        seconds=1,
    )
    return (look,)


def _tools(installer: Installer) -> str:
    """Return the folder of bringup's own uv: the person's, or the machine's for a plain root login."""
    if installer.environments.startswith(f"{installer.home}/"):
        return f"{installer.home}/.local/share/bringup/uv"
    return "/opt/bringup/uv"


def _bootstrap(tools: str, installer: Installer, fetch: Fetching) -> tuple[AnyAction, ...]:
    """Return what puts uv into a small environment of ours."""
    python = any_python(installer)
    here = f"{tools}/bin/python"
    return (
        Run(
            id="environment.uv-folder",
            title=phrase("manager.action.tools", path=tools),
            why=phrase("manager.why.uv"),
            lane="python",
            by="user",
            argv=(python, "-I", "-m", "venv", tools),
            done_when=(Succeeds(argv=(here, "-I", "-m", "pip", "--version")),),
            undo=(RemovePath(path=tools),),
            seconds=4,
        ),
        Run(
            id="environment.uv",
            title=phrase("manager.action.uv"),
            why=phrase("manager.why.uv"),
            lane="python",
            by="user",
            needs=("environment.uv-folder",),
            argv=(here, "-I", "-m", "pip", "install", "--no-input", "--progress-bar", "off", *fetch.options, "uv"),
            env=fetch.environment("pip"),
            done_when=(Succeeds(argv=(f"{tools}/bin/uv", "--version")),),
            download_bytes=22_000_000,
            seconds=6,
        ),
    )
