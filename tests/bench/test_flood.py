"""A child that writes as fast as it can, or at 10 MB/s, under a real run, against a bare terminal emptied in C in the same round."""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steps.engine import client
from steps.model.action import Run
from tests.engine_kit import ended, plan_of, runner_pid

pytestmark = [pytest.mark.bench, pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")]

HERE = Path(__file__).parent
LINES = 200_000
ROUNDS = 5
MOST_FLOOD, MOST_PACED = 2.5, 1.05
PACE = 10_000_000
MOST_RESIDENT_KB = 20_000
"""The runner's peak; 17 MB were measured, of which 10 MB are its own and the rest pages shared with every Python (a bare one has 9)."""


@pytest.fixture(scope="module")
def tools() -> Iterator[Path]:
    """A folder with the two C programs and the corpora, made from a seed."""
    with tempfile.TemporaryDirectory(prefix="bringup-bench-") as name:
        folder = Path(name)
        for program in ("emit", "drain"):
            subprocess.run(("cc", "-O2", "-Wall", "-Wextra", "-o", str(folder / program), str(HERE / f"{program}.c")), check=True)
        for kind in ("plain", "ansi", "cr"):
            (folder / kind).write_bytes(corpus(kind))
        yield folder


def corpus(kind: str) -> bytes:
    """Return 200,000 lines as a compiler, a coloured tool or a progress bar writes them."""
    chance = random.Random(20260731)
    lines = []
    for number in range(LINES):
        word = "".join(chance.choices("abcdefghij", k=chance.randint(4, 40)))
        if kind == "ansi":
            lines.append(f"\x1b[1;3{number % 8}m{number:>8}\x1b[0m \x1b[32m{word}\x1b[0m CC [M] {word}.o\n")
        elif kind == "cr":
            lines.append(f"\r{number % 101:3d}% [{'#' * (number % 40):<40}] {word}\n")
        else:
            lines.append(f"  CC [M]  /var/lib/dkms/nvidia/580.95.05/build/{word}/{number}.o\n")
    return "".join(lines).encode()


def bare(tools: Path, kind: str, *pace: str) -> float:
    subprocess.run((str(tools / "drain"), str(tools / "emit"), str(tools / kind), str(tools / "stamp"), *pace), check=True)
    return float((tools / "stamp").read_text())


class Round:
    """One run of the engine with the same child twice: with a pipe for its output, and with the terminal (interactive)."""

    def __init__(self, tools: Path, kind: str, *pace: str) -> None:
        emit, corpus_file = str(tools / "emit"), str(tools / kind)
        actions = [
            Run(id=f"a.{way}", title=way, argv=(emit, corpus_file, str(tools / f"stamp-{way}"), *pace), interactive=way == "terminal")
            for way in ("pipe", "terminal")
        ]
        # The pause keeps the runner there to be weighed.
        handle = client.start(plan_of(*actions, Run(id="a.wait", title="t", argv=("sleep", "0.3"))), sudo=None)
        pid = runner_pid(handle)
        while "a.wait" not in handle.state().actions:
            time.sleep(0.05)
        status = Path(f"/proc/{pid}/status").read_text()
        self.resident = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
        assert ended(handle, 60).status == "done"
        self.pipe, self.terminal = (float((tools / f"stamp-{way}").read_text()) for way in ("pipe", "terminal"))
        spools = {way: handle.spool(f"a.{way}") for way in ("pipe", "terminal")}
        data = {way: spool.read(0, spool.size()).partition(b"\n")[2] for way, spool in spools.items()}
        whole = (tools / kind).read_bytes()
        assert data["pipe"] == whole
        assert data["terminal"] == whole.replace(b"\n", b"\r\n")


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="bringup-test-") as folder:
        monkeypatch.setenv("BRINGUP_STATE", folder)
        yield


@pytest.mark.parametrize("kind", ["plain", "ansi", "cr"])
def test_a_flood_is_hardly_slowed_and_every_line_reaches_the_spool(kind: str, tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drained, rounds = [], []
    for _ in range(ROUNDS):
        drained.append(bare(tools, kind))
        rounds.append(Round(tools, kind))
    pipe = statistics.median(one.pipe / base for one, base in zip(rounds, drained, strict=True))
    terminal = statistics.median(one.terminal / base for one, base in zip(rounds, drained, strict=True))
    resident = max(one.resident for one in rounds)
    speed = (tools / kind).stat().st_size / statistics.median(drained) / 1e6
    with capsys.disabled():
        print(
            f"\nflood {kind}: bare terminal {speed:.0f} MB/s; child x{pipe:.2f} by pipe, x{terminal:.2f} by terminal; runner {resident} kB"
        )
    assert pipe <= MOST_FLOOD
    assert terminal <= MOST_FLOOD
    assert resident <= MOST_RESIDENT_KB


def test_a_child_at_10_mb_a_second_is_not_slowed(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ratios: dict[str, list[float]] = {"pipe": [], "terminal": []}
    for _ in range(ROUNDS):
        base = bare(tools, "plain", str(PACE))
        one = Round(tools, "plain", str(PACE))
        ratios["pipe"].append(one.pipe / base)
        ratios["terminal"].append(one.terminal / base)
    middle = {way: statistics.median(found) for way, found in ratios.items()}
    with capsys.disabled():
        print(f"\npaced 10 MB/s: child x{middle['pipe']:.3f} by pipe, x{middle['terminal']:.3f} by terminal")
    assert max(middle.values()) <= MOST_PACED
