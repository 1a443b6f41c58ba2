"""A child that writes as fast as it can, or at 10 MB/s, under a real run, alone and watched, against a bare terminal emptied in C."""

from __future__ import annotations

import os
import pty
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from steps.engine import client
from steps.model.action import AnyAction, Run
from tests.engine_kit import ended, plan_of, runner_pid

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("state"), pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")]

HERE = Path(__file__).parent
KINDS = ("plain", "ansi", "cr", "long", "invalid", "screen")
SIZE = 3_000_000
ROUNDS = 5
MOST_ALONE, MOST_WATCHED, MOST_PACED = 1.3, 2.5, 1.05
"""Times the bare terminal's time; 1.1, 2 and 1.02 are what the design wants on an idle machine.

Where other work is going on, a bare terminal takes longer in one round than in another: by so much more the child may take, too.
"""
PACE = 10_000_000
MOST_OWN_KB = 9_700
"""The runner's peak above that of a bare Python on the same machine."""


@pytest.fixture(scope="module")
def tools() -> Iterator[Path]:
    """A folder with the two C programs and the corpora, made from a seed."""
    with tempfile.TemporaryDirectory(prefix="bringup-bench-") as name:
        folder = Path(name)
        # As it is installed; else the runner's peak is that of the compiler.
        subprocess.run((sys.executable, "-I", "-c", COMPILE), check=True)
        for program in ("emit", "drain"):
            subprocess.run(("cc", "-O2", "-Wall", "-Wextra", "-o", str(folder / program), str(HERE / f"{program}.c")), check=True)
        for kind in KINDS:
            (folder / kind).write_bytes(corpus(kind))
        yield folder


def corpus(kind: str) -> bytes:
    """Return what a compiler, a coloured tool, a progress bar, a minified file, a broken locale or a full-screen program writes."""
    chance = random.Random(20260731)
    lines: list[bytes] = []
    size = number = 0
    while size < SIZE:
        word = "".join(chance.choices("abcdefghij", k=chance.randint(4, 40)))
        line = _line(kind, number, word)
        lines.append(line)
        size += len(line)
        number += 1
    return b"".join(lines) + (b"\x1b[?1049l\n" if kind == "screen" else b"")


def _line(kind: str, number: int, word: str) -> bytes:
    """Return one line of a corpus."""
    match kind:
        case "ansi":
            return f"\x1b[1;3{number % 8}m{number:>8}\x1b[0m \x1b[32m{word}\x1b[0m CC [M] {word}.o\n".encode()
        case "cr":
            return f"\r{number % 101:3d}% [{'#' * (number % 40):<40}] {word}\n".encode()
        case "long":
            return word.encode() * 40_000 + b"\n"
        case "invalid":
            return f"{number} {word} ".encode() + bytes(0x80 | (number * at) & 0x7F for at in range(1, 40)) + b"\n"
        case "screen":
            return f"\x1b[?1049h\x1b[{number % 24 + 1};{number % 60 + 1}H\x1b[3{number % 8}m{word}\x1b[K\n".encode()
        case _:
            return f"  CC [M]  /var/lib/dkms/nvidia/580.95.05/build/{word}/{number}.o\n".encode()


def bare(tools: Path, kind: str, *pace: str) -> float:
    """Return the seconds that a child takes on a terminal that is emptied in C."""
    subprocess.run((str(tools / "drain"), str(tools / "emit"), str(tools / kind), str(tools / "stamp"), *pace), check=True)
    return float((tools / "stamp").read_text())


class Round:
    """One run of the engine with a child of each kind twice: with a pipe for its output, and with the terminal (interactive)."""

    def __init__(self, tools: Path, kinds: tuple[str, ...], *pace: str, watched: bool = False) -> None:
        self._tools, self._go = tools, tools / "go"
        self._go.unlink(missing_ok=True)
        stamps = [(kind, way) for kind in kinds for way in ("pipe", "terminal")]
        actions: list[AnyAction] = [Run(id="a.begin", title="t", argv=("sh", "-c", f"until [ -e {self._go} ]; do sleep 0.05; done"))]
        for kind, way in stamps:
            argv = (str(tools / "emit"), str(tools / kind), str(self._stamp(kind, way)), *pace)
            actions.append(Run(id=f"{kind}.{way}", title=f"{kind} by {way}", argv=argv, interactive=way == "terminal"))
        # The pause keeps the runner there to be weighed.
        handle = client.start(plan_of(*actions, Run(id="a.wait", title="t", argv=("sleep", "0.3"))), sudo=None)
        pid = runner_pid(handle)
        with ExitStack() as stack:
            if watched:
                stack.enter_context(Watcher(handle.id))
            self._go.touch()
            while "a.wait" not in handle.state().actions:
                time.sleep(0.05)
            self.resident = peak(Path(f"/proc/{pid}/status").read_text())
            assert ended(handle, 60).status == "done"
        self.seconds = {stamp: float(self._stamp(*stamp).read_text()) for stamp in stamps}
        for kind, way in stamps:
            spool = handle.spool(f"{kind}.{way}")
            data, whole = spool.read(0, spool.size()).partition(b"\n")[2], (tools / kind).read_bytes()
            assert data == (whole if way == "pipe" else whole.replace(b"\n", b"\r\n"))

    def _stamp(self, kind: str, way: str) -> Path:
        return self._tools / f"stamp-{kind}-{way}"


