"""The door to the network: reads bounded in time and size, over the system's certificates; nothing is sent but the question."""

from __future__ import annotations

import base64
import contextlib
import http.client
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from steps.host.files import FileTree
from steps.model.base import Record

T = TypeVar("T")

MOST_BYTES = 48 << 20
"""A longer answer is cut off: no page of an index is that long."""
AT_ONCE = 4
"""How many questions are under way together; an index is somebody's machine."""
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem")
_AGENT = "bringup"


class Unreachable(Exception):
    """No answer, or not the one that was asked for; `reason` is in plain words and names no secret."""

    def __init__(self, reason: str, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class Answer(Record):
    """What came back; `total` is the size of the whole thing where only a span was asked for, `None` when not said."""

    address: str
    """Where it came from in the end, redirects followed."""
    body: bytes
    kind: str = ""
    """The content type, without its parameters."""
    modified: str | None = None
    total: int | None = None
    partial: bool = False


class Web:
    """Reads addresses; a `file:` one only when `local` says that the person's own settings name such.

    `login` says who the person is at an address that does not say it itself; it is sent to that address and no other.
    """

    def __init__(
        self,
        *,
        proxy: str | None = None,
        certificates: str | None = None,
        seconds: float = 15.0,
        until: float | None = None,
        local: bool = False,
        login: Callable[[str], tuple[str, str] | None] | None = None,
    ) -> None:
        self._seconds = seconds
        self._until = until
        self._local = local
        self._login = login
        handlers: list[urllib.request.BaseHandler] = [urllib.request.HTTPSHandler(context=trusted(certificates)), _SameKind()]
        if proxy:
            handlers.append(urllib.request.ProxyHandler({"http": proxy, "https": proxy}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, address: str, *, accept: str = "*/*", span: tuple[int, int] | None = None, most: int = MOST_BYTES) -> Answer:
        """Return what stands at an address; `span` asks for the bytes from the first to before the second, (-n, 0) for the last n.

        Raises `Unreachable`.
        """
        try:
            parts = urlsplit(address)
            if parts.scheme == "file" and self._local:
                return _from_disk(address, parts, most)
        except ValueError:
            raise Unreachable("no address to read") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Unreachable(f"no address to read: {shown(address)}")
        headers = {"Accept": accept, "User-Agent": _AGENT}
        if span is not None:
            headers["Range"] = f"bytes={span[0]}" if span[0] < 0 else f"bytes={span[0]}-{span[1] - 1}"
        request = urllib.request.Request(_bare(parts), headers=headers)  # noqa: S310 - the scheme was looked at
        known = (unquote(parts.username), unquote(parts.password or "")) if parts.username else self._login and self._login(address)
        if known:
            secret = ":".join(known)
            request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(secret.encode()).decode())
        try:
            with self._opener.open(request, timeout=self._left()) as response:
                return self._answer(response, most)
        except urllib.error.HTTPError as error:
            error.close()
            raise Unreachable(f"{parts.hostname} answers {error.code}", error.code) from None
        except urllib.error.URLError as error:
            raise Unreachable(f"{parts.hostname}: {_reason(error.reason)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(f"{parts.hostname}: {_reason(error)}") from None

    def _answer(self, response: Any, most: int) -> Answer:
        """Return a response as a value; reads in pieces, so that neither a flood nor a trickle holds us."""
        ends, pieces, size = time.monotonic() + self._left(), [], 0
        while piece := response.read1(1 << 16):
            size += len(piece)
            if size > most:
                raise Unreachable("the answer is too long")
            if time.monotonic() > ends:
                raise Unreachable("the answer takes too long")
            pieces.append(piece)
        headers: Mapping[str, str] = response.headers
        span = headers.get("Content-Range", "").rpartition("/")[2]
        length = span if response.status == http.HTTPStatus.PARTIAL_CONTENT else headers.get("Content-Length", "")
        return Answer(
            address=response.geturl(),
            body=b"".join(pieces),
            kind=headers.get("Content-Type", "").partition(";")[0].strip().lower(),
            modified=headers.get("Last-Modified"),
            total=int(length) if length.isdigit() else None,
            partial=response.status == http.HTTPStatus.PARTIAL_CONTENT,
        )

    def _left(self) -> float:
        """Return how long this question may take; raises `Unreachable` when the time for all of them is up."""
        if self._until is None:
            return self._seconds
        left = min(self._seconds, self._until - time.monotonic())
        if left <= 0:
            raise Unreachable("the time is up")
        return left


class _SameKind(urllib.request.HTTPRedirectHandler):
    """Follows a redirect to http(s) only, and never from TLS to plain text."""

    def redirect_request(self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Return the next request, or refuse it."""
        scheme = urlsplit(newurl).scheme
        if scheme not in ("http", "https") or (req.type == "https" and scheme != "https"):
            raise urllib.error.URLError("redirected to another kind of address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def within(seconds: float, questions: Sequence[Callable[[], T]]) -> list[T | None]:
    """Return the answer of each question; `None` for one that failed or did not end in time.

    A name server or a silent machine can hold a thread longer than any limit of ours, so nobody waits for the threads.
    """
    answers: list[T | None] = [None] * len(questions)
    slots = threading.Semaphore(AT_ONCE)

    def ask(at: int) -> None:
        # Whatever a foreign answer makes of a question, its thread ends without a word, and the answer is not known.
        with slots, contextlib.suppress(Exception):
            answers[at] = questions[at]()

    threads = [threading.Thread(target=ask, args=(at,), daemon=True) for at in range(len(questions))]
    ends = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    return list(answers)


def trusted(certificates: str | None = None) -> ssl.SSLContext:
    """Return the certificates to trust: the person's file, else the system's, which a Python of its own may not find by itself."""
    usual = ssl.get_default_verify_paths()
    if certificates and Path(certificates).exists():
        folder = Path(certificates).is_dir()
        return ssl.create_default_context(cafile=None if folder else certificates, capath=certificates if folder else None)
    bundle = None if usual.cafile else next((path for path in _BUNDLES if Path(path).exists()), None)
    return ssl.create_default_context(cafile=bundle)


def shown(address: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _bare(parts: SplitResult) -> str:
    """Return the address without the person's name and password, and without a fragment."""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def _reason(error: object) -> str:
    """Return why, in the words of the system; never an address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) if isinstance(error, str) else type(error).__name__


def _from_disk(address: str, parts: SplitResult, most: int) -> Answer:
    """Return a file of this machine; a folder stands for its `index.html`."""
    path = unquote(parts.path)
    tree = FileTree()
    body = tree.read_bytes(f"{path.rstrip('/')}/index.html" if path.endswith("/") else path)
    if body is None or len(body) > most:
        raise Unreachable(f"{path} cannot be read", None if tree.exists(path) else 404)
    kind = "text/html" if path.endswith("/") else ""
    return Answer(address=address, body=body, kind=kind, total=len(body))
