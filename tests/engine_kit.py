"""What the tests of the engine share: small plans, stand-in programs, and waiting for a run."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from steps.engine import client, journal
from steps.model.action import AnyAction, Run
from steps.model.plan import Plan, Target
from steps.model.profile import Profile
from steps.model.run import RunState

BIN = Path(__file__).parent / "bin"
PATIENCE = 20.0


def plan_of(*actions: AnyAction, rehearsal: bool = False, root: str = "/") -> Plan:
    return Plan(made=time.time(), target=Target(rehearsal=rehearsal, root=root), profile=Profile(), actions=actions)


def stand_in(program: str, *arguments: object) -> tuple[str, ...]:
    return (sys.executable, "-I", str(BIN / program), *map(str, arguments))


def works(id: str, lines: int = 1, seconds: float = 0.0, *more: object) -> Run:
    return Run(id=id, title=id, argv=stand_in("works", lines, seconds, *more))


def holds(id: str, until: Path, first: str = "") -> Run:
    """Return a command that goes on until a file is there, however slow the machine; `first` is a line of sh before that."""
    return Run(id=id, title=id, argv=("sh", "-c", f'{first}\nuntil [ -e "$1" ]; do sleep 0.02; done', "sh", str(until)), timeout=60)


def asks(id: str, kind: str) -> Run:
    return Run(id=id, title=id, argv=stand_in("asks", kind))


def wait_until(handle: client.RunHandle, true: Callable[[RunState], bool], patience: float = PATIENCE) -> RunState:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        state = handle.state()
        if true(state):
            return state
        time.sleep(0.02)
    raise AssertionError(f"still {handle.state()}; {Path(handle.folder, 'runner.err').read_text()}")


def ended(handle: client.RunHandle, patience: float = PATIENCE) -> RunState:
    """Return the state once the run is over and its runner is gone."""
    wait_until(handle, lambda state: journal.is_over(state) and not handle.alive(), patience)
    return handle.state()


def statuses(state: RunState) -> dict[str, str]:
    return {id: action.status for id, action in state.actions.items()}


def output(handle: client.RunHandle, action: str) -> str:
    spool = handle.spool(action)
    return spool.read(0, spool.size()).decode()


def said(handle: client.RunHandle, action: str) -> str:
    """Return an action's output without the line of ours that names the command."""
    return output(handle, action).partition("\n")[2]


def runner_pid(handle: client.RunHandle) -> int:
    entries, _ = journal.read(Path(handle.folder, "journal.jsonl"))
    return int(str([entry for entry in entries if entry.kind == "run-started"][-1].data["pid"]))


def session_of(handle: client.RunHandle, action: str) -> int:
    """Return the session of an action's command, once it is written down: an action is at work a little sooner."""
    file = Path(handle.folder, "output", f"{action}.session")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if file.exists() and (words := file.read_text().split()):
            return int(words[-1])
        time.sleep(0.01)
    raise AssertionError(f"no session of {action}")


def kill_runner(handle: client.RunHandle) -> None:
    os.kill(runner_pid(handle), signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while handle.alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not handle.alive()


def cut_off(until: Path) -> tuple[client.RunHandle, int]:
    """Return a run whose runner was killed, and the session in which its command works on until a file is there."""
    handle = client.start(plan_of(holds("a.one", until)), sudo=None)
    wait_until(handle, lambda state: statuses(state) == {"a.one": "running"})
    session = session_of(handle, "a.one")
    kill_runner(handle)
    return handle, session


def until_gone(pid: int) -> None:
    """Wait until a process has ended, whoever takes note of that."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and Path(f"/proc/{pid}").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.02)


def as_nobody(act: Callable[[], str]) -> str:
    """Return what `act` returns in a child process that is the user nobody; an exception comes back as its name."""
    there, here = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            text = act()
        except BaseException as error:  # noqa: BLE001 - the parent is told
            text = type(error).__name__
        os.write(here, text.encode())
        os._exit(0)
    os.close(here)
    with os.fdopen(there, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(pid, 0)
    return text


def ran(*actions: AnyAction, rehearsal: bool = False) -> client.RunHandle:
    """Return the run of a plan of `actions`, ended."""
    handle = client.start(plan_of(*actions, rehearsal=rehearsal), sudo=None)
    ended(handle)
    return handle
