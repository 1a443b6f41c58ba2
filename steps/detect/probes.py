"""A host whose probes are asked once, side by side where they are slow."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial

from steps.host.base import Host, Result
from steps.host.local import NO_ANSWER

_MOST_DIGITS = 24
_MOST_AT_ONCE = 8


class _Answer:
    """What a probe answers: at once, or when the thread that asks it is done.

    `concurrent.futures` does the same and costs a tenth of all that looking at a machine may cost, for it loads the logging.
    """

    def __init__(self, ask: Callable[[], Result]) -> None:
        self._ask = ask
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self.unwanted = False

    def begin(self, turn: threading.Semaphore) -> None:
        """Ask in a thread, when it is this one's turn."""
        self._thread = threading.Thread(target=self._wait, args=(turn,), name="probe")
        self._thread.start()

    def _wait(self, turn: threading.Semaphore) -> None:
        with turn:
            try:
                self._result = None if self.unwanted else self._ask()
            except BaseException as error:  # noqa: BLE001 - it is raised where the answer is asked for
                self._error = error

    def done(self) -> bool:
        """Return whether the answer is there."""
        return self._result is not None

    def result(self) -> Result:
        """Return the answer, waiting for it, or asking now where no thread does; raises what asking raised."""
        if self._thread is not None:
            self._thread.join()
        elif self._result is None:
            self._result = self._ask()
        if self._error is not None:
            raise self._error
        return self._result or Result()


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
        self._answers: dict[tuple[str, ...], _Answer] = {}
        self._hung: set[str] = set()
        self._told: tuple[tuple[str, ...], ...] = ()
        self._overruled: dict[tuple[str, ...], _Answer] = {}
        self._turn = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def ahead(self, *commands: tuple[str, ...], timeout: float = 10.0) -> None:
        """Start `commands` without waiting for them."""
        for argv in commands:
            if argv in self._answers:
                continue
            answer = self._answers[argv] = _Answer(partial(self.host.run, argv, timeout=timeout))
            if self.host.rehearsal:
                answer.result()
            else:
                answer.begin(self._turn)

    def tell(self, answers: Mapping[tuple[str, ...], str]) -> None:
        """Take over what a person says that commands printed here: it counts before what the host would say."""
        for argv, output in answers.items():
            if argv in self._answers and argv not in self._told:
                self._overruled[argv] = self._answers[argv]
            self._answers[argv] = _Answer(partial(Result, stdout=output, status=0))
            self._answers[argv].result()
        self._told = tuple(dict.fromkeys((*self._told, *answers)))

    def untold(self) -> Probes:
        """Return the same host without what a person told of it; what it has answered itself is not asked again."""
        own = Probes(self.host)
        own._answers = {argv: answer for argv, answer in self._answers.items() if argv not in self._told} | self._overruled
        own._hung, own._turn = self._hung, self._turn
        return own

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what the command printed, the first time it was asked; a program that hung once is not asked in other words."""
        if argv not in self._answers and argv[0] in self._hung:
            return Result(stderr=f"{NO_ANSWER}\n")
        self.ahead(argv, timeout=timeout)
        found = self._answers[argv].result()
        if found.status is None and NO_ANSWER in found.stderr:
            self._hung.add(argv[0])
        return found

    def forms(self, wanted: Callable[[tuple[str, ...]], bool], *usual: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
        """Return the command lines that answer a question, to be run: the recorded ones that are `wanted`, in their order.

        Of a recording nothing else can be had; where programs can be asked, it is the `usual` ones, unless a person told of some.
        """
        recorded = tuple(argv for argv in dict.fromkeys((*self._told, *self.host.recorded())) if wanted(argv))
        return recorded or (() if self.host.rehearsal else usual)

    def asked(self) -> tuple[tuple[str, ...], ...]:
        """Return the commands that were started."""
        return tuple(self._answers)

    def answers(self) -> tuple[tuple[tuple[str, ...], Result], ...]:
        """Return the commands that were asked and have answered, in the order of asking."""
        return tuple((argv, answer.result()) for argv, answer in self._answers.items() if answer.done())

    def first(self, *spellings: tuple[str, ...], timeout: float = 10.0) -> Result:
        """Return the first answer that says something, the last one when none does; a program that hangs is not asked in other words."""
        found = Result()
        for argv in spellings:
            found = self.run(argv, timeout=timeout)
            if (found.status == 0 and found.stdout) or NO_ANSWER in found.stderr:
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
        """Begin nothing that waits for its turn; what is running ends by its own time limit."""
        for answer in self._answers.values():
            answer.unwanted = True
