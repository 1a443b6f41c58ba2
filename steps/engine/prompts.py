"""Prompts of a running command: seen, met by a reply or a safe default, or put before the person."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Literal

from steps.catalog.prompts import UNKNOWN, PromptRow, prompt_row, recognise
from steps.engine.journal import Journal
from steps.engine.session import Session
from steps.model.action import Reply
from steps.model.base import Record

SILENCE = 0.3
"""So long must a command be silent before its last words can be a question."""
UNSURE_SILENCE = 5.0
"""So long where the kernel does not tell whether the command waits."""
PATIENT_LOOK = 1.0
"""So often is a command looked at again that says nothing more."""
MOST_REPLIES = 5
"""The same question more often than this is not answered by our replies: the person sees it."""
TAIL, DIALOG_TAIL = 2048, 8192
"""So many of the last bytes are looked at: a dialog paints its whole screen."""
EXCERPT_LINES = 12
Kind = Literal["line", "secret", "keys", "choice"]

_CONTROL = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")
_MOVE = re.compile(rb"\x1b\[[0-9;]*[ABEFHdf]")
"""The cursor goes to another line: what follows is other text."""
_QUESTION = re.compile(r"[:?>\])]\s*\Z")


def readable(tail: bytes) -> str:
    """Return the program's last lines as a person would read them: control sequences gone, redrawn lines in their last state."""
    placed = _CONTROL.sub(b"", _MOVE.sub(b"\n", tail))
    text = re.sub(rb"[^\n]\x08", b"", re.sub(rb"\r+\n", b"\n", placed)).decode("utf-8", errors="replace")
    return "\n".join(line.rpartition("\r")[2] for line in text.split("\n"))


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
        """Put a question and return its number; `None` while another lane's question is open."""
        with self._lock:
            if self._open is not None:
                return None
            id = row.id if row is not None else UNKNOWN
            self._open = self._journal.append("prompt", action, id=id, kind=kind, excerpt=excerpt, secret=kind == "secret").seq
            self._kind, self._row, self._answer, self._keys = kind, row, None, b""
            return self._open

    def answer(self, seq: int, text: str) -> str | None:
        """Take the person's answer; an error code when the question is not open, or the answer is none of its own."""
        with self._lock:
            if seq != self._open or self._answer is not None:
                return "answer-late"
            if self._kind == "choice" and (self._row is None or self._row.answer(text) is None):
                return "answer-unknown"
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
                self._journal.append("answered", to=seq, by=by)


class Asked(Record):
    """A question that is open for this command."""

    seq: int
    kind: Kind
    row: PromptRow | None
    size: int
    """How long the spool was then: more output means that the program went on."""


class PromptWatch:
    """Looks at one command between its outputs; call `look` at every tick."""

    def __init__(self, session: Session, action: str, replies: tuple[Reply, ...], desk: Desk, note: Callable[[str], None]) -> None:
        self._session = session
        self._action = action
        self._replies = {reply.prompt: reply.answer for reply in replies}
        self._desk = desk
        self._note = note
        self._asked: Asked | None = None
        self._met: dict[str, int] = {}
        self._next_look = 0.0
        self._looked_at = -1

    def look(self) -> None:
        """Answer, ask, or carry an answer over."""
        if self._asked is not None:
            self._carry(self._asked)
        elif self._session.silence() >= SILENCE:
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
        text = readable(self._session.tail(DIALOG_TAIL if dialog else TAIL))
        row = recognise(text, dialog=dialog)
        waits = self._session.waits()
        if waits is False or (waits is None and not self._surely(text, row)):
            return
        if row is not None and not dialog and self._meet(row):
            return
        kind: Kind = "keys" if dialog else "secret" if self._session.hides_typing else row.kind if row is not None else "line"
        if kind == "choice" and row is not None and not row.answers:
            kind = "line"
        seq = self._desk.ask(self._action, row, kind, "\n".join(text.rstrip().split("\n")[-EXCERPT_LINES:]))
        if seq is not None:
            self._asked = Asked(seq=seq, kind=kind, row=row, size=size)

    def _surely(self, text: str, row: PromptRow | None) -> bool:
        """Judge by the words where the kernel does not tell: a known prompt, or what looks like one after a long silence."""
        if row is not None or self._session.in_dialog:
            return True
        return self._session.silence() >= UNSURE_SILENCE and _QUESTION.search(text) is not None

    def _meet(self, row: PromptRow) -> bool:
        """Type the plan's reply or the row's safe default; `False` when the person shall answer."""
        reply = self._replies.get(row.id)
        chosen = reply if reply is not None else None if row.ask else row.default
        if chosen is None or self._met.get(row.id, 0) >= MOST_REPLIES:
            return False
        self._met[row.id] = self._met.get(row.id, 0) + 1
        answer = row.answer(chosen)
        self._session.send((answer.send if answer is not None else _line(chosen)).encode())
        self._note(row.id)
        return True

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
            known = asked.row.answer(answer) if asked.row is not None and asked.kind == "choice" else None
            self._session.send((known.send if known is not None else _line(answer)).encode())
        if not typed:
            self._note("nothing was typed: the terminal shows what is typed, and this was a secret")
        # What was not typed was not answered: the question is put again while the program waits.
        self._desk.settle(asked.seq, "person" if typed else "program")
        self._looked_at = -1
        self._asked = None


def _line(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def manual_row() -> PromptRow | None:
    """Return the row of our own question after something that only a person can do."""
    return prompt_row("manual")
