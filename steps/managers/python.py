"""Python environments as planned actions: made by uv or by venv, filled from the indexes that pip knows here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from steps.errors import PreflightError
from steps.managers.python_scripts import FREEZE, HAS_ALL, HAS_LINE, IS_FREE, PUT_BACK, REMEMBER
from steps.model.action import AnyAction, Command, FileIs, RemovePath, Run, Succeeds
from steps.model.base import Record, phrase
from steps.model.machine import Machine
from steps.model.plan import Installer, Target
from steps.model.profile import Profile

LOCK_FILE = "bringup-lock.txt"
BEFORE_FILE = "bringup-before.txt"
DEFAULT_NAME = "deep-learning"
_LEAST_DEPTH = 3
"""`/opt/dl` has three parts; what has fewer is a top folder of the system."""


class Interpreter(Record):
    """Where an environment's Python comes from; `path` is `None` when uv has to fetch it."""

    line: str
    path: str | None = None


class Place(Record):
    """An environment on disk, and who makes it."""

    manager: Literal["uv", "venv"]
    path: str
    interpreter: Interpreter

    @property
    def python(self) -> str:
        """Its interpreter."""
        return f"{self.path}/bin/python"


def interpreter(profile: Profile, installer: Installer) -> Interpreter | None:
    """Return the interpreter of the profile's line, or `None` when the manager can have none; never one of another line.

    Without a line in the profile, it is the newest installed one.
    """
    line = profile.environment.python or max(installer.pythons, key=_by_version, default=None)
    if line is None:
        return None
    path = installer.pythons.get(line)
    if path is None and profile.environment.manager == "venv":
        return None
    return Interpreter(line=line, path=path)


def _by_version(line: str) -> tuple[int, ...]:
    return tuple(int(part) for part in line.split(".") if part.isdigit())


def place(profile: Profile, target: Target) -> Place:
    """Return where the environment goes; raises `PreflightError` when no Python of its line can be had, or for another manager."""
    found = interpreter(profile, target.installer)
    if found is None:
        raise (
            PreflightError("python-not-found", line=profile.environment.python)
            if profile.environment.python
            else PreflightError("no-python")
        )
    asked = profile.environment.manager or "uv"
    if asked not in ("uv", "venv"):
        raise PreflightError("environment-manager", manager=asked)
    manager: Literal["uv", "venv"] = "venv" if asked == "venv" else "uv"
    return Place(manager=manager, path=_folder(profile, target.installer), interpreter=found)


def _folder(profile: Profile, installer: Installer) -> str:
    """Return the environment's folder; raises `PreflightError` for one that undo could not take away or that is no own folder."""
    name = profile.environment.name or DEFAULT_NAME
    if "/" in name or name in (".", ".."):
        raise PreflightError("environment-name", name=name)
    path = profile.environment.path or f"{installer.environments}/{name}"
    if path.startswith("~/"):
        path = f"{installer.home}/{path[2:]}"
    parts = PurePosixPath(path).parts
    if not path.startswith("/") or ".." in parts or len(parts) < _LEAST_DEPTH or path.rstrip("/") == installer.home.rstrip("/"):
        raise PreflightError("environment-path", path=path)
    return str(PurePosixPath(path))


def environment(
    machine: Machine,
    profile: Profile,
    requirements: tuple[str, ...],
    target: Target,
    *,
    indexes: tuple[str, ...] = (),
    download_bytes: int | None = None,
    disk_bytes: int | None = None,
    seconds: float | None = None,
) -> tuple[AnyAction, ...]:
    """Return what makes the environment and installs exactly `requirements` ("torch==2.13.0+cpu"); ids are `environment.*`.

    `indexes` are looked at before the person's own index (the one that has a variant's wheels).
    """
    where = place(profile, target)
    fetch = fetching(profile, target.installer, indexes)
    by: Literal["root", "user"] = "user"
    actions: list[AnyAction] = list(_room(where, target.installer))
    uv = target.installer.uv
    if where.manager == "uv" and uv is None:
        tools = _tools(target.installer)
        uv = f"{tools}/bin/uv"
        actions += _bootstrap(tools, target.installer, fetch)
    env = fetch.environment(where.manager)
    make = _made_by_uv(where, uv or "uv") if where.manager == "uv" else _made_by_venv(where)
    there = Succeeds(argv=(where.python, "-I", "-c", HAS_LINE, where.interpreter.line))
    actions.append(
        Run(
            id="environment.create",
            title=phrase("manager.action.environment", path=where.path, python=where.interpreter.line),
            why=phrase("manager.why.environment"),
            lane="python",
            by=by,
            argv=make,
            env=env,
            done_when=(there,),
            undo=(RemovePath(path=where.path),),
            seconds=3 if where.interpreter.path else 20,
        )
    )
    if not requirements:
        return tuple(actions)
    install = _installed_by_uv(where, uv or "uv", fetch) if where.manager == "uv" else _installed_by_pip(where, fetch)
    back = _put_back_by_uv(where, uv or "uv", fetch) if where.manager == "uv" else _put_back_by_pip(where, fetch)
    lock, before = f"{where.path}/{LOCK_FILE}", f"{where.path}/{BEFORE_FILE}"
    actions.append(
        Run(
            id="environment.before",
            title=phrase("manager.action.before", path=where.path),
            why=phrase("manager.why.before"),
            lane="python",
            by=by,
            needs=("environment.create",),
            argv=(where.python, "-I", "-c", REMEMBER, before),
            done_when=(FileIs(path=before),),
            undo=(RemovePath(path=before),),
            seconds=1,
        )
    )
    actions.append(
        Run(
            id="environment.install",
            title=phrase("manager.action.requirements", packages=_short(requirements)),
            lane="python",
            by=by,
            needs=("environment.before",),
            argv=(*install, *requirements),
            undo=(Command(argv=(where.python, "-I", "-c", PUT_BACK, before, *back, before)),),
            env=env,
            done_when=(Succeeds(argv=(where.python, "-I", "-c", HAS_ALL, *requirements)),),
            download_bytes=download_bytes,
            disk_bytes=disk_bytes,
            seconds=seconds or 60,
            quiet_seconds=120,
            quiet_why=phrase("manager.quiet.wheels"),
        )
    )
    actions.append(
        Run(
            id="environment.lock",
            title=phrase("manager.action.lock", path=lock),
            lane="python",
            by=by,
            needs=("environment.install",),
            argv=(where.python, "-I", "-c", FREEZE, lock),
            undo=(RemovePath(path=lock),),
            seconds=1,
        )
    )
    return tuple(actions)


