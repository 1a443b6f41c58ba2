"""What keeps a kernel parameter or the governor on an installed system: boot loaders and services, as records."""

from __future__ import annotations

from steps.catalog.load import remembered, rows
from steps.model.base import Record


class Loader(Record):
    """A way to put parameters on the kernel's command line, the particular ones before the general ones."""

    id: str
    files: tuple[str, ...] = ()
    """All must be there; `a|b` is met by either. Empty: never found by looking."""
    started_by: str | None = None
    """How the loader's own name begins, where it must have started this system."""
    sealed: bool = False
    """Whether it is meant for a root file system that is mounted for reading only."""
    edits: str | None = None
    """The file that holds the parameters; `None` where a command keeps them."""
    tool: str
    """What is run, as a person would read it."""
    source: str


class Owner(Record):
    """A service that sets the governor, the first of those that are enabled being the one that is asked."""

    id: str
    label: str
    units: tuple[str, ...]
    package: str | None = None
    edits: tuple[str, ...] = ()
    """Files in which it keeps what it sets."""
    source: str


class InTree(Record):
    """A driver of the kernel's own that would take NVIDIA's cards."""

    module: str
    bound: tuple[str, ...]
    """What the bus and the log call it."""
    off: str | None = None
    """The parameter of the kernel that keeps its hands off the cards."""
    source: str


OWN_FILES = (
    "/etc/bringup/idle-on.conf",
    "/etc/bringup/idle-off.conf",
    "/etc/bringup/governor-on.conf",
    "/etc/bringup/governor-off.conf",
    "/etc/systemd/system/bringup-acs.service",
)
"""What an earlier plan of ours wrote and a later one must not forget."""


def loaders() -> tuple[Loader, ...]:
    """Return the boot loaders in the order in which they are looked for."""
    return rows("linux.toml", "loader", Loader)


def loader(id: str) -> Loader:
    """Return one boot loader."""
    return next(row for row in loaders() if row.id == id)


def owners() -> tuple[Owner, ...]:
    """Return the services that set the governor, in the order in which they are asked."""
    return rows("linux.toml", "owner", Owner)


def owner(id: str) -> Owner:
    """Return one service."""
    return next(row for row in owners() if row.id == id)


@remembered
def edited() -> tuple[str, ...]:
    """Return every file that a plan may have to merge with."""
    named = [row.edits for row in loaders() if row.edits]
    kept = [path for row in owners() for path in row.edits]
    return tuple(dict.fromkeys((*OWN_FILES, *named, *kept)))


def in_tree() -> tuple[InTree, ...]:
    """Return the kernel's own drivers for NVIDIA's cards."""
    return rows("linux.toml", "in_tree", InTree)


@remembered
def in_tree_names() -> tuple[str, ...]:
    """Return all names that they go by: of modules, on the bus, in the log."""
    return tuple(dict.fromkeys(name for row in in_tree() for name in (row.module, *row.bound)))
