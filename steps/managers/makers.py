"""How each manager makes a Python environment and fills it, as commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Literal

from steps.managers.fetching import Fetching, Program
from steps.managers.python_scripts import ADD_HASHES, FROM_REPORT, HAS_LINE
from steps.model.action import FileIs, RemovePath, Reply, Run, Succeeds
from steps.model.base import Record, Words, phrase
from steps.model.profile import EnvironmentManager

Argv = tuple[str, ...]
CONDA: tuple[EnvironmentManager, ...] = ("conda", "mamba", "micromamba", "pixi")
"""Managers whose Python is a package of a channel; the frameworks are wheels all the same: PyTorch's own channel has ended."""


class Interpreter(Record):
    """Where an environment's Python comes from; `path` is `None` when the manager has to fetch it."""

    line: str
    path: str | None = None


class Place(Record):
    """An environment on disk, and who makes and fills it."""

    manager: EnvironmentManager
    path: str
    interpreter: Interpreter
    tool: str | None = None
    """The program that makes it; `None` for venv, and for a uv that is fetched first."""
    filler: Literal["uv", "pip"] = "uv"
    """Who puts the packages into it."""

    @property
    def prefix(self) -> str:
        """The folder that holds `bin` and `lib`."""
        return f"{self.path}/.pixi/envs/default" if self.manager == "pixi" else self.path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return f"{self.prefix}/bin/python"

    @property
    def maker(self) -> Program:
        """Which variables the program that makes it is told by."""
        return "conda" if self.manager in CONDA else "uv" if self.manager == "uv" else "pip"


def made(where: Place, tool: str, fetch: Fetching) -> tuple[Run, ...]:
    """Return what makes the environment; the last action's id is `environment.create`."""
    seconds = 40.0 if where.manager in CONDA else 3.0 if where.interpreter.path else 20.0
    create = Run(
        id="environment.create",
        title=phrase("manager.action.environment", path=where.path, python=where.interpreter.line),
        why=phrase("manager.why.environment"),
        lane="python",
        by="user",
        argv=_made(where, tool, fetch),
        env=fetch.environment(where.maker),
        done_when=(Succeeds(argv=(where.python, "-I", "-c", HAS_LINE, where.interpreter.line)),),
        undo=(RemovePath(path=where.path),),
        replies=_replies(where),
        seconds=seconds,
    )
    if where.manager != "pixi":
        return (create,)
    manifest = f"{where.path}/pixi.toml"
    project = Run(
        id="environment.project",
        title=phrase("manager.action.project", path=manifest),
        lane="python",
        by="user",
        argv=(tool, "init", "--channel", fetch.channel, where.path),
        env=fetch.environment("conda"),
        done_when=(FileIs(path=manifest),),
        undo=(RemovePath(path=where.path),),
        seconds=1,
    )
    return (project, create)


def _made(where: Place, tool: str, fetch: Fetching) -> Argv:
    """Return the call that makes the environment."""
    line = f"python={where.interpreter.line}"
    channel = ("--channel", fetch.channel, "--override-channels")
    match where.manager:
        case "uv":
            # A named line without an interpreter may only be one that uv manages.
            python = (where.interpreter.path,) if where.interpreter.path else (where.interpreter.line, "--managed-python")
            # What a cut-off call left behind is taken over; without the option uv would stop and ask.
            return (tool, "venv", "--no-project", "--allow-existing", "--python", *python, where.path)
        case "venv":
            return (where.interpreter.path or "python3", "-I", "-m", "venv", where.path)
        case "pixi":
            return (tool, "add", "--manifest-path", f"{where.path}/pixi.toml", f"{line}.*", "pip")
        case "conda" | "mamba" | "micromamba":
            # Without --yes: it would agree to the removal of an environment that is there, too.
            return (tool, "create", "--prefix", where.path, *channel, line, "pip")


def _replies(where: Place) -> tuple[Reply, ...]:
    """Return the answer to the question that the plan's confirmation has answered; to all others a person does."""
    row = {"conda": "conda-proceed", "mamba": "mamba-proceed", "micromamba": "mamba-proceed"}.get(where.manager)
    return (Reply(prompt=row, answer="yes"),) if row else ()


def activation(where: Place) -> tuple[str, str]:
    """Return the lines that make the environment the one in use: in bash and zsh, and in fish, which reads another script."""
    path, tool = shlex.quote(where.path), shlex.quote(where.tool or where.manager)
    match where.manager:
        case "uv" | "venv":
            return f"source {shlex.quote(f'{where.path}/bin/activate')}", f"source {shlex.quote(f'{where.path}/bin/activate.fish')}"
        case "conda":
            return f'eval "$({tool} shell.posix hook)" && conda activate {path}', f"{tool} shell.fish hook | source; conda activate {path}"
        case "mamba" | "micromamba":
            name = where.manager
            return (
                f'eval "$({tool} shell hook -s posix)" && {name} activate {path}',
                f"{tool} shell hook -s fish | source; {name} activate {path}",
            )
        case "pixi":
            hook = f"{tool} shell-hook --manifest-path {shlex.quote(f'{where.path}/pixi.toml')}"
            return f'eval "$({hook})"', f"{hook} --shell fish | source"


