"""What the proof's programs share: work in processes of their own, so that a crash or a hang is a result and not the end.

A program says one JSON line per rung. A line has `rung` and `state` ("passed", "failed", "skipped"), and where they are known
`code` with `params` (words of `bringup`), `text` (words of a library), `detail`, `value`, `unit` and `expected`.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Line = dict[str, Any]
_PAGE = 8
"""More lines are advice."""
WAITING = ("distributed_c10d", "rendezvous", "torch/distributed")
"""Files in which a rank stands that only waits for its partners."""


def say(line: Line) -> None:
    """Print one rung at once, so that what was proven stays proven if a later one takes the program down."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def last_line(error: BaseException) -> str:
    """Return the error in one line, with its kind.

    Where a library wrote a page about what may be the cause (numpy does), the one that it caught says what is.
    """
    text = traceback.format_exception_only(type(error), error)[-1].strip()
    caught = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if len(text.splitlines()) > _PAGE and caught is not None:
        return last_line(caught)
    return " ".join(text.split())[:300]


def kept_out(*modules: str) -> str | None:
    """Import modules quietly, for all children: none of a rung's time goes into reading them from a slow disk.

    Return the error that kept one of them out, `None` when all are in.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in modules:
                importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - whatever keeps it from importing is the finding
        return last_line(error)
    return None


def half_type(*, gpu: bool) -> Any:
    """Return bfloat16, or float16 for cards before compute capability 8.0.

    Those only imitate bfloat16, slowly, and PyTorch's own `is_bf16_supported` says yes of them too.
    """
    import torch

    able = not gpu or torch.version.hip is not None or torch.cuda.get_device_capability()[0] >= 8
    return torch.bfloat16 if able else torch.float16


# --- one process ----------------------------------------------------------------------------------


def alone(rung: Callable[[], Line], limit: float) -> Line:
    """Return what a rung says from a child of its own: a crash or a hang there is its result and not the end of the proof.

    This process may have imported PyTorch and never touched a GPU, so a child may.
    """
    folder = Path(tempfile.mkdtemp(prefix="bringup-verify-"))
    try:
        child = os.fork()
        if child == 0:
            answer(folder / "0", rung)
        (outcome,) = wait([child], limit, folder)
        return outcome
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def answer(path: Path, rung: Callable[[], Line]) -> None:
    """Write what a rung says to `path` and end this child; a wanted stack goes beside it."""
    os.setpgid(0, 0)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: no rank outlives the proof
    stack = stack_of(path).open("w")  # the handler needs it open until the end
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=False)
    warnings.simplefilter("ignore")
    try:
        line = rung()
    except BaseException as error:  # noqa: BLE001 - the parent names it
        line = {"state": "failed", "text": last_line(error)}
    path.write_text(json.dumps(line))
    os._exit(0)


def wait(children: list[int], limit: float, folder: Path) -> list[Line]:
    """Return what each child said; those that did not end in time are asked for their stack, killed and named."""
    end = time.monotonic() + limit
    left = dict(enumerate(children))
    status: dict[int, int] = {}
    while left and time.monotonic() < end:
        for rank, pid in list(left.items()):
            done, how = os.waitpid(pid, os.WNOHANG)
            if done:
                status[rank] = how
                del left[rank]
        if any(os.WIFSIGNALED(how) for how in status.values()):
            end = min(end, time.monotonic() + 5)  # its partners wait for it in vain
        time.sleep(0.01)
    for pid in left.values():
        os.kill(pid, signal.SIGUSR1)
    if left:
        time.sleep(0.3)
    for pid in left.values():
        kill_group(pid)
        os.waitpid(pid, 0)
    return [outcome(rank, status.get(rank), limit, folder) for rank in range(len(children))]


def kill_group(pid: int) -> None:
    """End a child and all that it started."""
    for send in (os.killpg, os.kill):
        try:
            send(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def outcome(rank: int, status: int | None, limit: float, folder: Path) -> Line:
    """Return what one child said, or how it ended without a word."""
    path = folder / str(rank)
    if status is None:
        return {"state": "failed", "code": "hung", "params": {"rank": rank, "seconds": round(limit), "where": where(stack_of(path))}}
    if os.WIFSIGNALED(status):
        return {"state": "failed", "code": "killed", "params": {"rank": rank, "signal": os.WTERMSIG(status)}}
    try:
        line: Line = json.loads(path.read_text())
        return line
    except (OSError, ValueError):
        return {"state": "failed", "code": "silent", "params": {"rank": rank}}


def stack_of(path: Path) -> Path:
    """Return where a child leaves its stack."""
    return path.with_suffix(".stack")


def where(path: Path) -> str:
    """Return the innermost place that a hung child stood at: "distributed_c10d.py:2810 in all_reduce"."""
    try:
        lines = [line.strip() for line in path.read_text().splitlines() if line.lstrip().startswith("File ")]
    except OSError:
        lines = []
    if not lines:
        return "?"
    _, name, rest = lines[0].split('"', 2)
    return f"{Path(name).name}{rest.replace(', line ', ':', 1)}"


# --- several processes ----------------------------------------------------------------------------


def together(ranks: int, limit: float, work: Callable[[int, Path], Line], begun: list[int] | None = None) -> Line:
    """Return what several ranks say together: the first one's line, or the line of the one to blame.

    `work` is called with the rank and a folder in which the ranks find each other, so that no port has to be free and no
    other machine can join. The ranks' process ids are added to `begun`.
    """
    folder = Path(tempfile.mkdtemp(prefix="bringup-ddp-"))
    try:
        children = []
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                answer(folder / str(rank), lambda rank=rank: work(rank, folder))
            children.append(child)
        if begun is not None:
            begun += children
        said = wait(children, limit, folder)
        wrong = [line for line in said if line["state"] != "passed"]
        return min(wrong, key=blame) if wrong else said[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def blame(line: Line) -> int:
    """Return the order of causes: who died, who hangs outside of the exchange, who says what is wrong, who only waits for others."""
    if line.get("code") == "killed":
        return 0
    if line.get("code") != "hung":
        return 2
    return 3 if any(part in line["params"]["where"] for part in WAITING) else 1
