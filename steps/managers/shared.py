"""An environment for a whole lab: root makes it where all can reach it, and a group or everybody may read it."""

from __future__ import annotations

import msgspec

from steps.model.action import AnyAction, Run, Succeeds, Write
from steps.model.base import phrase
from steps.model.plan import Installer

ENVIRONMENTS = "/opt/bringup/envs"
_PYTHONS = "/opt/bringup/python"


def for_all(installer: Installer) -> Installer:
    """Return how packages are fetched for an environment that outlives its maker: nothing in it may stand in somebody's home."""
    home = f"{installer.home}/"
    return msgspec.structs.replace(
        installer,
        uv=None if installer.uv is None or installer.uv.startswith(home) else installer.uv,
        pythons={line: path for line, path in installer.pythons.items() if not path.startswith(home)},
        managers={name: path for name, path in installer.managers.items() if not path.startswith(home)},
        environments=ENVIRONMENTS,
    )


def opened(actions: tuple[AnyAction, ...], path: str, group: str | None) -> tuple[AnyAction, ...]:
    """Return the actions as root's, between the folder that all can pass and the rights to read what was made."""
    shelf = Run(
        id="environment.shelf",
        title=phrase("manager.action.shelf", path=ENVIRONMENTS),
        lane="python",
        argv=("install", "-d", "-m", "0755", "/opt/bringup", ENVIRONMENTS),
        done_when=(Succeeds(argv=("test", "-x", ENVIRONMENTS)),),
        seconds=1,
    )
    last = actions[-1].id
    rights = Run(
        id="environment.rights",
        title=phrase("manager.action.rights-group", path=path, group=group) if group else phrase("manager.action.rights", path=path),
        why=phrase("manager.why.rights"),
        lane="python",
        needs=(last,),
        # Whatever root's umask is; a person adds packages in an environment of their own.
        argv=("chmod", "-R", "u=rwX,g=rX,o=" if group else "u=rwX,go=rX", path),
        seconds=3,
    )
    owned = Run(
        id="environment.group",
        title=phrase("manager.action.group", path=path, group=group or ""),
        lane="python",
        needs=(last,),
        argv=("chgrp", "-R", group or "root", path),
        seconds=3,
    )
    mine = tuple(_by_root(action) for action in actions)
    return (shelf, *mine, *((owned,) if group else ()), rights)


def _by_root(action: AnyAction) -> AnyAction:
    """Return an action as root's; uv's own Pythons go where all can read them."""
    if isinstance(action, Run):
        return msgspec.structs.replace(action, by="root", env={**action.env, "UV_PYTHON_INSTALL_DIR": _PYTHONS})
    return msgspec.structs.replace(action, by="root") if isinstance(action, Write) else action
