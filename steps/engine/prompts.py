"""Prompts of a running command: seen, met by a reply or a safe default, or put before the person."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Literal

from steps.catalog.prompts import NEWLINE, UNKNOWN, PromptRow, prompt_row, recognise
from steps.engine.journal import Journal, Unwritten
from steps.engine.server import is_line
from steps.engine.session import ALTERNATE, Session
from steps.model.base import Record

SILENCE = 0.3
"""So long must a command be silent before its last words can be a question."""
UNSURE_SILENCE = 5.0
"""So long where the kernel does not tell whether the command waits."""
ALONE_SILENCE = 2.0
"""So long before a question that nobody knows, and nobody is there to answer, ends what asks it."""
PATIENT_LOOK = 1.0
"""So often is a command looked at again that says nothing more."""
MOST_REPLIES = 5
"""The same question more often than this is not answered by our replies: the person sees it."""
TAIL, DIALOG_TAIL = 2048, 8192
"""So many of the last bytes are looked at: a dialog paints its whole screen."""
EXCERPT_LINES = 20
Kind = Literal["line", "secret", "keys", "choice"]

_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")
_MOVE = re.compile(rb"\x1b\[[0-9;]*[ABEFHdf]")
"""The cursor goes to another line: what follows is other text."""
_QUESTION = re.compile(r"[:?>\])]\s*\Z")
_SUDO, _LIKE_SUDO = "sudo-password", "sudo-unsure"


def readable(tail: bytes) -> str:
    """Return the program's last lines as a person would read them: control sequences gone, redrawn lines in their last state."""
    placed = _CONTROL.sub(b"", _MOVE.sub(b"\n", tail))
    text = re.sub(rb"[^\n]\x08", b"", re.sub(rb"\r+\n", b"\n", placed)).decode("utf-8", errors="replace")
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


def painted(tail: bytes) -> bytes:
    """Return what a dialog painted, without the dialogs before it."""
    return tail[max(0, *(tail.rfind(mark + b"h") for mark in ALTERNATE)) :]


def excerpt(text: str, row: PromptRow | None) -> str:
    """Return the program's last lines for the person, without those that our own answers take the place of."""
    shown = re.sub(row.omit, "", text) if row is not None and row.omit else text
    return "\n".join([line for line in shown.rstrip().split("\n") if line.strip()][-EXCERPT_LINES:])


class Desk:
    """Where questions wait for the person: one at a time, numbered by its journal entry, answered once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._open: int | None = None
        self._kind: Kind = "line"
        self._row: PromptRow | None = None
        self._answer: str | None = None
        self._keys = b""

    def ask(self, action: str, row: PromptRow | None, kind: Kind, excerpt: str) -> int | None:
        """Put a question and return its number; `None` while another lane's is open, or the disk has no room for it: ask again."""
        with self._lock:
            if self._open is not None:
                return None
            id = row.id if row is not None else UNKNOWN
            with contextlib.suppress(Unwritten):
                self._open = self._journal.append("prompt", action, id=id, kind=kind, excerpt=excerpt, secret=kind == "secret").seq
            if self._open is None:
                return None
            self._kind, self._row, self._answer, self._keys = kind, row, None, b""
            return self._open

    def answer(self, seq: int, text: str) -> str | None:
        """Take the person's answer; an error code when the question is not open, or the answer is none of its own."""
        with self._lock:
            if seq != self._open or self._answer is not None:
                return "answer-late"
            if self._kind == "choice" and (self._row is None or self._row.answer(text) is None):
                return "answer-unknown"
            if self._kind != "choice" and not is_line(text):
                return "answer-no-line"
            self._answer = text
            return None

    def type(self, seq: int, data: bytes) -> str | None:
        """Take keys for a dialog; an error code when it is not open."""
        with self._lock:
            if seq != self._open or self._kind != "keys":
                return "answer-late"
            self._keys += data
            return None

    def taken(self, seq: int) -> tuple[str | None, bytes]:
        """Return the answer and the keys that came since the last call."""
        with self._lock:
            if seq != self._open:
                return None, b""
            keys, self._keys = self._keys, b""
            return self._answer, keys

    def settle(self, seq: int, by: Literal["person", "program"]) -> None:
        """Close a question: it was answered, or the program went on without."""
        with self._lock:
            if seq == self._open:
                self._open, self._answer, self._keys = None, None, b""
                # What was typed was typed; the end of the action says the same where this finds no room.
                with contextlib.suppress(Unwritten):
                    self._journal.append("answered", to=seq, by=by)


class Asked(Record):
    """A question that is open for this command."""

    seq: int
    kind: Kind
    row: PromptRow | None
    size: int
    """How long the spool was then: more output means that the program went on."""


class Manners(Record):
    """How the questions of a command are met."""

    replies: Mapping[str, str] = {}
    """Answers by the row's id: the action's own, then the profile's."""
    word: str = ""
    """What only our run was told to let sudo ask with."""
    attended: bool = True
    """Whether a person may be asked at all."""


