"""How causes are repaired where nothing has to be decided, and the same tool in the words of each distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steps.catalog.load import remembered, rows
from steps.model.base import Record

System = Literal["apt", "dnf", "pacman"]
Argv = tuple[str, ...]


class ToolRow(Record):
    """One thing to do, as each package manager's distribution does it."""

    id: str
    apt: Argv = ()
    dnf: Argv = ()
    pacman: Argv = ()
    source: str


class ProofRow(Record):
    """How to see that a repair worked: one command everywhere, or one for each package manager."""

    id: str
    command: Argv | None = None
    apt: Argv | None = None
    dnf: Argv | None = None
    pacman: Argv | None = None
    probe: bool = False
    """Whether the doctor may run it by itself, and its exit status tells."""


class FlavorRow(Record):
    """One package with the closed and with the open kernel modules; `{branch}` stands for a number."""

    closed: str
    open: str


class OverrideRow(Record):
    """What AMD's runtime can be told to take the cards of a family for."""

    family: str
    relative: str
    version: str
    source: str


class HeadersRow(Record):
    """The package with the headers of kernels whose name matches `kernel`; without one it is not known."""

    manager: System
    kernel: str
    package: str | None = None
    source: str


class SigningRow(Record):
    """A key that modules built here are signed with: `make` makes it where it is not there, `build` signs anew what is no package's."""

    certificate: str
    make: Argv = ()
    """Empty where the first build makes it."""
    build: Argv = ()
    source: str


class StepRow(Record):
    """One step; what it does is told by the one field that is there, and without any a person does it."""

    says: str
    """The key of its words, `repair.step.<says>`."""
    run: Argv = ()
    undo: tuple[Argv, ...] = ()
    makes: str | None = None
    """A path that is there once the command was run: where it is there before, nothing is run and nothing taken back."""
    keeps: str | None = None
    """A file that the command writes anew: it is kept before, and put back by undo."""
    live: bool = False
    interactive: bool = False
    show: Argv = ()
    write: str | None = None
    text: str = ""
    install: Mapping[System, Argv] = {}
    refresh: bool = False
    """Whether the package lists are fetched anew."""
    card: Literal["users", "reset"] | None = None
    """What is done with the cards that the diagnosis names: who uses them is looked at, or they are reset."""
    repository: bool = False
    """Whether NVIDIA's archive for this system is made known, where it is not."""
    service: str | None = None
    use: str | None = None
    """A row of `tool`."""


class RepairRow(Record):
    """The repair of one cause, or of one variant of it; `proof` names a row, and the usual one is meant without it."""

    id: str
    variant: str = ""
    proof: str = "smi"
    steps: tuple[StepRow, ...]
    source: str | None = None


@remembered
def tools() -> dict[str, ToolRow]:
    """Return the tools by id."""
    return {row.id: row for row in rows("repairs.toml", "tool", ToolRow)}


@remembered
def proofs() -> dict[str, ProofRow]:
    """Return the proofs by id."""
    return {row.id: row for row in rows("repairs.toml", "proof", ProofRow)}


@remembered
def flavors() -> tuple[FlavorRow, ...]:
    """Return the packages that differ by the kind of kernel modules only."""
    return tuple(rows("repairs.toml", "flavor", FlavorRow))


@remembered
def headers() -> tuple[HeadersRow, ...]:
    """Return the packages of headers by the names of kernels; the first that fits counts."""
    return tuple(rows("repairs.toml", "headers", HeadersRow))


@remembered
def signing() -> tuple[SigningRow, ...]:
    """Return the keys that distributions sign the modules with that are built here."""
    return tuple(rows("repairs.toml", "signing", SigningRow))


@remembered
def overrides() -> tuple[OverrideRow, ...]:
    """Return the families of AMD's cards that can be taken for a relative."""
    return tuple(rows("repairs.toml", "override", OverrideRow))


@remembered
def repair_rows() -> dict[tuple[str, str], RepairRow]:
    """Return the repairs by cause and variant; a variant without a row takes the cause's plain one."""
    return {(row.id, row.variant): row for row in rows("repairs.toml", "repair", RepairRow)}
