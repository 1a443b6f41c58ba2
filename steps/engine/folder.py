"""A run's folder: where it lies, whose it is, and what stands in it."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import stat
import string
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from steps.engine.durable import FILE_MODE, make_folder, open_new, read_regular, sync_folder, write_whole
from steps.errors import BringupError, InputError, PreflightError
from steps.host.trusted_path import home_without_entry, person_uid
from steps.model.base import Param, Record
from steps.model.plan import Plan, decode, digest_of, distinct, encode

ROOT_STATE = "/var/lib/bringup"
ROOT_SOCKETS = "/run/bringup"
STATE_VARIABLE = "BRINGUP_STATE"
"""Names a folder that holds all runs, locks and sockets instead of the usual places; for tests and labs."""


class Owner(Record):
    """The person a run belongs to: who may answer it, and as whom the user's actions run."""

    uid: int
    gid: int
    name: str
    home: str


class Origin(Record):
    """What the start of a run fixes beside its plan; only the runner reads it."""

    digest: str
    owner: Owner
    environment: Mapping[str, str] = {}
    """The network and package-index variables of the person who started it; those that name credentials are not among them."""


class Order(Record):
    """What a screen hands to the launcher in a file."""

    plan: Plan
    environment: Mapping[str, str] = {}


class Refusal(Record):
    """Why a launcher or runner ended before it began; whoever started it raises it again as `Refused`."""

    code: str
    params: Mapping[str, Param] = {}
    exit: int = 2


class Refused(BringupError):
    """A refusal that came from another process, with its own exit code."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code, **refusal.params)
        self.exit_code = refusal.exit


def person(uid: int) -> Owner:
    """Return what the account database says of `uid`; for one without an entry, what can be said all the same."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Owner(uid=uid, gid=os.getgid() if uid == os.getuid() else uid, name=str(uid), home=home_without_entry(uid))
    return Owner(uid=uid, gid=entry.pw_gid, name=entry.pw_name, home=entry.pw_dir)


def invoking_owner() -> Owner:
    """Return the person at the keyboard: behind sudo the one who typed it, otherwise this process's user."""
    return person(person_uid())


def state_folder(*, root: bool, owner: Owner) -> Path:
    """Return the folder that holds `runs/` and `locks/`: the machine's for root's runs, the person's otherwise."""
    override = _override()
    if override is not None:
        return override
    if root:
        return Path(ROOT_STATE)
    own = os.environ.get("XDG_STATE_HOME", "") if owner.uid == os.geteuid() else ""
    # The rule of the variable: what is not absolute does not count.
    return Path(own if own.startswith("/") else f"{owner.home}/.local/state") / "bringup"


def _override() -> Path | None:
    """Return the folder that the environment names; raises `InputError` for a relative one, which a runner reads otherwise than we."""
    named = os.environ.get(STATE_VARIABLE)
    if not named:
        return None
    if not named.startswith("/"):
        raise InputError("state-relative", name=STATE_VARIABLE, folder=named)
    return Path(named)


def state_unusable(error: OSError) -> PreflightError:
    """Return the error for a place where no run can be kept: full, read-only, or no folder."""
    return PreflightError("state-unusable", folder=str(error.filename or ROOT_STATE), reason=error.strerror or str(error))


def socket_folder(*, root: bool, owner: Owner) -> Path:
    """Return the folder of the control sockets."""
    override = _override()
    if override is not None:
        return override / "sockets"
    if root:
        return Path(ROOT_SOCKETS)
    told = os.environ.get("XDG_RUNTIME_DIR", "")
    # A relative one would be another folder for the runner, which works in "/"; and credentials would lie where nobody forgets them.
    runtime = told if told.startswith("/") else f"/run/user/{owner.uid}"
    if os.access(runtime, os.W_OK):
        return Path(runtime) / "bringup"
    return Path(f"/tmp/bringup-{owner.uid}")  # noqa: S108 - made 0700 and refused when it is somebody else's


def missing(file: Path) -> InputError:
    """Return the error for a file that a run's folder lacks: the whole folder is gone, or the run is damaged."""
    run, folder = file.parent.name, file.parent
    if not folder.is_dir():
        return InputError("run-vanished", run=run, folder=str(folder))
    return InputError("run-incomplete", run=run, file=str(file))


