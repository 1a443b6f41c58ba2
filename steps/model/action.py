"""An action: one thing a run does, how to tell that it is done, and how it is taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from steps.model.base import Record, Words

Lane = Literal["packages", "python", "files", "system", "proof"]
"""Actions of one lane run one after the other; lanes run side by side."""
NEIGHBOURS = "driver.neighbours"
"""The id of the action that sees who uses what a driver's packages take away."""
KEY = "driver.key"
"""The id of the action that asks the firmware to trust a key: a person chooses a password for it."""
LINE = 12_000_000
"""Bytes that a line is taken to bring in a second where an estimate has to name a time."""
ManagerName = Literal["apt", "dnf", "zypper", "pacman"]


# --- done_when: probes that say "already done", also after a crash -------------------------------


class FileIs(Record, tag=True):
    """The file exists; with `text`, it holds exactly that."""

    path: str
    text: str | None = None


class PackagesAre(Record, tag=True):
    """Each package is installed and configured; with a version, at that version."""

    manager: ManagerName
    packages: Mapping[str, str | None]


class ModuleBuilt(Record, tag=True):
    """A module of this name lies below `/lib/modules/<kernel>` (`None`: of the target's newest kernel)."""

    module: str
    kernel: str | None = None


class Succeeds(Record, tag=True):
    """The command ends with status 0."""

    argv: tuple[str, ...]


class AptReads(Record, tag=True):
    """apt reads packages from one of these addresses (a scheme does not count); with `suite`, from that one of it."""

    urls: tuple[str, ...]
    suite: str | None = None


Probe = FileIs | PackagesAre | ModuleBuilt | Succeeds | AptReads


# --- undo ---------------------------------------------------------------------------------------


class RemovePath(Record, tag=True):
    """Remove what the action made; what existed before the action is kept and never removed."""

    path: str


class Command(Record, tag=True):
    """Run this command; what is `tolerant` may fail, as it did before the action: a package that could not be configured."""

    argv: tuple[str, ...]
    tolerant: bool = False
    there: tuple[Probe, ...] = ()
    """What it takes away, where it cannot be run a second time: if none of these holds, it is done already."""


class Unqueue(Record, tag=True):
    """Take back the request for a key that waits for the next boot: all that wait with it go too. One that was enrolled stays."""

    certificate: str

    @property
    def argv(self) -> tuple[str, ...]:
        """The command that takes it back: mokutil has none for one key alone."""
        return ("mokutil", "--revoke-import")


UndoStep = RemovePath | Command | Unqueue


# --- replies ------------------------------------------------------------------------------------


class Reply(Record):
    """How a prompt of the command is met: `prompt` names a row of `assets/data/prompts.toml`, `answer` what is sent."""

    prompt: str
    answer: str


# --- actions ------------------------------------------------------------------------------------


class Action(Record):
    """What all actions have in common."""

    id: str
    """Stable and readable, unique in the plan: `driver.install`."""
    title: Words
    why: Words = ""
    lane: Lane = "system"
    by: Literal["root", "user"] = "root"
    """Who runs it."""
    needs: tuple[str, ...] = ()
    """Ids of actions that must be done first (beyond those before it in its lane)."""
    done_when: tuple[Probe, ...] = ()
    """All hold: it is done, and running it again would change nothing."""
    download_bytes: int | None = None
    disk_bytes: int | None = None
    seconds: float | None = None
    """A realistic estimate."""
    quiet_seconds: float | None = None
    """How long silence is normal (a DKMS build prints nothing for minutes)."""
    quiet_why: Words = ""
    optional: bool = False
    """Whether the run goes on when it fails."""


