"""A terminal for tests: a program in a real pseudo-terminal, its screen decoded by pyte."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

import pyte
from rich.cells import cell_len
from typing_extensions import Self

_UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<>=?][0-9;]*[a-zA-Z]|\x1b\[\?[0-9;]*\$p|\x1bP[^\x1b]*\x1b\\")
"""Private modes, keyboard protocols and queries that pyte would print as letters; showing and hiding the cursor is of no interest here."""
KEYS: Mapping[str, str] = {
    "enter": "\r", "escape": "\x1b", "up": "\x1b[A", "down": "\x1b[B", "tab": "\t", "space": " ", "backspace": "\x7f",
    "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "home": "\x1b[H", "end": "\x1b[F", "ctrl+c": "\x03", "ctrl+t": "\x14", "f1": "\x1bOP",
}  # fmt: skip


class Terminal:
    """A program on a terminal of so many columns and rows; a person's keys go in, rows of text come out."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], *, columns: int = 80, rows: int = 24) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.screen.write_process_input = self._answer  # type: ignore[method-assign]  # pyte's own hook for answers of the terminal
        self._stream = pyte.ByteStream(self.screen)
        self._rest = b""
        self.status: int | None = None
        self.raw = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            # Whoever runs the tests by nohup ignores it, and what is started would too.
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            os.execve(argv[0], list(argv), dict(environ))
        self.resize(columns, rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def fd(self) -> int:
        """The terminal's side of the line, for who counts bytes."""
        return self._fd

    def _answer(self, data: str) -> None:
        os.write(self._fd, data.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal, as a person does with the mouse."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)
        os.kill(self.pid, signal.SIGWINCH)

    def press(self, *keys: str) -> None:
        """Press keys: names such as `enter`, else the letters themselves."""
        for key in keys:
            os.write(self._fd, KEYS.get(key, key).encode())

    def read(self, seconds: float = 0.05) -> bool:
        """Take in what the program writes for so long; `False` when it ended."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.raw += data
        data = self._rest + data
        # A sequence that is cut off at the end of a read waits for its rest.
        cut = data.rfind(b"\x1b", max(0, len(data) - 40))
        cut = cut if cut >= 0 and re.fullmatch(rb"\x1b(\[[0-9;?<>=$]*)?", data[cut:]) else len(data)
        self._rest = data[cut:]
        self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", data[:cut]))
        return bool(data)

    def text(self) -> str:
        """Return the screen, rows without blanks at their end."""
        # The second cell of a wide letter is empty; one whose letter is gone stands in a frame of which only a part has come.
        rows, columns = range(self.screen.lines), range(self.screen.columns)
        return "\n".join("".join(self.screen.buffer[row][column].data for column in columns).rstrip() for row in rows)

    def orphans(self) -> int:
        """Return how many cells hold the second half of a wide letter that is not there: none once a frame has come whole."""
        rows = (self.screen.buffer[row] for row in range(self.screen.lines))
        pairs = ((row[column - 1].data if column else "", row[column].data) for row in rows for column in range(self.screen.columns))
        return sum(here == "" and cell_len(before[:1]) != 2 for before, here in pairs)

    def until(self, *texts: str, seconds: float = 30.0) -> str:
        """Wait until all texts are on the screen, and return it; an `AssertionError` shows the screen otherwise."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            alive = self.read()
            shown = self.text()
            if all(text in shown for text in texts):
                return shown
            if not alive:
                break
        raise AssertionError(f"{texts} did not come:\n{self.text()}")

    def ended(self, seconds: float = 30.0) -> int:
        """Wait for the end of the program and return its exit code (negative: the signal that killed it)."""
        deadline = time.monotonic() + seconds
        while self.status is None and time.monotonic() < deadline:
            self.read()
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                self.status = os.waitstatus_to_exitcode(status)
        while self.status is not None and select.select([self._fd], [], [], 0.05)[0] and self.read():
            pass
        assert self.status is not None, f"it did not end:\n{self.text()}"
        return self.status

    def close(self) -> None:
        """End the program if it still runs."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = -9
        os.close(self._fd)