def peak(status: str) -> int:
    """Return the most memory a process has had, in kB, from its status file."""
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


COMPILE = "import compileall, steps; compileall.compile_dir(steps.__path__[0], quiet=1)"
WATCH = """
import sys
sys.path.insert(0, {root!r})
from steps.engine import client
from tui.app import watch
watch(client.find({run!r}), "en")
"""


class Watcher:
    """A viewer of the run in a terminal of its own, which answers and is emptied."""

    def __init__(self, run: str) -> None:
        source = WATCH.format(root=str(HERE.parents[1]), run=run)
        environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        self._seen = threading.Event()
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.execve(sys.executable, [sys.executable, "-I", "-c", source], environ)
        self._reader = threading.Thread(target=self._empty)
        self._reader.start()

    def __enter__(self) -> None:
        assert self._seen.wait(20)

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, 9)
        os.waitpid(self._pid, 0)
        self._reader.join()
        os.close(self._terminal)

    def _empty(self) -> None:
        while True:
            try:
                data = os.read(self._terminal, 65536)
            except OSError:
                return
            os.write(self._terminal, b"\x1b[1;1R" * data.count(b"\x1b[6n"))
            if b"by pipe" in data:
                self._seen.set()


def middle(times: list[float], base: list[float]) -> float:
    """Return how many times the base it took: the median of the rounds, or the fastest of each where other work disturbed those."""
    return min(statistics.median(one / other for one, other in zip(times, base, strict=True)), min(times) / min(base))


def disturbed(base: list[float]) -> float:
    """Return how many times its fastest round the bare terminal usually took: 1 on a machine that does nothing else."""
    return statistics.median(base) / min(base)


def busy() -> float:
    """Return 2 where others keep all cores at work, else 1.

    There nothing is emptied beside the writing: the child waits for all the work that the runner does, not for what is left of it.
    """
    return 2.0 if os.getloadavg()[0] > 2 * (os.cpu_count() or 1) else 1.0


def test_a_flood_is_hardly_slowed_alone_or_watched_and_every_byte_reaches_the_spool(
    tools: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drained: list[dict[str, float]] = []
    alone: list[Round] = []
    watched: list[Round] = []
    for _ in range(ROUNDS):
        drained.append({kind: bare(tools, kind) for kind in KINDS})
        alone.append(Round(tools, KINDS))
        watched.append(Round(tools, KINDS, watched=True))
    worst = {"alone": 0.0, "watched": 0.0}  # by terminal as it would be undisturbed
    lines = []
    for kind in KINDS:
        base = [one[kind] for one in drained]
        words = [f"{kind}: bare {SIZE / statistics.median(base) / 1e6:.0f} MB/s, disturbed x{disturbed(base):.2f};"]
        for name, rounds in (("alone", alone), ("watched", watched)):
            by = {way: middle([one.seconds[kind, way] for one in rounds], base) for way in ("pipe", "terminal")}
            words.append(f"{name} x{by['pipe']:.2f} by pipe, x{by['terminal']:.2f} by terminal;")
            worst[name] = max(worst[name], by["pipe"], by["terminal"] / disturbed(base))
        lines.append(" ".join(words))
    bare_python = ("-I", "-c", "print(open('/proc/self/status').read())")
    own = max(one.resident for one in (*alone, *watched)) - peak(subprocess.check_output((sys.executable, *bare_python), text=True))
    with capsys.disabled():
        print("", *(f"flood {line}" for line in lines), f"runner: {own} kB above a bare Python (at most {MOST_OWN_KB})", sep="\n")
    assert worst["alone"] <= MOST_ALONE * busy()
    assert worst["watched"] <= MOST_WATCHED * busy()
    assert own <= MOST_OWN_KB


def test_a_child_at_10_mb_a_second_is_not_slowed(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, rounds = [], []
    for _ in range(ROUNDS):
        base.append(bare(tools, "plain", str(PACE)))
        rounds.append(Round(tools, ("plain",), str(PACE), watched=True))
    by = {way: middle([one.seconds["plain", way] for one in rounds], base) for way in ("pipe", "terminal")}
    with capsys.disabled():
        print(f"\npaced 10 MB/s, watched: child x{by['pipe']:.3f} by pipe, x{by['terminal']:.3f} by terminal")
    assert max(by.values()) <= MOST_PACED * disturbed(base)
