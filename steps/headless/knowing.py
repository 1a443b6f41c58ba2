"""The person's own folders: the overlay that lies over the tables, and the cache of what is on offer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone

from steps.catalog import overlay, tables
from steps.catalog.overlay import Refused
from steps.catalog.tables import Laid, Table
from steps.engine.client import invoking_owner
from steps.host.own import OwnFolder
from steps.knowledge import age
from steps.model.base import Record
from steps.model.finding import Finding


class Known(Record):
    """What is laid over the tables now: files by name, and by path those that were refused."""

    laid: Mapping[str, Laid] = {}
    refused: Mapping[str, Refused] = {}

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return every table as it counts now."""
        return tables.all_tables(self.laid)


def own_folder(environ: Mapping[str, str], variable: str, usual: str, name: str) -> OwnFolder:
    """Return a folder of the person at the keyboard: behind sudo the one who typed it, whatever variables root has."""
    owner = invoking_owner()
    behind_sudo = environ.get("SUDO_UID") == str(owner.uid)
    home = owner.home if behind_sudo else environ.get("HOME") or owner.home
    base = None if behind_sudo else environ.get(variable)
    # The rule of the XDG folders: a relative path does not count.
    base = base if base and base.startswith("/") else f"{home.rstrip('/')}/{usual}"
    return OwnFolder(f"{base.rstrip('/')}/bringup{name}", uid=owner.uid, gid=owner.gid)


def overlay_folder(environ: Mapping[str, str]) -> OwnFolder:
    """Return where the overlay lies: `$XDG_DATA_HOME/bringup/knowledge`."""
    return own_folder(environ, "XDG_DATA_HOME", ".local/share", "/knowledge")


def lay(environ: Mapping[str, str]) -> Known:
    """Lay the person's overlay over the tables; a file that is wrong in any place does not count, and the built-in table serves."""
    folder = overlay_folder(environ)
    laid: dict[str, Laid] = {}
    refused: dict[str, Refused] = {}
    for name in overlay.FILES:
        path = f"{folder.path}/{name}"
        found = overlay.read(name, folder.read(name, most=overlay.MOST_BYTES))
        if isinstance(found, Refused):
            refused[path] = found
        elif found is not None:
            laid[name] = Laid(path=path, file=found)
    overlay.use({name: one.file for name, one in laid.items()})
    return Known(laid=laid, refused=refused)


def notices(known: Known, now: float | None = None) -> tuple[Finding, ...]:
    """Return what is to be said about the knowledge itself; `now` in seconds since the epoch, else the clock's."""
    return age.notices(known.tables, known.refused, day(now))


def day(now: float | None = None) -> str:
    """Return a day in ISO 8601, in UTC."""
    return datetime.fromtimestamp(time.time() if now is None else now, timezone.utc).date().isoformat()
