"""A Python package index: which files a project has, and what a wheel's metadata says, without fetching the wheel."""

from __future__ import annotations

import email.parser
import io
import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from steps.catalog.versions import number
from steps.errors import PreflightError
from steps.model.base import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steps.host.web import Web

PYPI = "https://pypi.org/simple"
_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_MOST_FILES = 20_000
_MOST_METADATA = 4 << 20
_BLOCK = 1 << 20
_WHEEL = re.compile(
    r"(?P<name>[A-Za-z0-9._]+)-(?P<version>[A-Za-z0-9._+!]+)(-\d[A-Za-z0-9._]*)?-(?P<tag>[a-z0-9._]+-[a-z0-9._]+-[A-Za-z0-9._]+)\.whl"
)
_FINAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,5}(\.post[0-9]{1,9})?(\+[a-z0-9.]{1,60})?")
_LINUX = re.compile(r"(?:many)?linux(?:1|2010|2014|_([0-9]{1,3})_([0-9]{1,3}))?_(x86_64|aarch64)")
_NAMED_GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
_NO_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    ValueError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    EOFError,
    OSError,
)
"""What the reader of archives raises over one that is cut, encrypted or made up."""
Arch = Literal["x86_64", "aarch64"]


class Garbled(Exception):
    """An answer of an index that is not what it should be."""


class Wheel(Record):
    """One wheel of a project; sizes and days are `None` where the index does not say them."""

    file: str
    address: str
    version: str
    tag: str
    size: int | None = None
    uploaded: str | None = None
    requires_python: str | None = None
    metadata: bool = False
    """Whether its metadata lies beside it as a file of its own."""

    @property
    def python(self) -> str | None:
        """Return the Python line it is for (`3.12`); `None` for one that is for many, or for free-threaded Python."""
        interpreter, abi, _ = self.tag.split("-")
        found = re.fullmatch(r"cp([0-9])([0-9]{1,3})", interpreter)
        return f"{found[1]}.{found[2]}" if found and abi in (interpreter, f"{interpreter}m", f"{interpreter}mu") else None

    def linux(self, arch: Arch) -> bool:
        """Return whether it is for Linux with glibc on this architecture."""
        return any(found[3] == arch for found in map(_LINUX.fullmatch, self.tag.split("-")[2].split(".")) if found)

    @property
    def glibc(self) -> str | None:
        """Return the oldest glibc that its name allows; `None` when it names none."""
        floors = []
        for platform in self.tag.split("-")[2].split("."):
            found = _LINUX.fullmatch(platform)
            named = _NAMED_GLIBC.get(platform.partition("_")[0])
            if found and found[1]:
                floors.append(f"{found[1]}.{found[2]}")
            elif named:
                floors.append(named)
        return min(floors, key=number, default=None)


class Metadata(Record):
    """What a wheel says of itself."""

    requires: tuple[str, ...] = ()
    requires_python: str | None = None


def project(web: Web, index: str, name: str) -> tuple[Wheel, ...]:
    """Return the final, not withdrawn wheels of a project, oldest first.

    Raises `Unreachable`, `Garbled`; a project that the index does not have is an empty tuple only where its answer is 404.
    """
    from steps.host.web import Unreachable

    normal = re.sub(r"[-_.]+", "-", name).lower()
    try:
        answer = web.get(f"{index.rstrip('/')}/{normal}/", accept=_ACCEPT)
    except Unreachable as trouble:
        if trouble.status == 404:
            return ()
        raise
    found = _from_json(answer.body, answer.address) if answer.kind.endswith("json") else _from_html(answer.body, answer.address)
    return tuple(sorted(_wheels(found, normal, answer.address), key=lambda wheel: number(wheel.version)))


def wheel_of(file: str, name: str) -> Wheel | None:
    """Return the wheel of a file that lies in a folder; `None` when it is none of the project."""
    matched = _WHEEL.fullmatch(file)
    if not matched or not _is_of(matched["name"], re.sub(r"[-_.]+", "-", name).lower()) or not _FINAL.fullmatch(matched["version"]):
        return None
    return Wheel(file=file, address="", version=matched["version"], tag=matched["tag"])


def _is_of(spelt: str, name: str) -> bool:
    """Return whether a name in a file's name is this project's."""
    return re.sub(r"[-_.]+", "-", spelt).lower() == name


def _wheels(found: Iterable[Mapping[str, Any]], name: str, base: str) -> Iterator[Wheel]:
    """Yield the files that are wheels of the project, at an address of the same kind as the page's."""
    for count, entry in enumerate(found):
        if count >= _MOST_FILES:
            raise Garbled("too many files")
        matched = _WHEEL.fullmatch(str(entry.get("filename", "")))
        if not matched or not _is_of(matched["name"], name) or not _FINAL.fullmatch(matched["version"]):
            continue
        try:
            address = urldefrag(urljoin(base, str(entry.get("url", "")))).url
            here, there = urlsplit(base).scheme, urlsplit(address).scheme
        except ValueError:
            # `http://[::1/` is no address, and no reason to lose the others.
            continue
        if entry.get("yanked") or there not in ("http", "https", here) or (there == "file" != here):
            continue
        size, day, python = entry.get("size"), entry.get("upload-time"), entry.get("requires-python")
        yield Wheel(
            file=matched.string,
            address=address,
            version=matched["version"],
            tag=matched["tag"],
            size=size if isinstance(size, int) and size > 0 else None,
            uploaded=day[:10] if isinstance(day, str) and re.match(r"\d{4}-\d\d-\d\d", day) else None,
            requires_python=python if isinstance(python, str) else None,
            metadata=bool(entry.get("core-metadata") or entry.get("dist-info-metadata")),
        )