class RunFolder:
    """The paths of one run, and the making of its files with the right owner and mode."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.name
        self.plan = path / "plan.json"
        self.origin = path / "origin.json"
        self.journal = path / "journal.jsonl"
        self.lock = path / "lock"
        self.errors = path / "runner.err"
        self.backup = path / "backup"

    def output(self, action: str) -> Path:
        """Return the spool of an action."""
        return self.path / "output" / f"{action}.log"

    def kept(self, action: str) -> Path:
        """Return the folder of what an action replaces."""
        return self.backup / action

    def mark_of(self, action: str) -> str:
        """Return the value of `MARK` in the environment of an action's commands: how they are found again.

        Two runs of one name, in two places, must not take each other's commands for their own: hence the folder's own number.
        """
        return f"{self.id}/{action}/{self.path.stat().st_ino}"

    def exists(self) -> bool:
        """Return whether the folder is still there."""
        return self.plan.exists()

    def read_plan(self) -> Plan:
        """Return the plan; raises `InputError` when the folder is gone or the plan is damaged."""
        try:
            return decode(read_regular(self.plan))
        except FileNotFoundError:
            raise missing(self.plan) from None
        except PermissionError:
            raise InputError("run-not-yours", run=self.id, folder=str(self.path)) from None
        except (OSError, msgspec.MsgspecError):
            raise InputError("plan-damaged", run=self.id, file=str(self.plan)) from None

    def plan_digest(self) -> str:
        """Return the digest of the plan as it lies there; raises `InputError` when it is gone or damaged."""
        try:
            return digest_of(read_regular(self.plan))
        except (OSError, msgspec.MsgspecError):
            raise InputError("plan-damaged", run=self.id, file=str(self.plan)) from None

    def read_origin(self) -> Origin:
        """Return what the start fixed; raises `InputError` when it is gone or damaged."""
        try:
            return msgspec.json.decode(read_regular(self.origin), type=Origin)
        except FileNotFoundError:
            raise missing(self.origin) from None
        except (OSError, msgspec.MsgspecError):
            raise InputError("plan-damaged", run=self.id, file=str(self.origin)) from None

    def began(self) -> bool:
        """Return whether a runner was ever at work on it: a start that was refused, or killed half-way, is no run."""
        try:
            found = self.journal.stat()
            if found.st_size > 0 or not stat.S_ISREG(found.st_mode):
                return True
            # An emptied journal does not take what the run left beside it.
            return any(next(below.iterdir(), None) is not None for below in (self.path / "output", self.backup))
        except OSError:
            # Damaged, and so it once was a run.
            return True

    def began_after(self, other: RunFolder) -> bool:
        """Return whether this run is later than `other`."""
        try:
            return (self.plan.stat().st_mtime_ns, self.id) > (other.plan.stat().st_mtime_ns, other.id)
        except OSError:
            return False

    def refusal(self, token: str | None) -> Path:
        """Return the file in which the runner that was given `token` says why it did not begin."""
        return self.path / f"refusal-{token}.json"

    def refuse(self, token: str | None, error: BringupError) -> None:
        """Leave word for the launcher that gave us `token`."""
        refusal = Refusal(code=error.code, params=error.params, exit=error.exit_code)
        write_whole(self.refusal(token), msgspec.json.encode(refusal), FILE_MODE)


MARK = "BRINGUP_RUN"
"""The variable that every command of a run carries."""
AHEAD = "ahead"
"""What the ids of runs begin with that only fetch: they are of no interest once they are over, and no list names them."""


def _names(today: str) -> Iterator[str]:
    """Yield "1130-a", "1130-b", … "1130-z", "1130-aa", …: today, then letters."""
    letters = string.ascii_lowercase
    yield from (f"{today}-{letter}" for letter in letters)
    yield from (f"{today}-{first}{second}" for first in letters for second in letters)


def create(plan: Plan, origin: Origin) -> RunFolder:
    """Make the folder of a new run with its immutable files; the plan comes last, so a folder without one was never a run.

    Raises `ValueError` for a plan that could not be run to its end: that is a bug of ours, and nothing is made.
    """
    distinct(plan)
    others = all_folders(origin.owner)
    taken = {folder.id for folder in others}
    home = own_runs(origin.owner)
    made = [parent for parent in (*reversed(home.parents), home) if not parent.exists()]
    for parent in made:
        parent.mkdir(mode=0o755, exist_ok=True)
        parent.chmod(0o755)
        sync_folder(parent.parent)
    for name in _names(time.strftime("%m%d") if plan.ahead is None else AHEAD):
        if name in taken:
            continue
        folder = RunFolder(home / name)
        with contextlib.suppress(FileExistsError):
            make_folder(folder.path, gid=origin.owner.gid)
            break
    else:
        raise InputError("runs-too-many", folder=str(home))
    try:
        _fill(folder, plan, origin)
        _make_newest(folder, others[-1:])
    except OSError as error:
        shutil.rmtree(folder.path, ignore_errors=True)
        # A full disk names no file.
        error.filename = error.filename or str(folder.path)
        raise
    return folder


def _fill(folder: RunFolder, plan: Plan, origin: Origin) -> None:
    """Write what a new run's folder holds."""
    for below in (folder.path / "output", folder.backup):
        make_folder(below, gid=origin.owner.gid)
    write_whole(folder.origin, msgspec.json.encode(origin), 0o600)
    os.close(open_new(folder.journal, gid=origin.owner.gid))
    os.close(open_new(folder.lock, gid=origin.owner.gid))
    write_whole(folder.plan, encode(plan), gid=origin.owner.gid)


def _make_newest(folder: RunFolder, newest: tuple[RunFolder, ...]) -> None:
    """Let the run be later than the one that was the newest, whatever the clock says: it may have been set back since."""
    for other in newest:
        stamp = other.plan.stat().st_mtime_ns
        if folder.plan.stat().st_mtime_ns <= stamp:
            os.utime(folder.plan, ns=(stamp + 1, stamp + 1))


def own_runs(owner: Owner) -> Path:
    """Return the folder of the runs that this process may work on: root never works on one that lies with a person."""
    return state_folder(root=os.geteuid() == 0, owner=owner) / "runs"


def all_folders(owner: Owner) -> tuple[RunFolder, ...]:
    """Return every run of the machine and of the person, oldest first; folders that may not be read are left out."""
    return folders_in(*{state_folder(root=root, owner=owner) / "runs" for root in (True, False)})


def folders_in(*places: Path) -> tuple[RunFolder, ...]:
    """Return the runs in these folders, oldest first; those that may not be read are left out."""
    found: list[tuple[int, str, RunFolder]] = []
    for place in places:
        with contextlib.suppress(OSError):
            for entry in place.iterdir():
                folder = RunFolder(entry)
                with contextlib.suppress(OSError):
                    found.append((folder.plan.stat().st_mtime_ns, entry.name, folder))
    return tuple(folder for _, _, folder in sorted(found, key=lambda item: item[:2]))


def boot_id() -> str:
    """Return what names the present boot of this machine; "" when the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def plain(value: Any) -> Any:
    """Return a record as plain values, for the journal."""
    return msgspec.to_builtins(value)
