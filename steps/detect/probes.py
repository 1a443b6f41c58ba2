"""A host whose probes are asked once, side by side where they are slow."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from steps.host.base import Host, Result

_MOST_DIGITS = 24


class Probes:
    """Wraps a host: every command runs at most once, and `ahead` starts several at the same time.

    A host in which nothing is slow (a capture) is asked in place, without threads.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.read = host.read
        self.read_bytes = host.read_bytes
        self.exists = host.exists
        self.listdir = host.listdir
        self.readlink = host.readlink
        self.glob = host.glob
        self._answers: dict[tuple[str, ...], Future[Result]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def ahead(self, *commands: tuple[str, ...], timeout: float = 10.0) -> None:
        """Start `commands` without waiting for them."""
        for argv in commands:
            if argv in self._answers:
                continue
            if self.host.rehearsal:
                self._answers[argv] = _answered(self.host.run(argv, timeout=timeout))
                continue
            if self._pool is None:
                self._pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="probe")
            self._answers[argv] = self._pool.submit(self.host.run, argv, timeout=timeout)

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what the command printed, the first time it was asked."""
        self.ahead(argv, timeout=timeout)
        return self._answers[argv].result()

    def asked(self) -> tuple[tuple[str, ...], ...]:
        """Return the commands that were started."""
        return tuple(self._answers)

    def answers(self) -> tuple[tuple[tuple[str, ...], Result], ...]:
        """Return the commands that were asked and have answered, in the order of asking."""
        return tuple((argv, answer.result()) for argv, answer in self._answers.items() if answer.done() and not answer.cancelled())

    def first(self, *spellings: tuple[str, ...], timeout: float = 10.0) -> Result:
        """Return the first answer that says something; the last one when none does."""
        found = Result()
        for argv in spellings:
            found = self.run(argv, timeout=timeout)
            if found.status == 0 and found.stdout:
                return found
        return found

    def line(self, path: str) -> str | None:
        """Return the text of a one-line file without the white space around it; `None` when absent or empty."""
        text = self.read(path)
        return (text.strip() or None) if text is not None else None

    def number(self, path: str) -> int | None:
        """Return the whole number in a file (decimal or 0x…), or `None`; no kernel counts further than 64 bits."""
        text = self.line(path)
        try:
            found = int(text, 0) if text is not None and len(text) <= _MOST_DIGITS else None
        except ValueError:
            return None
        return found if found is not None and -(1 << 63) <= found < 1 << 64 else None

    def close(self) -> None:
        """Stop waiting for what is still running."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _answered(result: Result) -> Future[Result]:
    future: Future[Result] = Future()
    future.set_result(result)
    return future
