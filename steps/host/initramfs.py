"""What lies in an initramfs: the names of its files, by the distribution's own tool, else read from the archive itself."""

from __future__ import annotations

import json
import lzma
import zlib
from typing import Protocol

from steps.host.base import Result

LISTING = 120.0
"""So long may a tool take to list one image; seconds."""
_WORTH = ("nouveau", "nova", "nvidia", "modprobe.d/")
"""What a name must contain to be of use here: an image has thousands."""
_MAGIC, _HEAD = (b"070701", b"070702"), 110
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"


class Tree(Protocol):
    """The files of a system, and its programs."""

    def read_bytes(self, path: str) -> bytes | None:
        """Return a file's bytes, or `None`."""
        ...

    def exists(self, path: str) -> bool | None:
        """Return whether there is such a path."""
        ...

    def run(self, argv: tuple[str, ...], *, timeout: float = 10.0) -> Result:
        """Return what a program prints."""
        ...


def contents(tree: Tree, image: str) -> Result:
    """Return the names that matter as one JSON list, `null` where the image could not be read."""
    names = _names(tree, image)
    worth = None if names is None else sorted({name.lstrip("./") for name in names if any(word in name for word in _WORTH)})
    return Result(stdout=json.dumps({"names": worth}) + "\n", status=0)


def _names(tree: Tree, image: str) -> list[str] | None:
    if tree.exists(image) is False:
        return None
    for argv in (("lsinitramfs", image), ("lsinitrd", image)):
        told = tree.run(argv, timeout=LISTING)
        if told.status == 0 and "/" in told.stdout:
            # lsinitrd prints each name at the end of a line like those of `ls -l`.
            return [line.split(" -> ")[0].split()[-1] for line in told.stdout.splitlines() if line.split()]
    data = tree.read_bytes(image)
    return None if data is None else names_in(data)


def names_in(data: bytes) -> list[str] | None:
    """Return the names in an image, of all archives that follow each other in it; `None` for a compression that we cannot undo."""
    found: list[str] = []
    at = 0
    while at < len(data):
        if data[at] == 0:
            # Archives are padded with zeros.
            at += 1
            continue
        if data[at : at + 6] in _MAGIC:
            names, at = _archive(data, at)
            found += names
            continue
        unpacked = _unpacked(data[at:])
        return None if unpacked is None else found + (names_in(unpacked) or [])
    return found


def _archive(data: bytes, at: int) -> tuple[list[str], int]:
    """Return the names of the archive that starts at `at`, and where it ends; a torn one gives what was whole."""
    found: list[str] = []
    while data[at : at + 6] in _MAGIC and at + _HEAD <= len(data):
        size, length = (int(data[at + offset : at + offset + 8], 16) for offset in (54, 94))
        name = data[at + _HEAD : at + _HEAD + length - 1].decode("utf-8", errors="replace")
        body = _aligned(at + _HEAD + length)
        at = _aligned(body + size)
        if name == "TRAILER!!!":
            return found, at
        found.append(name)
    return found, len(data)


def _aligned(at: int) -> int:
    return (at + 3) & ~3


def _unpacked(data: bytes) -> bytes | None:
    """Return what is compressed in `data`, for the two kinds that Python undoes everywhere."""
    try:
        if data.startswith(_GZIP):
            return zlib.decompressobj(wbits=31).decompress(data)
        if data.startswith(_XZ):
            return lzma.LZMADecompressor().decompress(data)
    except (zlib.error, lzma.LZMAError):
        pass
    return None
