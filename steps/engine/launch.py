"""Starting a runner so that nothing of the starter (terminal, session, sudo) can take it along.

The only part that is started under sudo. It checks, makes the folder, starts the runner and prints the run's id.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from steps import resources
from steps.engine import journal
from steps.engine.carried import carried_environment, digest_of, hide, honoured, parted
from steps.engine.durable import write_whole
from steps.engine.folder import (
    AHEAD,
    STATE_VARIABLE,
    Order,
    Origin,
    Owner,
    Refusal,
    Refused,
    RunFolder,
    create,
    folders_in,
    invoking_owner,
    missing,
    own_runs,
    state_unusable,
)
from steps.engine.lock import FAREWELL, busy, holder, is_held, target_lock, try_take
from steps.engine.runner import UNATTENDED
from steps.errors import BringupError, Busy, InputError, PreflightError, PrivilegeError
from steps.host.trusted_path import secure
from steps.model.plan import digest
from steps.text import say_error

PATIENCE = 90.0
"""So long may a runner take to say that it is there; seconds. A busy or emulated machine needs half a minute for Python alone."""
_LAST_WORDS = 0.3
"""So long may the runner before take to write down its end; seconds."""
_ROOM = 64 << 10
"""So much must fit where a run is kept before it is gone on with; bytes."""
_BROKEN = "runner-broken"
_PROC = Path("/proc/self/fd")
"""Where descriptors have names; a root that was entered by hand may have none of it."""
_CARRIED = (STATE_VARIABLE, "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "PATH", "HOME")


def main(arguments: list[str] | None = None) -> int:
    """Start or go on with a run; print its id, or say on stderr why not. Returns the exit code."""
    options = _options(sys.argv[1:] if arguments is None else arguments)
    secure(os.environ)
    try:
        folder = _begun(options)
    except BringupError as error:
        if options.json:
            refusal = Refusal(code=error.code, params=error.params, exit=error.exit_code)
            sys.stderr.write(msgspec.json.encode(refusal).decode() + "\n")
        else:
            sys.stderr.write(say_error("en", error.code, error.params) + "\n")
        return error.exit_code
    sys.stdout.write(f"{folder.id}\n")
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="launch", description="Starts the runner of a run.")
    parser.add_argument("order", nargs="?", help="the file with the plan")
    parser.add_argument("--digest", default="", help="the digest of the plan that was confirmed")
    parser.add_argument("--carried", help="the digest of the environment that was handed over with it")
    parser.add_argument("--run", help="go on with this run")
    parser.add_argument("--undo", action="store_true")
    parser.add_argument("--skip", metavar="ACTION")
    parser.add_argument(UNATTENDED, action="store_true", help="nobody can be asked")
    parser.add_argument("--turn", metavar="COUNT", help="how often a runner was at work on it when it was looked at")
    parser.add_argument("--json", action="store_true", help="say errors as JSON")
    options = parser.parse_args(arguments)
    if (options.order is None) == (options.run is None):
        parser.error("one of a plan and --run is needed")
    return options


def _begun(options: argparse.Namespace) -> RunFolder:
    """Return the folder of the run once a runner is at work on it; raises `PreflightError` where nothing can be kept."""
    if not _PROC.exists():
        raise PreflightError("proc-missing", path="/proc")
    try:
        if options.run:
            folder, words = _known(options)
            _has_room(folder)
            start(folder, (*words, *_manner(options)))
            return folder
        folder = _new(options.order, options.digest, options.carried)
        try:
            start(folder, _manner(options))
        except BringupError as error:
            if error.code != _BROKEN:
                # What it said of its fault lies there.
                _forget(folder)
            raise
        return folder
    except OSError as error:
        raise state_unusable(error) from error


def _manner(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the word that tells a runner that nobody can be asked."""
    return (UNATTENDED,) if options.unattended else ()


def _has_room(folder: RunFolder) -> None:
    """Raise `OSError` where a runner could not write down what it does."""
    room = folder.path / f".room-{os.getpid()}"
    try:
        write_whole(room, bytes(_ROOM))
        room.unlink()
    except OSError as error:
        error.filename = str(folder.path)
        raise


def _forget(folder: RunFolder) -> None:
    """Remove the folder of a run that never began; a runner that comes late finds nothing to work on."""
    deadline = time.monotonic() + FAREWELL
    while (held := try_take(folder.lock)) is None and time.monotonic() < deadline:
        # The runner that refused is on its way out.
        time.sleep(0.02)
    if held is None or folder.began():
        return
    shutil.rmtree(folder.path, ignore_errors=True)
    os.close(held)


def _tidy(owner: Owner) -> None:
    """Remove the folders of earlier fetches: nobody comes back to them."""
    for folder in folders_in(own_runs(owner)):
        held = try_take(folder.lock) if folder.id.startswith(AHEAD) else None
        if held is not None:
            shutil.rmtree(folder.path, ignore_errors=True)
            os.close(held)


def _new(file: str, confirmed: str, carried: str | None) -> RunFolder:
    """Return the folder of a new run for the plan in `file`, if that is the plan that was confirmed and its environment what was sent."""
    try:
        order = msgspec.json.decode(Path(file).read_bytes(), type=Order)
    except FileNotFoundError:
        raise InputError("plan-unreadable", file=file) from None
    except msgspec.MsgspecError:
        raise InputError("plan-damaged", run="", file=file) from None
    plan, owner = order.plan, invoking_owner()
    # What lies in the file can have been written by whatever runs as this person; the command line is what sudo was asked for.
    if digest(plan) != confirmed or (order.environment and digest_of(order.environment) != carried):
        raise InputError("plan-changed", run="", file=file)
    root = plan.needs_root and not plan.target.rehearsal
    if root and os.geteuid() != 0:
        raise PrivilegeError("needs-root")
    if not plan.target.rehearsal:
        held = holder(target_lock(plan.target.root, root=os.geteuid() == 0, owner=owner))
        if held is not None:
            raise busy(held)
    if plan.ahead is not None:
        _tidy(owner)
    environment, secret = parted(honoured(order.environment))
    folder = create(plan, Origin(digest=confirmed, owner=owner, environment=environment))
    hide(folder.id, owner, secret)
    return folder


