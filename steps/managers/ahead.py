"""What of a plan can be fetched before it starts: the archives of its apt packages, and its wheels; nothing is installed by it."""

from __future__ import annotations

from collections.abc import Iterator

from steps.managers.apt import NETWORK, Apt
from steps.model.action import AnyAction, Packages, RemovePath, Run, Write
from steps.model.base import phrase
from steps.model.plan import Plan

STATUS = "/var/cache/bringup/ahead/status"
"""A copy of dpkg's list: apt locks the folder in which that lies, so that a fetch never holds dpkg's own lock."""
_TRIED = "bringup-ahead"


def fetching(plan: Plan, *, root: bool) -> tuple[AnyAction, ...]:
    """Return the actions that fetch what `plan` will install; without `root` only its wheels, and none where nothing can be fetched.

    What a repository has that the plan itself adds is left out: apt does not know of it yet.
    """
    adds = next((at for at, action in enumerate(plan.actions) if action.id.startswith("repository.")), len(plan.actions))
    known = (action for action in plan.actions[:adds] if isinstance(action, Packages) and action.manager == "apt" and action.install)
    packages = tuple(known)
    return (*(_archives(packages) if root and packages else ()), *_wheels(plan))


def _archives(packages: tuple[Packages, ...]) -> Iterator[AnyAction]:
    """Yield what fetches the archives into apt's cache, which holds the lock of the archives alone."""
    yield Write(
        id="ahead.status", title=phrase("manager.action.ahead-status"), lane="packages", path=STATUS, copy_of="/var/lib/dpkg/status"
    )
    for action in packages:
        yield Run(
            id=f"ahead.{action.id}",
            title=action.title,
            lane="packages",
            needs=("ahead.status",),
            argv=("apt-get", "-y", "-q", "-o", f"Dir::State::status={STATUS}", *NETWORK, "--download-only", "install", *action.install),
            env=Apt().environment(),
            download_bytes=action.download_bytes,
            optional=True,
        )


def _wheels(plan: Plan) -> Iterator[AnyAction]:
    """Yield what brings the wheels into uv's cache: an installation into a folder that goes again; only where uv is there already."""
    uv, home = plan.target.installer.uv, plan.target.installer.home
    install = next((action for action in plan.actions if action.id == "environment.install"), None)
    if not isinstance(install, Run) or uv is None or install.argv[:3] != (uv, "pip", "install") or "--python" not in install.argv:
        return
    line = plan.profile.environment.python
    at = install.argv.index("--python")
    python = plan.target.installer.pythons.get(line or "") or line or plan.target.installer.own_python
    if python is None:
        return
    folder = f"{home}/.cache/{_TRIED}"
    argv = (*install.argv[:at], "--python", python, "--target", folder, *(word for word in install.argv[at + 2 :] if word != "--reinstall"))
    yield Run(
        id="ahead.wheels",
        title=install.title,
        lane="python",
        by=install.by,
        argv=argv,
        env=install.env,
        undo=(RemovePath(path=folder),),
        download_bytes=install.download_bytes,
        optional=True,
    )