def _from_json(body: bytes, base: str) -> Iterator[Mapping[str, Any]]:
    """Yield the files of a page in JSON."""
    try:
        files = json.loads(body)["files"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Garbled(f"no index page: {urlsplit(base).hostname}") from None
    if not isinstance(files, list):
        raise Garbled(f"no index page: {urlsplit(base).hostname}")
    yield from (entry for entry in files if isinstance(entry, dict))


class _Links(HTMLParser):
    """Collects the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Mapping[str, Any]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a link's attributes."""
        given = dict(attrs)
        href = given.get("href")
        if tag != "a" or not href:
            return
        try:
            path = urlsplit(href).path
        except ValueError:
            return
        said = given.get("data-core-metadata", given.get("data-dist-info-metadata", "false"))
        self.found.append(
            {
                "filename": unquote(path.rpartition("/")[2]),
                "url": href,
                "requires-python": given.get("data-requires-python"),
                "yanked": "data-yanked" in given,
                "core-metadata": said != "false",
            }
        )


def _from_html(body: bytes, base: str) -> Iterator[Mapping[str, Any]]:
    """Yield the files of a page in HTML."""
    page = _Links()
    try:
        page.feed(body.decode("utf-8", "replace"))
    except (ValueError, AssertionError):
        raise Garbled(f"no index page: {urlsplit(base).hostname}") from None
    if not page.found and b"<a" not in body.lower() and b"<html" not in body.lower():
        raise Garbled(f"no index page: {urlsplit(base).hostname}")
    yield from page.found


def metadata(web: Web, wheel: Wheel) -> Metadata:
    """Return what a wheel says of itself: from the file beside it where the index has one, else from the wheel's own end.

    Raises `Unreachable`, `Garbled`.
    """
    text = web.get(f"{wheel.address}.metadata", most=_MOST_METADATA).body if wheel.metadata else _from_wheel(web, wheel)
    message = email.parser.HeaderParser().parsestr(text.decode("utf-8", "replace").partition("\n\n")[0])
    if message.get("Name") is None:
        raise Garbled(f"no metadata: {wheel.file}")
    return Metadata(requires=tuple(message.get_all("Requires-Dist", ())), requires_python=message.get("Requires-Python"))


def measured(web: Web, wheel: Wheel) -> tuple[int | None, str | None]:
    """Return the size and the day of a wheel: the index's word, else the server's; `None` for what nobody says."""
    if wheel.size is not None and wheel.uploaded is not None:
        return wheel.size, wheel.uploaded
    answer = web.get(wheel.address, span=(0, 1), most=_MOST_METADATA)
    day = None
    if answer.modified:
        try:
            day = parsedate_to_datetime(answer.modified).date().isoformat()
        except (ValueError, TypeError, OverflowError):
            day = None
    return wheel.size or answer.total, wheel.uploaded or day


def _from_wheel(web: Web, wheel: Wheel) -> bytes:
    """Return the METADATA in a wheel, read through a few spans of it."""
    try:
        with zipfile.ZipFile(_Spans(web, wheel)) as archive:
            names = [one for one in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", one)]
            if len(names) != 1 or archive.getinfo(names[0]).file_size > _MOST_METADATA:
                raise Garbled(f"no metadata: {wheel.file}")
            return archive.read(names[0])
    except _NO_ARCHIVE as error:
        raise Garbled(f"{wheel.file}: {error}") from None


class _Spans(io.RawIOBase):
    """A file on a server as something that can be read from anywhere; fetches blocks, and of one file no more than 16 MB."""

    def __init__(self, web: Web, wheel: Wheel) -> None:
        super().__init__()
        self._web = web
        self._address = wheel.address
        self._blocks: dict[int, bytes] = {}
        self._at = 0
        answer = web.get(wheel.address, span=(-_BLOCK, 0), most=_BLOCK)
        if answer.total is None or not (answer.partial or answer.total == len(answer.body)):
            raise Garbled(f"{wheel.file}: the server sends no part of a file")
        self._size = answer.total
        self._tail_from = self._size - len(answer.body)
        self._tail = answer.body

    def seekable(self) -> bool:
        """Return that it can."""
        return True

    def readable(self) -> bool:
        """Return that it can."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the bytes from here."""
        ends = self._size if size < 0 else min(self._size, self._at + size)
        pieces = []
        while self._at < ends:
            piece = self._piece(self._at)[: ends - self._at]
            if not piece:
                raise EOFError("a part is missing")
            pieces.append(piece)
            self._at += len(piece)
        return b"".join(pieces)

    def _piece(self, at: int) -> bytes:
        """Return some bytes from `at` on."""
        if at >= self._tail_from:
            return self._tail[at - self._tail_from :]
        block, offset = divmod(at, _BLOCK)
        if block not in self._blocks:
            if len(self._blocks) * _BLOCK >= 16 << 20:
                raise Garbled("too much of a wheel would be read")
            span = (block * _BLOCK, min((block + 1) * _BLOCK, self._size))
            self._blocks[block] = self._web.get(self._address, span=span, most=_BLOCK).body
        return self._blocks[block][offset:]


def indexes(index: str | None, extra: tuple[str, ...]) -> tuple[str, ...]:
    """Return the addresses of the indexes to ask, the main one first.

    Raises `PreflightError` for one that is neither http(s) nor a folder of this machine.
    """
    found = tuple(dict.fromkeys((index or PYPI, *extra)))
    for one in found:
        if urlsplit(one).scheme not in ("http", "https", "file"):
            raise PreflightError("index-unreadable", index=urlsplit(one).hostname or one[:60])
    return found