def _known(options: argparse.Namespace) -> tuple[RunFolder, tuple[str, ...]]:
    """Return the folder of the run that is named (never a path: root shall not work on a folder of somebody's making)."""
    for folder in folders_in(own_runs(invoking_owner())):
        if folder.id == options.run:
            _vouch(folder)
            hide(folder.id, folder.read_origin().owner, parted(carried_environment(folder.read_plan()))[1])
            words = ("--undo",) if options.undo else ("--skip", str(options.skip)) if options.skip else ()
            return folder, words if options.turn is None else ("--turn", options.turn, *words)
    raise InputError("run-unknown", run=str(options.run))


def _vouch(folder: RunFolder) -> None:
    """Raise unless the run is of this user's own making, down to the files that say what is done."""
    for path in (folder.path, folder.plan, folder.origin, folder.journal, folder.lock):
        # The link itself is looked at: what it points at may be anybody's.
        try:
            found = path.lstat()
        except FileNotFoundError:
            raise missing(path) from None
        if found.st_uid != os.geteuid():
            raise PrivilegeError("run-of-another", run=folder.id)
        kind = stat.S_ISDIR if path == folder.path else stat.S_ISREG
        if not kind(found.st_mode) or found.st_mode & 0o022:
            raise InputError("run-folder-open", run=folder.id, path=str(path))


def start(folder: RunFolder, words: tuple[str, ...]) -> None:
    """Start the runner and wait until it is at work; raises `Busy` while another one is, and what the new one refuses with."""
    began = time.monotonic()
    while is_held(folder.lock) and time.monotonic() - began < (FAREWELL if _has_ended(folder) else _LAST_WORDS):
        time.sleep(0.02)
    if is_held(folder.lock):
        state = journal.fold(journal.read(folder.journal)[0])
        raise Busy("run-active", run=folder.id, user=state.owner or "?", since=time.strftime("%H:%M", time.localtime(state.started)))
    token = secrets.token_hex(8)
    argv = (*resources.runner_command(), str(folder.path), "--token", token, *words)
    if os.geteuid() == 0 and Path("/run/systemd/system").is_dir():
        _by_systemd(folder, argv)
    else:
        _by_fork(argv)
    _await(folder, token)


def _has_ended(folder: RunFolder) -> bool:
    """Return whether the runner that holds the run has written down its end: then it is on its way out."""
    return journal.is_over(journal.fold(journal.read(folder.journal)[0]))


def _by_systemd(folder: RunFolder, argv: tuple[str, ...]) -> None:
    """Start a transient unit: logind may end what a session leaves behind, and leaves units alone."""
    carried = [f"--setenv={name}={os.environ[name]}" for name in _CARRIED if name in os.environ]
    unit = f"bringup-{folder.id}"
    ended = _unit(unit, folder, argv, carried)
    if ended.returncode and "already" in ended.stderr.lower():
        # While anything that an earlier turn left at work lives in the unit, systemd keeps it: what is left is waited for by the runner.
        ended = _unit(f"{unit}-{secrets.token_hex(4)}", folder, argv, carried)
    if ended.returncode:
        raise PreflightError("unit-refused", unit=unit, reason=ended.stderr.strip()[:200])


def _unit(unit: str, folder: RunFolder, argv: tuple[str, ...], carried: list[str]) -> subprocess.CompletedProcess[str]:
    """Return how systemd took a transient unit of this name."""
    # KillMode=process: stopping the unit stops the runner; dpkg is left to finish, for half a package is worse than none.
    command = ("systemd-run", f"--unit={unit}", "--collect", "--quiet", f"--description=bringup run {folder.id}")
    settings = ("--property=KillMode=process", *carried, "--", *argv)
    # Started is what was executed: an interpreter that may not be, as by SELinux in a home folder, is heard of at once.
    ended = _heard(*command, "--service-type=exec", *settings)
    old = ended.returncode and "type" in ended.stderr.lower()  # systemd before 240 knows no such type
    return _heard(*command, *settings) if old else ended


def _heard(*argv: str) -> subprocess.CompletedProcess[str]:
    """Return how a short command ended, with what it said."""
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def _by_fork(argv: tuple[str, ...]) -> None:
    """Start a process of its own session whose parent is not this one, without a terminal."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    try:
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.closerange(3, 4096)
        os.execv(argv[0], argv)
    finally:
        os._exit(127)


def _await(folder: RunFolder, token: str) -> None:
    """Return once the runner that was given `token` says that it is there; what another one writes is no sign of it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if any(entry.kind == "run-started" and entry.data.get("token") == token for entry in journal.read(folder.journal)[0]):
            return
        refusal = folder.refusal(token)
        if refusal.exists():
            said = refusal.read_bytes()
            refusal.unlink()
            raise Refused(msgspec.json.decode(said, type=Refusal))
        time.sleep(0.02)
    raise PreflightError("runner-silent", run=folder.id, seconds=PATIENCE)


if __name__ == "__main__":
    sys.exit(main())
