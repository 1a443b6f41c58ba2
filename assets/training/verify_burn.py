"""Load every GPU for some time, and watch: right values, temperatures, clocks, reasons to slow down, Xids in the kernel log.

Run by the environment's interpreter: `python verify_burn.py --gpus 2 --seconds 120`, with `ranks.py` beside it. What could not be
watched is said: a burn of which nobody saw the temperature or the log proves that much less.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable
from typing import IO

from ranks import Line, kept_out, say, together

LIMIT = 60.0
"""So many seconds more than the burn itself may pass before a rank is called hung."""
GRACE = 2.0
"""Seconds in which a program that was asked to end does so."""
MATRIX = 4096
QUERY = "index,temperature.gpu,clocks.sm,power.draw"
REASONS = ("clocks_throttle_reasons.active", "clocks_event_reasons.active")
"""The name of the reasons to slow down, and the one that newer drivers have for it."""
IDLE_REASONS = 0x1 | 0x2 | 0x4
"""Reasons that are no trouble: idle, clocks set by an application, the power cap that the card works at under load."""
XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)(?:.*?\bpid='?(\d+))?")
OF_PROGRAMS = frozenset(("13", "31", "43", "45"))
"""Xids that a program brings about by what it does: another one's say nothing of the card under this load."""
JOURNAL = ("journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-monotonic")
KMSG = "/dev/kmsg"