class Run(Action, tag=True):
    """A command. Its output goes to the spool; `interactive` gives it the terminal for its dialogs too."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    undo: tuple[UndoStep, ...] = ()
    replies: tuple[Reply, ...] = ()
    interactive: bool = False
    timeout: float | None = None
    passes: tuple[int, ...] = ()
    """Exit statuses that are no end besides 0: what comes after mends what is left, and the proof decides."""
    stays: Words = ""
    """What of it no undo takes back, in words; nothing where all of it goes, or where it changes nothing."""
    outside: bool = False
    """Whether it runs on this machine even when the target is another root (`bringup verify --root …`)."""


class Write(Action, tag=True):
    """A file that shall hold `text`, or a copy of the one file that `copy_of` (a path or a glob) names.

    The file as it was is kept in the run's backup and put back by undo; what did not exist is removed by undo.
    """

    path: str
    text: str | None = None
    copy_of: str | None = None
    binary_key: bool = False
    """Whether an OpenPGP key in armour is written without it: apt reads a `.gpg` file only so."""
    mode: int = 0o644


class Keep(Action, tag=True):
    """What lies at `path`, kept beside it under a name that is the run's own: as a copy, or moved there where it `moves`.

    What is kept is there whole or not at all. Undo brings it back where it is there whole, and touches nothing else.
    """

    path: str
    moves: bool = False
    beside: str | None = None
    """The path that it comes to lie next to, where that is not its own."""

    def kept(self, run: str) -> str:
        """Return where a run keeps it, under a name that nobody takes for the original.

        No pattern that looks for environments finds it; apt passes over it in silence, modprobe, depmod and ldconfig do not read it.
        """
        folder, _, name = (self.beside or self.path).rpartition("/")
        return f"{folder}/.{name}.{run}.disabled" if self.moves else f"{folder}/.{name}.before-{run}"


class Packages(Action, tag=True):
    """Packages of the system's own manager, "name" or "name=version".

    Simulated first: a removal that is not in `may_remove`, or a step back that is not in `may_downgrade`, stops the run before it
    starts. Undo puts back every version, automatic mark and removed package as the return point has them.
    """

    manager: ManagerName
    install: tuple[str, ...] = ()
    may_remove: tuple[str, ...] = ()
    """Names or shell patterns; the desktop, network and SSH are never removed, whatever stands here."""
    may_downgrade: tuple[str, ...] = ()
    """Names or shell patterns of packages that may go back to an older version: none unless the plan goes back on purpose."""
    refresh: bool = False
    """Whether the package lists are fetched first."""


def installing(
    manager: ManagerName,
    id: str,
    title: Words,
    packages: tuple[str, ...],
    *,
    versions: Mapping[str, str | None] | None = None,
    why: Words = "",
    may_remove: tuple[str, ...] = (),
    may_downgrade: tuple[str, ...] = (),
    refresh: bool = False,
    needs: tuple[str, ...] = (),
    done_when: tuple[Probe, ...] = (),
    download_bytes: int | None = None,
    disk_bytes: int | None = None,
    seconds: float | None = None,
    quiet_seconds: float | None = None,
    quiet_why: Words = "",
    optional: bool = False,
) -> Packages:
    """Return the action that installs `packages`: "name" or "name=version", where a version may be a pattern ("580.*").

    It is done when each is there at its version and the probes of `done_when` hold as well. `versions` says which are right
    where the manager's own preferences choose them.
    """
    named = {name: version or None for name, _, version in (package.partition("=") for package in packages)}
    return Packages(
        id=id,
        title=title,
        why=why,
        lane="packages",
        needs=needs,
        manager=manager,
        install=packages,
        may_remove=may_remove,
        may_downgrade=may_downgrade,
        refresh=refresh,
        done_when=(PackagesAre(manager=manager, packages=named if versions is None else versions), *done_when),
        download_bytes=download_bytes,
        disk_bytes=disk_bytes,
        seconds=seconds,
        quiet_seconds=quiet_seconds,
        quiet_why=quiet_why,
        optional=optional,
    )


class Service(Action, tag=True):
    """A systemd unit that shall be enabled and running; undo puts its state back."""

    unit: str


class Reboot(Action, tag=True):
    """A reboot that the person says when."""

    reason: Words


class Manual(Action, tag=True):
    """Something only a person can do, outside this machine's reach (a BIOS menu, an administrator)."""

    text: Words


AnyAction = Run | Write | Keep | Packages | Service | Reboot | Manual


def leaves_something(action: AnyAction) -> bool:
    """Return whether the action is one that changes the machine: a proof, a reboot and fresh lists leave nothing to take back."""
    return not (action.lane == "proof" or isinstance(action, Reboot) or (isinstance(action, Packages) and not action.install))