# --- filled ---------------------------------------------------------------------------------------


def installing(where: Place, uv: str, fetch: Fetching) -> Argv:
    """Return the call that installs the requirements that follow."""
    if where.filler == "pip":
        return (*_pip(where), "--force-reinstall", *fetch.options)
    # The call comes only when something is missing, perhaps files of a cut-off installation, whose record looks complete.
    return (*_uv(where, uv, "install"), "--reinstall", *fetch.options)


def adding(python: str, uv: str | None) -> Argv:
    """Return the call that adds the requirements that follow to what is there: by uv where it is named, else by the environment's pip."""
    if uv is None:
        return (python, "-I", "-m", "pip", "install", "--no-input", "--progress-bar", "off")
    return (uv, "pip", "install", "--python", python, *_ANY_INDEX)


def compiling(where: Place, uv: str, fetch: Fetching) -> Argv:
    """Return the call that compiles the requirements that follow against what the environment holds, which stays as it is."""
    if where.filler == "pip":
        return (*_pip(where), "--no-build-isolation", *fetch.options)
    return (*_uv(where, uv, "install"), "--no-build-isolation", *fetch.options)


def removing(where: Place, uv: str) -> Argv:
    """Return the call that removes the packages whose names follow."""
    if where.filler == "pip":
        return (where.python, "-I", "-m", "pip", "uninstall", "--yes")
    return (uv, "pip", "uninstall", "--python", where.python)


def putting_back(where: Place, uv: str, fetch: Fetching) -> Argv:
    """Return what brings the packages of the list that follows back.

    uv leaves exactly those; with pip what is new beside them stays, for pip has no such word.
    """
    if where.filler == "pip":
        return (*_pip(where), "--no-deps", *fetch.options, "-r")
    return (*_uv(where, uv, "sync"), *fetch.options)


def rebuilding(where: Place, uv: str, fetch: Fetching, lock: str) -> Argv:
    """Return the call that makes the environment hold exactly what a lock lists, each file with its hash."""
    return (*putting_back(where, uv, fetch), lock)


def locking(where: Place, uv: str, fetch: Fetching, versions: str, lock: str) -> tuple[Run, ...]:
    """Return what makes a lock of the list of versions: with the hash of every file, and where the files come from.

    All of it is optional: without a network the list of versions stays, and the hashes of a folder's wheels.
    """
    title, report = phrase("manager.action.lock", path=lock), f"{where.path}/bringup-report.json"
    env, undo = fetch.environment(where.filler), (RemovePath(path=lock),)
    script = (where.python, "-I", "-c")
    if where.filler == "uv":
        how = ("--no-deps", "--generate-hashes", "--no-header", "--no-annotate", "--quiet")
        argv: Argv = (uv, "pip", "compile", versions, "--output-file", lock, "--python", where.python, *how, *_ANY_INDEX, *fetch.options)
        found = [_locked("environment.lock", title, argv, env, undo)]
    else:
        pip_how = ("--dry-run", "--ignore-installed", "--quiet", "--report", report)
        asked = (*_pip(where), "--no-deps", *pip_how, *fetch.options, "-r", versions)
        written = (*script, FROM_REPORT, report, lock, *fetch.options)
        found = [
            _locked("environment.report", phrase("manager.action.report"), asked, env, (RemovePath(path=report),)),
            _locked("environment.lock", title, written, {}, undo, needs="environment.report"),
        ]
    if where.filler == "uv":
        found.append(
            _locked("environment.hashes", phrase("manager.action.hashes"), (*script, ADD_HASHES, versions, lock, *fetch.options), {}, undo)
        )
    return tuple(found)


def _locked(
    id: str, title: Words, argv: Argv, env: Mapping[str, str], undo: tuple[RemovePath, ...], *, needs: str = "environment.versions"
) -> Run:
    """Return one action of making a lock."""
    why = phrase("manager.why.lock")
    return Run(
        id=id, title=title, why=why, lane="python", by="user", needs=(needs,), argv=argv, env=env, undo=undo, seconds=2, optional=True
    )


_ANY_INDEX = ("--index-strategy", "unsafe-best-match")
"""pip looks at all indexes alike, and people set theirs up for pip; uv by itself stops at the first that knows a name."""


def _uv(where: Place, uv: str, word: str) -> Argv:
    return (uv, "pip", word, "--python", where.python, *_ANY_INDEX)


def _pip(where: Place) -> Argv:
    return adding(where.python, None)