class PromptWatch:
    """Looks at one command between its outputs; call `look` at every tick."""

    def __init__(self, session: Session, action: str, manners: Manners, desk: Desk, note: Callable[[str], None]) -> None:
        self._session = session
        self._action = action
        self._manners = manners
        self._desk = desk
        self._note = note
        self._asked: Asked | None = None
        self._met: dict[str, int] = {}
        self._next_look = 0.0
        self._looked_at = -1
        self._echo = ""
        self.unanswered: str | None = None
        """The row (or "unknown") that nobody was there to answer."""

    def look(self) -> None:
        """Answer, ask, or carry an answer over."""
        if self._asked is not None:
            self._carry(self._asked)
        elif self._session.silence() >= SILENCE:
            # Where descriptors are short for a moment the command goes on, and the next turn looks again.
            with contextlib.suppress(OSError):
                self._seek()

    def close(self) -> None:
        """Take back a question of a command that has ended."""
        if self._asked is not None:
            self._desk.settle(self._asked.seq, "program")
            self._asked = None

    def _seek(self) -> None:
        size, now = self._session.spooled(), time.monotonic()
        if size == self._looked_at and now < self._next_look:
            return
        # Nothing new: a build may be silent for minutes, and asking the kernel costs a walk through its processes.
        self._next_look = now + (PATIENT_LOOK if size == self._looked_at else 0.0)
        self._looked_at = size
        dialog = self._session.in_dialog
        text = readable(painted(self._session.tail(DIALOG_TAIL)) if dialog else self._session.tail(TAIL))
        row = self._known(text, dialog=dialog)
        waits = self._session.waits()
        if waits is False or (waits is None and not self._surely(text, row)):
            return
        if row is not None and self._meet(row):
            return
        if not self._manners.attended:
            if row is not None or self._session.silence() >= ALONE_SILENCE:
                self.unanswered = row.id if row is not None else UNKNOWN
            return
        kind: Kind = "keys" if dialog else "secret" if self._session.hides_typing else row.kind if row is not None else "line"
        if kind == "choice" and row is not None and not row.answers:
            kind = "line"
        seq = self._desk.ask(self._action, row, kind, excerpt(text, row))
        if seq is not None:
            self._asked = Asked(seq=seq, kind=kind, row=row, size=size)

    def _known(self, text: str, *, dialog: bool) -> PromptRow | None:
        """Return the row of the prompt; sudo is sure to ask only where it says the word that our run was given.

        What we typed is echoed by the terminal, and may come after the question that it led to.
        """
        said = text.rstrip()
        row = recognise(text, dialog=dialog)
        if row is None and self._echo and said.endswith(self._echo):
            row = recognise(said.removesuffix(self._echo), dialog=dialog)
        return prompt_row(_LIKE_SUDO) if row is not None and row.id == _SUDO and self._manners.word not in text else row

    def _surely(self, text: str, row: PromptRow | None) -> bool:
        """Judge by the words where the kernel does not tell: a known prompt, or what looks like one after a long silence."""
        if row is not None or self._session.in_dialog:
            return True
        return self._session.silence() >= UNSURE_SILENCE and _QUESTION.search(text) is not None

    def _meet(self, row: PromptRow) -> bool:
        """Type the plan's reply, the profile's or the row's safe default; `False` when the person shall answer."""
        asks = self._manners.attended and row.ask
        chosen = self._manners.replies.get(row.id, None if asks else row.default)
        if chosen is None or self._met.get(row.id, 0) >= MOST_REPLIES:
            return False
        self._met[row.id] = self._met.get(row.id, 0) + 1
        self._send(row.typed(chosen))
        self._note(f"{row.id}: {chosen}")
        return True

    def _send(self, text: str) -> None:
        self._session.send(text.encode())
        self._echo = text.strip()

    def _carry(self, asked: Asked) -> None:
        answer, keys = self._desk.taken(asked.seq)
        if keys:
            self._session.send(keys)
        if answer is not None:
            self._type(asked, answer)
        elif asked.kind == "keys":
            if not self._session.in_dialog:
                self.close()
        elif self._session.spooled() != asked.size and self._session.silence() >= SILENCE and self._session.waits() is False:
            self.close()

    def _type(self, asked: Asked, answer: str) -> None:
        typed = True
        if asked.kind == "secret":
            typed = self._session.send_secret(answer)
        else:
            self._send(asked.row.typed(answer) if asked.row is not None else f"{answer.removesuffix(NEWLINE)}{NEWLINE}")
        if not typed:
            self._note("nothing was typed: the terminal shows what is typed, and this was a secret")
        # What was not typed was not answered: the question is put again while the program waits.
        self._desk.settle(asked.seq, "person" if typed else "program")
        self._looked_at = -1
        self._asked = None


def manual_row() -> PromptRow | None:
    """Return the row of our own question after something that only a person can do."""
    return prompt_row("manual")
