"""How many frames are under way to the terminal: each ends in a question for the cursor's place, and further ones wait for the answers.

Without it a slow link is filled with frames that nobody has seen yet, here, in sshd and in TCP, and a key waits behind all of them.
"""

from __future__ import annotations

from collections import deque

ASK = "\x1b[6n"
"""Asks where the cursor is; every terminal since the VT100 answers."""
FAR = 0.12
"""Seconds of round trip from which a link over SSH counts as slow."""
UNDER_WAY = 2
PATIENCE = 3.0
"""Seconds after which an answer counts as lost."""
_FIRST_ANSWER = 1.0
"""Seconds within which any terminal answers, if it does."""
_LOST = 2
"""Lost answers in a row after which the terminal counts as one that does not answer."""
_JUDGED = 3
SLOW_PACE = 0.25
"""Seconds between two frames in low-bandwidth mode."""


class Gate:
    """Says when the next frame may go; a terminal that never answered is not waited for."""

    def __init__(self) -> None:
        self.slow = False
        """Whether few frames are sent: one under way, and a pause after each."""
        self._asked: deque[float] = deque()
        self._trips: deque[float] = deque(maxlen=_JUDGED)
        self._answers = False
        self._lost = 0
        self._sent_at = float("-inf")

    def wait(self, now: float) -> float:
        """Return the seconds until the next frame may go if no answer comes before; 0 when it may go now."""
        pause = self._sent_at + SLOW_PACE - now if self.slow else 0.0
        if self._answers:
            while self._asked and now - self._asked[0] >= PATIENCE:
                self._asked.popleft()
                self._lost += 1
                self._answers = self._lost < _LOST
        full = self._answers and len(self._asked) >= (1 if self.slow else UNDER_WAY)
        return max(0.0, pause, self._asked[0] + PATIENCE - now if full else 0.0)

    def sent(self, now: float) -> str:
        """Note that a frame goes, and return its end: the question, unless enough of them are unanswered."""
        self._sent_at = now
        if len(self._asked) >= UNDER_WAY:
            return ""
        self._asked.append(now)
        return ASK

    def answered(self, at: float) -> None:
        """Take an answer that came at `at`; called by the thread that reads the terminal."""
        self._answers, self._lost = True, 0
        if self._asked:
            self._trips.append(at - self._asked.popleft())

    def patience(self, now: float) -> float:
        """Return how long it is worth waiting for the answers that are still to come, in seconds; 0 when there are none."""
        if not self._asked:
            return 0.0
        if not self._answers:
            return max(0.0, self._asked[-1] + _FIRST_ANSWER - now)
        return min(_FIRST_ANSWER, 0.1 + 3 * max(self._trips, default=0.0))

    @property
    def all_answered(self) -> bool:
        """Whether no answer is to come."""
        return not self._asked

    def lost_at(self, now: float) -> float | None:
        """Return when the last answer that is under way counts as lost; `None` when none is, or it counts so already."""
        last = next(reversed(tuple(self._asked)), None)
        return last + PATIENCE if last is not None and now < last + PATIENCE else None

    @property
    def answers(self) -> bool:
        """Whether the terminal is known to answer."""
        return self._answers

    @property
    def trip(self) -> float | None:
        """The shortest of the last round trips, in seconds, since other work only ever adds to one; `None` before the first."""
        return min(self._trips, default=None)

    @property
    def far(self) -> bool:
        """Whether the terminal is so far away that few frames should be sent: at least three answers in a row took long."""
        return len(self._trips) == _JUDGED and min(self._trips) > FAR

    def begin_again(self) -> None:
        """Forget what is under way: the terminal was given away in between."""
        self._asked.clear()