def main() -> int:
    """Print the burn's line; the status is 0 whatever it says, for the line is the answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--processor", type=int, default=0, help="so many ranks without GPUs, to try out the program itself")
    asked = parser.parse_args()
    if error := kept_out("torch"):
        say({"rung": "burn", "state": "failed", "text": error})
        return 0
    say({"rung": "burn", **burnt(asked.processor or asked.gpus, asked.seconds, gpu=not asked.processor)})
    return 0


def burnt(count: int, seconds: float, *, gpu: bool) -> Line:
    """Return what the ranks say after the load, and what was seen meanwhile."""
    log = KernelLog()
    watch = query()
    # Into a file: a pipe that nobody reads is full after some minutes, and what comes then is the hottest.
    with tempfile.TemporaryFile("w+", prefix="bringup-burn-") as printed:
        seen = begun((*watch, "-lms", "1000"), printed) if watch else None
        ranks: list[int] = []
        line = together(count, seconds + LIMIT, lambda rank, _: burn(rank, seconds, gpu=gpu), ranks)
        # The log first: a card that is lost holds whoever asks it, and the log says why.
        xids = log.xids(ranks)
        if seen is not None:
            end(seen)
        printed.seek(0)
        return judged(line, watched(printed), xids)


def burn(rank: int, seconds: float, *, gpu: bool) -> Line:
    """Multiply for some seconds on one GPU; the same product must come out at the end as at the beginning."""
    import torch

    device, size = (f"cuda:{rank}", MATRIX) if gpu else ("cpu", 256)
    torch.manual_seed(7)
    one = torch.randn(size, size, device=device)
    first = one @ one
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(10):
            last = one @ one
        if gpu:
            torch.cuda.synchronize(rank)
        rounds += 10
    if not torch.equal(first, last):
        return {"state": "failed", "code": "burn-wrong", "params": {"gpu": rank}}
    teraflops = 2 * size**3 * rounds / seconds / 1e12
    params = {"seconds": round(seconds)}
    return {"state": "passed", "params": params, "detail": f"{teraflops:.1f} TFLOPS", "value": teraflops, "unit": "TFLOPS"}


def judged(line: Line, gauges: Line, xids: list[str] | None) -> Line:
    """Return the burn's line with what was seen of gauges ({} for nothing) and log (`None` where it cannot be read).

    An Xid is the cause whatever the ranks say: a card that reports one under load is not sound. What a rank said stays beside it.
    """
    if xids:
        beside = {"beside": {"code": line.get("code"), "params": line.get("params")}} if line["state"] == "failed" else {}
        return {
            "detail": line.get("text", ""),
            **line,
            **beside,
            "state": "failed",
            "code": "burn-xid",
            "params": {"xids": "; ".join(xids[:4])},
        }
    if line["state"] != "passed":
        return line
    code = ("burn-slowed" if gauges["gpus"] else "burn-watched") if gauges else "burn"
    detail = f"{gauges['hottest']} °C" if gauges else line["detail"]
    return {**line, "code": code if xids is not None else f"{code}-no-log", "params": {**line["params"], **gauges}, "detail": detail}


# --- the gauges -----------------------------------------------------------------------------------


def query() -> tuple[str, ...]:
    """Return the command that prints the gauges; empty where `nvidia-smi` is not there or knows none of our questions."""
    program = shutil.which("nvidia-smi")
    for reasons in REASONS if program else ():
        argv = (program or "", f"--query-gpu={QUERY},{reasons}", "--format=csv,noheader,nounits")
        answer = told(argv)
        if answer is not None and answer[0] == 0:
            return argv
    return ()


def watched(printed: Iterable[str]) -> Line:
    """Return the hottest reading, the clock in the middle, and which GPUs slowed down for heat or power supply; {} without readings."""
    hottest, clocks, slowed = 0, [], set()
    for line in printed:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 5 or not cells[1].isdigit():
            continue
        hottest = max(hottest, int(cells[1]))
        if cells[2].isdigit():
            clocks.append(int(cells[2]))
        with contextlib.suppress(ValueError):
            if int(cells[4], 16) & ~IDLE_REASONS:
                slowed.add(cells[0])
    clock = round(statistics.median(clocks)) if clocks else "?"
    return {"hottest": hottest, "clock": clock, "gpus": " ".join(sorted(slowed))} if hottest else {}


# --- other programs -------------------------------------------------------------------------------


def begun(argv: tuple[str, ...], into: IO[str]) -> subprocess.Popen[str] | None:
    """Return a program that prints into a file; `None` where it cannot be started."""
    try:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=into, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        return None


def end(program: subprocess.Popen[str]) -> None:
    """End a program, and wait no longer for one that stands in the kernel before a lost card: not even a kill reaches it there."""
    for send in (program.terminate, program.kill):
        send()
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(GRACE)
            return


def told(argv: tuple[str, ...], limit: float = 20.0) -> tuple[int, list[str]] | None:
    """Return the status and the lines of a command; `None` where it cannot be started or does not end in time."""
    with tempfile.TemporaryFile("w+", prefix="bringup-burn-", errors="replace") as printed:
        program = begun(argv, printed)
        if program is None:
            return None
        try:
            status = program.wait(limit)
        except subprocess.TimeoutExpired:
            end(program)
            return None
        printed.seek(0)
        return status, printed.read().splitlines()


# --- the kernel's log -----------------------------------------------------------------------------


class KernelLog:
    """The kernel's log from now on, by the first way that this account may read it."""

    def __init__(self) -> None:
        self._before: set[str] = set()
        self._read = None
        for read in (lambda: lines(("dmesg",)), records, lambda: lines(JOURNAL)):
            # Its lines carry their time, so that one which was there before is told from the same one come again.
            self._before = set(read())
            if self._before:
                self._read = read
                break

    def xids(self, ours: Collection[int] = ()) -> list[str] | None:
        """Return the Xids since then, each with its card, in order; `None` where the log cannot be read, at the beginning or now.

        What another program than the processes of `ours` brought about by its own doing is left out.
        """
        if self._read is None:
            return None
        time.sleep(0.5)  # journald writes a little later than the kernel
        now = self._read()
        # It was not empty before: where nothing comes now, it was not read.
        if not now:
            return None
        new = [line for line in now if line not in self._before]
        found = [xid for line in new for xid in [XID.search(line)] if xid is not None]
        mine = [xid for xid in found if xid[2] not in OF_PROGRAMS or xid[3] is None or int(xid[3]) in ours]
        return list(dict.fromkeys(f"{xid[1]} Xid {xid[2]}" for xid in mine))


def lines(argv: tuple[str, ...]) -> list[str]:
    """Return the lines that a command prints; none where it fails."""
    answer = told(argv)
    return answer[1] if answer is not None and answer[0] == 0 else []


def records() -> list[str]:
    """Return the records of the kernel's own log device; none where it may not be read."""
    found: list[str] = []
    try:
        device = os.open(KMSG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return found
    try:
        while True:
            try:
                record = os.read(device, 8192)
            except BrokenPipeError:
                continue  # older records were overwritten meanwhile; the next read goes on behind them
            except OSError:
                return found  # nothing more is there now
            if not record:
                return found
            found.append(record.decode(errors="replace"))
    finally:
        os.close(device)


if __name__ == "__main__":
    sys.exit(main())
