"""The viewer of a run as a program of its own in a real pseudo-terminal of 80×24, seen through pyte."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import ptyprocess
import pyte

ROOT = Path(__file__).resolve().parents[2]
_VIEWER = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.ui.fake_run import FakeRun
from tui.app import watch
run = FakeRun(Path({folder!r}))
run.action("driver.install", "running", started=1)
sys.exit(watch(run, "en"))
"""
_FLOOD = """
import sys, time
path, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
begin = time.monotonic()
with open(path, "ab", buffering=0) as file:
    for first in range(0, count, 500):
        numbers = range(first, min(count, first + 500))
        file.write(b"".join(b"line %07d of the flood, as long as what apt and dkms print usually\\n" % number for number in numbers))
        early = begin + seconds * first / count - time.monotonic()
        if early > 0:
            time.sleep(early)
"""


class Viewer:
    """A running viewer; `seen` is what its terminal shows."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        # A terminal answers; a test that wants a silent one takes the answers away.
        self.screen.write_process_input = lambda data: self.press(data.encode())  # type: ignore[method-assign]  # pyte's own hook
        self.painted = 0
        source = _VIEWER.format(root=str(ROOT), folder=str(folder))
        home = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        argv = [sys.executable, "-I", "-c", source]
        self._process = ptyprocess.PtyProcess.spawn(argv, env={**home, **environ}, dimensions=(24, 80))
        self._terminal: int = self._process.fd
        self.pid: int = self._process.pid

    def close(self) -> None:
        self._process.close(force=True)

    @property
    def log(self) -> Path:
        return self.folder / "output" / "driver.install.log"

    def flood(self, lines: int, seconds: float) -> subprocess.Popen[bytes]:
        """Start a program that appends so many lines to the spool in about so many seconds."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen((sys.executable, "-I", "-c", _FLOOD, str(self.log), str(lines), str(seconds)))

    def look(self, seconds: float) -> bool:
        """Take what the viewer paints within so many seconds; return whether anything came."""
        if not select.select([self._terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:
            return False
        self.feed(data)
        return True

    def feed(self, data: bytes) -> None:
        """Show what arrived at the terminal."""
        # pyte takes the private variants of some sequences (kitty keys, modify-other-keys) for the public ones.
        data = re.sub(rb"\x1b\[[<=>][0-9;]*[a-zA-Z]", b"", data)
        self.painted += len(data)
        self._stream.feed(data)

    @property
    def seen(self) -> str:
        return "\n".join(self.screen.display)

    def until(self, true: Callable[[str], bool], seconds: float = 20.0, *, step: float = 0.02) -> float:
        """Return the seconds until the screen is as wanted."""
        begin = time.perf_counter()
        while not true(self.seen):
            if time.perf_counter() - begin > seconds:
                raise AssertionError(self.seen)
            self.look(step)
        return time.perf_counter() - begin

    def press(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def resident(self) -> float:
        """Return the most memory the viewer has had so far, in MB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found.group(1)) / 1024

    def busy(self) -> float:
        """Return the CPU seconds the viewer used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def leave(self) -> int:
        """Press q and return the exit code of the viewer."""
        self.press(b"q")
        return self.ended()

    def ended(self) -> int:
        """Wait for the end of the viewer and return its exit code."""
        begin = time.perf_counter()
        while time.perf_counter() - begin < 20:
            # A terminal that nobody holds any more answers at once: the process may still be on its way out.
            if not self.look(0.05):
                time.sleep(0.01)
            if not self._process.isalive():
                return int(self._process.exitstatus or 0)
        raise AssertionError(self.seen)
