"""The control socket: answers, keys, cancel, pause; from root or the person the run belongs to, and nobody else."""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from steps.engine.durable import make_folder
from steps.engine.folder import Owner
from steps.errors import BringupError, InputError
from steps.model.base import Record

MOST_BYTES = 65536
MOST_TYPED = 4000
"""So many bytes of a line does a terminal take; what is longer it cuts without a word."""
RUN_OVER = "run-over"
"""The answer of a runner that only writes down its end: a new one has to be started."""
_PATIENCE = 5.0
_BREATH = 0.1
_CALLERS = 32
"""So many may be connected and silent at once: they must not keep others from being heard."""
Word = Literal["answer", "keys", "cancel", "pause", "continue", "retry", "skip", "hello"]


class Request(Record):
    """One thing a screen asks of the runner."""

    word: Word
    seq: int = 0
    text: str = ""
    data: bytes = b""
    action: str = ""


def is_line(text: str) -> bool:
    """Return whether a text can be typed as one line: the rest of it would answer the next question, perhaps where it is shown."""
    return len(text.encode(errors="replace")) <= MOST_TYPED and not any(ord(letter) < 32 or letter == "\x7f" for letter in text)


class Response(Record):
    """What became of it: `error` is a code of the words, `None` when it was done."""

    error: str | None = None


Handler = Callable[[Request], str | None]


class _Short:
    """A socket address that is never too long: the folder by its open descriptor (a path may have 107 bytes only)."""

    def __init__(self, path: Path) -> None:
        self._folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.address = f"/proc/self/fd/{self._folder}/{path.name}"

    def __enter__(self) -> str:
        return self.address

    def __exit__(self, *_: object) -> None:
        os.close(self._folder)


class Server:
    """Answers one request a connection, in a thread of its own, in the order in which they are made."""

    def __init__(self, path: Path, owner: Owner, handle: Handler) -> None:
        self._path = path
        self._owner = owner
        self._handle = handle
        prepare_folder(path.parent, owner)
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before = os.umask(0o177)
        try:
            with _Short(path) as address:
                self._socket.bind(address)
        finally:
            os.umask(before)
        if os.geteuid() == 0:
            os.chown(path, owner.uid, owner.gid, follow_symlinks=False)
        self._socket.listen(_CALLERS)
        threading.Thread(target=self._serve, name="server", daemon=True).start()

    def close(self) -> None:
        """Take the socket away."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        callers: dict[socket.socket, float] = {}
        while True:
            wait = min(callers.values(), default=math.inf) - time.monotonic()
            ready, _, _ = select.select([self._socket, *callers], (), (), max(0.0, wait) if callers else None)
            for caller in (one for one in ready if one is not self._socket):
                del callers[caller]
                with caller, contextlib.suppress(OSError, BringupError):
                    caller.send(msgspec.json.encode(self._respond(caller)))
            if self._socket in ready:
                try:
                    caller, _ = self._socket.accept()
                    caller.settimeout(_PATIENCE)
                    callers[caller] = time.monotonic() + _PATIENCE
                except OSError:
                    # No descriptor is left for one more; those that wait go, or it waits in the queue.
                    time.sleep(_BREATH)
            _let_go(callers)

    def _respond(self, connection: socket.socket) -> Response:
        # Read before anything else: closing with a message unread would reset the line, and the refusal would be lost.
        data = connection.recv(MOST_BYTES)
        if peer(connection) not in (0, self._owner.uid):
            return Response(error="not-your-run")
        try:
            request = msgspec.json.decode(data, type=Request)
        except msgspec.MsgspecError:
            return Response(error="request-unknown")
        return Response(error=self._handle(request))


def _let_go(callers: dict[socket.socket, float]) -> None:
    """Close the lines of those who said nothing in time; where there are too many, of those who wait longest."""
    now = time.monotonic()
    for caller in [one for number, (one, until) in enumerate(callers.items()) if until <= now or number < len(callers) - _CALLERS]:
        del callers[caller]
        caller.close()


def prepare_folder(folder: Path, owner: Owner) -> None:
    """Make the folder of the sockets; one that somebody else made is refused."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            make_folder(folder, 0o755 if os.geteuid() == 0 else 0o700)
    found = folder.lstat()
    if found.st_uid not in (0, os.geteuid(), owner.uid) or found.st_mode & 0o022:
        raise InputError("socket-folder-foreign", folder=str(folder))


def peer(connection: socket.socket) -> int:
    """Return the user at the other end."""
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


def ask(path: Path, request: Request) -> Response | None:
    """Return the runner's response, or `None` when no runner listens; one that was handed the request and is silent has it in its queue."""
    try:
        with _Short(path) as address, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(_PATIENCE)
            _connect(connection, address)
            connection.send(msgspec.json.encode(request))
            try:
                told = connection.recv(MOST_BYTES)
            except TimeoutError:
                return Response(error="run-queued")
            return msgspec.json.decode(told, type=Response)
    except PermissionError:
        return Response(error="not-your-run")
    except (OSError, msgspec.MsgspecError):
        return None


def _connect(connection: socket.socket, address: str) -> None:
    """Connect, waiting while the queue is full of others: who has a time limit is told so at once by the kernel."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return connection.connect(address)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