def _short(requirements: tuple[str, ...]) -> str:
    """Return the first requirements as a title can hold them."""
    first = ", ".join(one.replace("===", " ").replace("==", " ") for one in requirements[:3])
    return first if len(requirements) <= 3 else f"{first}, …"


# --- commands -------------------------------------------------------------------------------------


class Fetching(Record):
    """Where packages come from, in the spelling that uv and pip share, and how they are reached."""

    options: tuple[str, ...]
    proxy: str | None
    certificates: str | None

    def environment(self, manager: Literal["uv", "venv"]) -> Mapping[str, str]:
        """Return the variables of one installer; without a named bundle, uv is told to trust what the system trusts."""
        env = (
            {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
            if manager == "venv"
            # The old name for releases that do not know the new one; with both, the new ones do not warn.
            else {"UV_NO_PROGRESS": "1", "UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
        )
        if self.proxy is not None:
            env |= {"HTTPS_PROXY": self.proxy, "HTTP_PROXY": self.proxy, "ALL_PROXY": self.proxy}
        if self.certificates is not None:
            env |= {"SSL_CERT_FILE": self.certificates} if manager == "uv" else {"PIP_CERT": self.certificates}
        return env


def fetching(profile: Profile, installer: Installer, indexes: tuple[str, ...]) -> Fetching:
    """Return where packages come from: the profile's word first, else the person's configuration, variant indexes before both."""
    options: list[str] = []
    index = profile.network.pypi or installer.index_url
    if index is not None:
        options += ["--index-url", index]
    for extra in (*indexes, *installer.extra_index_urls):
        options += ["--extra-index-url", extra]
    links = (profile.network.find_links,) if profile.network.find_links else installer.find_links
    for link in links:
        options += ["--find-links", link]
    return Fetching(
        options=tuple(options),
        proxy=profile.network.proxy or installer.proxy,
        certificates=profile.network.ca_file or installer.certificates,
    )


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


def _room(where: Place, installer: Installer) -> tuple[AnyAction, ...]:
    """Return the look at the folder before anything is made in it; without a Python nothing of the person's can look yet."""
    python = _known_python(installer)
    if python is None:
        return ()
    look = Run(
        id="environment.room",
        title=phrase("manager.action.room", path=where.path),
        lane="python",
        by="user",
        argv=(python, "-I", "-c", IS_FREE, where.path),
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
            env=fetch.environment("venv"),
            done_when=(Succeeds(argv=(f"{tools}/bin/uv", "--version")),),
            download_bytes=22_000_000,
            seconds=6,
        ),
    )


def _made_by_uv(where: Place, uv: str) -> tuple[str, ...]:
    """Return the call that makes the environment; a named line without an interpreter may only be one that uv manages."""
    python = (where.interpreter.path,) if where.interpreter.path else (where.interpreter.line, "--managed-python")
    # What a cut-off call left behind is taken over; without the option uv would stop and ask.
    return (uv, "venv", "--no-project", "--allow-existing", "--python", *python, where.path)


def _made_by_venv(where: Place) -> tuple[str, ...]:
    return (where.interpreter.path or "python3", "-I", "-m", "venv", where.path)


def _installed_by_uv(where: Place, uv: str, fetch: Fetching) -> tuple[str, ...]:
    # The call comes only when something is missing, perhaps files of a cut-off installation, whose record looks complete.
    # pip looks at all indexes alike, and people set theirs up for pip; uv by itself stops at the first that knows a name.
    return (uv, "pip", "install", "--python", where.python, "--index-strategy", "unsafe-best-match", "--reinstall", *fetch.options)


def _put_back_by_uv(where: Place, uv: str, fetch: Fetching) -> tuple[str, ...]:
    """Return what makes the environment hold exactly the list in the file that follows."""
    return (uv, "pip", "sync", "--python", where.python, "--index-strategy", "unsafe-best-match", *fetch.options)


def _put_back_by_pip(where: Place, fetch: Fetching) -> tuple[str, ...]:
    """Return what brings the versions in the file that follows back; what is new beside them stays, for pip has no such word."""
    return (where.python, "-I", "-m", "pip", "install", "--no-input", "--progress-bar", "off", "--no-deps", *fetch.options, "-r")


def _installed_by_pip(where: Place, fetch: Fetching) -> tuple[str, ...]:
    return (where.python, "-I", "-m", "pip", "install", "--no-input", "--progress-bar", "off", "--force-reinstall", *fetch.options)
